"""The extent of a clause in a grid: the share of each cell that it keeps, where it cuts some."""

from __future__ import annotations

from sqlglot import exp

from countless.query.domains.comparisons import is_null_test
from countless.query.grids.ranges import Cut
from countless.query.grids.survey import Lines
from countless.query.parsing.conjuncts import conjuncts

Parts = dict[int, tuple[float, float]]  # of cells, from which share of their rows to which


def cut_cells(lines: Lines, condition: exp.Expr | None, index: int) -> Parts:
    """What the comparisons that ``condition`` joins by AND leave of the cells of a column that they cut.

    Other clauses, such as those with OR, are taken to leave whole cells.
    """
    line = lines.line(index)
    if line is None or condition is None:
        return {}
    low: Cut | None = None
    high: Cut | None = None
    for node in conjuncts(condition):
        columns = {lines.schema.find(column.name) for column in node.find_all(exp.Column)}
        found = lines.ranges(index, node) if columns == {index} and not is_null_test(node) else None
        if found is not None and len(found.true) == 1:
            start, end = found.true[0]
            low = max((cut for cut in (low, start) if cut is not None), default=None)
            high = min((cut for cut in (high, end) if cut is not None), default=None)
    parts: Parts = {}
    if low is not None:
        cell, share = line.below(low[0])
        parts[cell] = share, 1.0
    if high is not None:
        cell, share = line.below(high[0])
        start_share = parts.get(cell, (0.0, 1.0))[0]
        parts[cell] = start_share, max(start_share, share)
    return parts
