"""Evaluation of a model: q-errors, consistency rules, diagnosis, and baselines to compare with."""
