"""The model file: whole, or a clear error. Never code execution, never a crash, never half-written."""

from __future__ import annotations

import errno
import io
import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from countless import store
from countless.errors import ModelFileError
from countless.estimator.estimator import Estimator
from countless.store import (
    Contents,
    Sections,
    StoredNetwork,
    StoredRows,
    StoredSummary,
    StoredTensors,
    archive,
    model_file,
)

JSON = st.dictionaries(
    st.text(),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(), st.lists, max_leaves=5
    ),
)
ARRAYS = st.dictionaries(
    st.text(min_size=1).filter(lambda name: name != "__metadata__"),
    arrays(
        st.sampled_from([np.float32, np.float16, np.uint8]),
        array_shapes(max_dims=3, max_side=4),
        elements=st.integers(0, 100),
    ),
)


@given(JSON, JSON, ARRAYS, JSON, JSON.map(lambda report: {f"own {name}": each for name, each in report.items()}))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_round_trip(tmp_path: Path, schema: Any, spec: Any, weights: Any, calibration: Any, report: Any) -> None:
    path, network = tmp_path / "x.countless", StoredNetwork({"kind": "any", **spec}, StoredTensors(weights))
    store.write(path, Contents(schema, Sections({"columns": network}), calibration, report))
    contents = store.read(path)
    assert (contents.schema, contents.calibration, contents.report) == (schema, calibration, report)
    columns = contents.sections.networks["columns"]
    assert columns.spec == network.spec
    assert set(columns.weights.stored) == set(weights)
    for name, array in weights.items():
        np.testing.assert_array_equal(columns.weights.stored[name], array)
        assert columns.weights.stored[name].dtype == array.dtype


def test_sections_of_every_type_fit_into_one_file(tmp_path: Path) -> None:
    weights = StoredTensors({"w": np.ones(3, np.float32)})
    sections = Sections(
        {name: StoredNetwork({"kind": name}, weights) for name in ("columns", "text")},
        {"pairs": StoredSummary({"a": np.arange(3)})},
        {"evidence": StoredRows({"codes-0": np.ones((1, 3), np.uint8)})},
    )
    store.write(tmp_path / "x", Contents({}, sections))
    read_sections = store.read(tmp_path / "x").sections
    assert {name: network.spec for name, network in read_sections.networks.items()} == {
        "columns": {"kind": "columns"},
        "text": {"kind": "text"},
    }
    assert (list(read_sections.summaries), read_sections.summaries["pairs"].arrays["a"].tolist()) == (
        ["pairs"],
        [0, 1, 2],
    )
    assert (list(read_sections.rows), list(read_sections.rows["evidence"].arrays)) == (["evidence"], ["codes-0"])
    np.testing.assert_array_equal(read_sections.rows["evidence"].arrays["codes-0"], np.ones((1, 3)))


def test_weights_that_are_masked_take_no_room(tmp_path: Path) -> None:
    weights = np.tril(np.random.default_rng(0).standard_normal((256, 256))).astype(np.float16)
    store.write(tmp_path / "x", Contents({}, Sections({"columns": StoredNetwork({}, StoredTensors({"w": weights}))})))
    assert (tmp_path / "x").stat().st_size < 0.65 * weights.nbytes


def test_the_same_model_makes_the_same_bytes(model: Path, tmp_path: Path) -> None:
    again = Estimator.load(model).save(tmp_path / "again.countless")
    assert again.read_bytes() == model.read_bytes()


def test_nothing_in_the_file_is_pickle(model: Path) -> None:
    with zipfile.ZipFile(model) as archive:
        assert {Path(name).suffix for name in archive.namelist()} == {".json", ".safetensors"}


