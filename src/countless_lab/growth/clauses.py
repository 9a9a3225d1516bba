"""Random conjunctions with an exact number of filters, for tables whose size is known beforehand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from countless.workload.columns import FEW_VALUES
from countless_lab.growth.synthetic import Synthetic

OPERATORS = ("=", "<=", ">=")


def random_clauses(table: Synthetic, count: int, filters: int, always: Sequence[int] = ()) -> list[str]:
    """``count`` conjunctions of ``filters`` filters on distinct columns, each with the literals of one random row.

    A column of few values gets ``=``, any other one of ``=``, ``<=`` and ``>=``, as in the paper's queries. The columns
    in ``always`` are filtered by every query.
    """
    rng = np.random.default_rng([table.seed, count, filters])
    values = table.first_rows()
    free = np.setdiff1d(np.arange(len(table.distinct)), always)
    clauses = []
    for row in rng.integers(len(values["c0"]), size=count):
        columns = sorted([*always, *rng.choice(free, size=filters - len(always), replace=False)])
        conditions = [
            f"c{index} {_operator(table.distinct[index], rng)} {values[f'c{index}'][row]}" for index in columns
        ]
        clauses.append(" AND ".join(conditions))
    return clauses


def _operator(distinct: int, rng: np.random.Generator) -> str:
    return "=" if distinct < FEW_VALUES else str(rng.choice(OPERATORS))
