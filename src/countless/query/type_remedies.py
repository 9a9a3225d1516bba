"""Hints for filters that do not fit the type of their column."""

from __future__ import annotations

from countless.data.columns.schema import Column
from countless.data.columns.strings.text import TextColumn
from countless.data.columns.types import TEXT, quote_identifier
from countless.query.domains.domain_evaluation import NO_SUCH
from countless.query.parsing.keywords import KEYWORDS


def type_remedy(column: Column | TextColumn, message: str) -> str:
    """The hint that follows the ``message`` of an error about a filter on ``column``.

    >>> born = Column("born", "DATE", ("2025-12-31",), False)
    >>> message = "there is no LIKE(DATE, STRING_LITERAL)"
    >>> print(type_remedy(born, message).replace(": ", ":\\n").replace(", or ", "\\nor "))
    ; ask for a range:
    born >= '2025-12-31' AND born < '2026-01-01'
    or for a part of its text, which begins with the year:
    CAST(born AS VARCHAR) LIKE '2025-12-31%'
    """
    if column.type == TEXT:
        return "; the model knows it as text: compare it with a string, or fit it as another type"
    if NO_SUCH not in message:
        return ""
    is_plain = column.name.isidentifier() and column.name.upper() not in KEYWORDS
    name = column.name if is_plain else quote_identifier(column.name)
    as_text = f"CAST({name} AS VARCHAR)"
    if column.type == "DATE" or column.type.startswith("TIMESTAMP"):
        return (
            f"; ask for a range: {name} >= '2025-12-31' AND {name} < '2026-01-01', or for a part of its text, which "
            f"begins with the year: {as_text} LIKE '2025-12-31%'"
        )
    return f"; convert it to text first: {as_text}"
