"""A model file with something wrong in it is refused when it is loaded, or answers like any other: nothing else.

``countless_lab.fuzz.mutations`` makes such files from good ones. Each is loaded, described and asked; no exception may
come of it but Countless's own, no answer that is no number of rows, and no endless work.
"""

from __future__ import annotations

import io
import json
import math
import signal
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from countless import store
from countless.cli.info import info
from countless.data.sources.source import connect
from countless.errors import CountlessError, ModelFileError
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.fit import fit
from countless.options import Network, TextNetwork
from countless.store import archive
from countless_lab.fuzz.mutations import archived, members_of, mutated

MUTATIONS = 120  # of each kind of model
PATIENCE = 300  # seconds for one file: a bound against hangs only
ROUNDING = 1e-6
CLAUSES = {
    "columns": ("age > 30 AND \"since when\" > DATE '2020-01-10'", "lower(city) = 'oslo' AND score < 1"),
    "text": ("page LIKE '%1%'",),
    "mixed": ("amount < 40 AND day = 3 OR day = 5", "page LIKE 'p2%' AND amount > 20"),
}
PAGES = """
SELECT range % 7 AS day, hash(range, 1) % 9973 / 100 AS amount,
    CASE WHEN range % 50 > 0 THEN 'p' || hash(range) % 300 || '.org' || if(range % 99 = 0, 'é', '') END AS page
FROM range(1200)
"""


