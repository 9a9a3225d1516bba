"""Reading and writing of a model file: its manifest, its versions and its members."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import IO, Any

from countless._version import __version__
from countless.data.atomic_files import remove_strays, write_whole
from countless.data.sources.regular_files import open_regular
from countless.errors import ModelFileError
from countless.json_forms import MANIFEST as MANIFEST_FORM
from countless.json_forms import NETWORK, REPORT, SECTION_NAMES, check_section
from countless.store import archive as members
from countless.store.sections import Contents, Sections, StoredNetwork, StoredRows, StoredSummary
from countless.store.tensors import StoredTensors

FORMAT = 2
VERSIONS = {"schema": 1, "networks": 1, "summaries": 3, "rows": 3, "calibration": 3, "report": 1}  # of sections
MANIFEST = "countless.json"
MEMORY = Path("the model in memory")  # what errors call contents that are in no file


def write(path: str | os.PathLike[str], contents: Contents) -> None:
    """Write the file atomically: after a crash or on a full disk, what was there before is still there.

    What killed processes left of an earlier attempt is removed first.
    """
    remove_strays(path)

    def written(partial: str) -> None:
        with open(partial, "wb") as file:
            _write_archive(file, contents)
            file.flush()
            os.fsync(file.fileno())

    write_whole(path, written, ModelFileError)


def read(path: str | os.PathLike[str]) -> Contents:
    """The contents of the file; a missing, damaged, hostile, older or newer one is a :class:`ModelFileError`."""
    source = Path(path)
    try:
        with open_regular(source, ModelFileError) as file:
            return _read(file, source)
    except FileNotFoundError:
        from countless.data.sources.missing_files import missing_model

        raise missing_model(source) from None
    except OSError as error:
        raise ModelFileError(f"cannot read {source}: {error.strerror or error}") from None


def to_bytes(contents: Contents) -> bytes:
    """What the model file would hold."""
    file = io.BytesIO()
    _write_archive(file, contents)
    return file.getvalue()


def from_bytes(data: bytes) -> Contents:
    """The contents of a model file that is in memory."""
    return _read(io.BytesIO(data), MEMORY)


def member_bytes(path: Path) -> dict[str, int]:
    """How many bytes of the model file at ``path`` each of its members takes, the largest first."""
    with open_regular(path, ModelFileError) as file, members.opened(file, path) as archive:
        sizes = {info.filename: info.compress_size for info in archive.infolist()}
    return dict(sorted(sizes.items(), key=lambda item: -item[1]))


def is_model(path: Path) -> bool:
    """Whether the file at ``path`` looks like a model file, whole or not, of whatever version."""
    try:
        with open_regular(path, ModelFileError) as file, zipfile.ZipFile(file) as archive:
            return MANIFEST in archive.namelist()
    except (OSError, ModelFileError, *members.DAMAGE):
        return False


def _write_archive(file: Any, contents: Contents) -> None:
    sections = contents.sections
    manifest = {
        "format": FORMAT,
        "library": contents.library,
        "sections": VERSIONS,
        "networks": sorted(sections.networks),
        "summaries": sorted(sections.summaries),
        "rows": sorted(sections.rows),
    }
    with zipfile.ZipFile(file, "w") as archive:
        members.put_json(archive, MANIFEST, manifest)
        members.put_json(archive, "schema.json", contents.schema)
        for name, network in sorted(sections.networks.items()):
            members.put_json(archive, f"networks/{name}.json", network.spec)
            members.put_arrays(archive, f"networks/{name}.safetensors", network.weights.stored)
        for name, summary in sorted(sections.summaries.items()):
            members.put_arrays(archive, f"summaries/{name}.safetensors", summary.arrays)
        for name, rows in sorted(sections.rows.items()):
            members.put_arrays(archive, f"rows/{name}.safetensors", rows.arrays)
        members.put_json(archive, "calibration.json", contents.calibration)
        members.put_json(archive, "report.json", contents.report)


def _read(file: IO[bytes], source: Path) -> Contents:
    with members.opened(file, source) as archive:
        if MANIFEST not in archive.namelist():
            raise ModelFileError(f"{source} is a zip archive but not a Countless model: it has no {MANIFEST}")
        manifest = members.get_json(archive, MANIFEST)
        check_section(MANIFEST, MANIFEST_FORM, manifest)
        _require_this_version(manifest, source)
        check_section(MANIFEST, SECTION_NAMES, manifest)
        report = members.get_json(archive, "report.json")
        check_section("report.json", REPORT, report)
        return Contents(
            schema=members.get_json(archive, "schema.json", members.LARGEST_SCHEMA),
            sections=_read_sections(archive, manifest),
            calibration=members.get_json(archive, "calibration.json"),
            report=report,
            library=manifest["library"],
        )


def _read_sections(archive: zipfile.ZipFile, manifest: dict[str, Any]) -> Sections:
    def arrays(kind: str, name: str) -> Any:
        return members.get_arrays(archive, f"{kind}/{name}.safetensors")

    networks = {}
    for name in dict.fromkeys(manifest["networks"]):
        spec = members.get_json(archive, f"networks/{name}.json")
        check_section(f"networks/{name}.json", NETWORK, spec)
        networks[name] = StoredNetwork(spec, StoredTensors(arrays("networks", name)))
    summaries = {name: StoredSummary(arrays("summaries", name)) for name in dict.fromkeys(manifest["summaries"])}
    rows = {name: StoredRows(arrays("rows", name)) for name in dict.fromkeys(manifest["rows"])}
    return Sections(networks, summaries, rows)


def _require_this_version(manifest: dict[str, Any], source: Path) -> None:
    versions = [(version, VERSIONS[name]) for name, version in manifest["sections"].items() if name in VERSIONS]
    versions.append((manifest["format"], FORMAT))
    if any(version > known for version, known in versions):
        raise ModelFileError(
            f"{source} was written by Countless {manifest['library']}, and this is {__version__}: "
            "pip install --upgrade countless"
        )
    if any(version < known for version, known in versions):
        raise ModelFileError(f"{source} was made by an earlier version of Countless: fit the table again")
