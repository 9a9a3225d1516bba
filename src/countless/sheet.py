"""A table of results (sheet) that can be rendered as Markdown, as HTML and on a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

ABSENT = "-"


class Strong(str):
    """A field in bold."""

    __slots__ = ()


@dataclass(frozen=True)
class Sheet:
    """Rows under headings. The first ``labels`` columns are labels of the row; the others are numbers."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    labels: int = 1
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        """The sheet in Markdown.

        >>> print(Sheet("T", ("a", "b"), (("x", Strong("1")), ("y|z", "")), notes=("A note.",)).markdown())
        **T**
        <BLANKLINE>
        | a | b |
        |---|--:|
        | x | **1** |
        | y\\|z | - |
        <BLANKLINE>
        A note.
        """
        rule = "|".join("---" if index < self.labels else "--:" for index in range(len(self.headings)))
        lines = [_line(self.headings), f"|{rule}|", *(_line(row) for row in self.rows)]
        return "\n\n".join([f"**{self.title}**", "\n".join(lines), *self.notes])


def _line(fields: Iterable[str]) -> str:
    return "| " + " | ".join(_field(field) for field in fields) + " |"


def _field(field: str) -> str:
    text = (field or ABSENT).replace("|", "\\|").replace("\n", " ")
    return f"**{text}**" if isinstance(field, Strong) else text
