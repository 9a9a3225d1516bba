"""The compiled module comes to the same answers with every instruction set that it is compiled for."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from countless.engine import columns
from countless.engine.columns.particle_budget import Population, fixed
from countless.engine.columns.resmade import ResMadeRuntime
from countless.engine.evidence import CodedRows
from tests.engine.columns.test_kernel import DIGITS, WIDE, hinted, random_box
from tests.engine.columns.test_resmade import network
from tests.engine.fusion.test_one_call import Case

SOURCE = Path(columns.__file__).parents[1] / "kernel_c" / "module.c"
# Where there is AVX-512 the loader takes that: all other tests are of it.
LEVELS = ("x86-64", "x86-64-v3")


@pytest.fixture(scope="module", params=LEVELS)
def module(request: Any, tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The module compiled for one instruction set."""
    cpuinfo = Path("/proc/cpuinfo")
    if sys.platform != "linux" or shutil.which("gcc") is None or not cpuinfo.exists():
        pytest.skip("needs gcc on Linux")
    if " avx2 " not in cpuinfo.read_text() or not SOURCE.exists():
        pytest.skip("needs the sources, and an x86-64 processor with AVX2")
    path = tmp_path_factory.mktemp("levels") / "_kernel.so"
    flags = ["-std=gnu11", "-O2", "-Wno-psabi", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC", "-DFAST="]
    include = sysconfig.get_paths()["include"]
    subprocess.run(
        ["gcc", *flags, f"-march={request.param}", f"-I{include}", str(SOURCE), "-o", str(path), "-lm"], check=True
    )
    loader = importlib.machinery.ExtensionFileLoader("_kernel", str(path))
    spec = importlib.util.spec_from_loader("_kernel", loader)
    assert spec is not None
    built = importlib.util.module_from_spec(spec)
    loader.exec_module(built)
    return built


@pytest.mark.parametrize("spec", [DIGITS, WIDE], ids=str)
def test_walks(module: ModuleType, spec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = ResMadeRuntime(spec, network(spec).arrays())
    monkeypatch.setattr("countless.engine.columns.resmade.compiled", lambda: module)
    runtime = ResMadeRuntime(spec, network(spec).arrays())
    rng = np.random.default_rng(6)
    boxes = [hinted(random_box(spec, rng, wide=True)) for _ in range(40)]
    for hints, budget in ((False, 30), (True, 30), (True, 5)):
        answers, expected = (Population(each, boxes, 2, hints).walk(budget) for each in (runtime, installed))
        agree = [a.density == pytest.approx(b.density, rel=1e-4) for a, b in zip(answers, expected, strict=True)]
        assert np.mean(agree) >= 0.95
    assert [a.exact for a in fixed(runtime, boxes, 9, 0)] == [a.exact for a in fixed(installed, boxes, 9, 0)]


@pytest.mark.parametrize("spec", [DIGITS, WIDE], ids=str)
def test_questions_in_one_call(module: ModuleType, spec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = Case(spec)
    for name in ("engine.columns.resmade", "engine.fusion.pair_bounds"):
        monkeypatch.setattr(f"countless.{name}.compiled", lambda: module)
    case = Case(spec)
    answers, expected = (each.answers(each.known(3), 6, 1) for each in (case, installed))
    assert [a.visited for a in answers] == [a.visited for a in expected]
    agree = [a.density == pytest.approx(b.density, rel=1e-3) for a, b in zip(answers, expected, strict=True)]
    assert np.mean(agree) >= 0.9


def test_counts_of_rows(module: ModuleType) -> None:
    rng = np.random.default_rng(7)
    codes = [rng.integers(0, size, 5_003).astype(kind) for size, kind in ((9, np.uint8), (700, np.uint16))]
    rows = CodedRows(codes, [9, 700], [(0,), (1,)])
    rows._module = module
    sets = [(0, rng.random(9) < 0.5), (1, rng.random(700) < 0.4)]
    assert rows.count(sets) == np.count_nonzero(rows.marks_by_numpy(sets))
