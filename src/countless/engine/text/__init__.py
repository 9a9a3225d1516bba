"""Text models: a causal Transformer over characters, and how many strings an automaton accepts under it."""