@pytest.fixture(scope="module")
def files(model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file of each kind: columns, strings, and both with grids, several orders and few evidence rows."""
    folder = tmp_path_factory.mktemp("kinds")
    table = folder / "pages.parquet"
    connect().execute(f"COPY ({PAGES}) TO '{table}'")
    small = Network(hidden=24, blocks=1, embedding=8)
    tiny = TextNetwork(width=16, blocks=1, heads=2, inner=16, buckets=32)
    fitted = {
        "text": fit(table, columns=["page"], text=["page"], epochs=1, text_network=tiny, calibrate=False),
        "mixed": fit(
            table, text=["page"], epochs=1, network=small, text_network=tiny, max_distinct=100, orders=2, evidence=30
        ),
    }
    return {"columns": model} | {name: made.save(folder / f"{name}.countless") for name, made in fitted.items()}


@contextmanager
def bounded_time() -> Iterator[None]:
    """An AssertionError if what is inside goes on and on."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def over(*_: object) -> None:
        raise AssertionError(f"still at work after {PATIENCE} seconds")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def outcome(path: Path, clauses: tuple[str, ...]) -> str:
    """Load, describe and ask: ``refused`` or ``answered``. Whatever else comes of it is an error of the test's."""
    try:
        estimator = Estimator.load(path)
    except ModelFileError:
        return "refused"
    estimator.info()
    for options in ([], ["--json"]):
        shown = CliRunner().invoke(info, [str(path), *options])
        if shown.exception is not None:
            raise shown.exception
    for where in clauses:
        try:
            answer = estimator.estimate(where)
        except CountlessError:
            continue  # such as a column that has another name now
        ends = (0.0, answer.low, answer.rows, answer.high, estimator.rows)
        assert all(low <= high * (1 + ROUNDING) for low, high in pairwise(ends)), answer
        assert math.isfinite(answer.rows)
    return "answered"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # absurd weights overflow
@pytest.mark.parametrize("kind", sorted(CLAUSES))
def test_mutations(files: dict[str, Path], kind: str, tmp_path: Path) -> None:
    path = tmp_path / "mutated.countless"
    outcomes = []
    for number in range(MUTATIONS):
        path.write_bytes(mutated(files[kind].read_bytes(), np.random.default_rng([1, number])))
        with bounded_time():
            try:
                outcomes.append(outcome(path, CLAUSES[kind]))
            except Exception as error:
                raise AssertionError(f"mutation {number} of {kind}: {error!r}") from error
    assert {"refused", "answered"} == set(outcomes)  # some change nothing that matters


def test_the_files_are_good_without_mutations(files: dict[str, Path]) -> None:
    assert [outcome(path, CLAUSES[kind]) for kind, path in files.items()] == ["answered"] * 3


def with_json(file: Path, name: str, change: Any) -> bytes:
    """The file with a section that ``change`` has changed."""
    members = members_of(file.read_bytes())
    section = json.loads(members[name])
    change(section)
    return archived(members | {name: json.dumps(section).encode()})


def with_evidence(file: Path, change: Any) -> bytes:
    """The file with evidence rows whose arrays ``change`` has changed."""
    from safetensors.numpy import load as load_arrays
    from safetensors.numpy import save as save_arrays

    members = members_of(file.read_bytes())
    arrays = load_arrays(members["rows/evidence.safetensors"])
    change(arrays)
    return archived(members | {"rows/evidence.safetensors": save_arrays(arrays)})


@pytest.mark.parametrize(
    ("name", "change", "phrase"),
    [
        ("schema.json", lambda d: d["columns"][0]["values"].__setitem__(0, "1e9999"), 'a value of "day"'),
        ("schema.json", lambda d: d["columns"][0]["values"].__setitem__(0, "\ud800"), "damaged"),
        ("schema.json", lambda d: d["columns"][1]["values"].reverse(), "out of order"),
        ("schema.json", lambda d: d["texts"][0].update(frequencies=[10**400]), "frequencies"),
        ("networks/columns.json", lambda d: d["orders"][0].__setitem__(0, math.inf), "orders"),
        ("networks/columns.json", lambda d: d.update(orders=[]), "orders"),
        ("networks/columns.json", lambda d: d.update(blocks=2**31), "blocks"),
        ("networks/text.json", lambda d: d.update(blocks=2**31), "blocks"),
        ("networks/text.json", lambda d: d.pop("kind"), "lacks 'kind'"),
        ("report.json", lambda d: d.update(text=[]), "text"),
        ("report.json", lambda d: d.update(seconds="long"), "seconds"),
        ("report.json", lambda d: d.update(options=True), "options"),
        ("calibration.json", lambda d: d["rows"].__setitem__(0, -1), "rows"),
        ("calibration.json", lambda d: d["union"].pop(), "several lengths"),
        ("countless.json", lambda d: d.update(networks=["../x"]), "networks"),
    ],
)
def test_what_is_wrong_is_said_at_load(
    files: dict[str, Path], tmp_path: Path, name: str, change: Any, phrase: str
) -> None:
    path = tmp_path / "x.countless"
    path.write_bytes(with_json(files["mixed"], name, change))
    with pytest.raises(ModelFileError, match=phrase):
        Estimator.load(path)


def cut(arrays: Any) -> None:
    """One row fewer in the first column."""
    arrays["codes-0"] = np.ascontiguousarray(arrays["codes-0"][:, 1:])


def repeated(arrays: Any) -> None:
    """More rows than the table has."""
    for name, array in arrays.items():
        if name.startswith("codes"):
            arrays[name] = np.tile(array, (1, 50))


# The columns: day has codes, amount is a grid, page is text.
@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("codes-0"),
        lambda d: d.pop("values-1"),
        lambda d: d.pop("shared-2"),
        lambda d: d.update({"codes-0": np.full((1, 30), 7, np.uint8)}),
        lambda d: d.update({"codes-0": np.full((4, 30), 255, np.uint8)}),
        lambda d: d.update({"codes-1": np.full((1, 30), 255, np.uint8)}),
        lambda d: d.update({"codes-0": np.zeros((1, 30), np.float32)}),
        lambda d: d.update({"codes-0": np.zeros((1, 30), np.int8)}),
        lambda d: d.update({"codes-0": np.zeros((3, 30), np.uint8)}),
        lambda d: d.update({"codes-0": np.zeros(30, np.uint8)}),
        lambda d: d.update({"codes-0": np.zeros((), np.uint8)}),
        lambda d: d.update({"codes-0": np.zeros((1, 0), np.uint8)}),
        lambda d: d.update({"shared-2": d["shared-2"].astype(np.int64)}),
        lambda d: d.update({"shared-2": d["shared-2"] + 1}),
        lambda d: d.update({"shared-2": np.zeros((), np.uint32)}),
        lambda d: d.update({"values-2": np.full_like(d["values-2"], 0xFF)}),
        lambda d: d.update({"values-1": np.full_like(d["values-1"], ord("x"))}),  # without an end
        lambda d: d.update(
            {"values-1": np.where(d["values-1"] == 0xFF, 0xFF, ord("x")).astype(np.uint8)}
        ),  # no numbers
        lambda d: d.update({"values-2": np.where(d["values-2"] == 0xFF, 0xFF, 0x80).astype(np.uint8)}),  # no UTF-8
        lambda d: d.update({"values-1": d["values-1"].reshape(1, -1)}),
        lambda d: [d.pop(name) for name in list(d)],
        cut,
        repeated,
    ],
)
def test_evidence_rows_fit_the_schema(files: dict[str, Path], tmp_path: Path, change: Any) -> None:
    path = tmp_path / "x.countless"
    path.write_bytes(with_evidence(files["mixed"], lambda arrays: None))
    assert Estimator.load(path).info()["evidence"]["rows"] == 30
    path.write_bytes(with_evidence(files["mixed"], change))
    with pytest.raises(ModelFileError, match="evidence rows"):
        Estimator.load(path)


