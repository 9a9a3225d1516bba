"""The paper's data sets, read from their files as published.

A blank field is NULL, and blanks that pad a string are cut: KDD Cup writes ``" "`` for a missing code, and older
exports of the vehicle registrations pad every string. Nothing else is changed.
"""

from __future__ import annotations

import csv
import gzip
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import TextIO

import duckdb

from countless.data.columns.types import TEXT, quote_identifier
from countless.data.datasets import Advice
from countless.data.sources.file_formats import quote_path, scan_lines
from countless.data.sources.source import Source, connect, first_line
from countless.errors import SourceError
from countless_lab.paper.headers import CENSUS, DMV, KDD

logger = logging.getLogger(__name__)

FOLDER = "COUNTLESS_DATA"  # the environment variable that names the folder of the files
GUESSED = ("BIGINT", "DOUBLE", TEXT)  # the types that a column may be found to have: never BOOLEAN, of a lone "F"
BLANKS = ", ".join(f"'{' ' * length}'" for length in range(17))
NAMED = 5  # missing columns in a message


@dataclass(frozen=True)
class PaperData:
    """A data set of the paper: the origin of its file, and the columns that are used.

    ``files`` are the published names (``*`` stands for the date of an export), ``archives`` what they may come in.
    ``header`` names the columns of the file; without one, it has a string per line. ``kind`` is the type of the
    columns that ``typed`` does not name, or None if only the values tell. All columns are kept but the ``dropped``, and
    of those the ``first`` hundred or so. ``rows`` is the paper's count, to the nearest ``rounded`` rows; a file that is
    ``fixed`` can only be damaged if it has another.
    """

    name: str
    title: str
    files: tuple[str, ...]
    url: str
    rows: int
    fixed: bool
    rounded: int = 1
    archives: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    kind: str | None = TEXT
    typed: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()
    first: int | None = None
    advice: Advice | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are kept, in the order of the file."""
        if not self.header:
            return ("url",)
        return tuple(name for name in self.header if name not in self.dropped)[: self.first]

    @property
    def file(self) -> str:
        """The published name of the file."""
        return self.files[0].replace("*", "")

    def locate(self, location: str | os.PathLike[str] | None = None) -> Path:
        """The file: ``location`` or one in that folder; by default in the folder that COUNTLESS_DATA names, or here."""
        return self._find(Path(location if location is not None else os.environ.get(FOLDER) or ".").expanduser())

    def open(self, location: str | os.PathLike[str] | None = None, *, check_rows: bool = True) -> Source:
        """The kept columns of the file, as it was downloaded.

        To count the rows takes a scan of the file, once in a process. A number that is not the paper's is an error
        where the file never changes, and otherwise a notice, which is logged as a warning too.
        """
        path = self.locate(location)
        status = path.stat()
        select, notice = _selection(self, path.resolve(), check_rows, status.st_size, status.st_mtime_ns)
        return Source.of_select(select, path, self.advice, notice)

    def _find(self, location: Path) -> Path:
        """The file, if ``location`` is a folder that holds it under a published name, or the file itself."""
        if location.is_file():
            return location
        files = sorted(location.iterdir()) if location.is_dir() else []
        for pattern in (*self.files, *(f"{name}.gz" for name in self.files)):
            matching = _named(files, pattern)
            if len(matching) > 1:
                names = ", ".join(path.name for path in matching)
                raise SourceError(f"{location} holds several files of the {self.name} data: keep one of {names} there")
            if matching:
                return matching[0]
        for archive in self.archives:
            if packed := _named(files, archive):
                raise SourceError(f"{packed[0]} is packed: unzip it there, so that {self.file} stands beside it")
        raise SourceError(
            f"no {self.name} data: download {self.file} from {self.url} into {location.absolute()}, "
            f"or name its folder by {FOLDER}"
        )

    def select(self, connection: duckdb.DuckDBPyConnection, path: Path) -> str:
        """SQL for the kept columns of the file at ``path``.

        The types are settled here, once: DuckDB would otherwise look at the file again for every question.
        """
        if not self.header:
            # As published, lines are numbered: the string is what follows the number, up to the next blank.
            return rf"SELECT regexp_replace(line, '^\s*[0-9]+\s+(\S*).*$', '\1') AS url FROM {scan_lines(str(path))}"
        names = self._checked_header(path)
        form = f"{quote_path(str(path))}, header = true, delim = ',', quote = '\"', escape = '\"', nullstr = [{BLANKS}]"
        if self.kind is None:
            guessed = ", ".join(f"'{kind}'" for kind in GUESSED)
            describe = f"DESCRIBE SELECT * FROM read_csv({form}, sample_size = -1, auto_type_candidates = [{guessed}])"
            typed = {str(name).casefold(): str(kind) for name, kind, *_ in connection.execute(describe).fetchall()}
        else:
            typed = {name.casefold(): kind for name, kind in self.typed}
        kinds = {name: typed.get(name.casefold(), self.kind or TEXT) for name in names}
        declared = ", ".join(f"{quote_path(name)}: '{kind}'" for name, kind in kinds.items())
        scan = f"read_csv({form}, auto_detect = false, dateformat = '%m/%d/%Y', columns = {{{declared}}})"
        folded = {name.casefold(): kind for name, kind in kinds.items()}
        values = ", ".join(_value(name, folded[name.casefold()]) for name in self.columns)
        return f"SELECT {values} FROM {scan}"

    def checked_rows(self, rows: int, path: Path) -> str | None:
        """A notice if the number of rows is not the paper's; an error if the file can only be damaged."""
        if abs(rows - self.rows) * 2 <= self.rounded - 1:
            return None
        if self.fixed:
            raise SourceError(
                f"{path} has {rows:,} rows, and the {self.name} data {self.rows:,}: download it again from {self.url}"
            )
        return (
            f"{path} has {rows:,} rows, and the paper's {self.name} had {self.rows:,} ({rows / self.rows - 1:+.1%}): "
            "figures are not quite comparable"
        )

    def _checked_header(self, path: Path) -> list[str]:
        """The names in the first line of the file; an error if an expected one is missing."""
        try:
            with _opened(path) as file:
                names = [name.strip() for name in next(csv.reader(file), [])]
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise SourceError(f"cannot read {path}: {error}; download it from {self.url}") from None
        present = {name.casefold() for name in names}
        missing = [name for name in self.header if name.casefold() not in present]
        if missing:
            more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
            raise SourceError(
                f"{path} is not the {self.name} data: it lacks the columns {', '.join(missing[:NAMED])}{more}; "
                f"download {self.file} from {self.url}"
            )
        return names


