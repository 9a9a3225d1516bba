"""The builder of the table of Debian's files, on made-up indices and with a made-up apt."""

from __future__ import annotations

import gzip
import os
import stat
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from countless.errors import DataError
from tests.benchmarks.scripts import load_script
from tests.cli.test_full_disk import files_of_at_most

debian_files = load_script("debian_files")

AMD64 = b"bin/true    admin/coreutils\nusr/share/a file.txt\tdoc/one,contrib/web/two\n"
ALL = b"etc/caf\xe9 utils/nosuch\n\nusr/lib/x  bare\n"
APT = """#!/bin/sh
case "$*" in
*--print-uris*) echo "$MIRROR"; exit 0;;
esac
test -z "$APT_FAILS" || { echo "E: $APT_FAILS" >&2; exit 100; }
while [ "$1" != -c ]; do shift; done
lists=$(sed -n 's/^Dir::State::Lists "\\(.*\\)";/\\1/p' "$2")
cp "$INDICES"/* "$lists"
"""


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    """Three indices of two suites, each stored in another way."""
    folder = tmp_path / "work" / "lists"
    folder.mkdir(parents=True)
    (folder / "host_debian_dists_stable_main_Contents-all").write_bytes(ALL)
    with pa.output_stream(str(folder / "host_debian_dists_stable_main_Contents-amd64.lz4"), compression="lz4") as file:
        file.write(AMD64)
    (folder / "host_debian_dists_sid_main_Contents-amd64.gz").write_bytes(gzip.compress(AMD64))
    (folder / "host_debian_dists_stable_InRelease").write_bytes(b"")
    return folder


def build(lists: Path, suites: list[str], architectures: list[str]) -> list[tuple[str | None, ...]]:
    out = lists.parent / "out.parquet"
    rows = debian_files.build(out, lists, lists.parent / "parts", suites, architectures)
    table = pq.read_table(out)
    assert rows == table.num_rows
    return [tuple(row.values()) for row in table.to_pylist()]


def test_each_package_of_each_file_is_a_row(lists: Path) -> None:
    assert build(lists, ["stable", "sid"], ["all", "amd64"]) == [
        ("stable", "all", "utils", "nosuch", "/etc/caf\ufffd"),
        ("stable", "all", None, "bare", "/usr/lib/x"),
        ("stable", "amd64", "admin", "coreutils", "/bin/true"),
        ("stable", "amd64", "doc", "one", "/usr/share/a file.txt"),
        ("stable", "amd64", "contrib/web", "two", "/usr/share/a file.txt"),
        ("sid", "amd64", "admin", "coreutils", "/bin/true"),
        ("sid", "amd64", "doc", "one", "/usr/share/a file.txt"),
        ("sid", "amd64", "contrib/web", "two", "/usr/share/a file.txt"),
    ]


def test_a_subset_is_only_that(lists: Path) -> None:
    assert {row[:2] for row in build(lists, ["sid"], ["amd64"])} == {("sid", "amd64")}


def test_the_header_of_an_old_index_is_no_row(tmp_path: Path) -> None:
    file = tmp_path / "Contents-amd64"
    file.write_bytes(b"This file maps each file\nto its package.\n\nFILE      LOCATION\n" + AMD64)
    assert list(debian_files.read_index(file)) == AMD64.splitlines(keepends=True)
    file.write_bytes(b"FILE LOCATION\n" + AMD64)
    assert list(debian_files.read_index(file)) == AMD64.splitlines(keepends=True)


def test_an_index_of_more_lines_than_a_row_group_is_read_whole(lists: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian_files, "GROUP_ROWS", 2)
    assert len(build(lists, ["stable"], ["amd64"])) == 3
    assert pq.ParquetFile(lists.parent / "out.parquet").num_row_groups == 2


