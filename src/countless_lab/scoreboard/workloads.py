"""The two workloads of a table: questions of the paper's kind, and questions as people ask them."""

from __future__ import annotations

from countless.data.sources.source import Source
from countless.workload import Query, conjunctions, contains_clauses, profile, questions_by_kind

PAPER, PEOPLE = "paper", "people"
ENOUGH_COLUMNS = 3  # of a table with fewer, the paper's questions about text are asked
SEED = 2020


def draw_workloads(source: Source, paper: int, per_kind: int) -> dict[str, list[Query]]:
    """Both workloads with their true counts, from DuckDB."""
    drawn = {PAPER: _paper_questions(source, paper), PEOPLE: questions_by_kind(source, per_kind, SEED)}
    return {name: _counted(source, questions) for name, questions in drawn.items()}


def _counted(source: Source, questions: list[tuple[str, str]]) -> list[Query]:
    rows = source.counts([where for where, _ in questions])
    return [Query(where, count, kind) for (where, kind), count in zip(questions, rows, strict=True)]


def _paper_questions(source: Source, count: int) -> list[tuple[str, str]]:
    """5 to 12 filters with the literals of a random row; of a table of text alone, whether it contains a piece."""
    columns = profile(source)
    ordinary = [column for column in columns if not column.is_text]
    texts = [column for column in columns if column.is_text]
    if len(ordinary) >= ENOUGH_COLUMNS or not texts:
        return [(" AND ".join(filters), "") for filters in conjunctions(ordinary, source, count, SEED)]
    return [(where, "") for where, _ in contains_clauses(texts[0], source, count, SEED)]
