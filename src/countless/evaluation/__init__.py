"""How good is it: q-errors, rules, diagnosis, and the baselines that a model must beat."""
