"""What a model of columns says beyond counts: distributions, samples, likelihoods, completions."""
