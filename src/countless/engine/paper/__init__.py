"""The paper's samplers, as published. Benchmarks compare with them."""
