"""Text models: a causal Transformer over characters, and the probability that an automaton accepts a string."""
