"""The inference engine: model runtimes in NumPy and C, and the sampling methods that compute a Region's density.

The engine knows symbols, positions and weights. It sees neither PyTorch nor SQL.

- ``density``: densities of regions, by a method's name; ``methods``: the registry of methods.
- ``columns``: the column model: plans, walks, enumeration; ``text``: the same for strings.
- ``fusion``: counts of pairs of columns, and text in the context of its row.
- ``distributions``: joint distributions, samples, likelihoods, completion.
- ``paper``: the paper's samplers; ``evidence``: counts of evidence rows; ``kernel_c``: the compiled code.
"""
