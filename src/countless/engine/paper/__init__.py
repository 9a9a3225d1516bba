"""The paper's samplers, as published, for comparison in benchmarks."""
