"""Small models with every kind of content, and questions of every kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from countless import Estimator, Network, TextNetwork, fit
from countless.data.sources.connection import connect

ROWS = 1_200
TABLE = f"""
SELECT range % 7 AS day, hash(range, 1) % 9973 / 100 AS amount, (hash(range, 2) % 40)::INTEGER AS age,
    CASE WHEN hash(range, 3) % 9 > 0 THEN ['Oslo', 'Rome', 'Łódź'][1 + (hash(range, 4) % 3)::INTEGER] END AS city,
    DATE '2020-01-01' + (hash(range, 5) % 90)::INTEGER AS since, hash(range, 6) % 3 = 0 AS married,
    round((hash(range, 7) % 70) / 4, 2)::DECIMAL(4, 2) AS score,
    TIMESTAMP '2021-03-01' + to_minutes((hash(range, 8) % 90000)::INTEGER) AS seen,
    CASE WHEN range % 50 > 0 THEN 'p' || hash(range) % 300 || '.org' || if(range % 99 = 0, 'é', '') END AS page
FROM range({ROWS})
"""
COLUMNS = ["day", "age", "city", "since", "married", "score"]
NETWORK = Network(hidden=24, blocks=1, embedding=8)
TEXT_NETWORK = TextNetwork(width=16, blocks=1, heads=2, inner=16, buckets=32)
KINDS: dict[str, dict[str, Any]] = {
    "columns": {"columns": COLUMNS, "evidence": "none"},
    "text": {"columns": ["page"], "text": ["page"], "evidence": "none", "calibrate": False},
    "grids": {"columns": ["day", "amount", "seen"], "max_distinct": 100, "evidence": "none", "orders": 2},
    "mixed": {"text": ["page"], "max_distinct": 100, "orders": 2, "evidence": 30},
    "whole": {"text": ["page"], "evidence": "all"},
}
CLAUSES = (
    "age > 30",
    "city = 'Oslo' AND age < 20",
    "since > DATE '2020-01-10' AND score < 9",
    "day IN (1, 3) OR married",
    "month(since) = 2",
    "amount < 40 AND day = 3 OR day = 5",
    "seen > TIMESTAMP '2021-03-20' AND amount > 10.5",
    "hour(seen) = 3",
    "page LIKE '%1%'",
    "page LIKE 'p2%' AND day < 4",
    "page > 'p2' AND page IS NOT NULL",
    "city IS NULL",
    "age > day",
)
Ask = Callable[[Estimator], Any]


def make_table(folder: Path) -> Path:
    """The table as a Parquet file."""
    path = folder / "small.parquet"
    connect().execute(f"COPY ({TABLE}) TO '{path}'")
    return path


def make_models(folder: Path, kinds: Iterable[str] = KINDS) -> dict[str, Path]:
    """A model file of each of the kinds, in ``folder``; those that are there already are used again."""
    table = make_table(folder)
    files = {kind: folder / f"{kind}.countless" for kind in kinds}
    for kind, path in files.items():
        if not path.exists():
            fit(table, epochs=1, batch=200, network=NETWORK, text_network=TEXT_NETWORK, **KINDS[kind]).save(path)
    return files


def questions() -> dict[str, Ask]:
    """Questions of every kind by name: functions of an estimator, whose results can be compared.

    A model without the columns of a question refuses it.
    """
    asks: dict[str, Ask] = {f"estimate {clause}": _estimate(clause) for clause in CLAUSES}
    asks["estimate many"] = lambda model: [
        _numbers(estimate) for estimate in model.estimate_many(["day = 1", "day > 4"])
    ]
    asks["prepared"] = lambda model: _numbers(model.prepare("day > ?")(3).estimate())
    asks["distribution"] = lambda model: model.distribution("day").rows
    asks["joint"] = lambda model: model.joint(["day", "married"], "age < 30").rows.tolist()
    asks["sums"] = lambda model: model.query("SELECT city, count(*), avg(age) FROM t GROUP BY city ORDER BY city").rows
    asks["median"] = lambda model: model.query("SELECT median(score), sum(day) FROM t WHERE age > 9").rows
    asks["explain"] = lambda model: str(model.explain("day = 2").estimate.rows)
    asks["sample"] = lambda model: str(model.sample(3, where="day < 3", seed=1))
    return asks


def _estimate(clause: str) -> Ask:
    return lambda model: _numbers(model.estimate(clause))


def _numbers(estimate: Any) -> tuple[float, float, float]:
    return estimate.low, estimate.rows, estimate.high
