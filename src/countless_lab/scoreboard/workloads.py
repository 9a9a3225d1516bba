"""The two workloads of a table: questions of the paper's kind, and questions as people ask them."""

from __future__ import annotations

from collections.abc import Callable

from countless.data.sources.source import Source
from countless.workload import Query, conjunctions, contains_clauses, profile, questions_by_kind

PAPER, PEOPLE = "paper", "people"
ENOUGH_COLUMNS = 3  # of a table with fewer, the paper's questions about text are asked
SEED = 2020
TOGETHER = 64  # questions that one scan of the table answers


def draw_workloads(
    source: Source, paper: int, per_kind: int, on_count: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, list[Query]]:
    """Both workloads with their true counts, from DuckDB."""
    drawn = {PAPER: _paper_questions(source, paper), PEOPLE: questions_by_kind(source, per_kind, SEED)}
    total, done = sum(map(len, drawn.values())), 0
    found: dict[str, list[Query]] = {}
    for name, questions in drawn.items():
        found[name] = []
        for first in range(0, len(questions), TOGETHER):
            part = questions[first : first + TOGETHER]
            rows = source.counts([where for where, _ in part])
            found[name] += [Query(where, count, kind) for (where, kind), count in zip(part, rows, strict=True)]
            done += len(part)
            on_count(done, total)
    return found


def _paper_questions(source: Source, count: int) -> list[tuple[str, str]]:
    """5 to 12 filters with the literals of a random row; of a table of text alone, whether it contains a piece."""
    columns = profile(source)
    ordinary = [column for column in columns if not column.is_text]
    texts = [column for column in columns if column.is_text]
    if len(ordinary) >= ENOUGH_COLUMNS or not texts:
        return [(" AND ".join(filters), "") for filters in conjunctions(ordinary, source, count, SEED)]
    return [(where, "") for where, _ in contains_clauses(texts[0], source, count, SEED)]
