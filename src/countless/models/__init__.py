"""Codes to log-probabilities: the networks, in PyTorch.

Only ``train/`` may import this room. What leaves it is a dict of arrays, which ``engine/`` evaluates in NumPy.
"""
