"""Make the data sets of the experiments from the tables that a user names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from countless.data.encoding.table import read_schema
from countless.data.sources.source import Source
from countless.errors import DataError
from countless.options import EncodeOptions
from countless_lab.measurement.subjects import Subject, subjects
from countless_lab.paper.cells import Data
from countless_lab.paper.scale import PaperScale


def data_sets(tables: Sequence[str], exclude: Sequence[str], scale: PaperScale) -> list[Data]:
    """A data set for every table: of its columns, or of its text if it has nothing else.

    ``exclude`` names columns of any of the tables. Of a table that has both, the text is excluded, too.
    """
    return [_data(subject, scale) for subject in subjects(tables, exclude)]


def _data(subject: Subject, scale: PaperScale) -> Data:
    """The data set of one table. The rows that are used decide which columns are text."""
    table, exclude = subject.source, subject.exclude
    count = Source.open(table).count()
    data = Data(subject.name, table, min(count, scale.rows or count), exclude)
    schema = read_schema(data.open(), EncodeOptions(exclude=exclude))
    texts = tuple(column.name for column in schema.texts)
    if schema.coded:
        return replace(data, exclude=exclude + texts)
    if len(texts) > 1:
        raise DataError(
            f"{table} has several columns of text, {', '.join(texts)}: leave one of them, and --exclude the others"
        )
    return replace(data, text=True, rows=min(count, scale.strings or count))