def test_a_stopped_build_continues_with_the_next_index(lists: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = lists / "host_debian_dists_stable_main_Contents-amd64.lz4"
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:-20])
    with pytest.raises(DataError, match=r"Contents-amd64\.lz4.*damaged"):
        build(lists, ["stable"], ["all", "amd64"])
    assert "1 of 2: stable all: 2 rows" in capsys.readouterr().err
    damaged.write_bytes(whole)
    assert len(build(lists, ["stable"], ["all", "amd64"])) == 5
    errors = capsys.readouterr().err
    assert "stable all: done before" in errors
    assert "stable amd64: 3 rows" in errors


def test_a_changed_index_is_read_again(lists: Path) -> None:
    build(lists, ["stable"], ["all"])
    (lists / "host_debian_dists_stable_main_Contents-all").write_bytes(ALL + b"new admin/one\n")
    assert [row[4] for row in build(lists, ["stable"], ["all"])][-1] == "/new"


def test_an_architecture_that_no_suite_has_is_an_error(lists: Path) -> None:
    with pytest.raises(DataError, match=r"no index of m68k .*; there are all, amd64"):
        build(lists, ["stable"], ["m68k"])
    assert len(build(lists, ["stable", "sid"], ["all"])) == 2  # sid has none, stable has


def test_a_line_without_a_package_is_an_error(lists: Path) -> None:
    (lists / "host_debian_dists_stable_main_Contents-all").write_bytes(b"<html>\n")
    with pytest.raises(DataError, match=r"names no package.*<html>"):
        build(lists, ["stable"], ["all"])
    assert not list((lists.parent / "parts").iterdir())


@pytest.fixture
def made_up_apt(lists: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An apt-get whose mirror has the indices; the folder to build in."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "apt-get"
    script.write_text(APT)
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("INDICES", str(lists))
    monkeypatch.setenv("MIRROR", "'http://mirror.example/debian/dists/stable/InRelease' name 0")
    return tmp_path / "built"


def test_indices_come_through_apt(
    made_up_apt: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = made_up_apt.with_suffix(".parquet")
    assert debian_files.main([str(out), "--suites", "stable,sid", "--architectures", "amd64"]) == 0
    assert pq.read_metadata(out).num_rows == 6
    assert "6 rows" in capsys.readouterr().err
    sources = (made_up_apt.with_suffix(".work") / "debian.sources").read_text()
    assert "URIs: http://mirror.example/debian\nSuites: stable sid\n" in sources
    monkeypatch.setenv("APT_FAILS", "nobody may ask")
    assert debian_files.main([str(out), "--suites", "sid", "--architectures", "amd64", "--offline"]) == 0
    assert pq.read_metadata(out).num_rows == 3


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("PATH", "/nowhere", "apt-get is not installed"),
        ("MIRROR", "'http://host/ubuntu/dists/noble/InRelease' name 0", "apt knows no Debian mirror"),
        ("APT_FAILS", "Could not resolve the host", "apt-get update failed: E: Could not resolve the host"),
    ],
)
def test_what_apt_lacks_is_told(
    made_up_apt: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    variable: str,
    value: str,
    message: str,
) -> None:
    monkeypatch.setenv(variable, value)
    assert debian_files.main([str(made_up_apt.with_suffix(".parquet"))]) == 1
    assert message in capsys.readouterr().err


def test_a_full_disk_is_told_and_leaves_no_part(lists: Path) -> None:
    names = b"".join(os.urandom(40).hex().encode() + b" admin/one\n" for _ in range(2_000))
    (lists / "host_debian_dists_stable_main_Contents-all").write_bytes(names)
    with files_of_at_most(20_000), pytest.raises(DataError, match=r"cannot write .*free some space"):
        build(lists, ["stable"], ["all"])
    assert not list((lists.parent / "parts").iterdir())


def test_names_with_spaces_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        debian_files.main([str(tmp_path / "out.parquet"), "--suites", "stable sid"])
    assert "names with commas between them" in capsys.readouterr().err
