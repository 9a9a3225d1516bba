"""The ``--rules`` option of ``countless evaluate``: measure consistency rules and print the violations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.progress import Progress

from countless.cli.terminal import display as show
from countless.estimator.answers.estimate import Estimate
from countless.estimator.estimator import Estimator
from countless.evaluation.rules import RuleViolations, measure
from countless.evaluation.rules.measure import HALF_A_ROW, NO_MORE, SPLIT


class ConfiguredEstimator:
    """An estimator with a method and a number of particles."""

    def __init__(self, estimator: Estimator, method: str, particles: int | None) -> None:
        self._estimator, self._method, self._particles = estimator, method, particles

    def estimate(self, where: str) -> Estimate:
        """The answer to one clause."""
        return self._estimator.estimate(where, method=self._method, particles=self._particles)

    def estimate_many(self, clauses: Iterable[str]) -> list[Estimate]:
        """The answers to several clauses."""
        return self._estimator.estimate_many(clauses, method=self._method, particles=self._particles)


def measure_rules(
    model: Path, table: Any, queries: int, seed: int, method: str, particles: int | None, as_json: bool
) -> None:
    """Measure how often the model breaks each rule, and show it."""
    estimator = Estimator.load(model)
    warm, fresh = (ConfiguredEstimator(loaded, method, particles) for loaded in (estimator, Estimator.load(model)))
    console = show.progress()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("drawing cases", total=None)

        def tell(rule: str, done: int, total: int) -> None:
            bar.update(task, description=rule, completed=done, total=total)

        violations = measure(warm, fresh, estimator.schema, table, queries, seed, tell)
    if as_json:
        click.echo(json.dumps({"method": method, "rules": [finding.to_json() for finding in violations]}))
    else:
        _show(violations, method)


def _show(violations: Sequence[RuleViolations], method: str) -> None:
    console = show.results()
    table = show.plain_table("rule", right=("cases", "broken", "share", "median by", "worst by"))
    for rule in violations:
        by = [f"{rule.median:.2%}", f"{rule.worst:.2%}"] if rule.broken else ["-", "-"]
        table.add_row(rule.rule, f"{rule.cases:,}", f"{rule.broken:,}", f"{rule.share:.1%}", *by)
    console.print(f"rules, method {method}; by how much: relative to the count, or to one row if it is less:")
    console.print(table)
    console.print(
        f"not broken: {NO_MORE:g} rows more, or parts within {SPLIT:.0%} or {HALF_A_ROW:g} rows of their whole",
    )
    for rule in violations:
        for broken in rule.examples[:1]:
            rows = ", ".join(f"{count:,.2f}" for count in broken.rows)
            console.print(f"worst case of {rule.rule!r}: {rows} rows where", soft_wrap=True)
            for clause in broken.clauses:
                console.print(f"  {clause}", soft_wrap=True)
