"""The contract that every kind of model must pass: the network is a distribution, and its runtime is the network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import countless
from countless.engine.answer import Answer
from countless.engine.columns.enumeration import exact
from countless.engine.columns.plan import States, walk
from countless.engine.columns.runtime import softmax
from countless.engine.methods import for_columns
from countless.engine.paper.columns import draw
from countless.errors import CountlessError, ModelFileError, OptionError
from countless.estimator.fitting.model_kinds import KINDS, runtimes
from countless.estimator.plugins import PLUGINS, fingerprint, load_plugins
from countless.models.network import ColumnsNetwork
from countless.spec import ModelSpec
from tests.mocks import PrefixRuntime, box_of

SPECS = {
    "one order": ModelSpec((3, 2, 4), hidden=12, blocks=1, embedding=4),
    "another order": ModelSpec((3, 2, 4), hidden=12, blocks=1, embedding=4, orders=((2, 0, 1),)),
    "several orders": ModelSpec((3, 2, 4), hidden=12, blocks=1, embedding=4, orders=((0, 1, 2), (2, 0, 1), (1, 2, 0))),
    "one position": ModelSpec((5,), hidden=4, blocks=1, embedding=2),
    "digits": ModelSpec((3, 2, 4, 2), hidden=8, blocks=1, embedding=4, groups=(1, 2, 1), orders=((3, 1, 0, 2),)),
}
every_kind = pytest.mark.parametrize("kind", KINDS)
every_case = pytest.mark.parametrize(
    ("kind", "name", "order"),
    [(kind, name, order) for kind in KINDS for name, spec in SPECS.items() for order in range(len(spec.orders))],
)


def network(kind: str, spec: ModelSpec) -> ColumnsNetwork:
    """A network none of whose weights is zero."""
    torch.manual_seed(0)
    made = KINDS[kind].make()(spec)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return made


def random_codes(spec: ModelSpec, rows: int, masks: bool = True) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.stack([torch.randint(size + masks, (rows,), generator=generator) for size in spec.sizes], 1)


def every_row(spec: ModelSpec) -> Tensor:
    grids = torch.meshgrid(*(torch.arange(size) for size in spec.sizes), indexing="ij")
    return torch.stack([grid.flatten() for grid in grids], 1)


@every_case
def test_the_joint_sums_to_one(kind: str, name: str, order: int) -> None:
    rows = every_row(SPECS[name])
    with torch.no_grad():
        total = network(kind, SPECS[name]).log_prob(rows, rows, order).sum(1).exp().sum()
    assert float(total) == pytest.approx(1.0, rel=1e-4)


@every_case
def test_a_position_reads_those_before_it_and_no_other(kind: str, name: str, order: int) -> None:
    spec = SPECS[name]
    model, ranks = network(kind, spec), spec.ranks(order)
    inputs, targets = random_codes(spec, 30), random_codes(spec, 30, masks=False)
    with torch.no_grad():
        before = model.log_prob(inputs, targets, order)
        for position, size in enumerate(spec.sizes):
            changed = inputs.clone()
            changed[:, position] = (changed[:, position] + 1) % (size + 1)
            moved = (model.log_prob(changed, targets, order) - before).abs().amax(0) > 1e-7
            assert moved.tolist() == [bool(rank > ranks[position]) for rank in ranks]


@every_case
def test_the_runtime_is_the_network(kind: str, name: str, order: int) -> None:
    spec = SPECS[name]
    model = network(kind, spec)
    runtime = runtimes(replace(spec, kind=kind), dict(model.arrays()))[order]
    assert (runtime.sizes, runtime.order) == (spec.sizes, spec.orders[order])
    inputs, targets = random_codes(spec, 30), random_codes(spec, 30, masks=False)
    with torch.no_grad():
        expected = model.log_prob(inputs, targets, order).exp().numpy()
    for position in range(len(spec.sizes)):
        probs = softmax(runtime.conditional(inputs.numpy(), position))
        chosen = probs[np.arange(30), targets[:, position].numpy()]
        np.testing.assert_allclose(chosen, expected[:, position], rtol=1e-4, atol=1e-6)


@every_case
def test_walking_equals_the_plain_pass(kind: str, name: str, order: int) -> None:
    spec = SPECS[name]
    runtime = runtimes(replace(spec, kind=kind), dict(network(kind, spec).arrays()))[order]
    rng = np.random.default_rng(3)
    codes, state = np.array([spec.sizes]), runtime.start()
    for position in runtime.order:
        plain = runtime.conditional(codes, position)
        np.testing.assert_allclose(runtime.logits(state, position), plain, rtol=1e-4, atol=1e-5)
        parents = rng.integers(len(codes), size=4)
        symbols = rng.integers(spec.sizes[position] + 1, size=4)
        state, codes = runtime.advance(state, parents, position, symbols), codes[parents]
        codes[:, position] = symbols
    first, last = runtime.order[0], runtime.order[-1]
    codes = np.tile(np.array(spec.sizes), (4, 1))
    state = runtime.advance(runtime.start(), np.zeros(4, dtype=np.int64), first, codes[:, first])
    if first != last:
        codes[:, first] = rng.integers(spec.sizes[first], size=4)
        state = runtime.follow(state, first, codes[:, first])
    np.testing.assert_allclose(runtime.logits(state, last), runtime.conditional(codes, last), rtol=1e-4, atol=1e-5)


@every_kind
def test_sampled_answers_are_its_own_density(kind: str) -> None:
    """Every method, asked of this kind of model, tells about the same as enumeration."""
    spec = SPECS["several orders"]
    orders = runtimes(replace(spec, kind=kind), dict(network(kind, spec).arrays()))
    box = box_of({0: [0, 2], 2: [1, 3]}, spec.sizes)
    methods = for_columns()
    for name, ask in methods.items():
        truth = methods["exact"](orders if name != "skipping" else orders[:1], [box], None, 0)[0].density
        (answer,) = ask(orders, [box], 3_000, 0)
        assert answer.density == pytest.approx(truth, rel=0.5), name


@every_kind
def test_fitted_saved_loaded_and_asked(kind: str, people: Path, tmp_path: Path) -> None:
    small = countless.Network(hidden=24, blocks=1, embedding=8, kind=kind)
    options = {"exclude": "id", "network": small, "batch": 100, "calibrate": False, "evidence": "none"}
    hardly = countless.fit(people, epochs=1, **options)  # type: ignore[arg-type]
    more = countless.fit(people, epochs=6, **options)  # type: ignore[arg-type]
    assert more.report["unmasked_bits"] < hardly.report["unmasked_bits"]
    where = "age > 40 AND married"
    again = countless.load(more.save(tmp_path / "m.countless"))
    assert again.estimate(where).rows == more.estimate(where).rows
    assert again.info()["model"]["kind"] == kind


def test_the_sampler_that_the_documentation_walks_through() -> None:
    """It is skipping: the same density, but for chance, as enumeration on a model it may sample from."""
    page = (Path(__file__).parents[3] / "docs" / "extending.md").read_text(encoding="utf-8")
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "def my_sampler" in block)
    names: dict[str, Any] = {
        "np": np,
        "walk": walk,
        "States": States,
        "softmax": softmax,
        "draw": draw,
        "Answer": Answer,
    }
    exec(code, names)
    runtime = PrefixRuntime((5, 4, 6, 3), seed=11, order=(2, 0, 3, 1))
    box = box_of({0: [0, 1, 4], 2: [0, 2, 3, 5], 1: [1, 2]}, runtime.sizes)
    answer = names["my_sampler"](runtime, box, 4_000, np.random.default_rng(0))
    assert answer.density == pytest.approx(exact(runtime, box).density, rel=0.1)
    assert names["my_sampler"](runtime, box_of({}, runtime.sizes), 5, np.random.default_rng(0)).density == 1.0


def test_a_kind_that_nobody_brought(people: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"kind must be resmade.* not 'magic'"):
        countless.fit(people, network=countless.Network(kind="magic"))
    with pytest.raises(ModelFileError, match="unknown kind of model 'magic': upgrade Countless, or name the module"):
        runtimes(ModelSpec((2, 2), kind="magic"), {})


def test_plugins_are_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLUGINS, "tests.plugin, ")
    load_plugins()
    monkeypatch.setenv(PLUGINS, "no_such_plugin")
    with pytest.raises(
        CountlessError, match=r"cannot import 'no_such_plugin', which COUNTLESS_PLUGINS names.*PYTHONPATH"
    ):
        load_plugins()


def test_a_plugin_that_fails_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "broken_plugin.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv(PLUGINS, "broken_plugin")
    with pytest.raises(CountlessError, match="the plugin 'broken_plugin' failed: ZeroDivisionError: division by zero"):
        load_plugins()


def test_results_depend_on_the_source_of_plugins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "some_plugin.py").write_text("a = 1")
    before = fingerprint(["some_plugin"])
    assert before == fingerprint(["some_plugin"]) != fingerprint(["tests.plugin"])
    (tmp_path / "some_plugin.py").write_text("a = 2")
    assert fingerprint(["some_plugin"]) != before


def test_the_contracts_try_what_the_environment_names(tmp_path: Path) -> None:
    (tmp_path / "other_plugin.py").write_text(
        "from countless.engine.methods import METHODS, Method\n"
        "METHODS['other'] = Method(METHODS['particles'].columns)\n"
    )
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(tmp_path)]), PLUGINS: "other_plugin"}
    tests = [str(root / "tests" / "engine" / "test_methods.py"), "-k", "other and nothing", "--no-header"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q", *tests]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=root, check=False)
    assert "test_methods.py: 1" in done.stdout, done.stdout
