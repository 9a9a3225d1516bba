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


def all_of(parts: Iterable[Formula]) -> Formula:
    """The conjunction. Sets on the same column are merged into one."""
    return _joined(All, Any, parts)


def any_of(parts: Iterable[Formula]) -> Formula:
    """The disjunction. Sets on the same column are merged into one."""
    return _joined(Any, All, parts)


def leaf(column: int, codes: Codes) -> Formula:
    """The set as a formula; a set of all codes or of none is a constant."""
    if codes.all():
        return EVERY_ROW
    return Leaf(column, codes) if codes.any() else NO_ROW


def _joined(kind: type[All] | type[Any], dual: type[All] | type[Any], parts: Iterable[Formula]) -> Formula:
    flat: list[Formula] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, kind) else [part])
    sets: dict[int, Codes] = {}
    unions: list[Formula] = []
    for part in flat:
        if isinstance(part, dual) and not part.parts:
            return part  # FALSE in an AND, TRUE in an OR
        if not isinstance(part, Leaf):
            unions.append(part)
        elif part.column not in sets:
            sets[part.column] = part.codes
        elif kind is All:
            sets[part.column] = sets[part.column] & part.codes
        else:
            sets[part.column] = sets[part.column] | part.codes
    leaves = [leaf(column, codes) for column, codes in sets.items()]
    if any(isinstance(operand, dual) for operand in leaves):
        return dual()
    operands = [operand for operand in leaves if isinstance(operand, Leaf)] + unions
    return operands[0] if len(operands) == 1 else kind(tuple(operands))
