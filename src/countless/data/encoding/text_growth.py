"""Text columns with new rows: the alphabet and the length stay the same, and the counts are updated."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from countless.data.columns.strings.text import TextColumn
from countless.data.columns.types import quote_identifier
from countless.data.sources.source import Source
from countless.errors import DataError

MOST_UNKNOWN = 0.2  # of new characters not in the alphabet, or of new strings that are cut; more is an error


def grown_text(column: TextColumn, rows: Source, old_rows: int) -> TextColumn:
    """The column with the strings of new ``rows``: a character that is not in its alphabet becomes a rare one."""
    name = quote_identifier(column.name)
    texts = [text for (text,) in rows.rows(f"SELECT {name} FROM {rows.table}")]
    present = [text for text in texts if text is not None]
    counts = Counter("".join(present))
    excess = [len(text) - column.length for text in present if len(text) > column.length]
    rare = Counter(dict(column.rare)) + Counter(
        {character: count for character, count in counts.items() if character not in column.characters}
    )
    unknown = sum(count for character, count in counts.items() if character not in column.characters)
    if unknown > MOST_UNKNOWN * max(1, counts.total()):
        raise DataError(
            f'{unknown / counts.total():.0%} of the new characters of "{column.name}" are not in its alphabet: '
            "fit the whole table again with countless fit"
        )
    if len(excess) - column.cut / max(1, old_rows) * len(present) > MOST_UNKNOWN * max(1, len(present)):
        raise DataError(
            f'{len(excess) / len(present):.0%} of the new strings of "{column.name}" are longer than the '
            f"{column.length} characters that the model reads: fit the whole table again with countless fit"
        )
    cut = column.cut + len(excess)
    unique = min(1.0, column.distinct / max(1, old_rows))  # in a column of unique strings, all new ones are distinct
    return replace(
        column,
        has_null=column.has_null or len(present) < len(texts),
        distinct=column.distinct + round(unique * len(set(present))),
        estimated=column.estimated or bool(present),
        rare=tuple(sorted(rare.items())),
        frequencies=tuple(
            count + counts[character] for character, count in zip(column.characters, column.frequencies, strict=True)
        ),
        cut=cut,
        beyond=(column.cut * column.beyond + sum(excess)) / cut if cut else 0.0,
    )
