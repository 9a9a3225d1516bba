"""What is said where there is no cluster, or one that cannot be used."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from countless.cli.main import main
from countless.cluster.backend import make_run_folder
from countless.cluster.session import Cluster, ClusterNode
from countless.cluster.shared import access_problem, require_shared
from countless.cluster.training import Workers
from countless.errors import ClusterError, CountlessError, MissingExtraError, OptionError
from countless.estimator.fitting.fit import fit


def test_ray_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'countless\[ray\]'"):
        fit("adult", ray="auto", shared=tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 2}, "give its address with ray"),
        ({"ray": "auto"}, "a folder that all its machines can read"),
        ({"ray": "auto", "shared": ".", "workers": 0}, "workers must be at least 1"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        fit("adult", **options)


class NoRay:
    """Ray, where no cluster is to be found."""

    def is_initialized(self) -> bool:
        return False

    def init(self, **_: Any) -> None:
        raise ConnectionError("Could not find any running Ray instance.\nPlease start one.")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:1", "no Ray cluster runs at 127.0.0.1:1: start one with ray start --head"),
        ("nowhere", "'nowhere' is no address of a cluster: give HOST:PORT"),
        ("auto", "no Ray cluster runs here: start one"),
    ],
)
def test_no_cluster(address: str, message: str) -> None:
    cluster = Cluster(address)
    cluster.ray = NoRay()
    with pytest.raises(ClusterError, match=message), cluster:
        pass


def test_a_cluster_that_refuses() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        cluster = Cluster(f"127.0.0.1:{server.getsockname()[1]}")
        cluster.ray = NoRay()
        with (
            pytest.raises(ClusterError, match=r"is no Ray cluster, or it refused the connection: .* RAY_AUTH_TOKEN"),
            cluster,
        ):
            pass


def test_one_line_on_the_command_line(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("countless.cluster.session.ray_module", NoRay)
    output = tmp_path / "m.countless"
    with pytest.raises(SystemExit):
        main(["fit", str(people), "-o", str(output), "--ray", "127.0.0.1:1", "--workers", "2"])
    assert capsys.readouterr().err.strip().splitlines()[-1].startswith("error: no Ray cluster runs at 127.0.0.1:1")
    assert not list(tmp_path.iterdir())


class Elsewhere:
    """A cluster of one machine, which may have another file system."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder

    def everywhere(self, function: Any, mark: str, token: str) -> list[tuple[ClusterNode, Any]]:
        path = Path(mark) if self.folder is None else self.folder / Path(mark).name
        return [(ClusterNode("1", "far", 1, 0), function(str(path), token))]


class TestSharedFolder:
    def test_is_seen(self, tmp_path: Path) -> None:
        require_shared(Elsewhere(), tmp_path / "new")  # type: ignore[arg-type]
        assert not list((tmp_path / "new").iterdir())

    def test_is_not_seen(self, tmp_path: Path) -> None:
        with pytest.raises(ClusterError, match=r"the machine far does not see .*; give a folder .* with --shared"):
            require_shared(Elsewhere(tmp_path / "other"), tmp_path)  # type: ignore[arg-type]
        assert not list(tmp_path.iterdir())

    def test_is_another(self, tmp_path: Path) -> None:
        (tmp_path / "mark").write_text("another token")
        assert "has another" in str(access_problem(str(tmp_path / "mark"), "token"))

    def test_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(CountlessError, match=r"cannot write in .*; give a folder"):
            require_shared(Elsewhere(), tmp_path / "file" / "folder")  # type: ignore[arg-type]
        with pytest.raises(ClusterError, match=r"cannot write in .*; give a folder"):
            make_run_folder(tmp_path / "nowhere")

    def test_what_a_killed_fit_left_is_removed(self, tmp_path: Path) -> None:
        """And not the folder of a fit of another model, which may be running."""
        left, other = (make_run_folder(tmp_path, Path(f"{name}.checkpoint")) for name in ("one", "two"))
        (left / "run").mkdir()
        (tmp_path / "one.checkpoint").touch()
        new = make_run_folder(tmp_path, Path("one.checkpoint"))
        assert {path.name for path in tmp_path.iterdir()} == {"one.checkpoint", new.name, other.name}
        assert left != new


class TestWorkers:
    MACHINES = (ClusterNode("1", "a", 8, 0), ClusterNode("2", "b", 3, 0))

    def test_one_for_each_machine(self) -> None:
        assert Workers.on(list(self.MACHINES), None, 1) == Workers(2, 1, False)

    def test_one_for_each_gpu(self) -> None:
        assert Workers.on([ClusterNode("1", "a", 8, 4)], None, 2) == Workers(4, 2, True)

    def test_no_room(self) -> None:
        assert Workers.on(list(self.MACHINES), 5, 2) == Workers(5, 2, False)
        with pytest.raises(ClusterError, match="room for 5 workers of 2 CPUs each, not for 6"):
            Workers.on(list(self.MACHINES), 6, 2)
