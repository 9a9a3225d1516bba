"""The ``countless serve`` command: answer queries over HTTP."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Sequence
from typing import Any

import click

from countless.cli.parameters.options import Duration, csv_option
from countless.cli.terminal import display as show
from countless.errors import MissingExtraError
from countless_command import leaving_at_once

PORT = 8321
ORIGIN = re.compile(r"https?://[^/\s@?#*]+")


def origins(context: click.Context, option: click.Parameter, given: Sequence[str]) -> Sequence[str]:
    """Where pages may come from, as browsers write it."""
    for origin in given:
        if origin != "*" and not ORIGIN.fullmatch(origin):
            raise click.BadParameter(f"{origin} is no origin: give one such as https://example.org, or * for all")
    return given


@click.command(
    epilog="\b\nExamples:\n"
    "  countless serve people.countless\n"
    "  countless serve people.countless pages.countless --table people=people.parquet --access-log\n"
    "  countless serve people.countless --host 0.0.0.0 --token abc"
)
@click.argument("models", metavar="MODEL...", nargs=-1, required=True)
@click.option(
    "--table", "tables", multiple=True, metavar="NAME=TABLE", help="The table of a model, to count in exactly."
)
@csv_option
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="The port; 0 chooses a free one."
)
@click.option("--token", envvar="COUNTLESS_TOKEN", help="Bearer token that requests must have  [env: COUNTLESS_TOKEN]")
@click.option("--no-auth", is_flag=True, help="No token: everyone who can reach the address may ask.")
@click.option(
    "--cors",
    multiple=True,
    metavar="ORIGIN",
    callback=origins,
    help="Allow web pages of this origin, such as https://example.org; * is any.",
)
@click.option("--access-log", is_flag=True, help="Write a line of JSON about each request to standard error.")
@click.option("--timeout", type=Duration(), default="10s", show_default=True, help="The time for a request.")
def serve(
    models: Sequence[str],
    tables: Sequence[str],
    csv: dict[str, Any] | None,
    host: str,
    port: int,
    token: str | None,
    no_auth: bool,
    cors: Sequence[str],
    access_log: bool,
    timeout: float,
) -> int:
    """Answer questions about model files over HTTP, and show a page that asks them.

    A model is called by the name of its file, or by another name as in NAME=MODEL. Without --host only this machine can
    connect. A CSV file is read with the options of the fit; --csv replaces them for each --table that is a CSV file.
    """
    with leaving_at_once():
        return _served(models, tables, csv, host, port, token, no_auth, cors, access_log, timeout)


def _served(
    models: Sequence[str],
    tables: Sequence[str],
    csv: dict[str, Any] | None,
    host: str,
    port: int,
    token: str | None,
    no_auth: bool,
    cors: Sequence[str],
    access_log: bool,
    timeout: float,
) -> int:
    try:
        from countless.serve.api.app import ServiceOptions
        from countless.serve.models import NamingError, load_models
        from countless.serve.server import address, is_loopback, leave, listen, run
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("countless"):
            raise
        raise MissingExtraError("the service needs more packages: pip install 'countless[serve]'") from None
    if token is not None and no_auth:
        raise click.UsageError("give either --token or --no-auth")
    if token == "":
        raise click.UsageError("the token is empty: give one that is hard to guess")
    if token is None and not no_auth and not is_loopback(host):
        raise click.UsageError(f"others can reach {host}: give a --token that requests must have, or --no-auth")
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    try:
        served = load_models(models, tables, csv)
    except NamingError as error:
        raise click.UsageError(str(error)) from None
    listening = listen(host, port)
    options = ServiceOptions(token, is_loopback(host) and not no_auth, timeout, cors=tuple(cors), access_log=access_log)

    def ready() -> None:
        for model in served.values():
            columns = show.plural(len(model.estimator.columns), "column")
            click.echo(f"{model.name}: {model.estimator.rows:,} rows, {columns}", err=True)
        click.echo(f"serving at {address(listening)}", err=True)

    ended = run(served, listening, options, ready)
    click.echo("stopped", err=True)
    return leave(ended)
