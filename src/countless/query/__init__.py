"""The query compiler: from a WHERE clause to a Region.

A clause is parsed (``parse``), perhaps with parameters (``parameters``), or built in Python (``predicate``). Each
comparison in it is about one column and becomes two sets of that column's codes, where it is true and where it is
false: by search in the sorted domain (``domain_search``), or by running it on the domain in DuckDB
(``domain_evaluation``), which defines the meaning. Where a column has a grid (``grids``), they are sets of atoms
instead: pieces of a line between the cuts that constants make, which become weights of the grid's cells at the end. For
a text column they are sets of strings (``text``): automata made from comparisons, LIKE and regular expressions. The
connectives join these sets in SQL's three-valued logic (``formula``), and the result is cut into disjoint boxes
(``boxes``). ``clause_compiler`` does this for one clause, and ``compile`` is the entry point.

What users make DuckDB compute is limited to a list of functions, and runs in processes with limits of memory and time
(``sandbox``). A SELECT with aggregates is taken apart in ``select``.
"""
