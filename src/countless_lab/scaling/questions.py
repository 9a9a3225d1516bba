"""Questions about a large table, and their true counts in few scans."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from sqlglot import exp

from countless.data.atomic_files import json_bytes, write_bytes
from countless.data.columns.types import quote_identifier
from countless.data.sources.source import Source
from countless.query.parsing.parse import parse
from countless.workload import Query, profile, questions_by_kind

COLUMNS, TEXT, BOTH, GROUPS = "columns", "LIKE", "LIKE and filters", "GROUP BY"
COLUMN_KINDS = ("equality", "range", "IN", "OR", "NOT and NULL", "function", "calendar", "two columns")
GROUP_KINDS = {  # which conditions they have
    "GROUP BY, filters": ("equality", "IN", "OR"),
    "GROUP BY, LIKE": ("LIKE 'x%'", "LIKE '%x'", "LIKE '%x%'"),
    "GROUP BY, both": (BOTH,),
}
MOST_GROUPS = 200  # values of a column to group by
BATCH = 64  # questions that one scan of the table answers
MIN_SHARED = 8  # questions about one column; if there are as many, its distinct values are counted first


def class_of(kind: str) -> str:
    """The class of a kind of question.

    >>> class_of("IN"), class_of("regular expression"), class_of("LIKE and filters"), class_of("GROUP BY, LIKE")
    ('columns', 'LIKE', 'LIKE and filters', 'GROUP BY')
    """
    if kind in COLUMN_KINDS:
        return COLUMNS
    if kind in GROUP_KINDS:
        return GROUPS
    return BOTH if kind == BOTH else TEXT


@dataclass(frozen=True)
class GroupQuestion:
    """``SELECT column, count(*) ... WHERE where GROUP BY column``."""

    column: str
    where: str
    kind: str


@dataclass(frozen=True)
class ScaleQuestions:
    """The questions that every part of the table is asked: conditions with their kinds, and GROUP BY.

    ``texts`` names the columns of long strings.
    """

    counts: list[tuple[str, str]]
    groups: list[GroupQuestion]
    texts: list[str]

    def save(self, path: Path) -> None:
        """Write them to a file."""
        write_bytes(path, json_bytes(asdict(self)))

    @classmethod
    def load(cls, path: Path) -> ScaleQuestions:
        """Read what :meth:`save` wrote."""
        data = json.loads(path.read_text(encoding="utf-8"))
        counts = [(where, kind) for where, kind in data["counts"]]
        return cls(counts, [GroupQuestion(**group) for group in data["groups"]], data["texts"])

    def timed(self, per_kind: int) -> tuple[list[int], list[int]]:
        """The numbers of the first few questions of each kind, for methods that are too slow for all."""
        kinds = [kind for _, kind in self.counts]
        return _first_of_each(kinds, per_kind), _first_of_each([group.kind for group in self.groups], per_kind)


def draw_questions(source: Source, per_kind: int, seed: int) -> ScaleQuestions:
    """Draw ``per_kind`` questions of each kind."""
    columns = profile(source)
    counts = questions_by_kind(source, per_kind, seed)
    keys = [column.name for column in columns if 2 <= column.distinct <= MOST_GROUPS]
    rng = np.random.default_rng(seed)
    groups: list[GroupQuestion] = []
    for kind, conditions in GROUP_KINDS.items():
        drawn = [where for where, condition_kind in counts if condition_kind in conditions]
        questions = []
        for index in rng.permutation(len(drawn)).tolist():
            free = [name for name in keys if name not in asked_columns(drawn[index])]
            if free:
                questions.append(GroupQuestion(str(rng.choice(free)), drawn[index], kind))
        groups += questions[:per_kind]
    return ScaleQuestions(counts, groups, [column.name for column in columns if column.is_text])


def asked_columns(where: str) -> set[str]:
    """The columns of a condition."""
    return {column.name for column in parse(where).find_all(exp.Column)}


@dataclass(frozen=True)
class ScaleTruth:
    """True counts of a part of the table: one for each condition, and for each GROUP BY its groups that have rows."""

    counts: list[int]
    groups: list[list[tuple[str | None, int]]]

    def queries(self, questions: ScaleQuestions) -> list[Query]:
        """The conditions with their counts."""
        pairs = zip(questions.counts, self.counts, strict=True)
        return [Query(where, rows, kind) for (where, kind), rows in pairs]

    def group_queries(self, questions: ScaleQuestions) -> list[Query]:
        """One for each group of each GROUP BY, in order."""
        pairs = zip(questions.groups, self.groups, strict=True)
        return [Query("", rows, question.kind) for question, groups in pairs for _, rows in groups]

    def save(self, path: Path) -> None:
        """Write them to a file."""
        write_bytes(path, json_bytes(asdict(self)))

    @classmethod
    def load(cls, path: Path) -> ScaleTruth:
        """Read what :meth:`save` wrote."""
        data = json.loads(path.read_text(encoding="utf-8"))
        return cls(data["counts"], [[(value, rows) for value, rows in groups] for groups in data["groups"]])


def count_truth(source: Source, questions: ScaleQuestions, say: Callable[[str], None]) -> ScaleTruth:
    """Count all questions in few scans of the table."""
    return ScaleTruth(
        _true_counts(source, [where for where, _ in questions.counts], say), _true_groups(source, questions.groups, say)
    )


def _true_counts(source: Source, clauses: Sequence[str], say: Callable[[str], None]) -> list[int]:
    """True counts. Questions about one column are counted on its distinct values and their numbers of rows."""
    counts: dict[int, int] = {}
    by_column: dict[str, list[int]] = {}
    for number, clause in enumerate(clauses):
        names = asked_columns(clause)
        by_column.setdefault(names.pop() if len(names) == 1 else "", []).append(number)
    for name, numbers in sorted(by_column.items()):
        if name and len(numbers) >= MIN_SHARED:
            say(f"counting the values of {name}")
            column, weight = quote_identifier(name), quote_identifier(f"{source.name}_rows")
            table = source.selected(f"SELECT {column}, count(*) AS {weight} FROM {source.table} GROUP BY {column}")
            result = f"sum({weight})"
        else:
            table, result = source, "count(*)"
        for part in _batches(numbers):
            say(f"true counts: {len(counts):,} of {len(clauses):,} questions")
            sums = ", ".join(_sum_where(result, clauses[number]) for number in part)
            row = table.rows(f"SELECT {sums} FROM {table.table}")[0]
            counts |= {number: int(rows or 0) for number, rows in zip(part, row, strict=True)}
        if table is not source:
            source.run(f"DROP TABLE {table.table}")
    return [counts[number] for number in range(len(clauses))]


def _true_groups(
    source: Source, groups: Sequence[GroupQuestion], say: Callable[[str], None]
) -> list[list[tuple[str | None, int]]]:
    groups_found: list[list[tuple[str | None, int]]] = [[] for _ in groups]
    counted = 0
    for name in dict.fromkeys(group.column for group in groups):
        column = quote_identifier(name)
        for part in _batches([number for number, group in enumerate(groups) if group.column == name]):
            say(f"true counts: {counted} of {len(groups)} GROUP BY")
            sums = ", ".join(_sum_where("count(*)", groups[number].where) for number in part)
            for value, *rows in source.rows(f"SELECT {column}::VARCHAR, {sums} FROM {source.table} GROUP BY {column}"):
                for number, count in zip(part, rows, strict=True):
                    if count:
                        groups_found[number].append((value, int(count)))
            counted += len(part)
    return groups_found


def _sum_where(result: str, clause: str) -> str:
    """An aggregate of the matching rows. CASE stops at the first filter of a conjunction that fails."""
    return f"{result} FILTER (WHERE CASE WHEN {clause}\nTHEN true END)"


def _batches(numbers: Sequence[int]) -> Iterable[Sequence[int]]:
    return (numbers[first : first + BATCH] for first in range(0, len(numbers), BATCH))


def _first_of_each(kinds: Sequence[str], count: int) -> list[int]:
    numbers: list[int] = []
    for kind in dict.fromkeys(kinds):
        numbers += [number for number, kind_of_question in enumerate(kinds) if kind_of_question == kind][:count]
    return numbers
