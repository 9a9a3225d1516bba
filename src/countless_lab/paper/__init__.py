"""The paper's experiments: models and answers as cells of a sweep, and the exhibits made from them."""
