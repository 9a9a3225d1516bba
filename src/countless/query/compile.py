"""The query compiler: from a clause, or a predicate made in Python, to a Region."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from sqlglot import exp

from countless.data.columns.schema import Schema
from countless.data.evidence import EvidenceRows
from countless.errors import QueryError, QueryTooLargeError, UnsupportedQueryError, is_final
from countless.query.boxes import cover, disjoint
from countless.query.clause_compiler import ClauseCompiler
from countless.query.domains.domain_evaluation import DomainTables
from countless.query.domains.searches import Searches
from countless.query.evidence import EvidenceTables
from countless.query.formula import Want
from countless.query.grids.survey import CellParts, Lines
from countless.query.parameters import Clause
from countless.query.parsing.names import index_of_name, resolve
from countless.query.parsing.sql import NESTED, written
from countless.query.predicate import Where
from countless.query.question import Question
from countless.query.rewrites.calendar import with_calendar, without_hidden
from countless.query.rewrites.uuids import with_canonical_uuids
from countless.query.sandbox.original_sql import (
    is_known_to_be_accepted,
    is_surely_accepted,
    original_condition,
    shape_of,
)
from countless.query.text.duckdb_strings import DuckDBStrings
from countless.query.text.pattern_rewrites import with_patterns
from countless.query.text.string_list_evaluator import StringSearch
from countless.region import Region

MOST_SHAPES = 4_096  # of conditions that DuckDB accepts, remembered by a compiler


@dataclass(frozen=True, eq=False)
class DrawingRegion:
    """The boxes that rows are drawn from, and the parts of grid cells that each box allows, by column."""

    region: Region
    cells: tuple[Mapping[int, CellParts], ...]


class Compiler:
    """Compiles clauses about one table to regions and evaluates them on its evidence rows. Safe to share by threads."""

    def __init__(self, schema: Schema, evidence: EvidenceRows | None = None, search: Searches | None = None) -> None:
        self.schema = schema
        self.domain_tables = DomainTables(schema)
        self.duckdb_strings = DuckDBStrings(self.domain_tables)
        self.strings = StringSearch(schema, self.duckdb_strings)
        self.search = search or Searches.of(schema, evidence)
        evidence_search = self.search.seen
        self.evidence: EvidenceTables | None = None
        if evidence is not None and evidence_search is not None:
            self.evidence = EvidenceTables(evidence, self.duckdb_strings, evidence_search)
        self.lines = Lines(schema, self.domain_tables, self.search.grids)
        self._accepted_shapes: set[str] = set()

    def compile(self, where: Where | Clause) -> Question:
        """Compile ``where`` to a question with its region."""
        clause = where if isinstance(where, Clause) else Clause.read(where, self.schema)
        if clause.parameters:
            raise clause.unbound()
        clause_compiler = ClauseCompiler(self, clause.source)
        try:
            condition = self.rewritten(clause)
            clause_compiler.survey(condition)
            try:
                region = clause_compiler.region(clause_compiler.formula(condition, Want.TRUE))
            except (UnsupportedQueryError, QueryTooLargeError) as error:
                if self.evidence is None or is_final(error):
                    raise
                return self._compile_partly(clause, condition)
            self._check_duckdb_reads(clause)
        except RecursionError:
            raise QueryTooLargeError(NESTED, clause.source) from None
        return Question(clause.text, region, clause_compiler.certain, clause.condition, tuple(clause_compiler.details))

    def rewritten(self, clause: Clause) -> exp.Expr:
        """The condition in terms of the model's columns."""
        condition = self._normalized(clause)
        return with_calendar(condition, self.schema) if self.schema.calendar else condition

    def _normalized(self, clause: Clause) -> exp.Expr:
        """The condition with UUIDs as they are stored, and with string functions as patterns where possible."""
        return with_patterns(with_canonical_uuids(clause.condition, self.schema), self.schema)

    def _compile_partly(self, clause: Clause, condition: exp.Expr) -> Question:
        """Compile a clause of which only evidence rows can answer some filters: its region has all other filters."""
        clause_compiler = ClauseCompiler(self, clause.source)
        clause_compiler.survey(condition)
        formula, unmodelled = clause_compiler.modelled_part(condition)
        self._check_duckdb_reads(clause)
        among = np.logical_and.reduce([clause_compiler.evidence_matches(node) for node in unmodelled])
        return Question(
            clause.text,
            clause_compiler.region(formula),
            certain=False,
            parsed=clause.condition,
            details=tuple(clause_compiler.details),
            beyond=tuple(written(without_hidden(node, self.schema)) for node in unmodelled),
            among=among,
        )

    def compile_for_drawing(self, clause: Clause) -> DrawingRegion:
        """The region that rows of ``clause`` are drawn from. The clause has been compiled before.

        Predicates that a question evaluates at the knots of a grid are evaluated at many more values here. Filters that
        only evidence rows can answer are left out, so rows that are drawn must be checked.
        """
        clause_compiler = ClauseCompiler(self, clause.source, probing=True)
        condition = self._normalized(clause)
        rewritten = with_calendar(condition, self.schema) if self.schema.calendar else condition
        if rewritten is not condition:
            # Hidden columns say which rows match; the timestamp's own values say which moments within a cell match.
            condition = exp.And(this=exp.paren(rewritten), expression=exp.paren(condition))
        clause_compiler.survey(condition)
        boxes = disjoint(cover(clause_compiler.modelled_part(condition)[0]))
        survey = clause_compiler.grid_survey
        cells = (
            {index: survey.parts(index, codes) for index, codes in box.items() if self._has_grid(index)}
            for box in boxes
        )
        return DrawingRegion(Region(tuple(map(clause_compiler.box, boxes))), tuple(cells))

    def _has_grid(self, index: int) -> bool:
        return index < len(self.schema.coded) and self.schema.coded[index].grid is not None

    def read(self, where: Where) -> Clause:
        """Parse ``where``. If it has parameters, check everything that does not depend on their values."""
        clause = Clause.read(where, self.schema)
        if clause.parameters:
            for column in clause.condition.find_all(exp.Column):
                resolve(self.schema, column, clause.source)
            self._check_duckdb_reads(clause)
        return clause

    def _check_duckdb_reads(self, clause: Clause) -> None:
        """Refuse SQL that sqlglot parses and DuckDB does not."""
        if is_known_to_be_accepted(self.schema, clause):
            return
        condition = original_condition(self.schema, clause)
        shape = shape_of(condition)
        if shape in self._accepted_shapes or is_surely_accepted(self.schema, shape):
            return
        try:
            self.domain_tables.check(condition)
        except QueryError as error:
            error.clause = clause.source
            raise error from None
        if len(self._accepted_shapes) < MOST_SHAPES:
            self._accepted_shapes.add(shape)

    def column(self, name: str) -> int:
        """The index of the column called ``name``, which must not be text."""
        index = index_of_name(self.schema, name)
        if self.schema.columns[index].is_text:
            raise UnsupportedQueryError(
                f'"{name}" is text, which has no list of values: ask with LIKE or a regular expression in the condition'
            )
        return index
