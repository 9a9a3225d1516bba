"""Column aliases in a SELECT that other columns use: ``count(*) AS n, n + n AS m, m + m``."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp


def expanded_size(items: Iterable[exp.Expr]) -> int:
    """The number of nodes of ``items`` after every alias is replaced by its expressions, as DuckDB does.

    An alias may be used in later items; every use can double the size.

    >>> from sqlglot import parse_one
    >>> items = parse_one("SELECT 1 AS a, a + a AS b, b + b AS c, c + c").expressions
    >>> expanded_size(items[:1]), expanded_size(items[:3]), expanded_size(items)
    (3, 49, 120)
    """
    sizes: dict[str, int] = {}
    total = 0
    for item in items:
        size = 0
        for node in item.walk():
            size += 1
            if isinstance(node, exp.Column) and not node.table:
                size += sizes.get(node.name.casefold(), 0)
        if isinstance(item, exp.Alias):
            name = item.alias.casefold()
            sizes[name] = max(size, sizes.get(name, 0))
        total += size
    return total
