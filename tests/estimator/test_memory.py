"""A fit with limited memory, or of a sample: the same model as ever, and it goes on after a stop."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from countless.data.encoding.memory_limit import Memory
from countless.data.encoding.table import Table, bytes_in_memory
from countless.data.sources.source import Source, connect
from countless.errors import DataError, OptionError
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.fit import fit
from countless.estimator.fitting.learning import Listener
from countless.options import EncodeOptions, Network, StorageOptions, TextNetwork

if TYPE_CHECKING:
    from countless.train.loop import Progress

SMALL: dict[str, Any] = {
    "exclude": "id",
    "batch": 100,
    "network": Network(hidden=48, blocks=1, embedding=16),
    "evidence": "none",
}
LIMIT = "1GB"


class Heard(Listener):
    """Remembers the stages, and stops training after some steps."""

    def __init__(self, stop_after: int = -1) -> None:
        self.stages: list[str] = []
        self.left = stop_after

    def stage(self, name: str) -> None:
        self.stages.append(name)

    def training(self, progress: Progress) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture(autouse=True)
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks and windows of some hundred rows; and whatever has a limit goes to files, even a small table."""
    monkeypatch.setattr("countless.data.encoding.memory_limit.CODES_SHARE", 0.0)
    monkeypatch.setattr("countless.data.encoding.memory_bounds.available_memory", lambda: None)
    monkeypatch.setattr(Memory, "block", property(lambda memory: 20_000))
    monkeypatch.setattr("countless.data.encoding.out_of_core.LEAST_WINDOW", 700)


