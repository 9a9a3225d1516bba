"""``countless bench soak``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from countless.cli.parameters.options import Duration, json_option, model_argument
from countless.cli.terminal import display as show
from countless.data.atomic_files import json_bytes, write_bytes
from countless_lab.cli.options import count_option, json_file_option
from countless_lab.contests.soak import SoakOptions
from countless_lab.contests.soak import soak as run_soak


@click.command(epilog="\b\nExample:\n  countless bench soak people.countless --minutes 30 --pause 2s -o soak.json")
@model_argument
@click.option("--minutes", type=click.FloatRange(0.01), default=30.0, show_default=True, help="How long they ask.")
@click.option(
    "--clients", type=click.IntRange(1, 1_000), default=64, show_default=True, help="Number of concurrent clients."
)
@click.option(
    "--replace-every",
    type=Duration(),
    default="20s",
    show_default=True,
    help="Time between two replacements of the model file.",
)
@click.option(
    "--pause",
    type=Duration(),
    default="0.4s",
    show_default=True,
    help="Time that a client waits between two requests, at most.",
)
@count_option("--seed", 1, "Seed of everything random.", least=0)
@json_file_option
@json_option
def soak(
    model: Path,
    minutes: float,
    clients: int,
    replace_every: float,
    pause: float,
    seed: int,
    output: Path | None,
    as_json: bool,
) -> int:
    """Ask a service of MODEL for a long time, in every manner, while its model file is replaced.

    Starts countless serve on this machine. Clients ask valid and invalid questions, some send slowly, some vanish in
    the middle of a request. The model file takes turns with its stripped copy, and is broken now and then. The exit
    code is 1 if an answer is wrong or missing, if the service fails, or if its memory grows by more than 10% after the
    first fifth of the time.
    """
    show.progress().print(f"asking for {minutes:g} minutes with {show.plural(clients, 'client')} ...")
    result = run_soak(model, SoakOptions(minutes, clients, replace_every, pause, seed))
    if output is not None:
        write_bytes(output, json_bytes(result))
    _show(result)
    if as_json:
        click.echo(json.dumps(result))
    return int(bool(result["failures"]) or not result["is_level"])


def _show(result: dict[str, Any]) -> None:
    console = show.results()
    times = ", ".join(
        f"p{percent} {result[f'ms_p{percent}']:.1f} ms" for percent in (50, 90, 99) if f"ms_p{percent}" in result
    )
    manners = ", ".join(f"{count:,} {manner}" for manner, count in result["manners"].items())
    files = ", ".join(f"{count} {kind}" for kind, count in result["files"].items()) or "left alone"
    failures = ", ".join(f"{count} {kind}" for kind, count in result["failures"].items()) or "none"
    console.print(f"requests  {result['requests']:,}: {manners}", soft_wrap=True)
    console.print(f"latency   {times}; {result['late']} were refused because all threads were busy", soft_wrap=True)
    console.print(f"reopened  {result['reopened']:,} connections that the service had closed while nobody used them")
    console.print(f"files     {files}", soft_wrap=True)
    console.print(f"failures  {failures}", soft_wrap=True)
    first, last, peak = (result[f"memory_mb_{name}"] for name in ("first", "last", "peak"))
    console.print(f"memory    {first:.0f} MB after the warm-up, {last:.0f} MB at the end, {peak:.0f} MB at most")