def _named(paths: Iterable[Path], pattern: str) -> list[Path]:
    """The files whose names match the pattern, in whatever case."""
    return [path for path in paths if fnmatchcase(path.name.casefold(), pattern.casefold()) and path.is_file()]


def _opened(path: Path) -> TextIO:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return open(path, encoding="utf-8-sig", newline="")


def _value(name: str, kind: str) -> str:
    """SQL for a column's values: of strings, without the blanks that pad them."""
    column = quote_identifier(name)
    return f"nullif(trim({column}), '') AS {column}" if kind == TEXT else f"{column} AS {column}"


@lru_cache(maxsize=16)
def _selection(data: PaperData, path: Path, check_rows: bool, size: int, changed: int) -> tuple[str, str | None]:
    """SQL for the used columns of a file, and a notice about it; cached while the file stays the same."""
    connection = connect()
    try:
        select = data.select(connection, path)
        if not check_rows:
            return select, None
        counted = connection.execute(f"SELECT count(*) FROM ({select})").fetchall()
    except duckdb.Error as error:
        raise SourceError(f"cannot read {path}: {first_line(error)}; download it again from {data.url}") from None
    notice = data.checked_rows(int(counted[0][0]), path)
    if notice is not None:
        logger.warning(notice)
    return select, notice


_ALL = (
    PaperData(
        name="census",
        title="US Census Data (1990), UCI: all columns but the key caseid",
        files=("USCensus1990.data.txt",),
        archives=("us+census+data+1990.zip",),
        url="https://archive.ics.uci.edu/dataset/116/us+census+data+1990",
        rows=2_458_285,
        fixed=True,
        header=CENSUS,
        kind="INTEGER",
        dropped=("caseid",),
    ),
    PaperData(
        name="kdd",
        title="KDD Cup 1998, learning set: the first hundred columns without those of the most values",
        files=("cup98LRN.txt",),
        archives=("cup98lrn.zip",),
        url="https://kdd.ics.uci.edu/databases/kddcup98/kddcup98.html",
        rows=95_412,
        fixed=True,
        header=KDD,
        kind=None,
        dropped=("NOEXCH", "ZIP", "POP901", "POP902", "POP903", "AVGGIFT", "CONTROLN", "HV1", "HV2", "IC5"),
        first=100,
    ),
    PaperData(
        name="dmv-full",
        title="Vehicle, Snowmobile, and Boat Registrations, New York State: all columns but the key VIN",
        files=("Vehicle__Snowmobile__and_Boat_Registrations*.csv",),
        url="https://data.ny.gov/Transportation/Vehicle-Snowmobile-and-Boat-Registrations/w4pv-hbkt",
        rows=11_591_877,
        fixed=False,
        header=DMV,
        typed=(
            ("Model Year", "INTEGER"),
            ("Unladen Weight", "INTEGER"),
            ("Maximum Gross Weight", "INTEGER"),
            ("Passengers", "INTEGER"),
            ("Reg Valid Date", "DATE"),
            ("Reg Expiration Date", "DATE"),
        ),
        dropped=("VIN",),
    ),
    PaperData(
        name="dryad-urls",
        title="URLs of news articles, Dryad: text, of which a hundred characters are modelled",
        files=("article-urls", "article-urls.txt", "article-urls.trim"),
        url="https://doi.org/10.5061/dryad.p8s0j",
        rows=2_400_000,
        fixed=False,
        rounded=100_000,
        advice=Advice(text=("url",), max_length=100),
    ),
)
PAPER_DATA = {data.name: data for data in _ALL}