class TestPacking:
    """What a member unpacks to is bounded before it is unpacked."""

    def test_an_entry_that_is_packed_in_another_way(self, files: dict[str, Path], tmp_path: Path) -> None:
        members = members_of(files["text"].read_bytes())
        for packing in (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2):
            path = tmp_path / "x.countless"
            path.write_bytes(archived(members, {"schema.json": packing}))
            with pytest.raises(ModelFileError, match="packed in another way"):
                Estimator.load(path)

    @pytest.mark.parametrize("name", ["schema.json", "report.json", "networks/text.safetensors"])
    def test_a_bomb(self, files: dict[str, Path], tmp_path: Path, name: str) -> None:
        members = members_of(files["text"].read_bytes()) | {name: b'{"a":' + b" " * 30_000_000 + b"1}"}
        path = tmp_path / "x.countless"
        path.write_bytes(archived(members, {name: zipfile.ZIP_DEFLATED}))
        with pytest.raises(ModelFileError, match="30,000,007 bytes"):
            Estimator.load(path)

    @pytest.mark.parametrize("part", [b"[],", b"{},", b'"x":0,'])
    def test_many_small_parts(
        self, files: dict[str, Path], tmp_path: Path, part: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(archive, "MOST_PARTS", 100_000)
        ends = (b"{", b'"y":0}') if b":" in part else (b'{"a":[', b"0]}")
        members = members_of(files["text"].read_bytes()) | {"report.json": ends[0] + part * 150_000 + ends[1]}
        path = tmp_path / "x.countless"
        path.write_bytes(archived(members))
        with pytest.raises(ModelFileError, match="too many parts"):
            Estimator.load(path)

    def test_members_that_share_their_bytes(self, files: dict[str, Path], tmp_path: Path) -> None:
        """A directory that lists one large member under many names."""
        members = members_of(files["text"].read_bytes())
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data)
            largest = max(archive.filelist, key=lambda each: each.file_size)
            for number in range(20):
                twin = zipfile.ZipInfo(f"networks/twin-{number}.json")
                for field in ("header_offset", "compress_size", "file_size", "CRC", "compress_type"):
                    setattr(twin, field, getattr(largest, field))
                archive.filelist.append(twin)
        path = tmp_path / "x.countless"
        path.write_bytes(file.getvalue())
        with pytest.raises(ModelFileError, match="larger than the file"):
            Estimator.load(path)

    def test_what_packs_like_a_bomb_is_stored_unpacked(self, tmp_path: Path) -> None:
        """What is written can always be read."""
        contents = store.Contents({"values": ["x" * 1_000] * 3_000}, store.Sections())
        store.write(tmp_path / "x.countless", contents)
        assert store.read(tmp_path / "x.countless").schema == contents.schema