def test_as_good_as_in_memory(
    estimator: Estimator, people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mapped = fit(people, epochs=25, memory=LIMIT, **SMALL)
    assert list(tmp_path.iterdir()) == []
    assert mapped.schema == estimator.schema
    for name in ("train_bits", "masked_bits"):
        assert mapped.report[name] == pytest.approx(estimator.report[name], rel=0.02)
    assert mapped.report["train_rows"] == estimator.report["train_rows"]
    for clause in ("age = 30", "city IS NULL", "age < 25 AND married"):  # from exact counts
        assert mapped.estimate(clause).rows == estimator.estimate(clause).rows


def test_evidence_rows_are_the_same_as_in_memory(people: Path) -> None:
    drawn = {**SMALL, "evidence": 200, "epochs": 1, "calibrate": False}
    here, mapped = fit(people, **drawn), fit(people, memory=LIMIT, **drawn)
    assert "on_disk" in mapped.report
    one, two = (each._sections.rows["evidence"].arrays for each in (here, mapped))
    assert one.keys() == two.keys()
    assert all((one[name] == two[name]).all() for name in one)


def test_training_goes_on_without_encoding(people: Path, tmp_path: Path) -> None:
    def run(name: str, stop_after: int = -1, resume: bool = False) -> tuple[Estimator, list[str]]:
        heard = Heard(stop_after)
        place: dict[str, Any] = {"checkpoint": tmp_path / f"{name}.checkpoint", "codes": tmp_path / f"{name}.codes"}
        estimator = fit(
            people, epochs=3, memory=LIMIT, resume=resume, listener=heard, calibrate=False, **place, **SMALL
        )
        return estimator, heard.stages

    whole, stages = run("whole")
    assert "encoding rows" in stages
    stopped, _ = run("other", stop_after=40)
    assert stopped.report["interrupted"]
    assert (tmp_path / "other.codes").is_dir()
    resumed, stages = run("other", resume=True)
    assert not {"reading domains", "encoding rows", "shuffling rows"} & set(stages)
    assert not resumed.report["interrupted"]
    weights, again = (each._sections.networks["columns"].weights for each in (whole, resumed))
    assert all(np.array_equal(array, again[name]) for name, array in weights.items())


def test_text_and_columns_from_files(tmp_path: Path) -> None:
    word = "['oslo', 'rome', 'łódź'][1 + range % 3]"
    frame = connect().sql(f"SELECT range % 3 AS k, 'word ' || {word} || hash(range) AS t FROM range(2500)").df()
    network = TextNetwork(width=16, blocks=1, heads=2, inner=16, grams=(2,), buckets=64)
    bits = []
    for memory in (None, LIMIT):
        estimator = fit(
            frame,
            text="t",
            epochs=2,
            memory=memory,
            text_network=network,
            calibrate=False,
            max_length=12,
            evidence="none",
        )
        assert estimator.schema.texts[0].name == "t"
        assert estimator.estimate("t LIKE '%oslo%'").rows == pytest.approx(834, abs=1)
        bits.append(estimator.report["text"]["train_bits"])
    assert bits[0] == pytest.approx(bits[1], rel=0.1)


@pytest.mark.parametrize("memory", [None, LIMIT])
def test_a_sample_of_the_rows(people: Path, memory: str | None) -> None:
    estimator = fit(people, epochs=1, memory=memory, sample_rows=400, calibrate=False, **SMALL)
    assert estimator.rows == 3_000
    assert estimator.report["train_rows"] == 400
    clauses = ["age = 30", "city IS NULL", "age < 25 AND married"]
    assert [estimator.estimate(clause).rows for clause in clauses] == Source.open(people).counts(clauses)


@pytest.mark.parametrize("memory", [None, LIMIT])
def test_only_strings_that_there_is_time_for_are_read(memory: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fit of two seconds trains on 400 rows; counts are those of all rows, and more training takes as many."""
    monkeypatch.setattr("countless.estimator.fitting.backends.LEAST_TEXT_ROWS", 400)
    monkeypatch.setattr("countless.estimator.fitting.backends.TEXT_ROWS_A_SECOND", 1)
    frame = connect().sql("SELECT range % 3 AS k, 'word ' || hash(range) AS t FROM range(2500)").df()
    network = TextNetwork(width=16, blocks=1, heads=2, inner=16, grams=(2,), buckets=64)
    storage = StorageOptions(calibrate=False, evidence="none")
    estimator = fit(frame, text="t", budget=2.0, memory=memory, text_network=network, max_length=12, storage=storage)
    assert (estimator.rows, estimator.report["sample_rows"], estimator.report["train_rows"]) == (2_500, 400, 400)
    clauses = ["k = 1", "t LIKE 'word 1%'", "t LIKE '%rd%'"]
    assert [estimator.estimate(clause).rows for clause in clauses] == Source.open(frame).counts(clauses)
    more = estimator.train(frame, epochs=1)
    assert more.report["sample_rows"] == 400


class Notices(Heard):
    """Remembers what the user is told, too."""

    def __init__(self) -> None:
        super().__init__()
        self.notices: list[str] = []

    def notice(self, message: str) -> None:
        self.notices.append(message)


def test_a_table_too_large_for_the_machine_needs_no_option(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("countless.data.encoding.memory_bounds.available_memory", lambda: 3 * 10**9)
    codes, heard = tmp_path / "codes", Notices()
    estimator = fit(people, epochs=1, codes=codes, listener=heard, calibrate=False, **SMALL)
    assert codes.is_dir()
    assert "shuffling rows" in heard.stages
    assert heard.stages.count("reading domains") == 1
    assert heard.notices == [
        f"the encoded table would take {estimator.report['on_disk']['bytes'] / 1000:.3g}kB of the 3GB of memory that "
        "the fit may use: it is kept on disk and read from there"
    ]
    assert estimator.report["on_disk"]["memory"] == 3 * 10**9


@pytest.mark.parametrize(("memory", "total"), [("2GB", 2), ("8GB", 3)])
def test_memory_only_lowers_the_bound(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: str, total: int
) -> None:
    monkeypatch.setattr("countless.data.encoding.memory_bounds.available_memory", lambda: 3 * 10**9)
    estimator = fit(people, epochs=1, memory=memory, calibrate=False, **SMALL)
    assert estimator.report["on_disk"]["memory"] == total * 10**9
    monkeypatch.setattr("countless.data.encoding.memory_limit.CODES_SHARE", 0.5)
    estimator = fit(people, epochs=1, memory=memory, codes=tmp_path / "codes", calibrate=False, **SMALL)
    assert "on_disk" not in estimator.report
    assert list(tmp_path.iterdir()) == []


def test_what_was_begun_in_memory_goes_on_in_memory(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {
        "checkpoint": tmp_path / "m.checkpoint",
        "codes": tmp_path / "m.codes",
        "calibrate": False,
    }
    first = fit(people, epochs=3, listener=Heard(20), **options, **SMALL)
    assert first.report["interrupted"]
    monkeypatch.setattr("countless.data.encoding.memory_bounds.available_memory", lambda: 10**9)  # others take it now
    resumed = fit(people, epochs=3, resume=True, **options, **SMALL)
    assert resumed.report["epochs"] == 3
    assert "on_disk" not in resumed.report


def test_what_a_row_takes_in_memory() -> None:
    frame = connect().sql("SELECT range % 3 AS a, range % 300 AS b, 'word ' || hash(range) AS t FROM range(1000)").df()
    schema = Table.encode(frame, EncodeOptions(text=("t",), max_length=20)).schema
    row = (1 + 2) + 2 * 2 + (20 + 1) + 4 + 12  # codes, the same as a matrix, symbols, their number, places
    assert bytes_in_memory(schema) == 1_000 * row


def test_what_cannot_be(people: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"^sample_rows must be at least 1"):
        fit(people, sample_rows=0)
    with pytest.raises(OptionError, match=r"^memory .* such as 2GB"):
        fit(people, memory="2")
    with pytest.raises(DataError, match=r"cannot make the folder .*codes: No such file or directory"):
        fit(people, memory="2GB", codes=tmp_path / "nowhere" / "codes")
