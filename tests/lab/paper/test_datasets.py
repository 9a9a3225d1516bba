"""The paper's data sets, from small files in the format of the published ones."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import logging
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from countless.data.datasets import Advice
from countless.data.encoding.table import Table, with_advice
from countless.data.sources.source import Source
from countless.errors import SourceError
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.fit import fit
from countless.options import EncodeOptions, TextNetwork
from countless_lab.paper.datasets import FOLDER, PAPER_DATA, PaperData
from countless_lab.paper.headers import CENSUS, DMV, KDD
from tests.cli.test_cli import FAST, Run, run

__all__ = ["run"]

REGISTRATIONS = "Vehicle__Snowmobile__and_Boat_Registrations.csv"
DROPPED = ["NOEXCH", "ZIP", "POP901", "POP902", "POP903", "AVGGIFT", "CONTROLN", "HV1", "HV2", "IC5"]


def census_file(folder: Path, rows: int = 5) -> Path:
    lines = [",".join(CENSUS)]
    lines += [",".join([str(10000 + row), *(str((row * index) % 7) for index in range(1, 69))]) for row in range(rows)]
    path = folder / "USCensus1990.data.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def kdd_file(folder: Path, people: Iterable[dict[str, str]]) -> Path:
    """Blank strings, empty numbers, and lines that end as on DOS."""
    lines = [",".join(KDD)]
    absent = {name: " " if name.startswith(("CHILD", "RFA")) else "" for name in KDD}
    lines += [",".join((absent | person).values()) for person in people]
    path = folder / "cup98LRN.txt"
    path.write_bytes(("\r\n".join(lines) + "\r\n").encode())
    return path


def dmv_file(folder: Path, rows: Iterable[dict[str, str]], name: str = REGISTRATIONS) -> Path:
    text = io.StringIO()
    writer = csv.DictWriter(text, DMV, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path = folder / name
    path.write_text(text.getvalue())
    return path


def urls_file(folder: Path, content: str, name: str = "article-urls.txt") -> Path:
    path = folder / name
    path.write_text(content)
    return path


def sized(name: str, rows: int) -> PaperData:
    return replace(PAPER_DATA[name], rows=rows)


def values(source: Source, column: str) -> list[Any]:
    return [value for (value,) in source.rows(f'SELECT "{column}" FROM {source.table}')]


class TestDescriptions:
    @pytest.mark.parametrize(
        ("header", "count", "digest"),
        [(CENSUS, 69, "be37dd98cbb255ac"), (KDD, 481, "ff2ecd2467a0b443"), (DMV, 20, "39f8dbd54c953631")],
    )
    def test_the_headers_are_the_published_lines(self, header: tuple[str, ...], count: int, digest: str) -> None:
        assert len(set(header)) == count
        assert hashlib.blake2b(",".join(header).encode(), digest_size=8).hexdigest() == digest

    def test_the_kept_columns(self) -> None:
        assert {name: len(data.columns) for name, data in PAPER_DATA.items()} == {
            "census": 68,
            "kdd": 100,
            "dmv-full": 19,
            "dryad-urls": 1,
        }
        kdd = PAPER_DATA["kdd"].columns
        assert (kdd[0], kdd[4], kdd[-1]) == ("ODATEDW", "MAILCODE", "AGE906")
        assert not set(kdd) & set(DROPPED)
        assert "caseid" not in PAPER_DATA["census"].columns
        assert "VIN" not in PAPER_DATA["dmv-full"].columns


class TestCensus:
    def test_all_columns_but_the_key(self, tmp_path: Path) -> None:
        source = sized("census", 5).open(census_file(tmp_path))
        assert source.columns() == [(name, "INTEGER") for name in CENSUS[1:]]
        assert values(source, "dAncstry1") == [0, 2, 4, 6, 1]
        assert source.notice is None
        assert Table.encode(source).rows == 5

    def test_a_truncated_file(self, tmp_path: Path) -> None:
        path = census_file(tmp_path)
        with pytest.raises(SourceError, match="has 5 rows, and the census data 2,458,285: download it again"):
            PAPER_DATA["census"].open(path)
        path.write_text(path.read_text()[:-40])
        with pytest.raises(
            SourceError, match="Line: 6: Expected Number of Columns: 69 Found: 50; download it again from"
        ):
            sized("census", 5).open(path)
        assert PAPER_DATA["census"].open(census_file(tmp_path), check_rows=False).count() == 5

    def test_a_changed_file_is_verified_anew(self, tmp_path: Path) -> None:
        data = sized("census", 5)
        data.open(census_file(tmp_path))
        census_file(tmp_path, rows=4)
        with pytest.raises(SourceError, match="has 4 rows"):
            data.open(tmp_path)


class TestKdd:
    def test_the_first_hundred_with_their_quirks(self, tmp_path: Path) -> None:
        people = [
            {"ODATEDW": "8901", "OSOURCE": "GRI", "ZIP": "61081-", "CHILD03": "F", "INCOME": "", "WEALTH1": "2.5"},
            {"ODATEDW": "9401", "OSOURCE": " ", "ZIP": "91326", "CHILD03": " ", "INCOME": "6", "CLUSTER": " "},
            {"ODATEDW": "9001", "OSOURCE": "    ", "DOMAIN": "T2 ", "CLUSTER": "43", "MDMAUD": "XXXX"},
        ]
        source = sized("kdd", 3).open(kdd_file(tmp_path, people))
        types = dict(source.columns())
        assert tuple(types) == tuple(name for name in KDD if name not in DROPPED)[:100]
        assert [types[name] for name in ("ODATEDW", "OSOURCE", "CLUSTER", "WEALTH1")] == [
            "BIGINT",
            "VARCHAR",
            "BIGINT",
            "DOUBLE",
        ]
        assert values(source, "OSOURCE") == ["GRI", None, None]
        assert values(source, "CHILD03") == ["F", None, None]
        assert values(source, "INCOME") == [None, 6, None]
        assert values(source, "CLUSTER") == [None, None, 43]
        assert values(source, "DOMAIN") == [None, None, "T2"]

    def test_a_string_far_down_is_seen(self, tmp_path: Path) -> None:
        people = [{"ODATEDW": "8901", "TCODE": str(row)} for row in range(30_000)] + [{"TCODE": "X"}]
        source = sized("kdd", 30_001).open(kdd_file(tmp_path, people))
        assert dict(source.columns())["TCODE"] == "VARCHAR"
        assert source.counts(["TCODE = 'X'", "TCODE = '29999'"]) == [1, 1]


class TestRegistrations:
    CAR: dict[str, str] = {  # noqa: RUF012
        "Record Type": "VEH ",
        "VIN": "5NMSGDAB5AH372379",
        "City": "ALEXANDRIA BAY ",
        "Zip": "13607",
        "Model Year": "2010",
        "Fuel Type": "GAS     ",
        "Reg Valid Date": "06/26/2017",
        "Color": "     ",
    }

    def test_all_columns_but_the_key(self, tmp_path: Path) -> None:
        boat = {"Record Type": "BOAT", "City": 'ST JOHN, "NB"', "Zip": "E2L 4L5", "Unladen Weight": "    "}
        source = sized("dmv-full", 2).open(dmv_file(tmp_path, [self.CAR, boat]))
        types = dict(source.columns())
        assert tuple(types) == tuple(name for name in DMV if name != "VIN")
        assert [types[name] for name in ("Zip", "Model Year", "Reg Valid Date")] == ["VARCHAR", "INTEGER", "DATE"]
        assert values(source, "City") == ["ALEXANDRIA BAY", 'ST JOHN, "NB"']
        assert values(source, "Zip") == ["13607", "E2L 4L5"]
        assert values(source, "Fuel Type") == ["GAS", None]
        assert values(source, "Color") == values(source, "Unladen Weight") == [None, None]
        assert source.counts(["\"Reg Valid Date\" = DATE '2017-06-26'"]) == [1]
        assert source.notice is None

    def test_another_export_is_told_once_and_used(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        dmv_file(tmp_path, [self.CAR] * 3, "Vehicle__Snowmobile__and_Boat_Registrations_20240507.csv")
        data = sized("dmv-full", 4)
        with caplog.at_level(logging.WARNING):
            sources = [data.open(tmp_path) for _ in range(2)]
        for source in sources:
            assert source.count() == 3
            assert "has 3 rows, and the paper's dmv-full had 4 (-25.0%)" in (source.notice or "")
        assert caplog.messages == [sources[0].notice]
        assert sources[0].sampled(2, seed=0).notice == sources[0].notice

    def test_two_exports_in_a_folder(self, tmp_path: Path) -> None:
        for month in ("05", "06"):
            dmv_file(tmp_path, [self.CAR], f"Vehicle__Snowmobile__and_Boat_Registrations_2024{month}01.csv")
        with pytest.raises(SourceError, match=r"several files .* keep one of .*0501.csv, .*0601.csv there"):
            PAPER_DATA["dmv-full"].open(tmp_path)


class TestUrls:
    def test_numbered_lines_with_commas_and_quotes(self, tmp_path: Path) -> None:
        content = '1 http://a.org/x,y,z?q="1"\n  22\thttp://b.org/\'\n333 /2015/1,2 news\n4 \n'
        source = sized("dryad-urls", 4).open(urls_file(tmp_path, content))
        assert source.columns() == [("url", "VARCHAR")]
        assert values(source, "url") == ['http://a.org/x,y,z?q="1"', "http://b.org/'", "/2015/1,2", ""]

    def test_lines_without_numbers(self, tmp_path: Path) -> None:
        path = urls_file(tmp_path, "http://a.org/1,2\n2015/feb,1\n", "article-urls.trim")
        assert values(PAPER_DATA["dryad-urls"].open(path, check_rows=False), "url") == [
            "http://a.org/1,2",
            "2015/feb,1",
        ]

    def test_a_rounded_count(self) -> None:
        data, path = PAPER_DATA["dryad-urls"], Path("urls")
        assert data.checked_rows(2_449_000, path) is None
        assert "2,460,000 rows" in (data.checked_rows(2_460_000, path) or "")

    def test_strings_are_cut_in_fitting(self, tmp_path: Path) -> None:
        long = "http://a.org/" + "x" * 200
        source = sized("dryad-urls", 2).open(urls_file(tmp_path, f"1 {long}\n2 http://b.org/,\n"))
        assert values(source, "url")[0] == long
        for options, length in ((None, 100), (EncodeOptions(max_length=20), 20)):
            (column,) = Table.encode(source, options).schema.texts
            assert (column.name, column.length, column.cut) == ("url", length, 1)
        assert Table.encode(source, EncodeOptions(no_text=("URL",))).schema.texts == ()

    def test_fit_by_name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        urls_file(tmp_path, "".join(f"{n} http://a.org/{'x,' * (n % 90)}{n}\n" for n in range(300)))
        monkeypatch.setenv(FOLDER, str(tmp_path))
        network = TextNetwork(width=8, blocks=1, heads=2, inner=8, buckets=64)
        (column,) = fit("dryad-urls", epochs=1, text_network=network).schema.texts
        assert (column.name, column.length) == ("url", 100)
        assert "," in column.characters


class TestFinding:
    @pytest.mark.parametrize("name", PAPER_DATA)
    def test_where_to_get_what_is_absent(self, tmp_path: Path, name: str) -> None:
        data = PAPER_DATA[name]
        with pytest.raises(SourceError) as caught:
            PAPER_DATA[name].open(tmp_path)
        message = str(caught.value)
        assert message.startswith(f"no {name} data: download {data.file} from https://")
        assert message.endswith(f"into {tmp_path}, or name its folder by COUNTLESS_DATA")
        assert "*" not in message

    def test_what_is_packed(self, tmp_path: Path) -> None:
        (tmp_path / "CUP98LRN.zip").write_bytes(b"")
        with pytest.raises(SourceError, match=r"CUP98LRN.zip is packed: unzip it there, so that cup98LRN.txt stands"):
            PAPER_DATA["kdd"].open(tmp_path)

    def test_compressed_or_in_another_case(self, tmp_path: Path) -> None:
        path = census_file(tmp_path)
        content = path.read_bytes()
        path.rename(tmp_path / "uscensus1990.DATA.txt")
        assert sized("census", 5).open(tmp_path).count() == 5
        (tmp_path / "uscensus1990.DATA.txt").unlink()
        (tmp_path / "USCensus1990.data.txt.gz").write_bytes(gzip.compress(content))
        assert values(sized("census", 5).open(tmp_path), "dAge") == [0, 1, 2, 3, 4]

    @pytest.mark.parametrize(
        ("content", "phrase"),
        [
            (",".join(CENSUS[:-2]) + "\n", "it lacks the columns iYearwrk, dYrsserv; download USCensus1990.data.txt"),
            ("1,2,3\n", "dAge, dAncstry1, dAncstry2, iAvail and 64 more; download"),
            ("", "it lacks the columns caseid"),
            (b"\xff\xfe\x00", "cannot read"),
        ],
    )
    def test_other_columns(self, tmp_path: Path, content: str | bytes, phrase: str) -> None:
        path = tmp_path / "USCensus1990.data.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(SourceError, match="census") as caught:
            PAPER_DATA["census"].open(path)
        assert phrase in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_more_columns_in_another_order_and_case(self, tmp_path: Path) -> None:
        path = tmp_path / "USCensus1990.data.txt"
        names = [*reversed(CENSUS), "it's new"]
        path.write_text(",".join(names).upper() + "\n" + ",".join(str(index) for index in range(70)) + "\n")
        source = sized("census", 1).open(path)
        assert [name for name, _ in source.columns()] == list(CENSUS[1:])
        assert values(source, "dAge") == [67]

    @pytest.mark.parametrize("how", ["variable", "current folder"])
    def test_by_name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
        census_file(tmp_path)
        monkeypatch.setitem(PAPER_DATA, "census", sized("census", 5))
        (tmp_path / "census").mkdir()  # a folder of that name is no table
        monkeypatch.setenv(FOLDER, str(tmp_path) if how == "variable" else "")
        monkeypatch.chdir("/" if how == "variable" else tmp_path)
        assert Source.open("census").count() == 5

    def test_a_file_of_that_name_goes_before(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "census").write_text("a\n1\n")
        monkeypatch.chdir(tmp_path)
        with pytest.raises(SourceError, match="census: the file ending is unknown"):
            Source.open("census")

    def test_embedded_and_unknown_names(self) -> None:
        assert Source.open("adult").count() == 48_842
        assert Source.open("npm_urls").advice == Advice()
        with pytest.raises(SourceError, match=r"no such file: dmv .* are adult, npm_urls, census, kdd, dmv-full"):
            Source.open("dmv")


def test_the_advice_is_only_taken_where_nothing_was_chosen() -> None:
    advice = Advice(text=("url",), max_length=100)
    cases: list[tuple[dict[str, Any], EncodeOptions]] = [
        ({}, EncodeOptions(text=("url",), max_length=100)),
        ({"text": ("URL",), "max_length": 7}, EncodeOptions(text=("URL",), max_length=7)),
        ({"no_text": ("url",)}, EncodeOptions(no_text=("url",), max_length=100)),
    ]
    for chosen, expected in cases:
        assert with_advice(EncodeOptions(**chosen), advice) == expected
        assert with_advice(EncodeOptions(**chosen), Advice()) == EncodeOptions(**chosen)


class TestCommands:
    def test_fit_and_evaluate(self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        rows = [f"{n},{','.join(str(n * index % 5) for index in range(68))}" for n in range(200)]
        (tmp_path / "USCensus1990.data.txt").write_text("\n".join([",".join(CENSUS), *rows]) + "\n")
        monkeypatch.setenv("COUNTLESS_DATA", str(tmp_path))
        model = tmp_path / "m"
        result = run("fit", "census", "-o", model, *FAST)
        assert result.code == 1
        assert "has 200 rows, and the census data 2,458,285" in result.err.splitlines()[-1]
        monkeypatch.setitem(PAPER_DATA, "census", replace(PAPER_DATA["census"], rows=200))
        result = run("fit", "census", "-o", model, *FAST)
        assert result.code == 0, result.err
        assert "200 rows, 68 columns" in result.err
        assert Estimator.load(model).columns == CENSUS[1:]
        assert run("evaluate", model, "census", "--queries", 5).code == 0

    def test_what_is_absent(self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COUNTLESS_DATA", str(tmp_path))
        result = run("fit", "kdd", "-o", tmp_path / "m")
        assert result.code == 1
        assert result.err == (
            "error: no kdd data: download cup98LRN.txt from https://kdd.ics.uci.edu/databases/kddcup98/kddcup98.html "
            f"into {tmp_path}, or name its folder by COUNTLESS_DATA\n"
        )
