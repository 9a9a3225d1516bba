"""Kill commands at random moments. An existing model file must survive, and the same command must then succeed."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from countless import Estimator
from countless.cluster.session import ray_module
from countless.data.encoding import memory_limit
from countless.data.sources.connection import connect
from countless.errors import CountlessError, MissingExtraError
from countless_lab.fuzz.campaign import Campaign, Outcome
from countless_lab.fuzz.child import Limits
from countless_lab.fuzz.fitting import PRELOADED
from countless_lab.fuzz.small_models import COLUMNS, make_table

OLD, NEW_ROWS = "old.countless", "new.parquet"
PATIENCE = 1_800.0  # seconds after which a command counts as hanging
IDLE = 5.0  # seconds after which a command that only waits is killed
EPOCHS = 6
FAST = ("--hidden", "16", "--blocks", "1", "--embedding", "4", "--batch", "100", "--epochs", str(EPOCHS))
SERVE_PORT = ("--port", "0")
TEXT = ("--text", "page", "--text-model")


@dataclass(frozen=True)
class Action:
    """A command on the files of a folder; ``retry_options`` are those of the run after the kill.

    It takes about ``seconds`` of processor time, and the kill comes at a random moment of them. On a cluster, where the
    command waits for other processes, the moment is one of wall time.
    """

    words: tuple[str, ...]
    retry_options: tuple[str, ...] = ()
    seconds: float = 1.6
    out_of_core: bool = False
    on_ray: bool = False
    serves: bool = False
    learns: bool = False  # whether the new model has learned new rows


FIT = ("fit", "small.parquet", "-o", "model.countless", *FAST)
ACTIONS: dict[str, Action] = {
    "fit": Action((*FIT, "--columns", ",".join(COLUMNS)), ("--resume",)),
    "fit with text": Action((*FIT, *TEXT), ("--resume",), seconds=4.0),
    "fit out of core": Action((*FIT, "--memory", "2GB", "--columns", ",".join(COLUMNS)), ("--resume",), 1.8, True),
    "update": Action(("update", "model.countless", NEW_ROWS, "--epochs", "2"), learns=True),
    "train": Action(("train", "model.countless", "small.parquet", "--epochs", "1"), seconds=2.0),
    "calibrate": Action(("calibrate", "model.countless", "small.parquet", "--seed", "5"), seconds=0.8),
    "strip": Action(("strip", "model.countless", "-o", "model.countless"), seconds=0.3),
    "serve": Action(("serve", "model.countless", *SERVE_PORT), seconds=0.8, serves=True),
    "fit on Ray": Action((*FIT, "--columns", ",".join(COLUMNS), "--workers", "2"), ("--resume",), on_ray=True),
}


@dataclass(frozen=True)
class SmallCluster:
    """A Ray cluster on this machine, and the seconds that the fit of the campaign takes there."""

    address: str
    seconds: float


def kill_once(models: Path, cluster: SmallCluster | None, seed: int, folder: str) -> Outcome:
    """A case: kill a command once, and run it again. ``models`` is a folder of the table and an old model."""
    rng = random.Random(seed)
    name = list(ACTIONS)[seed % len(ACTIONS)]
    action, work = ACTIONS[name], Path(folder)
    if action.on_ray:
        if cluster is None:
            return Outcome(f"{name}: without Ray", checks=0)
        words = (*action.words, "--ray", cluster.address)
        action = dataclasses.replace(action, words=words, seconds=cluster.seconds)
    for table in ("small.parquet", NEW_ROWS):
        shutil.copy(models / table, work / table)
    model = work / "model.countless"
    for file in models.glob(f"{OLD}*"):
        shutil.copy(file, work / file.name.replace("old", "model"))
    before = model.read_bytes()
    delay = rng.random() * action.seconds
    ended = run_command(action.words, work, delay, action.out_of_core, action.on_ray)
    result = f"{name}: {'killed' if ended is None else 'finished first'}"
    if ended is not None and ended != 0:
        return Outcome(result, defects=(f"exit code {ended}: {_log(work)}",))
    defects = _broken(model, before, ended is None)
    if action.serves:
        defects += _strays(work)
        return Outcome(result, f"after {delay:.2f} s", tuple(defects))
    if ended is None:
        ended = run_command((*action.words, *action.retry_options), work, None, action.out_of_core)
        if ended != 0:
            reason = "hangs" if ended is None else f"exit code {ended}"
            defects.append(f"the command after the kill: {reason}: {_log(work)}")
        elif not defects:
            defects += _undone(model, before, action)
    return Outcome(result, f"after {delay:.2f} s", (*defects, *_strays(work)))


def run_command(
    words: tuple[str, ...], folder: Path, seconds: float | None, out_of_core: bool = False, by_clock: bool = False
) -> int | None:
    """The exit code of a command that runs in ``folder``; None if it was killed.

    It is killed after ``seconds`` of processor time, which is the same moment of its work on a busy machine. A command
    that waits, such as a service, is killed some wall time later. With ``by_clock``, ``seconds`` are wall time. Without
    ``seconds``, it is killed only if it hangs.
    """
    pid = os.fork()
    if pid == 0:
        _become_command(words, folder, out_of_core)
    end = time.monotonic() + (PATIENCE if seconds is None else seconds + IDLE * (not by_clock))
    while time.monotonic() < end and (seconds is None or by_clock or _processor_time(pid) < seconds):
        ended_pid, status = os.waitpid(pid, os.WNOHANG)
        if ended_pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)  # before it is the leader of a group there is none
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def _processor_time(pid: int) -> float:
    """Seconds of a process so far."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _become_command(words: tuple[str, ...], folder: Path, out_of_core: bool) -> None:
    """Run the command line in this process, and end it."""
    code = 1
    try:
        os.setsid()
        os.chdir(folder)
        log = os.open("command.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        if out_of_core:  # a small table would not need it
            memory_limit.CODES_SHARE = 0.0
        sys.argv = ["countless", *words]
        from countless_command import main

        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    finally:
        os._exit(code)


def _broken(model: Path, before: bytes, killed: bool) -> list[str]:
    """Defects of the model file, which must be the old one or a whole new one."""
    if not model.exists():
        return ["the model file is lost"]
    if killed and model.read_bytes() == before:
        return []
    try:
        Estimator.load(model).estimate("day = 3")
    except CountlessError as error:
        return [f"the model file is neither the old one nor a whole new one: {error}"]
    return []


def _undone(model: Path, before: bytes, action: Action) -> list[str]:
    """Defects of the command's result after it was run again."""
    if model.read_bytes() == before:
        return ["the command succeeds after the kill, but the model file is the old one"]
    rows = Estimator.load(model).rows
    if action.words[0] == "fit" and (epochs := Estimator.load(model).report.get("epochs")) not in (EPOCHS, None):
        return [f"trained for {epochs} epochs, not {EPOCHS}"]
    return [] if not action.learns or rows > 1_200 else [f"the new model has {rows} rows, as the old one"]


def _strays(folder: Path) -> list[str]:
    """Files that should not be left."""
    expected = {"small.parquet", NEW_ROWS, "model.countless", "command.log"}
    names = sorted(path.name for path in folder.iterdir() if path.name not in expected)
    strays = [name for name in names if not name.startswith("model.countless.training")]  # is for countless train
    return [f"these files are left: {', '.join(strays)}"] if strays else []


def _log(folder: Path) -> str:
    return (folder / "command.log").read_text(encoding="utf-8", errors="replace")[-600:].strip()


def make_inputs(folder: Path) -> None:
    """The table, rows to learn, and an old model."""
    table = make_table(folder)
    connect().execute(f"COPY (SELECT * FROM '{table}' LIMIT 300) TO '{folder / NEW_ROWS}'")
    code = run_command(("fit", str(table), "-o", str(folder / OLD), *FAST), folder, None)
    assert code == 0, _log(folder)


@contextlib.contextmanager
def small_cluster(inputs: Path) -> Iterator[SmallCluster | None]:
    """A cluster of its own, if Ray is installed; ``inputs`` is the folder of :func:`make_inputs`."""
    try:
        ray = ray_module()
    except MissingExtraError:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as folder:  # sockets must have short paths
        context = ray.init(
            num_cpus=2,
            include_dashboard=False,
            object_store_memory=200 * 2**20,
            log_to_driver=False,
            logging_level=logging.ERROR,
            _temp_dir=folder,
            _system_config={"worker_niceness": 0},  # on a busy machine, others would leave it no time
        )
        try:
            address, started = str(context.address_info["address"]), time.monotonic()
            words = (*ACTIONS["fit on Ray"].words, "--ray", address)
            with tempfile.TemporaryDirectory(prefix="countless-fuzz-") as work:
                shutil.copy(inputs / "small.parquet", work)
                fit = subprocess.run(
                    [sys.executable, "-m", "countless_command", *words], cwd=work, check=False, capture_output=True
                )
            assert fit.returncode == 0, fit.stderr.decode()[-600:]
            yield SmallCluster(address, time.monotonic() - started)
        finally:
            ray.shutdown()


def kill_campaign(inputs: Path, cluster: SmallCluster | None = None) -> Campaign:
    """The campaign; ``inputs`` is the folder of :func:`make_inputs`. Without a cluster, no fit on Ray is killed."""
    return Campaign(
        "fuzz kill",
        "kill",
        "kill",
        functools.partial(kill_once, inputs, cluster),
        limits=Limits(seconds=2 * PATIENCE),
        preload=(*PRELOADED, "countless_lab.fuzz.killing", "countless.cli.main", "countless.cli.fit", "sqlglot"),
    )
