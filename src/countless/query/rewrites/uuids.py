"""Rewrites constants that UUID columns are compared with: a model stores UUIDs as strings in DuckDB's form."""

from __future__ import annotations

import re

from sqlglot import exp

from countless.data.columns.schema import Schema

HEXADECIMAL = re.compile(r"[0-9a-f]{32}")
COMPARISONS = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.Between, exp.In),
)


def with_canonical_uuids(condition: exp.Expr, schema: Schema) -> exp.Expr:
    """``condition`` in which UUIDs that a UUID column is compared with have the form that DuckDB prints.

    Other strings stay as they are, and are compared as strings: a range of prefixes, such as ``u < 'a'``.
    """
    if not schema.uuids:
        return condition
    condition = condition.copy()
    for comparison in list(condition.find_all(*COMPARISONS)):
        operands = list(comparison.iter_expressions())
        if any(_is_uuid_column(operand, schema) for operand in operands):
            for operand in operands:
                canonical = _canonical(_constant(operand) or "")
                if canonical is not None:
                    operand.replace(exp.Literal.string(canonical))
    return condition


def _is_uuid_column(node: exp.Expr, schema: Schema) -> bool:
    index = schema.find(node.name) if isinstance(node, exp.Column) else None
    return index is not None and schema.columns[index].name in schema.uuids


def _constant(node: exp.Expr) -> str | None:
    """The text of a string, or of a string that is cast to a UUID."""
    if isinstance(node, exp.Cast) and node.is_type(exp.DType.UUID):
        node = node.this
    return str(node.this) if isinstance(node, exp.Literal) and node.is_string else None


def _canonical(text: str) -> str | None:
    """A UUID in the form that DuckDB prints; None if ``text`` is no UUID.

    >>> _canonical("{ABCDEF0000000000000000000000000F}"), _canonical("x")
    ('abcdef00-0000-0000-0000-00000000000f', None)
    """
    digits = text.removeprefix("{").removesuffix("}").replace("-", "").lower()
    if HEXADECIMAL.fullmatch(digits) is None:
        return None
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
