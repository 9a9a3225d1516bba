"""Which rule should thin particles? Several, at equal work, on the queries of one table where sampling errs most.

.venv/bin/python benchmarks/thinning.py TABLE.parquet MODEL.countless [QUERIES] > results.json

The sampler's own error is the factor between its answer and the model's, which a walk with very many particles tells;
the model's error is left out of it. Of QUERIES random ones, those with the largest error are kept; every rule answers
them from many seeds. Rules differ in how children are chosen (the power of their mass; with a look at what the
remaining filters make of the child's symbol), and in whether one population answers or the mean of several smaller.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from countless.arrays import FloatArray
from countless.engine.columns.particle_budget import fixed, offsets
from countless.engine.columns.plan import States, Step, walk
from countless.engine.columns.resmade import ResMadeRuntime
from countless.engine.columns.runtime import softmax
from countless.engine.columns.thinning import inclusion_probabilities
from countless.estimator.estimator import Estimator
from countless.evaluation.evaluate import random_workload
from countless.region import Box
from countless.spec import ModelSpec
from countless.store import COLUMNS
from countless_lab.measurement.script import percentiles, write_result

BUDGETS = (16, 64, 256, 1024)
REFERENCE = 20_000  # particles of the walk that stands for the model's own answer
SEEDS = 8  # of each rule
HARD = 25  # queries that are kept
SCREENING_SEEDS = 8

Answer = Callable[[Box, int, int], tuple[float, float]]  # box, budget, seed -> density, forward rows


@dataclass(frozen=True)
class Rule:
    """A way to thin."""

    name: str
    answer: Answer


def rules(runtime: ResMadeRuntime) -> list[Rule]:
    """The candidates, each taking about ``budget`` forward rows a step."""

    def powered(power: float) -> Answer:
        def answer(box: Box, budget: int, seed: int) -> tuple[float, float]:
            (result,) = fixed(runtime, [box], budget, seed, power=power)
            return result.density, result.forward_rows

        return answer

    def replicated(count: int, power: float) -> Answer:
        def answer(box: Box, budget: int, seed: int) -> tuple[float, float]:
            answers = [fixed(runtime, [box], max(1, budget // count), seed, s, power)[0] for s in range(count)]
            return float(np.mean([answer.density for answer in answers])), sum(
                answer.forward_rows for answer in answers
            )

        return answer

    candidates = [Rule(f"power {power:g}", powered(power)) for power in (1.0, 0.9, 0.75, 0.6, 0.5, 0.25)]
    candidates += [Rule(f"{count} populations, power 0.75", replicated(count, 0.75)) for count in (2, 4)]
    return [*candidates, Rule("look-ahead, power 0.75", LookAhead(runtime, 0.75))]


class LookAhead:
    """Particles thinned by their mass and by what the remaining filters make of their newest symbol alone.

    Each allowed symbol is followed by itself, with MASK before it, through the remaining steps: the product of the
    in-range probabilities joins the child's size. It costs a forward row a symbol and step.
    """

    def __init__(self, runtime: ResMadeRuntime, power: float) -> None:
        self._runtime, self._power = runtime, power

    def __call__(self, box: Box, budget: int, seed: int) -> tuple[float, float]:
        runtime = self._runtime
        steps = walk(box, runtime.order)
        state, mass, states, rows = runtime.start(), np.ones(1), States(box), 0.0
        for step, offset in zip(steps, offsets(seed, 0, len(runtime.sizes)), strict=False):
            size = runtime.sizes[step.position]
            children = mass[:, None] * states.weights(step, size)
            children[:, :size] *= softmax(runtime.logits(state, step.position))
            rows += len(mass)
            flat = children.ravel()
            alive = np.flatnonzero(flat)
            if step is steps[-1] or len(alive) == 0:
                return float(flat.sum()), rows
            parents, symbols = np.divmod(alive, size + 1)
            mass = flat[alive]
            if len(alive) > budget:
                hints, cost = self._hints(box, step, steps[steps.index(step) + 1 :])
                rows += cost
                inclusion = inclusion_probabilities(mass**self._power * hints[symbols], budget)
                ranks = np.floor(np.cumsum(inclusion) - offset)
                survivors = np.flatnonzero(np.diff(ranks, prepend=-1) > 0)
                mass, parents, symbols = mass[survivors] / inclusion[survivors], parents[survivors], symbols[survivors]
            state = runtime.advance(state, parents, step.position, symbols)
            states = states.advance(parents, step, symbols, size)
        return float(mass.sum()), rows

    def _hints(self, box: Box, step: Step, next_steps: Sequence[Step]) -> tuple[FloatArray, float]:
        size = self._runtime.sizes[step.position]
        symbols = np.arange(size + 1)
        state = self._runtime.advance(self._runtime.start(), np.zeros_like(symbols), step.position, symbols)
        hints = np.ones(size + 1)
        for following in next_steps:
            if following.filter == step.filter or box.filters[following.filter].positions[0] != following.position:
                continue  # trailing digits hang on their own leading one
            weights = following.transitions.weights[box.filters[following.filter].constraint.start, :-1]
            hints *= softmax(self._runtime.logits(state, following.position)) @ weights
        return np.maximum(hints, 1e-12), float((size + 1) * len(next_steps))


def main() -> None:
    table, model = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 2000
    estimator = Estimator.load(model)
    network = estimator._sections.networks[COLUMNS]
    runtime = ResMadeRuntime(ModelSpec.from_json(network.spec), network.weights)
    queries = random_workload(estimator.schema, table, count, 0)
    boxes = [box for query in queries for box in estimator._model.compiler.compile(query.where).region.boxes]
    hard, truths = screened(runtime, boxes, 1 / estimator.rows)
    results: dict[str, Any] = {"queries": len(boxes), "hard": len(hard), "seeds": SEEDS, "rules": {}}
    for rule in rules(runtime):
        results["rules"][rule.name] = {
            str(budget): measured(rule, budget, hard, truths, 1 / estimator.rows) for budget in BUDGETS
        }
        sys.stderr.write(f"{rule.name}: {results['rules'][rule.name]}\n")
    write_result(results)


def screened(runtime: ResMadeRuntime, boxes: list[Box], one_row: float) -> tuple[list[Box], list[float]]:
    """The boxes on which small populations err most, whichever the rule, and the model's own answers."""
    powers = (1.0, 0.75, 0.5)
    tries = [
        [answer.density for answer in fixed(runtime, boxes, 32, 1000 + seed, power=power)]
        for power in powers
        for seed in range(SCREENING_SEEDS)
    ]
    deviation = np.log(np.maximum(np.array(tries), one_row)).std(axis=0)
    hardest = np.argsort(-deviation)[:HARD]
    hard = [boxes[index] for index in hardest if deviation[index] > 0]
    return hard, [fixed(runtime, [box], REFERENCE, 999)[0].density for box in hard]


def measured(rule: Rule, budget: int, boxes: list[Box], truths: list[float], one_row: float) -> dict[str, float]:
    """The sampler's error factor over queries and seeds, both sides at least one row."""
    factors, rows = [], []
    for box, truth in zip(boxes, truths, strict=True):
        for seed in range(SEEDS):
            density, cost = rule.answer(box, budget, seed)
            answer, expected = max(density, one_row), max(truth, one_row)
            factors.append(max(answer / expected, expected / answer))
            rows.append(cost)
    return {**percentiles(factors), "forward_rows": round(float(np.mean(rows)), 1)}


if __name__ == "__main__":
    main()
