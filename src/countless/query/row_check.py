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
from countless.query.text.pattern_rewrites import with_patterns

BATCH_ROWS = 10_000  # in one statement
Texts = Sequence[str | None]


@dataclass(frozen=True, eq=False)
class _PossibleTruth:
    """For each row, whether a predicate may be true, false or NULL: only one of them if its values are known."""

    true: BoolArray
    false: BoolArray
    null: BoolArray

    def __and__(self, other: _PossibleTruth) -> _PossibleTruth:
        null = (self.true | self.null) & (other.true | other.null) & (self.null | other.null)
        return _PossibleTruth(self.true & other.true, self.false | other.false, null)

    def __invert__(self) -> _PossibleTruth:
        return _PossibleTruth(self.false, self.true, self.null)

    def __or__(self, other: _PossibleTruth) -> _PossibleTruth:
        return ~(~self & ~other)

    def is_true(self) -> _PossibleTruth:
        """IS TRUE, which is never NULL itself."""
        return _PossibleTruth(self.true, self.false | self.null, np.zeros_like(self.null))


class RowCheck:
    """A condition, for rows of values to be checked against."""

    def __init__(self, schema: Schema, condition: exp.Expr) -> None:
        self._schema = schema
        self._condition = with_patterns(with_canonical_uuids(condition, schema), schema)
        self._leaves = list(leaves_of(self._condition))
        self._leaf_columns = [
            frozenset(resolve(schema, column, None) for column in leaf.find_all(exp.Column)) for leaf in self._leaves
        ]
        self.columns = sorted(frozenset().union(*self._leaf_columns))

    def allows(self, columns: Mapping[int, Texts], cut: Mapping[int, BoolArray], rows: int) -> BoolArray:
        """The rows for which the condition may be true. ``columns`` has :attr:`columns` as DuckDB prints their values.

        Where a text is ``cut``, only its beginning is known, so that a predicate on it may be true.
        """
        batches = [np.zeros(0, dtype=np.bool_)]
        for first in range(0, rows, BATCH_ROWS):
            batch = slice(first, min(rows, first + BATCH_ROWS))
            letters = self._letters([columns[index][batch] for index in self.columns], batch.stop - first)
            leaf_truths: dict[int, _PossibleTruth] = {}
            for leaf, leaf_columns, leaf_letters in zip(self._leaves, self._leaf_columns, letters, strict=True):
                unknown = np.zeros(len(leaf_letters), dtype=np.bool_)
                for index in leaf_columns & cut.keys():
                    unknown |= cut[index][batch]
                leaf_truths[id(leaf)] = _PossibleTruth(
                    *((leaf_letters == ord(letter)) | unknown for letter in (TRUE, FALSE, NULL))
                )
            batches.append(_truth_of(self._condition, leaf_truths).true)
        return np.concatenate(batches)

    def _letters(self, columns: list[Texts], rows: int) -> list[BoolArray]:
        """For each leaf, the letter of its truth in each row."""
        renamed = [leaf.transform(self._renamed) for leaf in self._leaves]
        tests = [f"({written(leaf)}) AND TRUE" for leaf in renamed]
        texts = ", ".join(f"unnest($t{index}::VARCHAR[]) AS t{index}" for index in self.columns)
        values = ", ".join(
            f"CAST(t{index} AS {self._schema.columns[index].type}) AS {_name(index)}" for index in self.columns
        )
        unnested = f"SELECT {', '.join(filter(None, ('unnest(range($rows::BIGINT)) AS row_index', texts)))}"
        truths = ", ".join(f"{test} AS truth{number}" for number, test in enumerate(tests))
        selected = ", ".join(
            f"string_agg(CASE WHEN truth{number} THEN '{TRUE}' WHEN NOT truth{number} THEN '{FALSE}' "
            f"ELSE '{NULL}' END, '' ORDER BY row_index)"
            for number in range(len(tests))
        )
        typed = f"SELECT {', '.join(filter(None, ('row_index', values)))} FROM ({unnested})"
        parameters = {
            f"t{index}": list(column_texts) for index, column_texts in zip(self.columns, columns, strict=True)
        }
        try:
            with borrowed() as sandbox:
                (letters,) = sandbox.run_user_sql(
                    f"SELECT {selected} FROM (SELECT row_index, {truths} FROM ({typed}))",
                    ", ".join(tests),
                    {"rows": rows, **parameters},
                )
        except duckdb.Error as error:
            raise explain_error(error) from None
        if any(len(leaf_letters) != rows for leaf_letters in letters):
            raise UnsupportedQueryError("a function that returns several rows cannot be part of a filter")
        return [np.frombuffer(leaf_letters.encode(), dtype=np.uint8) for leaf_letters in letters]

    def _renamed(self, node: exp.Expr) -> exp.Expr:
        return exp.column(_name(resolve(self._schema, node, None))) if isinstance(node, exp.Column) else node


def _truth_of(node: exp.Expr, leaf_truths: Mapping[int, _PossibleTruth]) -> _PossibleTruth:
    """The truth of a condition from ``leaf_truths``, by the connectives that :func:`leaves_of` descends through."""
    if id(node) in leaf_truths:
        return leaf_truths[id(node)]
    if isinstance(node, exp.And | exp.Or):
        operands = [_truth_of(operand, leaf_truths) for operand in node.flatten()]
        return reduce(_PossibleTruth.__and__ if isinstance(node, exp.And) else _PossibleTruth.__or__, operands)
    inner = _truth_of(node.this, leaf_truths)
    if isinstance(node, exp.Is):
        return (inner if node.expression.this else ~inner).is_true()
    return ~inner if isinstance(node, exp.Not) else inner


def _name(index: int) -> str:
    return f"column{index}"
