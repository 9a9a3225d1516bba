"""Build a large real table: every file of every Debian package, as one Parquet file.

.venv/bin/python benchmarks/debian_files.py OUT.parquet [--suites ...] [--architectures ...] [--work FOLDER]

Columns: suite, architecture, section, package, path. The rows come from the Contents indices of a Debian mirror. apt
downloads them with the machine's own settings (mirror, proxy, keys), into a folder of their own: nothing of the system
is changed, and root is not needed. The three suites and nine architectures of the default are a download of 650 MB and
make 58 million rows (some 15 minutes).

The folder of --work keeps finished work: a stopped run continues with the next index. Each index becomes one Parquet
part, and the parts are joined at the end. A part is made again if its index has changed.

examples:
  benchmarks/debian_files.py debian.parquet
  benchmarks/debian_files.py small.parquet --suites bookworm --architectures armel,s390x
  benchmarks/debian_files.py debian.parquet --offline                   (use what was downloaded before)
"""

from __future__ import annotations

import argparse
import io
import itertools
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from countless.data.atomic_files import make_folder, write_bytes, write_whole
from countless.errors import CountlessError, DataError
from countless.human_format import size
from countless_lab.measurement.script import script_parser

SUITES = ("bookworm", "trixie", "sid")
ARCHITECTURES = ("all", "amd64", "arm64", "armel", "armhf", "i386", "mips64el", "ppc64el", "riscv64", "s390x")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SCHEMA = pa.schema([(name, pa.string()) for name in ("suite", "architecture", "section", "package", "path")])
HEADER_LINES = 1_000  # an old index may begin with a text for people, which ends with the line FILE LOCATION
GROUP_ROWS = 500_000  # rows of a row group, and rows in memory
INDEX_KEY = b"debian_index"  # in a part's metadata: the index it was made from
STDERR = 2
CODECS = {".lz4": "lz4", ".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
SOURCES = """Types: deb
URIs: {mirror}
Suites: {suites}
Components: main
Architectures: {architectures}
Targets: Contents-deb
"""
# Read after the machine's own settings. Hooks are for the machine's own lists.
SETTINGS = """#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear APT::Architectures;
APT::Architectures {{ {architectures} }};
APT::Sandbox::User "root";
APT::Get::List-Cleanup "false";
Acquire::Languages "none";
Acquire::IndexTargets::deb::Contents-deb {{
  MetaKey "$(COMPONENT)/Contents-$(ARCHITECTURE)";
  ShortDescription "Contents-$(ARCHITECTURE)";
  Description "$(RELEASE)/$(COMPONENT) $(ARCHITECTURE) Contents (deb)";
  PDiffs "false";
  KeepCompressed "true";
  KeepCompressedAs "lz4 gz";
  DefaultEnabled "true";
}};
Dir::Etc::SourceList "{folder}/debian.sources";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "{folder}/lists";
Dir::State::Status "/dev/null";
Dir::Cache "{folder}/cache";
"""

Owner = tuple[str | None, str, str]  # section, package, path


@dataclass(frozen=True)
class ContentsIndex:
    """The index of one suite and architecture, as apt has stored it."""

    suite: str
    architecture: str
    file: Path

    @property
    def version(self) -> bytes:
        """Changes when the index does."""
        status = self.file.stat()
        return f"{self.file.name} {status.st_size} {status.st_mtime_ns}".encode()

    def part(self, folder: Path) -> Path:
        """Its rows as Parquet."""
        return folder / f"{self.suite}-{self.architecture}.parquet"

    def is_done(self, folder: Path) -> bool:
        """Whether there is a part of this very index."""
        part = self.part(folder)
        return part.is_file() and (pq.read_schema(part).metadata or {}).get(INDEX_KEY) == self.version


def find_mirror() -> str:
    """The Debian mirror that this machine's apt uses."""
    uris = _apt("update", "--print-uris")
    mirrors = re.findall(r"^'(\S+/debian)/dists/", uris, re.MULTILINE)
    if not mirrors:
        raise DataError("apt knows no Debian mirror: add one to /etc/apt/sources.list.d, or name it with --mirror")
    return str(mirrors[0])


def download(folder: Path, mirror: str, suites: Sequence[str], architectures: Sequence[str]) -> None:
    """Let apt download the indices that are new or have changed."""
    folder = folder.resolve()
    if re.search(r'["\s]', str(folder)):
        raise DataError(f"apt cannot use the folder {folder}: choose a --work without spaces and quotes")
    for name in ("lists/partial", "cache/archives/partial"):
        make_folder(folder / name)
    sources = SOURCES.format(mirror=mirror, suites=" ".join(suites), architectures=" ".join(architectures))
    if KEYRING.is_file():
        sources += f"Signed-By: {KEYRING}\n"
    names = " ".join(f'"{name}";' for name in architectures)
    write_bytes(folder / "debian.sources", sources.encode())
    write_bytes(folder / "apt.conf", SETTINGS.format(folder=folder, architectures=names).encode())
    _apt("update", "--error-on=any", "-c", str(folder / "apt.conf"), show=True)


def _apt(*arguments: str, show: bool = False) -> str:
    """The output of apt-get; with ``show`` it goes to standard error instead."""
    if shutil.which("apt-get") is None:
        raise DataError("apt-get is not installed: run this on Debian or Ubuntu, or use --offline with its lists")
    run = subprocess.run(
        ["apt-get", *arguments], stdout=STDERR if show else subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if run.returncode != 0:
        raise DataError(f"apt-get {arguments[0]} failed: {run.stderr.strip()[-1_000:]}")
    return run.stdout or ""


def find_indices(lists: Path, suites: Sequence[str], architectures: Sequence[str]) -> list[ContentsIndex]:
    """The downloaded indices of these suites and architectures, in this order; not every suite has every one."""
    files: dict[tuple[str, str], Path] = {}
    named = re.compile(r".*_dists_(.+)_main_Contents-([a-z0-9]+)(\.\w+)?")
    for file in sorted(lists.glob("*_Contents-*")):
        if match := named.fullmatch(file.name):
            files[match[1], match[2]] = file
    for key_index, requested in enumerate((suites, architectures)):
        for name in requested:
            present = sorted({key[key_index] for key in files})
            if name not in present:
                raise DataError(f"there is no index of {name} in {lists}; there are {', '.join(present) or 'none'}")
    pairs = itertools.product(suites, architectures)
    return [ContentsIndex(*pair, files[pair]) for pair in pairs if pair in files]


def read_index(file: Path) -> Iterator[bytes]:
    """The lines of an index, compressed or not, without its header."""
    lines = _stored_lines(file)
    first = list(itertools.islice(lines, HEADER_LINES))
    ends = [index for index, line in enumerate(first) if line.split() == [b"FILE", b"LOCATION"]]
    yield from first[ends[0] + 1 if ends else 0 :]
    yield from lines


def _stored_lines(file: Path) -> Iterator[bytes]:
    try:
        with pa.OSFile(str(file)) as stored:
            codec = CODECS.get(file.suffix)
            content = stored if codec is None else pa.CompressedInputStream(stored, codec)
            yield from io.BufferedReader(content, 1 << 20)
    except OSError as error:
        raise DataError(f"{file} is damaged ({error}): remove it and run this again") from None


def parse_lines(lines: Iterable[bytes]) -> Iterator[Owner]:
    """Section, package and path of each file of each package: a file that several packages have is several rows.

    The last word of a line names the packages, so a path may have spaces. Bytes that are not UTF-8 become U+FFFD.

    >>> list(parse_lines([b"usr/share/a b.txt   doc/one,web/two\\n"]))
    [('doc', 'one', '/usr/share/a b.txt'), ('web', 'two', '/usr/share/a b.txt')]
    """
    for line in lines:
        words = line.rsplit(None, 1)
        if len(words) < 2:
            if words:
                raise DataError(
                    f"this line of the index names no package: {line[:200]!r}; remove the index and run this again"
                )
            continue
        path = "/" + words[0].decode("utf-8", "replace").removeprefix("./")
        for owner in words[1].decode("utf-8", "replace").split(","):
            section, _, package = owner.rpartition("/")
            yield section or None, package, path


def write_part(index: ContentsIndex, folder: Path) -> int:
    """Write the rows of one index; the number of rows."""
    metadata = {INDEX_KEY: index.version}
    rows = 0

    def write(path: str) -> None:
        nonlocal rows
        owners = parse_lines(read_index(index.file))
        with _writer(path, SCHEMA.with_metadata(metadata), level=1) as writer:
            while group := list(itertools.islice(owners, GROUP_ROWS)):
                sections, packages, paths = zip(*group, strict=True)
                same = [pa.repeat(pa.scalar(name), len(group)) for name in (index.suite, index.architecture)]
                columns = [pa.array(column, pa.string()) for column in (sections, packages, paths)]
                writer.write_table(pa.table([*same, *columns], schema=writer.schema))
                rows += len(group)

    write_whole(index.part(folder), write)
    return rows


def join_parts(parts: Sequence[Path], out: Path) -> int:
    """Write the rows of all parts, in this order, to one file; the number of rows."""

    def write(path: str) -> None:
        with _writer(path, SCHEMA, level=6) as writer:
            for part in parts:
                with pq.ParquetFile(part) as file:
                    for group in range(file.num_row_groups):
                        writer.write_table(file.read_row_group(group).cast(SCHEMA))

    write_whole(out, write)
    return int(pq.read_metadata(out).num_rows)


def _writer(path: str, schema: pa.Schema, level: int) -> pq.ParquetWriter:
    return pq.ParquetWriter(path, schema, compression="zstd", compression_level=level)


def build(out: Path, lists: Path, parts: Path, suites: Sequence[str], architectures: Sequence[str]) -> int:
    """Make the parts that are missing, and join all; the number of rows."""
    make_folder(parts)
    indices = find_indices(lists, suites, architectures)
    for number, index in enumerate(indices, 1):
        name = f"{number} of {len(indices)}: {index.suite} {index.architecture}"
        if index.is_done(parts):
            _tell(f"{name}: done before")
            continue
        started = time.monotonic()
        rows = write_part(index, parts)
        seconds = time.monotonic() - started
        _tell(f"{name}: {rows:,} rows in {seconds:.0f} s")
    _tell(f"joining {len(indices)} parts")
    return join_parts([index.part(parts) for index in indices], out)


def _tell(line: str) -> None:
    sys.stderr.write(line + "\n")


def _names(text: str, examples: Sequence[str] = ()) -> list[str]:
    """A list with commas; a name that apt cannot take is an error."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or not all(re.fullmatch(r"[a-z0-9][a-z0-9.+-]*", name) for name in names):
        raise argparse.ArgumentTypeError(f"give names with commas between them, such as {','.join(examples[:2])}")
    return list(dict.fromkeys(names))


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the table; the exit code."""
    parser = script_parser(__doc__)
    parser.add_argument("out", type=Path, help="the Parquet file to write")
    for flag, default_names in (("--suites", SUITES), ("--architectures", ARCHITECTURES)):
        names = ",".join(default_names)
        parser.add_argument(flag, type=partial(_names, examples=default_names), default=names, help=f"default: {names}")
    parser.add_argument("--work", type=Path, help="folder of the indices and parts; default: OUT.work")
    parser.add_argument("--mirror", help="a Debian mirror; default: the one that apt uses here")
    parser.add_argument("--offline", action="store_true", help="use the indices in --work, without apt")
    options = parser.parse_args(arguments)
    work: Path = options.work or options.out.with_suffix(".work")
    try:
        make_folder(work)
        if not options.offline:
            download(work, options.mirror or find_mirror(), options.suites, options.architectures)
        rows = build(options.out, work / "lists", work / "parts", options.suites, options.architectures)
    except CountlessError as error:
        _tell(f"error: {error}")
        return 1
    _tell(f"{options.out}: {rows:,} rows, {size(options.out.stat().st_size)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
