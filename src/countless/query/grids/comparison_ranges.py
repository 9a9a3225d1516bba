"""Comparisons with constants as ranges between cut points, for a column whose values are not all known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum

from sqlglot import exp

from countless.query.domains.comparisons import FLIPPED, SIGNS
from countless.query.grids.plain import cut_beside, operator_ranges
from countless.query.grids.ranges import Ranges
from countless.query.grids.scale import Key, Scale

Reader = Callable[
    [Sequence[exp.Expr]], Sequence[Key | None]
]  # the keys of constants; None for a constant that has no key


class Null(Enum):
    """The key of a constant that is NULL."""

    NULL = "NULL"


NULL = Null.NULL


def ranges_of(predicate: exp.Expr, scale: Scale, keys_of: Reader) -> Ranges | None:
    """The ranges in which ``predicate`` is true, or None if it is not a comparison of a column with constants."""
    if isinstance(predicate, exp.In):
        return _listed(predicate, scale, keys_of)
    if isinstance(predicate, exp.Between):
        bounds = (predicate.args["low"], predicate.args["high"])
        if not isinstance(predicate.this, exp.Column) or predicate.args.get("symmetric"):
            return None
        keys = _keys(bounds, keys_of)
        return (
            None
            if keys is None or NULL in keys
            else Ranges(((cut_beside(keys[0], 0, scale), cut_beside(keys[1], 1, scale)),))
        )
    operator = type(predicate)
    if operator not in FLIPPED and operator not in (exp.NullSafeEQ, exp.NullSafeNEQ):
        return None
    column, constant = predicate.this, predicate.expression
    if isinstance(constant, exp.Column):
        column, constant, operator = constant, column, FLIPPED.get(operator, operator)
    keys = _keys((constant,), keys_of) if isinstance(column, exp.Column) else None
    if keys is None or keys[0] is NULL:
        return None
    return _compared(operator, keys[0], constant, scale)


def prefix_range(predicate: exp.Expr, scale: Scale, keys_of: Reader) -> Ranges | None:
    """The range of a column of strings in which they begin with a constant: LIKE 'abc%', starts_with(column, 'abc')."""
    if not isinstance(predicate, exp.Like | exp.StartsWith) or not isinstance(predicate.this, exp.Column):
        return None
    constant = predicate.expression
    if not isinstance(constant, exp.Literal) or not constant.is_string:
        return None
    prefix = str(constant.this)
    if isinstance(predicate, exp.Like):
        if not prefix.endswith("%") or any(wild in prefix[:-1] for wild in "%_"):
            return None
        prefix = prefix[:-1]
    if not prefix or not prefix[-1].isascii():
        return None
    next_prefix = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    keys = _keys((exp.Literal.string(prefix), exp.Literal.string(next_prefix)), keys_of)
    return None if keys is None else Ranges(((cut_beside(keys[0], 0, scale), cut_beside(keys[1], 0, scale)),))


def _compared(operator: type[exp.Expr], key: Key, constant: exp.Expr, scale: Scale) -> Ranges:
    null_safe = operator in (exp.NullSafeEQ, exp.NullSafeNEQ)
    equality = operator in (exp.EQ, exp.NEQ) or null_safe
    sign = SIGNS[operator] if not null_safe else "=" if operator is exp.NullSafeEQ else "<>"
    of_null = operator is exp.NullSafeNEQ if null_safe else None
    return replace(operator_ranges(sign, key, scale), of_null=of_null, points=((constant, key),) if equality else ())


def _listed(predicate: exp.In, scale: Scale, keys_of: Reader) -> Ranges | None:
    """``IN (...)``; if the list has a NULL, a value that is not in the list gives NULL."""
    if not isinstance(predicate.this, exp.Column) or predicate.args.get("query") or not predicate.expressions:
        return None
    keys = _keys(predicate.expressions, keys_of)
    if keys is None:
        return None
    points = tuple(
        (constant, key) for constant, key in zip(predicate.expressions, keys, strict=True) if key is not NULL
    )
    ranges = tuple((cut_beside(key, 0, scale), cut_beside(key, 1, scale)) for _, key in points)
    return Ranges(ranges, false_elsewhere=len(points) == len(keys), points=points)


def _keys(constants: Sequence[exp.Expr], keys_of: Reader) -> Sequence[Key] | None:
    if any(constant.find(exp.Column) for constant in constants):
        return None
    keys = keys_of(constants)
    return None if any(key is None for key in keys) else keys
