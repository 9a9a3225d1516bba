"""Evaluation of predicates on the evidence rows: which of their values, or which rows, satisfy them.

The sample has the exact values of every column, even where the model has only a grid or characters. So a predicate on
one column is evaluated value by value. One about several columns is evaluated row by row, by DuckDB unless it compares
two numbers or two times.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
from sqlglot import exp

from countless.arrays import BoolArray, IntArray
from countless.data.columns.schema import Column
from countless.data.columns.types import quote_identifier
from countless.data.evidence import EvidenceRows
from countless.errors import UnsupportedQueryError
from countless.query.domains.column_pairs import ColumnPairs
from countless.query.domains.comparisons import plain_comparison
from countless.query.domains.domain_evaluation import (
    TRUE,
    DomainTables,
    WholeNumbers,
    explain_error,
    sign_error,
    truth_letters,
    values_of,
)
from countless.query.domains.domain_search import Search
from countless.query.domains.truth import Truth
from countless.query.parsing.names import resolve
from countless.query.parsing.sql import written
from countless.query.sandbox.process import Sandbox, borrowed, new_owner
from countless.query.select.selection import RowExpression
from countless.query.text.duckdb_strings import DuckDBStrings
from countless.query.text.string_list_evaluator import StringSearch

ROW, DERIVED = "__row", "__derived"  # a row's number, and the table of an expression's values
MOST_SIGNED = 4  # columns with negative zeros in one expression: it is evaluated for each combination of signs
SUBQUERIES = (exp.Subquery, exp.Select, exp.Exists, exp.Window, exp.AggFunc)


class EvidenceTables:
    """The evidence rows, for predicates to be evaluated on. Safe to share by threads."""

    def __init__(self, rows: EvidenceRows, duckdb_strings: DuckDBStrings, search: Search) -> None:
        """``search`` finds literals among the values of the rows."""
        self._sample = rows
        self._strings = StringSearch(rows.schema, duckdb_strings)
        self._search = search
        self._domains = DomainTables(rows.schema)
        self._pairs = ColumnPairs(rows)
        self._owner = new_owner()

    def truth(self, index: int, predicate: exp.Expr) -> Truth:
        """Where among the sample's values of the column at ``index`` a ``predicate`` about it is true or false."""
        truth = self._search.truth(index, plain_comparison(predicate)) or self._strings.truth(index, predicate)
        return self._domains.truth(index, predicate) if truth is None else truth

    def whole_numbers(self, index: int, expression: exp.Expr) -> WholeNumbers | None:
        """The values of an ``expression`` for the sample's values of a column; None if they are not integers."""
        return self._domains.whole_numbers(index, expression)

    def satisfied(self, predicate: exp.Expr, columns: Sequence[int]) -> BoolArray:
        """The rows for which a ``predicate`` about several ``columns`` is true, as DuckDB says."""
        if (subquery := predicate.find(*SUBQUERIES)) is not None:
            raise UnsupportedQueryError(
                f"{written(subquery)} is not about one row: only filters on rows can be counted"
            )
        if (pair_matches := self._pairs.satisfied(predicate)) is not None:
            return pair_matches
        schema = self._sample.schema
        renamed = predicate.transform(
            lambda node: exp.column(f"c{resolve(schema, node, None)}") if isinstance(node, exp.Column) else node
        )
        try:
            with borrowed() as sandbox:
                names = {index: f"c{index}" for index in columns}
                first, *other_signs = (
                    truth_letters(sandbox, renamed, f"({rows})", "row") for rows in self._sign_variants(sandbox, names)
                )
        except duckdb.Error as error:
            raise explain_error(error) from None
        if len(first) != self._sample.rows:
            raise UnsupportedQueryError("a function that returns several rows cannot be part of a filter")
        if not all(np.array_equal(first, letters) for letters in other_signs):
            raise sign_error(self._signed(columns))
        matches: BoolArray = first == ord(TRUE)
        return matches

    def column(self, expression: RowExpression) -> tuple[Column, IntArray]:
        """The values of an ``expression`` on each row, as a column, and the code of each row."""
        value = f"({expression.sql})"
        try:
            with borrowed() as sandbox:
                names = {index: self._sample.schema.names[index] for index in expression.columns}
                rows, *other_signs = self._sign_variants(sandbox, names, ROW)
                create = f"CREATE OR REPLACE TEMP TABLE {DERIVED} AS SELECT {ROW}, {value} AS value FROM ({rows})"
                sandbox.run_user_sql(create, value)
                for signed_rows in other_signs:
                    joined = f"FROM (SELECT {ROW}, {value} AS other FROM ({signed_rows})) JOIN {DERIVED} USING ({ROW})"
                    if sandbox.run_user_sql(f"SELECT 1 {joined} WHERE value IS DISTINCT FROM other LIMIT 1", value):
                        raise sign_error(self._signed(expression.columns))
                column_and_codes = self._derived(sandbox, expression.sql)
                sandbox.run(f"DROP TABLE {DERIVED}")
        except duckdb.Error as error:
            raise explain_error(error) from None
        if len(column_and_codes[1]) != self._sample.rows:
            raise UnsupportedQueryError("a function that returns several rows cannot be part of a statement")
        return column_and_codes

    @staticmethod
    def _derived(sandbox: Sandbox, name: str) -> tuple[Column, IntArray]:
        ((type_name,),) = sandbox.run(f"SELECT typeof(value) FROM {DERIVED} LIMIT 1")
        distinct = f"SELECT DISTINCT value FROM {DERIVED} WHERE value IS NOT NULL ORDER BY value"
        values = tuple(row[0] for row in sandbox.run(f"SELECT CAST(value AS VARCHAR) FROM ({distinct})"))
        numbered = f"SELECT {ROW}, dense_rank() OVER (ORDER BY value NULLS LAST) - 1 AS code FROM {DERIVED}"
        ((codes,),) = sandbox.run(f"SELECT list(code ORDER BY {ROW}) FROM ({numbered})")
        row_codes: IntArray = np.array(codes, dtype=np.int64)
        has_null = bool(row_codes.max(initial=-1) == len(values))
        return Column(name, type_name, values, has_null, radices=(max(1, len(values) + has_null),)), row_codes

    def _sign_variants(self, sandbox: Sandbox, names: Mapping[int, str], row: str = "row") -> Iterator[str]:
        """SELECTs of columns under new ``names``: as they are, then with all other signs of their zeros."""
        tables = [self._table(sandbox, index) for index in names]
        joined = tables[0] + "".join(f" JOIN {table} USING (row)" for table in tables[1:])
        schema = self._sample.schema
        signed = [index for index in names if schema.names[index] in schema.signed]
        if len(signed) > MOST_SIGNED:
            columns = " and ".join(map(quote_identifier, self._signed(signed)))
            remedy = f"compare at most {MOST_SIGNED} of these columns in one condition"
            raise UnsupportedQueryError(f"the table has -0.0 or -NaN in {columns}: {remedy}")
        for flipped in itertools.product((False, True), repeat=len(signed)):
            values = {index: f"c{index}" for index in names}
            for index in itertools.compress(signed, flipped):
                values[index] = f"CASE WHEN c{index} = 0 OR isnan(c{index}) THEN -c{index} ELSE c{index} END"
            selected = ", ".join(f"{values[index]} AS {quote_identifier(name)}" for index, name in names.items())
            yield f"SELECT row AS {row}, {selected} FROM {joined}"

    def _signed(self, columns: Iterable[int]) -> list[str]:
        schema = self._sample.schema
        return [schema.names[index] for index in columns if schema.names[index] in schema.signed]

    def _table(self, sandbox: Sandbox, index: int) -> str:
        """The values of a column, row by row, as a table of the sandbox."""
        name, column = f"evidence_{self._owner}_{index}", self._sample.schema.coded[index]
        if not sandbox.has(name, self._owner):
            parameters: dict[str, Any] = {"texts": values_of(column), "codes": self._sample.codes[index].tolist()}
            sandbox.table(
                name,
                self._owner,
                f"CREATE TEMP TABLE {name} AS SELECT row, value AS {quote_identifier(f'c{index}')} FROM "
                "(SELECT unnest($codes::INTEGER[]) AS code, unnest(range(len($codes::INTEGER[]))) AS row) JOIN "
                f"(SELECT CAST(text AS {column.type}) AS value, code FROM (SELECT unnest($texts::VARCHAR[]) AS text, "
                "unnest(range(len($texts::VARCHAR[]))) AS code)) USING (code) ORDER BY row",
                parameters,
            )
        return name
