"""Answers with intervals from the engine's densities: counts, distributions and aggregates."""
