"""Boolean formulas: sets of codes joined by AND and OR, with NOT and NULL pushed down to the sets.

A row is counted where the clause is TRUE, and SQL's logic has a third value, NULL. Whether ``p AND q`` is true, false,
not true or not false follows from the same property of ``p`` and of ``q``. So the compiler passes the property that it
needs (:class:`Want`) down the syntax tree. What remains is sets of codes, joined by two-valued AND and OR.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from countless.query.domains.truth import Codes, Truth


class Want(Enum):
    """The property of a predicate's three-valued result that a row must have."""

    # A truth value, and whether it is the rows with any other value that are needed.
    TRUE = True, False
    FALSE = False, False
    NOT_TRUE = True, True
    NOT_FALSE = False, True

    def negated(self) -> Want:
        """The property that ``p`` must have if ``NOT p`` must have this one."""
        value, is_complement = self.value
        return Want((not value, is_complement))

    def opposite(self) -> Want:
        """The complement, which exactly the other rows have."""
        value, is_complement = self.value
        return Want((value, not is_complement))

    @property
    def joins_as_written(self) -> bool:
        """Whether AND stays AND: ``p AND q`` is true if both are, but false if either is."""
        return self in (Want.TRUE, Want.NOT_FALSE)

    def codes(self, truth: Truth) -> Codes:
        """The codes of the values that have this property."""
        value, is_complement = self.value
        codes = truth.true if value else truth.false
        return ~codes if is_complement else codes


@dataclass(frozen=True, eq=False)
class Leaf:
    """Rows whose code in ``column`` is in the set."""

    column: int
    codes: Codes


@dataclass(frozen=True, eq=False)
class All:
    """Rows in every part; without parts, every row."""

    parts: tuple[Formula, ...] = ()


@dataclass(frozen=True, eq=False)
class Any:
    """Rows in at least one part; without parts, none."""

    parts: tuple[Formula, ...] = ()


Formula = Leaf | All | Any
EVERY_ROW, NO_ROW = All(), Any()


def all_of(operands: Iterable[Formula]) -> Formula:
    """The conjunction. Sets on the same column are merged into one."""
    return _joined(All, Any, operands)


def any_of(operands: Iterable[Formula]) -> Formula:
    """The disjunction. Sets on the same column are merged into one."""
    return _joined(Any, All, operands)


def leaf(column: int, codes: Codes) -> Formula:
    """The set as a formula; a set of all codes or of none is a constant."""
    if codes.all():
        return EVERY_ROW
    return Leaf(column, codes) if codes.any() else NO_ROW


def _joined(kind: type[All] | type[Any], dual: type[All] | type[Any], formulas: Iterable[Formula]) -> Formula:
    flat: list[Formula] = []
    for operand in formulas:
        flat.extend(operand.parts if isinstance(operand, kind) else [operand])
    sets: dict[int, Codes] = {}
    nested: list[Formula] = []
    for operand in flat:
        if isinstance(operand, dual) and not operand.parts:
            return operand  # FALSE in an AND, TRUE in an OR
        if not isinstance(operand, Leaf):
            nested.append(operand)
        elif operand.column not in sets:
            sets[operand.column] = operand.codes
        elif kind is All:
            sets[operand.column] = sets[operand.column] & operand.codes
        else:
            sets[operand.column] = sets[operand.column] | operand.codes
    leaves = [leaf(column, codes) for column, codes in sets.items()]
    if any(isinstance(reduced, dual) for reduced in leaves):
        return dual()
    operands = [reduced for reduced in leaves if isinstance(reduced, Leaf)] + nested
    return operands[0] if len(operands) == 1 else kind(tuple(operands))
