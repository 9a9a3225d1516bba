"""The query compiler's entry point: from a clause, or a predicate made in Python, to a Region."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from sqlglot import exp

from countless.arrays import BoolArray
from countless.data.columns.schema import Column, Schema
from countless.data.columns.strings.text import OTHER_RARE, TextColumn
from countless.data.columns.types import quote_identifier
from countless.data.evidence import EvidenceRows
from countless.errors import QueryError, QueryTooLargeError, QueryTypeError, UnsupportedQueryError, is_final
from countless.query.boxes import CodeBox, cover, disjoint, filter_of
from countless.query.domains.comparisons import plain_comparison
from countless.query.domains.domain_evaluation import DomainTables
from countless.query.domains.searches import Searches
from countless.query.domains.truth import Codes, Observed, Truth, parts_of
from countless.query.evidence import EvidenceTables
from countless.query.formula import EVERY_ROW, NO_ROW, Formula, Want, all_of, any_of, leaf
from countless.query.grids.survey import CellParts, Lines, Survey
from countless.query.parameters import Clause
from countless.query.parsing.conjuncts import conjuncts, leaves_of
from countless.query.parsing.names import index_of_name, resolve
from countless.query.parsing.parse import span_of
from countless.query.parsing.sql import NESTED, written
from countless.query.predicate import Where
from countless.query.question import Comparison, Question
from countless.query.rewrites.calendar import with_calendar, without_hidden
from countless.query.rewrites.uuids import with_canonical_uuids
from countless.query.sandbox.as_written import as_written, is_sure, shape_of, surely_read
from countless.query.text.predicates import LanguageJudge
from countless.query.text.rewrites import with_patterns
from countless.query.text.string_facts import StringFacts
from countless.query.text.string_search import StringSearch
from countless.query.type_remedies import type_remedy
from countless.region import Box, Filter, Region, TextFilter

MOST_SHAPES = 4_096  # that are kept


@dataclass(frozen=True, eq=False)
class DrawingRegion:
    """What rows are drawn from: boxes, and for each box what it allows of the grids' cells, by column."""

    region: Region
    cells: tuple[Mapping[int, CellParts], ...]


class Compiler:
    """Turns clauses about one table into regions, and judges them on its evidence rows. Safe to share by threads."""

    def __init__(self, schema: Schema, evidence: EvidenceRows | None = None, search: Searches | None = None) -> None:
        self.schema = schema
        self.dictionary = DomainTables(schema)
        self.facts = StringFacts(self.dictionary)
        self.strings = StringSearch(schema, self.facts)
        self.search = search or Searches.of(schema, evidence)
        seen = self.search.seen
        self.evidence = None if evidence is None or seen is None else EvidenceTables(evidence, self.facts, seen)
        self.lines = Lines(schema, self.dictionary, self.search.grids)
        self._read: set[str] = set()  # shapes of clauses that DuckDB reads

    def compile(self, where: Where | Clause) -> Question:
        """The region of ``where``."""
        clause = where if isinstance(where, Clause) else Clause.read(where, self.schema)
        if clause.parameters:
            raise clause.unbound()
        descent = _Descent(self, clause.source)
        try:
            condition = self.rewritten(clause)
            descent.survey(condition)
            try:
                region = descent.region(descent.formula(condition, Want.TRUE))
            except (UnsupportedQueryError, QueryTooLargeError) as error:
                if self.evidence is None or is_final(error):
                    raise
                return self._in_part(clause, condition)
            self._check(clause)
        except RecursionError:
            raise QueryTooLargeError(NESTED, clause.source) from None
        return Question(clause.text, region, descent.certain, clause.condition, tuple(descent.details))

    def rewritten(self, clause: Clause) -> exp.Expr:
        """The condition as the model's columns have it."""
        condition = self._plain(clause)
        return with_calendar(condition, self.schema) if self.schema.calendar else condition

    def _plain(self, clause: Clause) -> exp.Expr:
        return with_patterns(with_canonical_uuids(clause.condition, self.schema), self.schema)

    def _in_part(self, clause: Clause, condition: exp.Expr) -> Question:
        """A clause of which some filters can only be answered by evidence rows: the others make its region."""
        descent = _Descent(self, clause.source)
        descent.survey(condition)
        formula, beyond = descent.modelled(condition)
        self._check(clause)
        among = np.logical_and.reduce([descent.among(part) for part in beyond])
        return Question(
            clause.text,
            descent.region(formula),
            certain=False,
            parsed=clause.condition,
            details=tuple(descent.details),
            beyond=tuple(written(without_hidden(part, self.schema)) for part in beyond),
            among=among,
        )

    def compile_for_drawing(self, clause: Clause) -> DrawingRegion:
        """What to draw rows of ``clause`` from, which has been compiled before.

        What a question judges by the knots of a grid is judged by many more values here. Filters that only evidence
        rows can answer are left out: rows that are drawn must be checked.
        """
        descent = _Descent(self, clause.source, probing=True)
        condition = self._plain(clause)
        rewritten = with_calendar(condition, self.schema) if self.schema.calendar else condition
        if rewritten is not condition:
            # Hidden columns tell which rows match, and the timestamp's own values which moments of a cell do.
            condition = exp.And(this=exp.paren(rewritten), expression=exp.paren(condition))
        descent.survey(condition)
        parts = disjoint(cover(descent.modelled(condition)[0]))
        grids = ([index for index in box if index < len(self.schema.coded) and self._has_grid(index)] for box in parts)
        cells = (
            {index: descent.surveyed.parts(index, box[index]) for index in own}
            for box, own in zip(parts, grids, strict=True)
        )
        return DrawingRegion(Region(tuple(map(descent.box, parts))), tuple(cells))

    def _has_grid(self, index: int) -> bool:
        return self.schema.coded[index].grid is not None

    def read(self, where: Where) -> Clause:
        """``where`` parsed. If it has parameters, all is checked that can be without their values."""
        clause = Clause.read(where, self.schema)
        if clause.parameters:
            for column in clause.condition.find_all(exp.Column):
                resolve(self.schema, column, clause.source)
            self._check(clause)
        return clause

    def _check(self, clause: Clause) -> None:
        """Refuse what DuckDB does not read, though sqlglot does."""
        if surely_read(self.schema, clause):
            return
        condition = as_written(self.schema, clause)
        shape = shape_of(condition)
        if shape in self._read or is_sure(self.schema, shape):
            return
        try:
            self.dictionary.check(condition)
        except QueryError as error:
            error.clause = clause.source
            raise error from None
        if len(self._read) < MOST_SHAPES:
            self._read.add(shape)

    def column(self, name: str) -> int:
        """The place of the column called ``name``, which must not be text."""
        index = index_of_name(self.schema, name)
        if self.schema.columns[index].is_text:
            raise UnsupportedQueryError(
                f'"{name}" is text, which has no list of values: ask with LIKE or a regular expression in the condition'
            )
        return index


