"""``countless bench``: measure the product."""

from __future__ import annotations

import click

from countless.cli.lazy import Commands

BENCHMARKS = {
    "scoreboard": "Every figure of the product as shipped, on real tables: accuracy, speed, size, training.",
    "text": "Every way to count strings that match a pattern: latency and accuracy.",
    "ablation": "Which ways to train make better models in equal time.",
    "workload": "What it is worth that a fit knows what will be asked.",
    "rate": "How fast a fit trains, alone and beside busy processes.",
    "serve": "How many requests a service answers, how soon, and whether they are right.",
    "soak": "Ask a service for half an hour, in every manner, while its model is replaced.",
    "fuzz": "Random inputs of every kind: what breaks?",
    "honesty": "Which questions have error bars that miss the truth by far.",
    "growth": "How latency, training, memory and file size grow with the table and the question.",
}


@click.group(
    cls=Commands,
    modules="countless_lab.cli.bench",
    summaries=BENCHMARKS,
    short_help="Measure accuracy, speed and size.",
    epilog="\b\nExamples:\n  countless bench scoreboard --quick -o results/\n  countless bench growth -o growth/",
)
def bench() -> None:
    """Measure accuracy, speed and size. Compare ratios, not milliseconds, between machines."""
