"""From the engine's densities to answers: counts, distributions and aggregates, with intervals."""
