"""``countless bench fuzz``: random inputs, and what they find."""

from __future__ import annotations

import click

from countless.cli.lazy import Commands

TARGETS = {
    "tables": "Fit random tables of every type and awkward content.",
    "predicates": "Ask random predicates of every operator and function, and compare with DuckDB's counts.",
    "files": "Load and ask model files that are damaged in every way.",
    "service": "Send hostile requests to a service, and an ordinary question after each.",
    "kill": "Kill commands at random moments, and run them again.",
    "concurrency": "Share one estimator among threads and processes, and compare every answer.",
    "kernel": "Run the compiled code with sanitizers on random inputs.",
}


@click.group(
    cls=Commands,
    modules="countless_lab.cli.bench.fuzz",
    summaries=TARGETS,
    epilog="\b\nExample:\n  countless bench fuzz tables --minutes 1 -o defects/",
)
def fuzz() -> None:
    """Give the product random inputs, and report what it does not do as it promises."""
