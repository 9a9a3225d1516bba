"""The cells of a grid that a clause cuts, and the part of each that it keeps."""

from __future__ import annotations

from sqlglot import exp

from countless.query.domains.comparisons import is_null_test
from countless.query.grids.ranges import Cut
from countless.query.grids.survey import Lines
from countless.query.parsing.conjuncts import conjuncts

CellShares = dict[int, tuple[float, float]]  # cell -> the range of its rows that is kept, from 0 to 1


def cut_cells(lines: Lines, condition: exp.Expr | None, index: int) -> CellShares:
    """The part of each cut cell of a column that the comparisons joined by AND in ``condition`` keep.

    Other conditions, such as those with OR, are assumed to keep whole cells.
    """
    line = lines.line(index)
    if line is None or condition is None:
        return {}
    low: Cut | None = None
    high: Cut | None = None
    for node in conjuncts(condition):
        columns = {lines.schema.find(column.name) for column in node.find_all(exp.Column)}
        ranges = lines.ranges(index, node) if columns == {index} and not is_null_test(node) else None
        if ranges is not None and len(ranges.true) == 1:
            start, end = ranges.true[0]
            low = max((cut for cut in (low, start) if cut is not None), default=None)
            high = min((cut for cut in (high, end) if cut is not None), default=None)
    shares: CellShares = {}
    if low is not None:
        cell, share = line.below(low[0])
        shares[cell] = share, 1.0
    if high is not None:
        cell, share = line.below(high[0])
        start_share = shares.get(cell, (0.0, 1.0))[0]
        shares[cell] = start_share, max(start_share, share)
    return shares