class TestDamage:
    @pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.9, 0.999])
    def test_cut_short(self, model: Path, tmp_path: Path, share: float) -> None:
        data = model.read_bytes()
        path = tmp_path / "cut.countless"
        path.write_bytes(data[: int(len(data) * share)])
        with pytest.raises(ModelFileError, match="damaged"):
            Estimator.load(path)

    @given(place=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
    def test_a_changed_byte_is_noticed_or_harmless(self, model: Path, tmp_path: Path, place: float, flip: int) -> None:
        data = bytearray(model.read_bytes())
        data[int(len(data) * place)] ^= flip
        path = tmp_path / "flipped.countless"
        path.write_bytes(bytes(data))
        try:
            estimator = Estimator.load(path)
        except ModelFileError:
            return
        assert estimator.estimate("age > 30").rows == Estimator.load(model).estimate("age > 30").rows

    @given(st.binary(max_size=300))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    def test_any_bytes(self, tmp_path: Path, data: bytes) -> None:
        path = tmp_path / "any.countless"
        path.write_bytes(data)
        with pytest.raises(ModelFileError):
            Estimator.load(path)

    def test_missing(self, tmp_path: Path) -> None:
        with pytest.raises(ModelFileError, match=r"no such model file: .*make one with countless fit"):
            store.read(tmp_path / "none.countless")

    def test_a_directory(self, tmp_path: Path) -> None:
        with pytest.raises(ModelFileError, match="cannot read"):
            store.read(tmp_path)


def rewritten(model: Path, path: Path, **members: Any) -> Path:
    """A copy of the model file with some members replaced (or, if None, left out)."""
    with zipfile.ZipFile(model) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name in members and members[name] is None:
                continue
            data = members.get(name, old.read(name))
            new.writestr(name, data if isinstance(data, bytes) else json.dumps(data))
    return path


def member(model: Path, name: str) -> Any:
    with zipfile.ZipFile(model) as archive:
        return json.loads(archive.read(name))


class TestHostile:
    def test_a_pickle(self, tmp_path: Path) -> None:
        path = tmp_path / "pickle.countless"

        class Bomb:
            def __reduce__(self) -> Any:
                return (os.mkdir, (str(tmp_path / "executed"),))

        path.write_bytes(pickle.dumps(Bomb()))
        with pytest.raises(ModelFileError):
            Estimator.load(path)
        assert not (tmp_path / "executed").exists()

    def test_a_pickle_in_place_of_arrays(self, model: Path, tmp_path: Path) -> None:
        path = rewritten(model, tmp_path / "x", **{"networks/columns.safetensors": pickle.dumps({"a": 1})})
        with pytest.raises(ModelFileError, match="damaged"):
            Estimator.load(path)

    def test_a_member_that_unpacks_to_too_much(
        self, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(archive, "LARGEST_SCHEMA", 100_000)
        path = rewritten(model, tmp_path / "x", **{"schema.json": b" " * 1_000_000 + b"{}"})
        with pytest.raises(ModelFileError, match="1,000,002 bytes"):
            Estimator.load(path)

    def test_json_nested_without_end(self, model: Path, tmp_path: Path) -> None:
        path = rewritten(model, tmp_path / "x", **{"report.json": b"[" * 200_000})
        with pytest.raises(ModelFileError, match="damaged"):
            Estimator.load(path)

    @pytest.mark.parametrize(
        "name", ["schema.json", "calibration.json", "networks/columns.json", "networks/columns.safetensors"]
    )
    def test_a_missing_section(self, model: Path, tmp_path: Path, name: str) -> None:
        with pytest.raises(ModelFileError):
            Estimator.load(rewritten(model, tmp_path / "x", **{name: None}))

    @pytest.mark.parametrize("name", ["countless.json", "schema.json", "calibration.json", "networks/columns.json"])
    @given(JSON | st.lists(st.integers()))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
    def test_sections_of_any_shape(self, model: Path, tmp_path: Path, name: str, data: Any) -> None:
        with pytest.raises(ModelFileError):
            Estimator.load(rewritten(model, tmp_path / "x", **{name: data}))

    def test_a_type_that_is_sql(self, model: Path, tmp_path: Path) -> None:
        schema = member(model, "schema.json")
        schema["columns"][0]["type"] = "INTEGER) FROM read_text('/etc/passwd') --"
        with pytest.raises(ModelFileError, match="unknown type"):
            Estimator.load(rewritten(model, tmp_path / "x", **{"schema.json": schema}))

    def test_a_model_for_another_schema(self, model: Path, tmp_path: Path) -> None:
        schema = member(model, "schema.json")
        schema["columns"] = schema["columns"][:2]
        with pytest.raises(ModelFileError, match="do not belong together"):
            Estimator.load(rewritten(model, tmp_path / "x", **{"schema.json": schema}))

    def test_a_spec_for_other_arrays(self, model: Path, tmp_path: Path) -> None:
        spec = member(model, "networks/columns.json")
        spec["hidden"] = 10**9
        del spec["units"]
        with pytest.raises(ModelFileError, match="has shape"):
            Estimator.load(rewritten(model, tmp_path / "x", **{"networks/columns.json": spec}))

    def test_another_zip(self, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "x", "w") as archive:
            archive.writestr("hello.txt", "hello")
        with pytest.raises(ModelFileError, match="not a Countless model"):
            store.read(tmp_path / "x")


@pytest.mark.parametrize("change", [{"format": store.FORMAT + 1}, {"sections": {"schema": 99}}])
def test_a_newer_file(model: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    manifest = {**member(model, "countless.json"), "library": "9.9", **change}
    with pytest.raises(ModelFileError, match=r"written by Countless 9\.9.*pip install --upgrade countless"):
        Estimator.load(rewritten(model, tmp_path / "x", **{"countless.json": manifest}))


@pytest.mark.parametrize("change", [{"format": 1, "networks": None}, {"sections": {"networks": 0}}])
def test_an_older_file_in_one_line(model: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    manifest = {**member(model, "countless.json"), **change}
    path = rewritten(model, tmp_path / "x", **{"countless.json": manifest})
    with pytest.raises(ModelFileError) as caught:
        Estimator.load(path)
    assert str(caught.value) == f"{path} was made by an earlier version of Countless: fit the table again"


def test_a_section_that_this_version_does_not_know_is_no_obstacle(model: Path, tmp_path: Path) -> None:
    manifest = member(model, "countless.json")
    manifest["sections"]["marginals"] = 7
    path = rewritten(model, tmp_path / "x", **{"countless.json": manifest})
    assert Estimator.load(path).rows == 3000


class TestWriting:
    CONTENTS = Contents({"a": 1}, Sections())

    def test_a_full_disk_leaves_the_old_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "x.countless"
        path.write_bytes(b"old")

        def full(_: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(ModelFileError, match="No space left on device; nothing was changed"):
            store.write(path, self.CONTENTS)
        assert path.read_bytes() == b"old"
        assert list(tmp_path.iterdir()) == [path]

    def test_ctrl_c_while_writing_leaves_the_old_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "x.countless"
        path.write_bytes(b"old")

        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(model_file, "_write_archive", interrupt)
        with pytest.raises(KeyboardInterrupt):
            store.write(path, self.CONTENTS)
        assert path.read_bytes() == b"old"
        assert list(tmp_path.iterdir()) == [path]

    def test_nowhere(self, tmp_path: Path) -> None:
        with pytest.raises(ModelFileError, match=r"cannot write .*choose another place"):
            store.write(tmp_path / "missing" / "x.countless", self.CONTENTS)

    def test_the_archive_can_be_read_by_anyone(self, tmp_path: Path) -> None:
        store.write(tmp_path / "x", self.CONTENTS)
        with zipfile.ZipFile(io.BytesIO((tmp_path / "x").read_bytes())) as archive:
            assert archive.testzip() is None
