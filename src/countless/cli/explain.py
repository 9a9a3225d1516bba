"""``countless explain``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from countless.cli import show
from countless.cli.options import json_option, method_options, model_argument
from countless.estimator.estimator import Estimator
from countless.estimator.explain import Explanation

MOST_BOXES_SHOWN = 10


@click.command(epilog="\b\nExample:\n  countless explain people.countless \"age > 35 AND city IN ('Oslo', 'Rome')\"")
@model_argument
@click.argument("where")
@method_options()
@json_option
def explain(model: Path, where: str, method: str, particles: int | None, as_json: bool) -> None:
    """How is WHERE answered?

    Shows the columns that are visited and those that are skipped, whether the model's answer is exact or sampled,
    literals that the table does not hold, and the time by stage.
    """
    found = Estimator.load(model).explain(where, method=method, particles=particles)
    click.echo(json.dumps(found.to_json(), ensure_ascii=False) if as_json else "\n".join(_lines(found)))


def _lines(found: Explanation) -> list[str]:
    answer = found.estimate
    lines = [
        f"{show.rows(answer.rows)} rows  ({show.rows(answer.low)} to {show.rows(answer.high)} at {answer.level:.0%})"
    ]
    lines.append(f"method    {answer.method}, {'exact under the model' if answer.exact else 'sampled'}")
    for item in found.comparisons:
        lines.append(f"filter    {item.sql}: {item.values:,} of {item.of:,} values of {item.column} (by {item.how})")
        lines.extend(f"unseen    {literal} does not occur in {item.column}" for literal in item.unseen)
    lines.append(f"visited   {', '.join(found.visited) or 'no column'}")
    lines.append(f"skipped   {', '.join(found.skipped) or 'no column'}")
    for number, box in enumerate(found.boxes[:MOST_BOXES_SHOWN], 1):
        how = "exact" if box.exact else "sampled"
        lines.append(
            f"box {number:<5} {' > '.join(box.visited) or 'every row'}: "
            f"density {box.density:.3g}, {how}, {box.particles:,} particles"
        )
    if len(found.boxes) > MOST_BOXES_SHOWN:
        lines.append(f"          and {len(found.boxes) - MOST_BOXES_SHOWN} more boxes")
    lines.append("time      " + ", ".join(f"{stage} {ms:.2f} ms" for stage, ms in found.stages_ms.items()))
    return lines
