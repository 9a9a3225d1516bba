"""WHERE to Region.

A clause is parsed (``parse``), or built in Python (``predicate``). Each comparison in it is about one column and
becomes two sets of that column's codes, where it is true and where it is false: by search in the sorted domain
(``search``), or by running it on the domain in DuckDB (``dictionary``), which defines the meaning. The connectives
join these sets in SQL's three-valued logic (``formula``), and the result is cut into disjoint boxes (``boxes``).
``compile`` is the door.
"""
