"""How long it takes until a fit makes its first training step, from PostgreSQL and from the same rows as Parquet.

.venv/bin/python benchmarks/postgres.py [TABLE.parquet] [--rows 1000000] [--repeats 3] [-o FILE.json]

A private PostgreSQL server is started and holds the table; without one, a table of columns of every common type is
made up. The two take turns; the least time of each counts.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import countless
from countless.data.columns.types import TEXT, quote_identifier, stored_type
from countless.data.sources.source import Source, connect
from countless.evaluation.baselines.postgres.dialect import postgres_type
from countless.evaluation.baselines.postgres.server import PrivatePostgresServer
from countless_lab.measurement.script import script_parser, write_result

CHUNK = 1 << 20
# Numbers, decimals, strings, dates and instants, some of which depend on each other, with NULLs.
ROWS = """
SELECT
    range AS id,
    (hash(range, 1) % 100)::SMALLINT AS store,
    (hash(range, 1) % 100 // 10)::INTEGER AS region,
    CASE WHEN hash(range, 2) % 20 > 0 THEN 'product ' || hash(range, 2) % 900 END AS product,
    (hash(range, 3) % 5000 / 100)::DECIMAL(8, 2) AS price,
    hash(range, 4) % 100000 / 7 AS weight,
    TIMESTAMP '2020-01-01' + to_minutes((hash(range, 5) % 500000)::INTEGER) AS sold_at,
    DATE '2020-01-01' + (hash(range, 6) % 900)::INTEGER AS shipped,
    hash(range, 7) % 3 = 0 AS gift,
    ['new', 'paid', 'sent', 'returned'][1 + (hash(range, 8) % 4)::INTEGER] AS state
FROM range({rows})
"""


class FirstStep(Exception):  # noqa: N818 - not an error
    """Training has begun."""


class Watch(countless.Listener):
    """Stops a fit at its first step."""

    def training(self, progress: Any) -> None:
        raise FirstStep


def load(server: PrivatePostgresServer, path: Path) -> int:
    """The file's rows in a table of the server's; their number."""
    source = Source.open(path)
    columns = [(name, stored_type(kind) or TEXT) for name, kind in source.columns()]
    declared = ", ".join(f"{quote_identifier(name)} {postgres_type(kind)}" for name, kind in columns)
    texts = ", ".join(quote_identifier(name) for name, kind in columns if kind == TEXT)
    quotes = f", FORCE_QUOTE ({texts})" if texts else ""
    with tempfile.TemporaryDirectory() as folder, server.connect() as connection:
        rows = Path(folder) / "rows.csv"
        source.run(f"COPY (FROM {source.table}) TO '{rows}' (FORMAT csv, HEADER false{quotes})")
        connection.execute(f"CREATE TABLE loaded ({declared})".encode())
        with connection.cursor().copy(b"COPY loaded FROM STDIN (FORMAT csv)") as copy, rows.open("rb") as file:
            while chunk := file.read(CHUNK):
                copy.write(chunk)
        connection.execute("ANALYZE loaded")
    return source.count()


def seconds_to_first_step(source: Any, **options: Any) -> float:
    """How long it takes."""
    started = time.perf_counter()
    with suppress(FirstStep):
        countless.fit(source, listener=Watch(), **options)
    return time.perf_counter() - started


def seconds_to_read(url: str) -> float:
    """How long the rows alone take to come from PostgreSQL."""
    started = time.perf_counter()
    Source.open(url, table="loaded")
    return time.perf_counter() - started


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("table", nargs="?", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of a table that is made up")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, PrivatePostgresServer() as server:
        path = options.table
        if path is None:
            path = Path(folder) / "made-up.parquet"
            connect().execute(f"COPY ({ROWS.format(rows=options.rows)}) TO '{path}'")
        rows = load(server, path)
        times: dict[str, list[float]] = {"parquet": [], "postgresql": [], "read": []}
        for _ in range(options.repeats):
            times["parquet"].append(seconds_to_first_step(path))
            times["postgresql"].append(seconds_to_first_step(server.url, table="loaded"))
            times["read"].append(seconds_to_read(server.url))
    best = {name: min(seconds) for name, seconds in times.items()}
    result = {
        "table": path.name,
        "rows": rows,
        "columns": len(Source.open(path).columns()) if options.table else 10,
        "seconds_to_first_step": {name: round(best[name], 3) for name in ("parquet", "postgresql")},
        "ratio": round(best["postgresql"] / best["parquet"], 3),
        "seconds_to_read_from_postgresql": round(best["read"], 3),
        "all": {name: [round(value, 3) for value in seconds] for name, seconds in times.items()},
    }
    write_result(result, options.output)


if __name__ == "__main__":
    main()
