"""Analysis of a SELECT with aggregates: which part the model answers, and which part DuckDB computes.

The model estimates the rows of each group and the distributions of values within groups. All else (arithmetic, HAVING,
ORDER BY, LIMIT) is computed by DuckDB. It runs the *outer* statement: the same SELECT, in which every aggregate is a
column of a small table with one row per group.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot import exp

from countless.data.columns.schema import Column, Schema
from countless.data.columns.types import TIMES, is_number, quote_identifier
from countless.errors import QueryError, QuerySyntaxError, QueryTooLargeError, UnsupportedQueryError
from countless.query.parsing.names import resolve
from countless.query.parsing.parse import span_of
from countless.query.parsing.sql import read_condition, read_statement, written
from countless.query.parsing.struct_fields import merge_struct_fields
from countless.query.rewrites.calendar import hidden_part
from countless.query.sandbox.functions import check_functions
from countless.query.select.aggregate_names import AGGREGATES, KNOWN, QUANTILES
from countless.query.select.aliases import expanded_size
from countless.query.select.selection import (
    COUNT,
    GROUPED,
    TABLE,
    Aggregate,
    RowExpression,
    Selection,
    aggregate_name,
    group_name,
)
from countless.query.select.statement_text import StatementText

MOST_GROUPS = 3  # columns
MOST_NODES = 10_000  # of a statement in which aliases are replaced by their expressions
MEDIAN = "0.5"

PARTS = frozenset({"expressions", "from_", "where", "group", "having", "order", "limit", "offset"})
OTHER_PARTS = {
    "joins": "a join: Countless models one table",
    "laterals": "a join: Countless models one table",
    "with_": "WITH: Countless models one table",
    "distinct": "DISTINCT: GROUP BY the columns instead",
    "qualify": "QUALIFY: HAVING filters groups",
    "sample": "a sample: the model answers for the whole table",
    "pivots": "a pivot: GROUP BY the column instead",
}
REFUSED: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Query, "a subquery cannot be answered from a model of one table: put its result into the statement"),
    (exp.Window, "a window function cannot be answered: only aggregates of groups can, with GROUP BY"),
    (exp.Filter, "FILTER cannot be answered: ask again with its condition in the WHERE"),
    (exp.WithinGroup, "WITHIN GROUP cannot be answered: write quantile_cont(column, 0.5)"),
    (exp.Placeholder, "a parameter has no value: write the literal instead"),
    (exp.Parameter, "a parameter has no value: write the literal instead"),
    (exp.Star, "* is not an aggregate: select count(*), aggregates of columns, and columns of GROUP BY"),
    (exp.Columns, "COLUMNS is not an aggregate: name the columns one by one"),
    (exp.PositionalColumn, "a column cannot be named by its position: name it, or write ORDER BY 1"),
)


def read_select(sql: str, schema: Schema, evidence: bool = False) -> Selection:
    """Analyse the statement ``sql`` about the table of ``schema``.

    With ``evidence`` rows it may group by expressions and aggregate them.

    >>> schema = Schema(9, (Column("n", "INTEGER", ("1",), False), Column("city", "VARCHAR", ("Oslo",), True)))
    >>> selection = read_select("SELECT city, round(avg(n), 1) FROM t WHERE n > 3 GROUP BY city ORDER BY 2", schema)
    >>> selection.groups, selection.aggregates, selection.where.strip()
    ((1,), (Aggregate(kind='avg', column=0, share=''),), 'n > 3')
    >>> print(selection.outer.sql("duckdb"))
    SELECT __g0, ROUND(__a0, 1) FROM __groups ORDER BY 2
    """
    if not isinstance(sql, str) or not sql.strip():
        raise QuerySyntaxError("a query is SQL text: SELECT city, count(*) FROM t WHERE age > 35 GROUP BY city")
    try:
        selection = _SelectReader(sql, schema, evidence).selection()
    except RecursionError:
        raise QueryTooLargeError("the statement is nested too deeply: use IN for long lists of values", sql) from None
    check_functions(sql)
    return selection


@contextmanager
def pointing(selection: Selection) -> Iterator[None]:
    """Make errors about the WHERE point into the whole statement."""
    try:
        yield
    except QueryError as error:
        if error.clause == selection.where:
            error.clause = selection.sql
        raise


class _SelectReader:
    """Analyses one statement."""

    def __init__(self, sql: str, schema: Schema, evidence: bool) -> None:
        self.sql = sql
        self.schema = schema
        self.evidence = evidence
        self.statement = self._checked(read_statement(sql))
        merge_struct_fields(self.statement, schema)
        self.selected: list[exp.Expr] = self.statement.expressions
        self.aliases = {item.alias.casefold(): item.this for item in self.selected if isinstance(item, exp.Alias)}
        self.aggregates: dict[Aggregate, int] = {}
        self.groups: list[int] = []
        self.expressions: list[RowExpression] = []  # the groups, if one is not a column

    def selection(self) -> Selection:
        """The result of the analysis."""
        self._check_size()
        grouped = list(dict.fromkeys(self._group(node) for node in self._grouped()))
        if len(grouped) > MOST_GROUPS:
            raise self._error(f"GROUP BY {len(grouped)} columns: at most {MOST_GROUPS} can be answered")
        self.groups = [group for group in grouped if not isinstance(group, RowExpression)]
        if len(self.groups) < len(grouped):
            self.groups = []
            self.expressions = [
                self._column_expression(group) if isinstance(group, int) else group for group in grouped
            ]
        outer = exp.Select(expressions=[self._rewritten(item) for item in self.selected])
        outer.set("from_", exp.From(this=exp.to_table(GROUPED)))
        parts = self.statement.args
        if parts.get("having"):
            outer.set("where", exp.Where(this=self._rewritten(parts["having"].this)))
        if parts.get("order"):
            self._check_order_positions(parts["order"])
            outer.set("order", self._rewritten(parts["order"], alias_first=True))
        for part in ("limit", "offset"):
            if parts.get(part):
                outer.set(part, self._rewritten(parts[part]))
        if not self.aggregates and not self.groups and not self.expressions:
            raise self._error(f"the statement has no aggregate: select {KNOWN} of columns, or use GROUP BY")
        statement_text = StatementText(self.sql)
        return Selection(
            self.sql,
            statement_text.where if parts.get("where") else None,
            tuple(self.expressions) if self.expressions else tuple(self.groups),
            tuple(self.aggregates),
            tuple(map(self._aggregate_index, self.selected)),
            outer,
            statement_text.selected(self.selected),
            self._source(statement_text),
        )

    def _checked(self, statement: exp.Expr) -> exp.Select:
        if not isinstance(statement, exp.Select):
            raise self._error("only a plain SELECT ... FROM table WHERE ... GROUP BY ... can be answered")
        source = statement.args.get("from_")
        if source is not None and not isinstance(source.this, exp.Table):
            raise self._error("the statement selects from a subquery: Countless models one table")
        for node in (statement, source.this) if source is not None else (statement,):
            for part, reason in OTHER_PARTS.items():
                if node.args.get(part):
                    raise self._error(f"the statement has {reason}")
        for part, value in statement.args.items():
            if value and part not in PARTS:
                raise self._error(
                    f"the statement has {part.rstrip('_').upper()}, which cannot be answered: leave it out"
                )
        return statement

    def _grouped(self) -> Iterator[exp.Expr]:
        """The nodes that the statement groups by."""
        group = self.statement.args.get("group")
        if group is None:
            return
        if any(value for part, value in group.args.items() if part not in ("expressions", "all")):
            raise self._error("GROUP BY takes columns: ROLLUP, CUBE and GROUPING SETS are several questions")
        if group.args.get("all"):
            for item in self.selected:
                if item.find(exp.Column) and not any(map(self._is_aggregate, item.walk())):
                    yield item.unalias()
        for node in group.expressions:
            yield from node.expressions if isinstance(node, exp.Tuple) else (node,)

    def _group(self, node: exp.Expr) -> int | RowExpression:
        """A node of GROUP BY as a group: a column, an expression, an alias, or the number of a selected column."""
        expression = node.unnest()
        if isinstance(expression, exp.Literal) and expression.is_int:
            if not 1 <= int(expression.name) <= len(self.selected):
                raise self._error(f"GROUP BY {expression.name}: the statement selects {len(self.selected)}", node)
            expression = self.selected[int(expression.name) - 1].unalias().unnest()
        elif self._is_alias(expression) and self.schema.find(expression.name) is None:
            expression = self.aliases[expression.name.casefold()].unnest()
        if isinstance(expression, exp.GroupingSets | exp.Rollup | exp.Cube):
            raise self._error("GROUP BY takes columns: ROLLUP, CUBE and GROUPING SETS are several questions", node)
        if (part := hidden_part(expression, self.schema)) is not None:
            return part
        if not isinstance(expression, exp.Column) or isinstance(expression.this, exp.Star):
            return self._expression(
                expression, "GROUP BY takes columns, not expressions: group by the column itself", expression
            )
        index = resolve(self.schema, expression, self.sql)
        column = self._coded(index, expression, "can be filtered, but not grouped")
        if column.grid is not None:
            raise self._error(
                f'"{column.name}" has too many values to group by, of which the model knows a grid of '
                f"{column.grid.cells:,} cells: filter ranges of it in the WHERE, one statement each",
                expression,
            )
        return index

    def _expression(self, node: exp.Expr | None, refusal: str, spot: exp.Expr) -> RowExpression:
        """An expression on one row, if there are evidence rows; else an error with the ``refusal``."""
        if node is None or not node.find(exp.Column) or node.find(exp.Star):
            raise self._error(refusal, spot)
        if not self.evidence:
            raise self._error(f"{refusal}; a model that was fitted with evidence rows answers it", spot)
        for item in node.walk():
            for kind, reason in REFUSED:
                if isinstance(item, kind):
                    raise self._error(reason, item)
            if self._is_aggregate(item):
                raise self._error("an aggregate has no value for a single row: compute with it outside instead", item)
        columns = {resolve(self.schema, column, self.sql) for column in node.find_all(exp.Column)}
        return RowExpression(self._canonical(node), tuple(sorted(columns)))

    def _column_expression(self, index: int) -> RowExpression:
        if (part := self.schema.calendar_part(index)) is not None:
            return RowExpression(self._canonical(read_condition(part.sql, part.sql)), (part.of,))
        return RowExpression(quote_identifier(self.schema.names[index]), (index,))

    def _canonical(self, node: exp.Expr) -> str:
        """The SQL of an expression: the same however its columns are spelled."""

        def named(item: exp.Expr) -> exp.Expr:
            index = self.schema.find(item.name) if isinstance(item, exp.Column) else None
            return item if index is None else exp.column(self.schema.names[index], quoted=True)

        return written(node.transform(named))

    def _grouped_expression(self, node: exp.Expr) -> int | None:
        """The index of the group that ``node`` is, if it is an expression or a calendar part of a column."""
        part = hidden_part(node, self.schema)
        if part is not None and part in self.groups:
            return self.groups.index(part)
        if part is not None and self.expressions:
            node = read_condition(self._column_expression(part).sql, self.sql)
        if not self.expressions or not isinstance(node, exp.Condition) or not node.find(exp.Column):
            return None
        sql = self._canonical(node)
        return next((index for index, group in enumerate(self.expressions) if group.sql == sql), None)

    def _rewritten(self, node: exp.Expr, alias_first: bool = False) -> exp.Expr:
        """``node`` in terms of the table of groups."""

        def replaced(item: exp.Expr) -> exp.Expr:
            for kind, reason in REFUSED:
                if isinstance(item, kind):
                    raise self._error(reason, item)
            group_index = None if alias_first and self._is_alias(item) else self._grouped_expression(item)
            if group_index is not None:
                return exp.column(group_name(group_index))
            if self._is_aggregate(item):
                return exp.column(aggregate_name(self._index_of(self._aggregate(item))))
            if isinstance(item, exp.Column):
                return self._group_reference(item, alias_first)
            return item

        return node.transform(replaced)

    def _group_reference(self, column: exp.Column, alias_first: bool) -> exp.Column:
        if self._is_alias(column) and alias_first:
            return column
        if self.schema.find(column.name) in self.groups:
            return exp.column(group_name(self.groups.index(resolve(self.schema, column, self.sql))))
        if self._is_alias(column):
            return column
        index = resolve(self.schema, column, self.sql)
        name = self.schema.names[index]
        raise self._error(f'"{name}" is not grouped: add it to GROUP BY, or select {KNOWN} of it', column)

    def _is_alias(self, node: exp.Expr) -> bool:
        return isinstance(node, exp.Column) and not node.table and node.name.casefold() in self.aliases

    def _is_aggregate(self, node: exp.Expr) -> bool:
        return isinstance(node, exp.AggFunc) or (isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES)

    def _index_of(self, aggregate: Aggregate) -> int:
        return self.aggregates.setdefault(aggregate, len(self.aggregates))

    def _aggregate_index(self, selected: exp.Expr) -> int | None:
        node = selected.unalias().unnest()
        return self._index_of(self._aggregate(node)) if self._is_aggregate(node) else None

    def _aggregate(self, node: exp.Expr) -> Aggregate:
        name = node.name if isinstance(node, exp.Anonymous) else written(node).partition("(")[0]
        kind = AGGREGATES.get(name.lower())
        if isinstance(node, exp.Min | exp.Max):
            instead = f"quantile_cont({written(node.this)}, {'0.01' if isinstance(node, exp.Min) else '0.99'})"
            raise self._error(f"min and max cannot be estimated: use {instead}", node)
        if kind is None:
            raise self._error(f"{written(node)} cannot be answered: use {KNOWN}", node)
        measured = next(iter(node.expressions), None) if isinstance(node, exp.Anonymous) else node.this
        if kind == COUNT and (measured is None or isinstance(measured, exp.Star | exp.Literal)):
            return Aggregate(COUNT)
        if isinstance(measured, exp.Distinct):
            raise self._error(f"{kind}(DISTINCT ...) cannot be answered: GROUP BY the column lists its values", node)
        share = self._share(kind, node) if kind in QUANTILES else ""
        if not isinstance(measured, exp.Column) or isinstance(measured.this, exp.Star):
            refusal = f"{kind} takes a column, not an expression: compute with the aggregate instead"
            return Aggregate(kind, self._expression(measured, refusal, node), share)
        index = resolve(self.schema, measured, self.sql)
        if kind == COUNT and self.evidence and self.schema.columns[index].is_text:
            return Aggregate(COUNT, self._column_expression(index))
        instead = f"WHERE {quote_identifier(self.schema.names[index])} IS NOT NULL"
        column = self._coded(index, measured, f"has no {kind}: select count(*) with {instead}")
        self._check_type(kind, column, measured)
        return Aggregate(kind, index, share)

    def _coded(self, index: int, node: exp.Expr, refusal: str) -> Column:
        """The column at ``index``; an error with the ``refusal`` if it is text."""
        column = self.schema.columns[index]
        if not column.is_text:
            return column
        raise self._error(f'"{column.name}" is modelled character by character: it {refusal}', node)

    def _check_type(self, kind: str, column: Column, node: exp.Expr) -> None:
        if kind == COUNT or is_number(column.type) or (kind in QUANTILES and column.type in TIMES):
            return
        instead = "use quantile_disc" if column.type in TIMES else f'use count("{column.name}"), or GROUP BY it'
        raise self._error(f'{kind} takes numbers, and "{column.name}" is {column.type}: {instead}', node)

    def _share(self, kind: str, node: exp.Expr) -> str:
        if kind == "median":
            return MEDIAN
        share = node.args.get("quantile") or node.args.get("expression")
        if not isinstance(share, exp.Literal) or share.is_string or not 0 <= float(share.name) <= 1:
            raise self._error(f"{kind} takes a column and one number between 0 and 1, such as 0.9", node)
        return share.name

    def _check_size(self) -> None:
        clauses = (self.statement.args.get(clause) for clause in ("having", "order", "limit", "offset"))
        if expanded_size((*self.selected, *filter(None, clauses))) > MOST_NODES:
            raise QueryTooLargeError(
                f"the statement has more than {MOST_NODES:,} parts when the names of its columns are written out: "
                "select fewer columns, or use fewer names of others in them",
                self.sql,
            )

    def _check_order_positions(self, order: exp.Expr) -> None:
        for item in order.expressions:
            position = item.this if isinstance(item, exp.Ordered) else item
            if (
                isinstance(position, exp.Literal)
                and position.is_int
                and not 1 <= int(position.name) <= len(self.selected)
            ):
                raise self._error(f"ORDER BY {position.name}: the statement selects {len(self.selected)}")

    def _source(self, statement_text: StatementText) -> str:
        source = self.statement.args.get("from_")
        name = (source.this.alias_or_name if source is not None else "") or TABLE
        grouped = ", ".join(quote_identifier(self.schema.coded_column(index).name) for index in self.groups)
        if self.expressions or any(self.schema.calendar_part(index) is not None for index in self.groups):
            grouped = statement_text.grouped(
                (self.statement.args["group"],)
            )  # DuckDB finds their names in the selected part
        by = f" GROUP BY {grouped}" if grouped else ""
        return f"{TABLE} AS {quote_identifier(name)}{by}"

    def _error(self, message: str, node: exp.Expr | None = None) -> UnsupportedQueryError:
        return UnsupportedQueryError(message, self.sql, None if node is None else span_of(node, self.sql))
