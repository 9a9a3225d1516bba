"""A survey of a clause: its conditions on columns that have a grid.

Such a column's values are not all known, so a set of them cannot be a set of codes. All comparisons of a clause with
one column are surveyed first; their constants cut its line into atoms, and sets of atoms are joined like sets of codes.
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
from countless.query.grids.cuts import NULL, prefix_range, ranges_of
from countless.query.grids.line import Atoms, Line, Piece
from countless.query.grids.plain import GridSearch
from countless.query.grids.ranges import Ranges
from countless.query.grids.scale import Key
from countless.query.parsing.sql import written


class Lines:
    """What DuckDB and the lines of a schema's grids tell of comparisons."""

    def __init__(self, schema: Schema, dictionary: DomainTables, grids: GridSearch) -> None:
        self.schema = schema
        self._dictionary = dictionary
        self.line = grids.line

    def ranges(self, index: int, predicate: exp.Expr) -> Ranges | None:
        """Where ``predicate`` holds on a grid's column, if it compares the column with constants."""
        line = self.line(index)
        assert line is not None

        def read(constants: Sequence[exp.Expr]) -> list[Key | None]:
            return self._keys(index, line, constants)

        found = ranges_of(predicate, line.scale, read)
        if found is None and self.schema.coded[index].type == TEXT:
            found = prefix_range(predicate, line.scale, read)
        return found

    def _keys(self, index: int, line: Line, constants: Sequence[exp.Expr]) -> list[Key | None]:
        """Plain literals are read here, other constants by DuckDB."""
        kind = self.schema.coded[index].type
        plain = [constant_of(constant) for constant in constants]
        texts = [None if constant is None else read_literal(kind, constant) for constant in plain]
        others = [constant for constant, text in zip(constants, texts, strict=True) if text is None]
        folded = iter((self._dictionary.constants(kind, others) if others else []) or [("", "")] * len(others))
        keys: list[Key | None] = []
        for text in texts:
            type_, value = next(folded) if text is None else (kind, text)
            keys.append(NULL if value is None else line.scale.read(type_, value))
        return keys


@dataclass(frozen=True)
class Judgement:
    """What a predicate says of the atoms of a column, and how that is known."""

    truth: Truth
    how: str
    equality: bool
    unseen: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class CellParts:
    """What a condition allows of the cells of a grid: the atoms that are kept."""

    atoms: Atoms
    kept: BoolArray

    def pieces(self, cell: int) -> list[Piece]:
        """The parts of a cell in which it may be true."""
        return self.atoms.pieces(self.kept, cell)


class Survey:
    """The atoms of one clause's columns with grids."""

    def __init__(self, lines: Lines, leaves: Iterable[tuple[int, exp.Expr]], probing: bool = False) -> None:
        """If ``probing``, predicates are evaluated at the probes, which are more than the knots."""
        self._lines = lines
        self._probing = probing
        self._ranges: dict[int, Ranges | None] = {}  # by the id of the predicate
        surveyed: dict[int, list[Ranges | None]] = {}
        for index, predicate in leaves:
            found = surveyed.setdefault(index, [])
            if not is_null_test(predicate):
                found.append(lines.ranges(index, predicate))
                self._ranges[id(predicate)] = found[-1]
        self._atoms: dict[int, Atoms] = {}
        for index, found in surveyed.items():
            line = lines.line(index)
            assert line is not None
            cuts = {cut for ranges in found if ranges is not None for cut in ranges.cuts()}
            alone = None in found and not cuts and not probing
            self._atoms[index] = line.knot_atoms if alone else Atoms(line, cuts, None in found, probing)

    def judge(self, index: int, predicate: exp.Expr, at_knots: Truth | None) -> Judgement:
        """The predicate on the atoms; ``at_knots`` is its truth at the knots, needed if it :meth:`is_of_knots`."""
        atoms, ranges = self._atoms[index], self._ranges.get(id(predicate))
        if is_null_test(predicate):
            return Judgement(atoms.null(), "search", False, ())
        if ranges is None:
            assert at_knots is not None
            return Judgement(atoms.by_knots(at_knots), "knots", False, ())
        unseen = tuple(written(constant) for constant, key in ranges.points if not atoms.line.may_hold(key))
        return Judgement(atoms.within(ranges), "interpolation", bool(ranges.points), unseen)

    def is_of_knots(self, predicate: exp.Expr) -> bool:
        """Whether the predicate can only be told at the knots."""
        return not is_null_test(predicate) and self._ranges[id(predicate)] is None

    def probes(self, index: int) -> Collection[str] | None:
        """The values at which a predicate of knots is to be told instead of them, if so."""
        line = self._lines.line(index)
        return line.probe_texts if line is not None and self._probing else None

    def parts(self, index: int, chosen: BoolArray) -> CellParts:
        """What a set of atoms has of each cell."""
        atoms = self._atoms[index]
        return CellParts(atoms, atoms.kept(chosen))

    def share(self, index: int, chosen: BoolArray) -> float:
        """The share of the column's values that a set of atoms makes up."""
        return self._atoms[index].share(chosen)

    def most_rows(self, index: int, chosen: BoolArray) -> int | None:
        """How many rows a set of atoms can have, if the column is unique; None if any number."""
        atoms = self._atoms[index]
        return atoms.most_rows(chosen) if atoms.line.grid.unique else None

    def weights(self, index: int, chosen: BoolArray) -> FloatArray:
        """The weight of every code of the column in a set of atoms."""
        return self._atoms[index].weights(chosen)
