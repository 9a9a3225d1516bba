"""Evaluation of a whole condition on rows of values: DuckDB evaluates each comparison, and SQL's logic joins them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import duckdb
import numpy as np
from sqlglot import exp

from countless.arrays import BoolArray
from countless.data.columns.schema import Schema
from countless.errors import UnsupportedQueryError
from countless.query.domains.domain_evaluation import FALSE, NULL, TRUE, explain_error
from countless.query.parsing.conjuncts import leaves_of
from countless.query.parsing.names import resolve
from countless.query.parsing.sql import written
from countless.query.rewrites.uuids import with_canonical_uuids
from countless.query.sandbox.process import borrowed
from countless.query.text.rewrites import with_patterns

AT_ONCE = 10_000  # rows in one statement
Texts = Sequence[str | None]


@dataclass(frozen=True, eq=False)
class _Possible:
    """For each row: may a predicate be true, may it be false, may it be NULL? Of known values one of them is so."""

    true: BoolArray
    false: BoolArray
    null: BoolArray

    def __and__(self, other: _Possible) -> _Possible:
        null = (self.true | self.null) & (other.true | other.null) & (self.null | other.null)
        return _Possible(self.true & other.true, self.false | other.false, null)

    def __invert__(self) -> _Possible:
        return _Possible(self.false, self.true, self.null)

    def __or__(self, other: _Possible) -> _Possible:
        return ~(~self & ~other)

    def is_true(self) -> _Possible:
        """IS TRUE, which is never NULL itself."""
        return _Possible(self.true, self.false | self.null, np.zeros_like(self.null))


class RowCheck:
    """A condition that rows of values are held against."""

    def __init__(self, schema: Schema, condition: exp.Expr) -> None:
        self._schema = schema
        self._condition = with_patterns(with_canonical_uuids(condition, schema), schema)
        self._leaves = list(leaves_of(self._condition))
        self._names = [
            frozenset(resolve(schema, column, None) for column in leaf.find_all(exp.Column)) for leaf in self._leaves
        ]
        self.columns = sorted(frozenset().union(*self._names))

    def allows(self, columns: Mapping[int, Texts], cut: Mapping[int, BoolArray], rows: int) -> BoolArray:
        """Of which rows the condition is true. ``columns`` has those of :attr:`columns`, as DuckDB prints values.

        Where a text is ``cut``, only its beginning is known: what is asked of it may hold.
        """
        found = [np.zeros(0, dtype=np.bool_)]
        for first in range(0, rows, AT_ONCE):
            some = slice(first, min(rows, first + AT_ONCE))
            letters = self._letters([columns[index][some] for index in self.columns], some.stop - first)
            told: dict[int, _Possible] = {}
            for leaf, names, own in zip(self._leaves, self._names, letters, strict=True):
                unknown = np.zeros(len(own), dtype=np.bool_)
                for index in names & cut.keys():
                    unknown |= cut[index][some]
                told[id(leaf)] = _Possible(*((own == ord(letter)) | unknown for letter in (TRUE, FALSE, NULL)))
            found.append(_joined(self._condition, told).true)
        return np.concatenate(found)

    def _letters(self, columns: list[Texts], rows: int) -> list[BoolArray]:
        """For each leaf a letter for each row."""
        renamed = [leaf.transform(self._renamed) for leaf in self._leaves]
        tests = [f"({written(leaf)}) AND TRUE" for leaf in renamed]
        texts = ", ".join(f"unnest($t{index}::VARCHAR[]) AS t{index}" for index in self.columns)
        values = ", ".join(
            f"CAST(t{index} AS {self._schema.columns[index].type}) AS {_name(index)}" for index in self.columns
        )
        listed = f"SELECT {', '.join(filter(None, ('unnest(range($rows::BIGINT)) AS place', texts)))}"
        truths = ", ".join(f"{test} AS truth{number}" for number, test in enumerate(tests))
        selected = ", ".join(
            f"string_agg(CASE WHEN truth{number} THEN '{TRUE}' WHEN NOT truth{number} THEN '{FALSE}' "
            f"ELSE '{NULL}' END, '' ORDER BY place)"
            for number in range(len(tests))
        )
        typed = f"SELECT {', '.join(filter(None, ('place', values)))} FROM ({listed})"
        parameters = {f"t{index}": list(own) for index, own in zip(self.columns, columns, strict=True)}
        try:
            with borrowed() as sandbox:
                (found,) = sandbox.ask(
                    f"SELECT {selected} FROM (SELECT place, {truths} FROM ({typed}))",
                    ", ".join(tests),
                    {"rows": rows, **parameters},
                )
        except duckdb.Error as error:
            raise explain_error(error) from None
        if any(len(own) != rows for own in found):
            raise UnsupportedQueryError("a function that returns several rows cannot be part of a filter")
        return [np.frombuffer(own.encode(), dtype=np.uint8) for own in found]

    def _renamed(self, node: exp.Expr) -> exp.Expr:
        return exp.column(_name(resolve(self._schema, node, None))) if isinstance(node, exp.Column) else node


def _joined(node: exp.Expr, told: Mapping[int, _Possible]) -> _Possible:
    """What the leaves that are ``told`` make of a condition, by the connectives that :func:`leaves_of` looks below."""
    if id(node) in told:
        return told[id(node)]
    if isinstance(node, exp.And | exp.Or):
        parts = [_joined(part, told) for part in node.flatten()]
        return reduce(_Possible.__and__ if isinstance(node, exp.And) else _Possible.__or__, parts)
    inner = _joined(node.this, told)
    if isinstance(node, exp.Is):
        return (inner if node.expression.this else ~inner).is_true()
    return ~inner if isinstance(node, exp.Not) else inner


def _name(index: int) -> str:
    return f"column{index}"
