"""Result tables (sheets) rendered on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from countless.sheet import ABSENT, Sheet, Strong


def show_sheet(console: Console, sheet: Sheet) -> None:
    """A sheet with its title and notes."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, heading in enumerate(sheet.headings):
        table.add_column(Text(heading), justify="left" if index < sheet.labels else "right")
    for row in sheet.rows:
        table.add_row(*(Text(field or ABSENT, style="bold" if isinstance(field, Strong) else "") for field in row))
    console.print(sheet.title, style="bold")
    console.print(table)
    for note in sheet.notes:
        console.print(note, style="dim")
    console.print()
