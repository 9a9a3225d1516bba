"""Queries with their true counts, and the files that store them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from countless.data.atomic_files import write_whole
from countless.data.sources.regular_files import read_text
from countless.errors import DataError


@dataclass(frozen=True)
class Query:
    """A WHERE clause, the true number of matching rows, and the kind of query, if there are several kinds."""

    where: str
    rows: int
    kind: str = ""


def save(path: Path, queries: Sequence[Query]) -> None:
    """Write one JSON object per line: ``{"where": ..., "rows": ...}``, and ``"kind"`` if the query has one."""
    objects = ({key: value for key, value in asdict(query).items() if value != ""} for query in queries)
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in objects)
    if not path.exists() or path.is_file():
        write_whole(path, lambda partial: Path(partial).write_text(text, encoding="utf-8"))
        return
    try:
        path.write_text(text, encoding="utf-8")  # for example to a pipe
    except OSError as error:
        raise DataError(f"cannot write the workload {path}: {error.strerror}; choose another place") from None


def json_lines(text: str, path: Path, **fields: Callable[[Any], Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of JSON lines with their line numbers; ``fields`` are required and converted to these types."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            converted = {**record, **{name: kind(record[name]) for name, kind in fields.items()}}
        except (ValueError, KeyError, TypeError):
            raise DataError(f'{path}, line {number}: expected {{"where": "...", "rows": N}}') from None
        yield number, converted


def load(path: Path) -> list[Query]:
    """The queries that :func:`save` wrote."""
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the workload {path}: {error}") from None
    queries = [
        Query(record["where"], record["rows"], str(record.get("kind", "")))
        for _, record in json_lines(text, path, where=str, rows=int)
    ]
    if not queries:
        raise DataError(f"the workload {path} holds no queries")
    return queries
