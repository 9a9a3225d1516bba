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

FILTERS = (2, 4)  # of a random question
EQUALITIES = (exp.EQ, exp.In, exp.Is, exp.Column)  # IS NULL, and a column of truth values by itself


@dataclass(frozen=True)
class ColumnFilter:
    """What a question asks of one column; ``equality`` if only for values that are named."""

    where: str
    equality: bool


@dataclass(frozen=True)
class PlannerQuestion:
    """A clause, and its parts by the columns' names as the model has them."""

    where: str
    parts: dict[str, ColumnFilter]

    def about(self, columns: Iterable[str]) -> str:
        """What it asks of some of its columns."""
        return " AND ".join(f"({self.parts[name].where})" for name in sorted(columns))


def read_questions(workload: Workload, schema: Schema) -> tuple[list[PlannerQuestion], list[QueryError]]:
    """The questions of a workload, and for those that do not fit the table what is wrong, which names their place.

    If none fits it is an error.
    """
    compiler = Compiler(schema)
    questions: list[PlannerQuestion] = []
    wrong: list[QueryError] = []
    for clause in read_clauses(workload):
        try:
            questions.append(question(compiler.compile(clause.where).where, schema))
        except QueryError as error:
            wrong.append(clause.named(error))
    if wrong and not questions:
        raise wrong[0]
    return questions, wrong


def random_questions(estimator: Estimator, count: int, seed: int) -> list[PlannerQuestion]:
    """Conjunctions of two to four filters, with the values of rows that the model draws."""
    rows = Source.open(estimator.sample(count, seed=seed).to_arrow())
    drawn = paper_filters(estimator.schema, rows, count, seed, FILTERS)
    return [question(" AND ".join(filters), estimator.schema) for filters in dict.fromkeys(map(tuple, drawn))]


def question(where: str, schema: Schema) -> PlannerQuestion:
    """The question of a clause: parts about several columns, or none, are in the clause alone.

    >>> from countless.data.columns.schema import Column
    >>> schema = Schema(9, (Column("a", "INTEGER", ("1",), False), Column("b", "INTEGER", ("1",), False)))
    >>> question("A > 1 AND (a < 5 AND b = 3)", schema).parts
    {'a': ColumnFilter(where='A > 1 AND a < 5', equality=False), 'b': ColumnFilter(where='b = 3', equality=True)}
    """
    names = {name.casefold(): name for name in schema.names}
    parts: dict[str, ColumnFilter] = {}
    for node in _conjuncts(parse(where, schema)):
        columns = {names.get(column.name.casefold()) for column in node.find_all(exp.Column)}
        name = columns.pop() if len(columns) == 1 else None
        if name is None:
            continue
        text, equality = written(node), isinstance(node, EQUALITIES)
        if name in parts:
            text, equality = f"{parts[name].where} AND {text}", parts[name].equality and equality
        parts[name] = ColumnFilter(text, equality)
    return PlannerQuestion(where, parts)


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    match node:
        case exp.And():
            return [*_conjuncts(node.this), *_conjuncts(node.expression)]
        case exp.Paren() if isinstance(node.this, exp.And | exp.Paren):
            return _conjuncts(node.this)
        case _:
            return [node]
