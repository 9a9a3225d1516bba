"""Arrays and a Region to a density: model runtimes, and the methods that walk them.

The engine knows symbols, positions and weights. It sees neither PyTorch nor SQL.

- ``runtime``: what a method may ask of a model; ``resmade``: the NumPy runtime of a ResMADE.
- ``text``: trees of tokens, the runtime of a text model.
- ``exact``, ``paper`` (progressive sampling and variable skipping), ``particles``: the methods.
- ``density``: the door, by a method's name.
"""
