"""Compilation of one clause: its syntax tree becomes a formula of sets of codes, and the formula becomes boxes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from countless.arrays import BoolArray
from countless.data.columns.schema import Column
from countless.data.columns.strings.text import OTHER_RARE, TextColumn
from countless.data.columns.types import quote_identifier
from countless.errors import QueryError, QueryTooLargeError, QueryTypeError, UnsupportedQueryError, is_final
from countless.query.boxes import CodeBox, cover, disjoint, filter_of
from countless.query.domains.comparisons import plain_comparison
from countless.query.domains.truth import Codes, Observed, Truth, parts_of
from countless.query.formula import EVERY_ROW, NO_ROW, Formula, Want, all_of, any_of, leaf
from countless.query.grids.survey import Survey
from countless.query.parsing.conjuncts import conjuncts, leaves_of
from countless.query.parsing.names import resolve
from countless.query.parsing.parse import span_of
from countless.query.parsing.sql import written
from countless.query.question import Comparison
from countless.query.rewrites.calendar import without_hidden
from countless.query.text.language_evaluator import LanguageEvaluator
from countless.query.type_remedies import type_remedy
from countless.region import Box, Filter, Region, TextFilter

if TYPE_CHECKING:
    from countless.query.compile import Compiler


class ClauseCompiler:
    """Compiles one clause: its syntax tree to a formula, and that to boxes.

    If ``probing``, predicates on grids are evaluated at many values, not only at the knots; see :class:`.Survey`.
    """

    def __init__(self, compiler: Compiler, clause: str | None, probing: bool = False) -> None:
        self.compiler = compiler
        self.probing = probing
        self.schema = compiler.schema
        self.clause = clause
        self.details: list[Callable[[], Comparison]] = []
        self.certain = True
        self.grid_survey = Survey(compiler.lines, ())

    def modelled_part(self, condition: exp.Expr) -> tuple[Formula, list[exp.Expr]]:
        """The filters of a condition that the model can answer, as a formula, and those that it cannot."""
        formulas: list[Formula] = []
        unmodelled: list[exp.Expr] = []
        for part in conjuncts(condition):
            try:
                formula = self.formula(part, Want.TRUE)
                disjoint(cover(all_of([*formulas, formula])))
            except (UnsupportedQueryError, QueryTooLargeError) as error:
                if is_final(error):
                    raise
                unmodelled.append(part)
            else:
                formulas.append(formula)
        return all_of(formulas), unmodelled

    def survey(self, condition: exp.Expr) -> None:
        """Collect the comparisons with columns that have a grid: their constants cut the grid into atoms."""
        grids = [index for index, column in enumerate(self.schema.coded) if column.grid]
        if not grids:
            return
        leaves = []
        for node in leaves_of(condition):
            columns = list(self._columns(node))
            if len(columns) == 1 and columns[0] in grids:
                leaves.append((columns[0], node))
        self.grid_survey = Survey(self.compiler.lines, leaves, self.probing)

    def region(self, formula: Formula) -> Region:
        """The rows of ``formula``."""
        boxes = cover(formula)
        disjoint_boxes = disjoint(boxes)
        return Region(
            tuple(map(self.box, disjoint_boxes)), tuple(map(self.box, boxes)) if len(disjoint_boxes) > 1 else ()
        )

    def evidence_matches(self, node: exp.Expr) -> BoolArray:
        """The evidence rows that satisfy a filter which the model cannot answer."""
        assert self.compiler.evidence is not None
        predicate = without_hidden(node, self.schema)
        try:
            return self.compiler.evidence.satisfied(predicate, sorted(self._columns(predicate)))
        except QueryError as error:
            error.clause, error.span = self.clause, span_of(node, self.clause)
            raise error from None

    def box(self, box: CodeBox) -> Box:
        """The box in terms of the model's positions."""
        filters, texts = [], []
        for index in sorted(box):
            column = self.schema.column(index)
            if column.is_text:
                texts.append(TextFilter(self.schema.text_index(index), *parts_of(box[index])))
            else:
                filters.append(self._filter(index, column, box[index]))
        return Box(tuple(filters), tuple(texts))

    def _filter(self, index: int, column: Column, codes: Codes) -> Filter:
        model_codes, evidence_matches = parts_of(codes)
        if column.grid is None:
            return filter_of(self.schema, index, model_codes, evidence_matches)
        max_rows = self.grid_survey.most_rows(index, model_codes)
        return filter_of(self.schema, index, self.grid_survey.weights(index, model_codes), evidence_matches, max_rows)

    def formula(self, node: exp.Expr, want: Want) -> Formula:
        """The rows for which ``node`` has the truth values of ``want``."""
        if isinstance(node, exp.Paren):
            return self.formula(node.this, want)
        if isinstance(node, exp.Not):
            return self.formula(node.this, want.negated())
        if isinstance(node, exp.And | exp.Or):
            operands = (self.formula(operand, want) for operand in node.flatten())
            return all_of(operands) if isinstance(node, exp.And) == want.joins_as_written else any_of(operands)
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean):
            return self._truth_test(node, want)
        columns = self._columns(node)
        if len(columns) > 1:
            raise self._several_columns(node, columns)
        return self._comparison(node, next(iter(columns), None), want)

    def _truth_test(self, node: exp.Is, want: Want) -> Formula:
        """``p IS TRUE`` or ``p IS FALSE``, which is never NULL itself."""
        tested = Want.TRUE if node.expression.this else Want.FALSE
        return self.formula(node.this, tested if want.joins_as_written else tested.opposite())

    def _comparison(self, node: exp.Expr, index: int | None, want: Want) -> Formula:
        if index is None:
            truth = self._evaluate(None, node)
            return EVERY_ROW if want.codes(truth)[0] else NO_ROW
        column = self.schema.column(index)
        if column.is_text:
            return self._on_text(node, index, column, want)
        if column.grid is not None:
            return self._on_grid(node, index, column, want)
        truth, how = self._truth(index, node)
        satisfied = want.codes(truth)

        def detail() -> Comparison:
            sql = written(node)
            if self.schema.calendar_part(index) is not None:  # a hidden column has the name of a function
                sql = sql.replace(quote_identifier(column.name), column.name)
            return Comparison(column.name, sql, int(satisfied.sum()), column.size, how, self._unseen(index, node))

        self.details.append(detail)
        return leaf(index, satisfied)

    def _on_grid(self, node: exp.Expr, index: int, column: Column, want: Want) -> Formula:
        at_knots = self._evaluate(index, node) if self.grid_survey.needs_knots(node) else None
        self.certain &= at_knots is None
        grid_truth = self.grid_survey.evaluate(index, node, at_knots)
        satisfied = want.codes(grid_truth.truth)

        def detail() -> Comparison:
            share = self.grid_survey.share(index, satisfied)
            values = round(share * column.distinct) + int(column.has_null and satisfied[-1])
            size = column.distinct + column.has_null
            return Comparison(
                column.name,
                written(node),
                values,
                size,
                grid_truth.how,
                grid_truth.unseen,
                cells=column.null,
                equality=grid_truth.equality,
            )

        self.details.append(detail)
        return leaf(index, self._with_evidence(index, node, want, satisfied))

    def _on_text(self, node: exp.Expr, index: int, column: TextColumn, want: Want) -> Formula:
        truth, how = self._truth(index, node)
        satisfied = want.codes(truth)
        codes = self._with_evidence(index, node, want, satisfied)
        # Letters after the length at which strings are cut are unknown, and the rarest letters share one symbol.
        if (column.cut or OTHER_RARE in column.letters.characters) and not isinstance(node, exp.Is):
            self.certain &= codes.any() and not codes.all()

        def detail() -> Comparison:
            size, states = column.distinct + column.has_null, len(satisfied.strings.accepts)
            return Comparison(column.name, written(node), None, size, how, self._unseen(index, node), states=states)

        self.details.append(detail)
        return leaf(index, codes)

    def _with_evidence(self, index: int, node: exp.Expr, want: Want, satisfied: Codes) -> Codes:
        """The ``satisfied`` values of the model together with those of the evidence rows, if there are any."""
        evidence = self.compiler.evidence
        if evidence is None or self.probing:
            return satisfied
        return Observed(satisfied, want.codes(evidence.truth(index, node)))

    def _truth(self, index: int, node: exp.Expr) -> tuple[Truth, str]:
        """Where a predicate about a column is true and where false, and how that was found out, for ``explain``."""
        if self.schema.column(index).is_text:
            return self._evaluate(index, node), "automaton"
        truth = self.compiler.search.known.truth(index, plain_comparison(node))
        truth = truth or self.compiler.strings.truth(index, node)
        return (truth, "search") if truth is not None else (self._evaluate(index, node), "duckdb")

    def _evaluate(self, index: int | None, node: exp.Expr) -> Truth:
        """The truth of a predicate by the definition: by automata for text, by DuckDB for all other columns."""
        column = None if index is None else self.schema.column(index)
        try:
            if column is not None and column.is_text:
                return LanguageEvaluator(self.compiler.duckdb_strings, column).truth(node)
            probes = None if index is None or column is None or column.grid is None else self.grid_survey.probes(index)
            return self.compiler.domain_tables.truth(index, node, probes)
        except QueryError as error:
            if column is not None:
                error.message = f'"{column.name}" is {column.type}: {error.message}'
                if isinstance(error, QueryTypeError):
                    error.message += type_remedy(column, error.message)
            error.clause, error.span = self.clause, span_of(node, self.clause)
            raise error from None

    def _unseen(self, index: int, node: exp.Expr) -> tuple[str, ...]:
        """The literals that ``node`` looks for and the column does not have."""
        if isinstance(node, exp.In):
            sides = [(node.this, constant) for constant in node.expressions]
        elif isinstance(node, exp.EQ | exp.NEQ):
            sides = [(node.this, node.expression) if node.this.find(exp.Column) else (node.expression, node.this)]
        else:
            return ()
        missing = []
        for expression, constant in sides:
            test = exp.EQ(this=expression.copy(), expression=constant.copy())
            if not isinstance(constant, exp.Null) and not self._truth(index, test)[0].true.any():
                missing.append(written(constant))
        return tuple(missing)

    def _columns(self, node: exp.Expr) -> dict[int, exp.Column]:
        return {resolve(self.schema, column, self.clause): column for column in node.find_all(exp.Column)}

    def _several_columns(self, node: exp.Expr, columns: dict[int, exp.Column]) -> QueryError:
        names = " and ".join(f'"{self.schema.column(index).name}"' for index in sorted(columns))
        remedy = "compare each column with values instead"
        if self.compiler.evidence is None:
            remedy += "; a model that was fitted with evidence rows answers it, and this file has none"
        return UnsupportedQueryError(
            f"one comparison is about the columns {names}: {remedy}",
            self.clause,
            span_of(node, self.clause),
        )
