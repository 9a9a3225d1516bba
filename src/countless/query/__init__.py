"""The query compiler: from a WHERE clause to a Region.

A clause is parsed (``parse``), perhaps with parameters (``parameters``), or built in Python (``predicate``). Each
comparison in it is about one column and becomes two sets of that column's codes, where it is true and where it is
false: by search in the sorted domain (``search``), or by running it on the domain in DuckDB (``dictionary``), which
defines the meaning. Where a column has a grid, they are sets of atoms instead (``gridded``): pieces of a ``line``
between the ``cuts`` that constants make on its ``scale``, and they become weights of the grid's cells at the end. Of a
text column they are sets of strings (``texts``): automata made by hand (``strings``), or those of regular expressions
(``regexes``, ``patterns``). The connectives join these sets in SQL's three-valued logic (``formula``),
and the result is cut into disjoint boxes (``boxes``). ``compile`` is the door.

What users make DuckDB compute is of a list of functions (``functions``), and runs in processes with bounds of memory
and time (``sandbox``, ``sandbox_job``).
"""
