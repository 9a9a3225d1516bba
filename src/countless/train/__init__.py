"""Codes to arrays: masking, the loop, checkpoints.

>>> from countless.train.masking import UniformMasking
>>> UniformMasking().name
'uniform'
"""
