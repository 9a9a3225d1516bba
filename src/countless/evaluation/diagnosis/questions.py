"""The queries of a diagnosis: random ones, or those of a workload, each with its filters and its true count."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from countless.data.columns.schema import Schema
from countless.data.sources.source import Source
from countless.errors import DataError
from countless.evaluation.diagnosis.answered import DiagnosedQuery, Tell
from countless.query.parsing.conjuncts import Conjunct, parts, together
from countless.workload import Query, paper_filters

PAPER = (5, 12)  # least and most filters of a query
FEW_COLUMNS = 2 * PAPER[0]
SCANNED = 64  # queries that are counted in one scan
CHECKED = 32  # queries of a workload whose counts are checked


def usual_filters(schema: Schema) -> tuple[int, int]:
    """The paper's 5 to 12 filters. For a table with few columns any number, so that queries differ in their columns."""
    return PAPER if len(schema.coded) >= FEW_COLUMNS else (1, max(1, len(schema.coded)))


def random_questions(
    schema: Schema, source: Source, count: int, seed: int, filters: tuple[int, int] | None, tell: Tell
) -> list[DiagnosedQuery]:
    """Random queries of the paper's kind with this many filters each, counted by DuckDB."""
    filter_lists = paper_filters(schema, source, count, seed, filters or usual_filters(schema))
    clauses = [" AND ".join(filters_of_query) for filters_of_query in filter_lists]
    counts: list[int] = []
    for start in range(0, len(clauses), SCANNED):
        tell("counting", start, len(clauses))
        counts += source.counts(clauses[start : start + SCANNED], SCANNED)
    tell("counting", len(clauses), len(clauses))
    return [DiagnosedQuery(where, filters_of(schema, where), rows) for where, rows in zip(clauses, counts, strict=True)]


def workload_questions(schema: Schema, source: Source, queries: Sequence[Query]) -> list[DiagnosedQuery]:
    """The queries of a workload, without those that filter text.

    Their counts are used if the first of them agree with the table.
    """
    if not queries:
        raise DataError("the workload holds no queries: make one with countless evaluate --save")
    questions = [DiagnosedQuery(query.where, filters_of(schema, query.where), query.rows) for query in queries]
    texts = {text.name for text in schema.texts}
    column_questions = [question for question in questions if not texts.intersection(question.columns)]
    if not column_questions:
        raise DataError("every query of the workload asks about text, and diagnose is for other columns: leave it out")
    counted = source.counts([together(question.filters) for question in column_questions[:CHECKED]])
    for question, rows in zip(column_questions, counted, strict=False):
        if rows != question.truth:
            raise DataError(
                f"the workload has {question.truth:,} rows and the table {rows:,} where {question.where}: "
                "give the table that it was counted on, or draw new queries"
            )
    return column_questions


def filters_of(schema: Schema, where: str) -> tuple[Conjunct, ...]:
    """The filters of a clause, with the model's names of the columns. An unknown name does not change."""
    return tuple(
        replace(conjunct, columns=tuple(_names(schema, conjunct.columns))) for conjunct in parts(where, schema)
    )


def _names(schema: Schema, names: Iterable[str]) -> Iterable[str]:
    for name in names:
        index = schema.find(name)
        yield name if index is None else schema.names[index]
