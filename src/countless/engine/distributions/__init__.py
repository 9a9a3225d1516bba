"""Distributions, samples, likelihoods and completions from the model of the columns."""
