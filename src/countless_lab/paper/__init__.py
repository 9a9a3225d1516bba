"""The paper's experiments: models and questions as cells of a sweep, and the exhibits that are made of them."""
