"""The conditions of a clause on columns that have a grid, as sets of atoms.

The model does not know all values of such a column, so a set of its values cannot be a set of codes. All comparisons of
a clause with the column are collected first. Their constants cut its line into atoms, and sets of atoms are joined like
sets of codes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from countless.arrays import BoolArray, FloatArray
from countless.data.columns.schema import Schema
from countless.data.columns.types import TEXT
from countless.query.domains.comparisons import constant_of, is_null_test
from countless.query.domains.domain_evaluation import DomainTables
from countless.query.domains.domain_search import read_literal
from countless.query.domains.truth import Truth
from countless.query.grids.comparison_ranges import NULL, prefix_range, ranges_of
from countless.query.grids.line import Atoms, Line, Piece
from countless.query.grids.plain import GridSearch
from countless.query.grids.ranges import Ranges
from countless.query.grids.scale import Key
from countless.query.parsing.sql import written


class Lines:
    """The lines of a schema's grids, and the ranges of comparisons on them."""

    def __init__(self, schema: Schema, domain_tables: DomainTables, grids: GridSearch) -> None:
        self.schema = schema
        self._domain_tables = domain_tables
        self.line = grids.line

    def ranges(self, index: int, predicate: exp.Expr) -> Ranges | None:
        """The ranges of a grid's column in which ``predicate`` holds, if it compares the column with constants."""
        line = self.line(index)
        assert line is not None

        def keys_of(constants: Sequence[exp.Expr]) -> list[Key | None]:
            return self._keys(index, line, constants)

        ranges = ranges_of(predicate, line.scale, keys_of)
        if ranges is None and self.schema.coded[index].type == TEXT:
            ranges = prefix_range(predicate, line.scale, keys_of)
        return ranges

    def _keys(self, index: int, line: Line, constants: Sequence[exp.Expr]) -> list[Key | None]:
        """The keys of constants: plain literals are read here, other constants are evaluated by DuckDB."""
        kind = self.schema.coded[index].type
        literals = [constant_of(constant) for constant in constants]
        texts = [None if constant is None else read_literal(kind, constant) for constant in literals]
        unread = [constant for constant, text in zip(constants, texts, strict=True) if text is None]
        evaluated = iter((self._domain_tables.constants(kind, unread) if unread else []) or [("", "")] * len(unread))
        keys: list[Key | None] = []
        for text in texts:
            type_, value = next(evaluated) if text is None else (kind, text)
            keys.append(NULL if value is None else line.scale.read(type_, value))
        return keys


@dataclass(frozen=True)
class GridTruth:
    """The truth of a predicate on the atoms of a column, and how it was found."""

    truth: Truth
    how: str
    equality: bool
    unseen: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class CellParts:
    """The parts of a grid's cells that a condition allows: the selected atoms."""

    atoms: Atoms
    selected: BoolArray

    def pieces(self, cell: int) -> list[Piece]:
        """The parts of a cell in which the condition may be true."""
        return self.atoms.pieces(self.selected, cell)


class Survey:
    """The atoms of those columns of a clause that have grids."""

    def __init__(self, lines: Lines, leaves: Iterable[tuple[int, exp.Expr]], probing: bool = False) -> None:
        """If ``probing``, predicates are evaluated at the probes: the knots and more values between them."""
        self._lines = lines
        self._probing = probing
        self._ranges: dict[int, Ranges | None] = {}  # by the id of the predicate
        ranges_by_column: dict[int, list[Ranges | None]] = {}
        for index, predicate in leaves:
            column_ranges = ranges_by_column.setdefault(index, [])
            if not is_null_test(predicate):
                column_ranges.append(lines.ranges(index, predicate))
                self._ranges[id(predicate)] = column_ranges[-1]
        self._atoms: dict[int, Atoms] = {}
        for index, column_ranges in ranges_by_column.items():
            line = lines.line(index)
            assert line is not None
            cuts = {cut for ranges in column_ranges if ranges is not None for cut in ranges.cuts()}
            only_knots = None in column_ranges and not cuts and not probing
            self._atoms[index] = line.knot_atoms if only_knots else Atoms(line, cuts, None in column_ranges, probing)

    def evaluate(self, index: int, predicate: exp.Expr, at_knots: Truth | None) -> GridTruth:
        """The predicate on the atoms; ``at_knots`` is its truth at the knots, required if it :meth:`needs_knots`."""
        atoms, ranges = self._atoms[index], self._ranges.get(id(predicate))
        if is_null_test(predicate):
            return GridTruth(atoms.null(), "search", False, ())
        if ranges is None:
            assert at_knots is not None
            return GridTruth(atoms.by_knots(at_knots), "knots", False, ())
        unseen = tuple(written(constant) for constant, key in ranges.points if not atoms.line.may_hold(key))
        return GridTruth(atoms.within(ranges), "interpolation", bool(ranges.points), unseen)

    def needs_knots(self, predicate: exp.Expr) -> bool:
        """Whether the predicate can only be evaluated at the knots."""
        return not is_null_test(predicate) and self._ranges[id(predicate)] is None

    def probes(self, index: int) -> Collection[str] | None:
        """The values at which to evaluate a predicate instead of at the knots, if ``probing``."""
        line = self._lines.line(index)
        return line.probe_texts if line is not None and self._probing else None

    def parts(self, index: int, selected: BoolArray) -> CellParts:
        """The part of each cell that is in a set of atoms."""
        atoms = self._atoms[index]
        return CellParts(atoms, atoms.with_empty_atoms(selected))

    def share(self, index: int, selected: BoolArray) -> float:
        """The share of the column's values in a set of atoms."""
        return self._atoms[index].share(selected)

    def most_rows(self, index: int, selected: BoolArray) -> int | None:
        """The largest number of rows of a set of atoms, if the column is unique; None if there is no limit."""
        atoms = self._atoms[index]
        return atoms.most_rows(selected) if atoms.line.grid.unique else None

    def weights(self, index: int, selected: BoolArray) -> FloatArray:
        """The share of every code of the column in a set of atoms."""
        return self._atoms[index].weights(selected)
