"""The neural networks in PyTorch: from codes to log-probabilities.

Only ``train/`` may import this room. What leaves it is a dict of arrays, which ``engine/`` evaluates in NumPy.
"""
