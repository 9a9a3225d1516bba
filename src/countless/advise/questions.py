"""Queries as the planner sees them: conjunctions of filters on single columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from countless.data.columns.schema import Schema
from countless.data.sources.source import Source
from countless.errors import QueryError
from countless.estimator.estimator import Estimator
from countless.query.compile import Compiler
from countless.query.parsing.parse import parse
from countless.query.parsing.sql import written
from countless.workload import Workload, paper_filters, read_clauses

FILTERS = (2, 4)  # least and most filters of a random question
EQUALITIES = (exp.EQ, exp.In, exp.Is, exp.Column)  # exp.Is: IS NULL; exp.Column: a boolean column by itself


@dataclass(frozen=True)
class ColumnFilter:
    """The filter of a question on one column; ``equality`` if it only compares with listed values."""

    where: str
    equality: bool


@dataclass(frozen=True)
class PlannerQuestion:
    """A clause, and its filters by the model's name of their column."""

    where: str
    filters: dict[str, ColumnFilter]

    def clause_on(self, columns: Iterable[str]) -> str:
        """The clause of the filters on these columns."""
        return " AND ".join(f"({self.filters[name].where})" for name in sorted(columns))


def read_questions(workload: Workload, schema: Schema) -> tuple[list[PlannerQuestion], list[QueryError]]:
    """The questions of a workload, and the errors of clauses that do not fit the table, with their positions.

    If no clause fits, the first error is raised.
    """
    compiler = Compiler(schema)
    questions: list[PlannerQuestion] = []
    errors: list[QueryError] = []
    for clause in read_clauses(workload):
        try:
            questions.append(question(compiler.compile(clause.where).where, schema))
        except QueryError as error:
            errors.append(clause.named(error))
    if errors and not questions:
        raise errors[0]
    return questions, errors


def random_questions(estimator: Estimator, count: int, seed: int) -> list[PlannerQuestion]:
    """Conjunctions of two to four filters, with values of rows that the model samples."""
    rows = Source.open(estimator.sample(count, seed=seed).to_arrow())
    drawn = paper_filters(estimator.schema, rows, count, seed, FILTERS)
    return [question(" AND ".join(filters), estimator.schema) for filters in dict.fromkeys(map(tuple, drawn))]


def question(where: str, schema: Schema) -> PlannerQuestion:
    """The question of a clause. Conditions on several columns, or on none, have no entry in ``filters``.

    >>> from countless.data.columns.schema import Column
    >>> schema = Schema(9, (Column("a", "INTEGER", ("1",), False), Column("b", "INTEGER", ("1",), False)))
    >>> question("A > 1 AND (a < 5 AND b = 3)", schema).filters
    {'a': ColumnFilter(where='A > 1 AND a < 5', equality=False), 'b': ColumnFilter(where='b = 3', equality=True)}
    """
    names = {name.casefold(): name for name in schema.names}
    filters: dict[str, ColumnFilter] = {}
    for node in _conjuncts(parse(where, schema)):
        columns = {names.get(column.name.casefold()) for column in node.find_all(exp.Column)}
        name = columns.pop() if len(columns) == 1 else None
        if name is None:
            continue
        text, equality = written(node), isinstance(node, EQUALITIES)
        if name in filters:
            text, equality = f"{filters[name].where} AND {text}", filters[name].equality and equality
        filters[name] = ColumnFilter(text, equality)
    return PlannerQuestion(where, filters)


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    match node:
        case exp.And():
            return [*_conjuncts(node.this), *_conjuncts(node.expression)]
        case exp.Paren() if isinstance(node.this, exp.And | exp.Paren):
            return _conjuncts(node.this)
        case _:
            return [node]