class _Descent:
    """One descent through one clause."""

    def __init__(self, compiler: Compiler, clause: str | None, probing: bool = False) -> None:
        self.compiler = compiler
        self.probing = probing
        self.schema = compiler.schema
        self.clause = clause
        self.details: list[Callable[[], Comparison]] = []
        self.certain = True
        self.surveyed = Survey(compiler.lines, ())

    def modelled(self, condition: exp.Expr) -> tuple[Formula, list[exp.Expr]]:
        """The filters of a condition that the model understands, and those that it does not."""
        formulas: list[Formula] = []
        beyond: list[exp.Expr] = []
        for part in conjuncts(condition):
            try:
                formula = self.formula(part, Want.TRUE)
                disjoint(cover(all_of([*formulas, formula])))
            except (UnsupportedQueryError, QueryTooLargeError) as error:
                if is_final(error):
                    raise
                beyond.append(part)
            else:
                formulas.append(formula)
        return all_of(formulas), beyond

    def survey(self, condition: exp.Expr) -> None:
        """Look for the comparisons with columns that have a grid: together they say how to cut it into atoms."""
        grids = [index for index, column in enumerate(self.schema.coded) if column.grid]
        if not grids:
            return
        leaves = []
        for node in leaves_of(condition):
            columns = list(self._columns(node))
            if len(columns) == 1 and columns[0] in grids:
                leaves.append((columns[0], node))
        self.surveyed = Survey(self.compiler.lines, leaves, self.probing)

    def region(self, formula: Formula) -> Region:
        """The rows of ``formula``."""
        boxes = cover(formula)
        parts = disjoint(boxes)
        return Region(tuple(map(self.box, parts)), tuple(map(self.box, boxes)) if len(parts) > 1 else ())

    def among(self, node: exp.Expr) -> BoolArray:
        """The evidence rows that satisfy a filter which the model cannot answer."""
        assert self.compiler.evidence is not None
        whole = without_hidden(node, self.schema)
        try:
            return self.compiler.evidence.satisfied(whole, sorted(self._columns(whole)))
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
        own, seen = parts_of(codes)
        if column.grid is None:
            return filter_of(self.schema, index, own, seen)
        most = self.surveyed.most_rows(index, own)
        return filter_of(self.schema, index, self.surveyed.weights(index, own), seen, most)

    def formula(self, node: exp.Expr, want: Want) -> Formula:
        """The rows for which ``want`` holds of ``node``."""
        if isinstance(node, exp.Paren):
            return self.formula(node.this, want)
        if isinstance(node, exp.Not):
            return self.formula(node.this, want.negated())
        if isinstance(node, exp.And | exp.Or):
            parts = (self.formula(part, want) for part in node.flatten())
            return all_of(parts) if isinstance(node, exp.And) == want.joins_as_written else any_of(parts)
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean):
            return self._tested(node, want)
        columns = self._columns(node)
        if len(columns) > 1:
            raise self._several_columns(node, columns)
        return self._comparison(node, next(iter(columns), None), want)

    def _tested(self, node: exp.Is, want: Want) -> Formula:
        """``p IS TRUE`` or ``p IS FALSE``, which is never NULL itself."""
        wanted = Want.TRUE if node.expression.this else Want.FALSE
        return self.formula(node.this, wanted if want.joins_as_written else wanted.opposite())

    def _comparison(self, node: exp.Expr, index: int | None, want: Want) -> Formula:
        if index is None:
            truth = self._run(None, node)
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
            if (
                self.schema.calendar_part(index) is not None
            ):  # a hidden column has the name of a function, without quotes
                sql = sql.replace(quote_identifier(column.name), column.name)
            return Comparison(column.name, sql, int(satisfied.sum()), column.size, how, self._unseen(index, node))

        self.details.append(detail)
        return leaf(index, satisfied)

    def _on_grid(self, node: exp.Expr, index: int, column: Column, want: Want) -> Formula:
        at_knots = self._run(index, node) if self.surveyed.is_of_knots(node) else None
        self.certain &= at_knots is None
        judged = self.surveyed.judge(index, node, at_knots)
        satisfied = want.codes(judged.truth)

        def detail() -> Comparison:
            share = self.surveyed.share(index, satisfied)
            values = round(share * column.distinct) + int(column.has_null and satisfied[-1])
            most, how = column.distinct + column.has_null, judged.how
            return Comparison(
                column.name, written(node), values, most, how, judged.unseen, column.null, judged.equality
            )

        self.details.append(detail)
        return leaf(index, self._observed(index, node, want, satisfied))

    def _on_text(self, node: exp.Expr, index: int, column: TextColumn, want: Want) -> Formula:
        truth, how = self._truth(index, node)
        satisfied = want.codes(truth)
        observed = self._observed(index, node, want, satisfied)
        # Beyond the cut there may be unknown letters, and the rarest ones have no names.
        if (column.cut or OTHER_RARE in column.letters.characters) and not isinstance(node, exp.Is):
            self.certain &= observed.any() and not observed.all()

        def detail() -> Comparison:
            most, states = column.distinct + column.has_null, len(satisfied.strings.accepts)
            return Comparison(column.name, written(node), None, most, how, self._unseen(index, node), states=states)

        self.details.append(detail)
        return leaf(index, observed)

    def _observed(self, index: int, node: exp.Expr, want: Want, satisfied: Codes) -> Codes:
        """The values that satisfy ``node``, together with those of the evidence rows, if there are any."""
        evidence = self.compiler.evidence
        if evidence is None or self.probing:
            return satisfied
        return Observed(satisfied, want.codes(evidence.truth(index, node)))

    def _truth(self, index: int, node: exp.Expr) -> tuple[Truth, str]:
        if self.schema.column(index).is_text:
            return self._run(index, node), "automaton"
        found = self.compiler.search.known.truth(index, plain_comparison(node)) or self.compiler.strings.truth(
            index, node
        )
        return (found, "search") if found is not None else (self._run(index, node), "duckdb")

    def _run(self, index: int | None, node: exp.Expr) -> Truth:
        column = None if index is None else self.schema.column(index)
        try:
            if column is not None and column.is_text:
                return LanguageJudge(self.compiler.facts, column).truth(node)
            probes = None if index is None or column is None or column.grid is None else self.surveyed.probes(index)
            return self.compiler.dictionary.truth(index, node, probes)
        except QueryError as error:
            if column is not None:
                error.message = f'"{column.name}" is {column.type}: {error.message}'
                if isinstance(error, QueryTypeError):
                    error.message += type_remedy(column, error.message)
            error.clause, error.span = self.clause, span_of(node, self.clause)
            raise error from None

    def _unseen(self, index: int, node: exp.Expr) -> tuple[str, ...]:
        """The literals that ``node`` looks for and the column does not hold."""
        if isinstance(node, exp.In):
            sides = [(node.this, item) for item in node.expressions]
        elif isinstance(node, exp.EQ | exp.NEQ):
            sides = [(node.this, node.expression) if node.this.find(exp.Column) else (node.expression, node.this)]
        else:
            return ()
        missing = []
        for expression, value in sides:
            test = exp.EQ(this=expression.copy(), expression=value.copy())
            if not isinstance(value, exp.Null) and not self._truth(index, test)[0].true.any():
                missing.append(written(value))
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
