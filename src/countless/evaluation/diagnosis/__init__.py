"""Diagnosis of a model's errors: by kind of query, by column, and by cause (the sampler or the model)."""
