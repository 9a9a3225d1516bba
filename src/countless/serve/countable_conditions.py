"""Conditions that may be counted exactly in a table: only those with bounded time and memory.

A model evaluates a condition in a process that can be ended. A table is scanned in the process of the service.
"""

from __future__ import annotations

import re

from sqlglot import exp

from countless.errors import UnsupportedQueryError
from countless.query.parsing.parse import span_of

REGEXES = (exp.RegexpLike, exp.RegexpILike, exp.RegexpFullMatch, exp.RegexpExtract, exp.SimilarTo)
BYTES = frozenset({exp.DType.BIT, exp.DType.BINARY, exp.DType.VARBINARY, exp.DType.BLOB})
MOST_STEPS = 1_000  # of a regular expression, with its repetitions written out
PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(\d+)(?:,(\d*))?\}|.", re.DOTALL)


def check_condition(condition: exp.Expr, clause: str) -> None:
    """Raise an error for a condition whose scan might never end."""
    for node in condition.walk():
        reason = _reason(node)
        if reason is not None:
            raise UnsupportedQueryError(f"this is not counted in the table: {reason}", clause, span_of(node, clause))


def pattern_size(pattern: str) -> int:
    """About how many steps a regular expression has when its repetitions are written out.

    >>> pattern_size("[a-z]{2,4}x"), pattern_size("((ab){10}c){100}"), pattern_size("a{3}" * 5)
    (5, 2100, 15)
    """
    sizes, lasts = [0], [0]  # of each open group: what is complete, and the last atom
    for piece in PIECE.finditer(pattern):
        if piece[0] == "(":
            sizes.append(0)
            lasts.append(0)
        elif piece[0] == ")" and len(sizes) > 1:
            inner = sizes.pop() + lasts.pop()
            sizes[-1], lasts[-1] = sizes[-1] + lasts[-1], inner
        elif piece[1] is not None:
            lasts[-1] *= max(1, int((piece[2] or piece[1])[:9]))
        else:
            sizes[-1], lasts[-1] = sizes[-1] + lasts[-1], 1
    return sum(sizes) + sum(lasts)


def _reason(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Cast) and node.to.this in BYTES:
        return "compare texts and not their bytes"
    if isinstance(node, exp.Tuple) and not isinstance(node.parent, exp.In):
        return "compare each value for itself, without brackets around several"
    if isinstance(node, REGEXES):
        pattern = node.expression
        if not isinstance(pattern, exp.Literal):
            return "write the pattern as a text in single quotes"
        if pattern_size(str(pattern.this)) > MOST_STEPS:
            return f"the pattern has more than {MOST_STEPS:,} steps with its repetitions: write fewer"
    return None
