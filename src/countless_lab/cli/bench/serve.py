"""``countless bench serve``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from countless.cli.parameters.options import Duration, json_option, model_argument
from countless.cli.terminal import display as show
from countless.data.atomic_files import json_bytes, write_bytes
from countless_lab.cli.options import count_option, json_file_option
from countless_lab.contests.service import PERCENTILES, LoadTestOptions, measure


@click.command(
    epilog="\b\nExamples:\n"
    "  countless bench serve people.countless\n"
    "  countless bench serve people.countless --clients 8 --seconds 30 -o serve.json"
)
@model_argument
@click.option(
    "--clients",
    type=click.IntRange(1, 1_000),
    default=LoadTestOptions.clients,
    show_default=True,
    help="Number of concurrent clients.",
)
@click.option("--seconds", type=Duration(), default="10s", show_default=True, help="How long they ask.")
@count_option("--clauses", LoadTestOptions.clauses, "How many different questions there are.")
@count_option("--seed", LoadTestOptions.seed, "Seed of everything random.", least=0)
@json_file_option
@json_option
def serve(
    model: Path, clients: int, seconds: float, clauses: int, seed: int, output: Path | None, as_json: bool
) -> int:
    """Measure how a service of MODEL holds out.

    Starts countless serve on this machine, asks it for the cards of all columns as its page does, and then random
    questions, many at once. Every answer to these is compared with the library's; the exit code is 1 if one differs,
    or if a request is refused or lost.
    """
    options = LoadTestOptions(clients, seconds, clauses, seed=seed)
    show.progress().print(f"asking for {seconds:g} s with {show.plural(clients, 'client')} ...")
    result = measure(model, options)
    if output is not None:
        write_bytes(output, json_bytes(result))
    _show(result)
    if as_json:
        click.echo(json.dumps(result))
    return int(bool(result["wrong"] or result["refused"] or result["lost"]))


def _show(result: dict[str, Any]) -> None:
    console = show.results()
    cards = ", ".join(f"p{p} {result[f'cards_ms_p{p}']:.0f} ms" for p in PERCENTILES)
    console.print(f"cards     {cards} of the service's time for all {result['cards']}, {result['refreshes']} times")
    cached = f"{result['kept']:,} answers had been kept"
    console.print(f"requests  {result['requests']:,}, {result['per_second']:,.0f} a second; {cached}")
    for name, words in (("ms", "latency   "), ("computed_ms", "computed  ")):
        if f"{name}_p50" in result:
            times = ", ".join(f"p{p} {result[f'{name}_p{p}']:.1f} ms" for p in PERCENTILES)
            console.print(f"{words}{times}")
    console.print(
        f"errors    {result['wrong']} unlike the library's, {result['refused']} refused, {result['lost']} lost"
    )
    console.print(f"memory    {result['memory_mb_start']:.0f} MB at first, {result['memory_mb_end']:.0f} MB at last")
