"""The inference engine: model runtimes in NumPy and C, and the sampling methods that compute a Region's density.

The engine knows symbols, positions and weights. It sees neither PyTorch nor SQL.

- ``runtime``: what a method may ask of a model; ``resmade``: the NumPy runtime of a ResMADE.
- ``text``: trees of tokens, the runtime of a text model.
- ``exact``, ``paper`` (progressive sampling and variable skipping), ``particles``: the methods.
- ``density``: the door, by a method's name.
"""
