"""Boolean formulas: sets of codes joined by AND and OR, with NOT and NULL pushed down to the sets.

A row is counted where the clause is TRUE, and SQL's logic has a third value. Whether ``p AND q`` is true, false,
not true or not false depends only on the same four facts about ``p`` and ``q``, so one descent with the fact that is
wanted (:class:`Want`) leaves plain sets of codes, and two-valued AND and OR above them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from countless.query.domains.truth import Codes, Truth


class Want(Enum):
    """What is asked of a predicate's three-valued result."""

    # A truth value, and whether the rows with any other value are wanted instead.
    TRUE = True, False
    FALSE = False, False
    NOT_TRUE = True, True
    NOT_FALSE = False, True

    def negated(self) -> Want:
        """What is asked of ``p`` when this is asked of ``NOT p``."""
        value, others = self.value
        return Want((not value, others))

    def opposite(self) -> Want:
        """The complement: holds for exactly the other rows."""
        value, others = self.value
        return Want((value, not others))

    @property
    def joins_as_written(self) -> bool:
        """Whether AND stays AND: ``p AND q`` is true if both are, but false if either is."""
        return self in (Want.TRUE, Want.NOT_FALSE)

    def codes(self, truth: Truth) -> Codes:
        """The codes for which this holds."""
        value, others = self.value
        codes = truth.true if value else truth.false
        return ~codes if others else codes


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
    """The conjunction, with several sets on one column made one."""
    return _joined(All, Any, parts)


def any_of(parts: Iterable[Formula]) -> Formula:
    """The disjunction, with several sets on one column made one."""
    return _joined(Any, All, parts)


def leaf(column: int, codes: Codes) -> Formula:
    """The set as a formula; a set of all codes or of none is a constant."""
    if codes.all():
        return EVERY_ROW
    return Leaf(column, codes) if codes.any() else NO_ROW


def _joined(kind: type[All] | type[Any], other: type[All] | type[Any], parts: Iterable[Formula]) -> Formula:
    flat: list[Formula] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, kind) else [part])
    sets: dict[int, Codes] = {}
    rest: list[Formula] = []
    for part in flat:
        if isinstance(part, other) and not part.parts:
            return part  # FALSE in an AND, TRUE in an OR
        if not isinstance(part, Leaf):
            rest.append(part)
        elif part.column not in sets:
            sets[part.column] = part.codes
        elif kind is All:
            sets[part.column] = sets[part.column] & part.codes
        else:
            sets[part.column] = sets[part.column] | part.codes
    leaves = [leaf(column, codes) for column, codes in sets.items()]
    if any(isinstance(item, other) for item in leaves):
        return other()
    kept = [item for item in leaves if isinstance(item, Leaf)] + rest
    return kept[0] if len(kept) == 1 else kind(tuple(kept))
