"""The ``countless serve`` command: answer queries over HTTP."""

from __future__ import annotations

import ipaddress
import logging
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from countless.cli.parameters.options import Duration, csv_option
from countless.cli.terminal import display as show
from countless.errors import CountlessError, MissingExtraError
from countless_command import leaving_at_once

if TYPE_CHECKING:
    import socket

    from countless.serve.models import Served

PORT = 8321
ORIGIN = re.compile(r"https?://[^/\s@?#*]+")


def origins(context: click.Context, option: click.Parameter, values: Sequence[str]) -> Sequence[str]:
    """Check the origins of web pages, as browsers send them."""
    for origin in values:
        if origin != "*" and not ORIGIN.fullmatch(origin):
            raise click.BadParameter(f"{origin} is no origin: give one such as https://example.org, or * for all")
    return values


def networks(context: click.Context, option: click.Parameter, values: Sequence[str]) -> tuple[Any, ...]:
    """Addresses and networks of proxies."""
    try:
        return tuple(map(ipaddress.ip_network, values))
    except ValueError as error:
        raise click.BadParameter(
            f"{error}: give an address such as 10.0.0.5, or a network such as 10.0.0.0/24"
        ) from None


class Pause(Duration):
    """A time that may be zero."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        return 0.0 if str(value) in ("0", "0s") else super().convert(value, param, ctx)


@click.command(
    epilog="\b\nExamples:\n"
    "  countless serve people.countless\n"
    "  countless serve people.countless pages.countless --table people=people.parquet --access-log\n"
    "  countless serve people.countless --host 0.0.0.0 --token-file token --client-rate 20"
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
@click.option("--token-file", type=click.Path(path_type=Path), help="A file that holds the token.")
@click.option("--no-auth", is_flag=True, help="No token: everyone who can reach the address may ask.")
@click.option("--public-metrics", is_flag=True, help="/metrics needs no token.")
@click.option(
    "--cors",
    multiple=True,
    metavar="ORIGIN",
    callback=origins,
    help="Allow web pages of this origin, such as https://example.org; * is any.",
)
@click.option("--timeout", "seconds", type=Duration(), default="10s", show_default=True, help="The time for a request.")
@click.option(
    "--drain",
    type=Pause(),
    default="0s",
    show_default=True,
    help="Go on answering this long after SIGTERM, while /readyz says no.",
)
@click.option(
    "--client-rate",
    type=click.FloatRange(0, min_open=True),
    help="Requests a second that one client may send  [default: any number]",
)
@click.option(
    "--client-burst",
    type=click.IntRange(1),
    help="Requests that it may send at once after a pause  [default: those of 2 seconds]",
)
@click.option(
    "--client-concurrent",
    type=click.IntRange(1),
    help="Unanswered requests that one client may have  [default: any number]",
)
@click.option(
    "--trusted-proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    callback=networks,
    help="A proxy whose X-Forwarded-For names the client; an address or a network.",
)
@click.option("--access-log", is_flag=True, help="Write a line about each request to standard error.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How all lines of the log are written.",
)
@click.option("--log-clauses", is_flag=True, help="Log what was asked too, with --access-log. It may be personal.")
@click.option(
    "--watch/--no-watch",
    "is_watching",
    default=True,
    help="Load a model file again when it is replaced (the default). SIGHUP loads it in any case.",
)
def serve(
    models: Sequence[str],
    tables: Sequence[str],
    csv: dict[str, Any] | None,
    host: str,
    port: int,
    token: str | None,
    token_file: Path | None,
    no_auth: bool,
    **options: Any,
) -> int:
    """Answer questions about model files over HTTP, and show a page that asks them.

    A model is called by the name of its file, or by another name as in NAME=MODEL. Without --host only this machine can
    connect. A CSV file is read with the options of the fit; --csv replaces them for each --table that is a CSV file.
    """
    with leaving_at_once():
        if token_file is not None:
            token = _token_of(token_file, token)
        return _served(models, tables, csv, host, port, _checked(token, no_auth), no_auth, options)


def _token_of(file: Path, token: str | None) -> str:
    if token is not None:
        raise click.UsageError("give either --token or --token-file")
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise CountlessError(f"the token in {file} cannot be read: {reason}") from None


def _checked(token: str | None, no_auth: bool) -> str | None:
    if token is not None and no_auth:
        raise click.UsageError("give either --token or --no-auth")
    if token == "":
        raise click.UsageError("the token is empty: give one that is hard to guess")
    return token


def _served(
    models: Sequence[str],
    tables: Sequence[str],
    csv: dict[str, Any] | None,
    host: str,
    port: int,
    token: str | None,
    no_auth: bool,
    options: dict[str, Any],
) -> int:
    try:
        from countless.serve.allocator import give_memory_back
        from countless.serve.api.access_log import start_logging
        from countless.serve.models import NamingError, load_models
        from countless.serve.reload import INTERVAL
        from countless.serve.server import is_loopback, leave, listen, run
        from countless.serve.service import ServiceOptions
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("countless"):
            raise
        raise MissingExtraError("the service needs more packages: pip install 'countless[serve]'") from None
    if token is None and not no_auth and not is_loopback(host):
        raise click.UsageError(f"others can reach {host}: give a --token that requests must have, or --no-auth")
    if options["client_burst"] and not options["client_rate"]:
        raise click.UsageError("--client-burst says how --client-rate is counted: give that too")
    if options["log_clauses"] and not options["access_log"]:
        raise click.UsageError("--log-clauses adds to the lines of --access-log: give that too")
    start_logging(options["log_format"])
    give_memory_back()
    try:
        served = load_models(models, tables, csv)
    except NamingError as error:
        raise click.UsageError(str(error)) from None
    listening = listen(host, port)
    watch = INTERVAL if options.pop("is_watching") else None
    settings = ServiceOptions(token, is_loopback(host) and not no_auth, watch=watch, **options)
    say = _say(settings.log_format)
    ended = run(served, listening, settings, lambda: _greet(say, served, listening))
    say("stopped")
    return leave(ended)


def _say(log_format: str) -> Callable[[str], None]:
    """A function that prints a line for people, or writes it to the log if that is JSON."""
    if log_format == "json":
        return logging.getLogger("countless.serve").info
    return lambda line: click.echo(line, err=True)


def _greet(say: Callable[[str], None], served: dict[str, Served], listening: socket.socket) -> None:
    from countless.serve.server import address

    for model in served.values():
        say(f"{model.name}: {model.estimator.rows:,} rows, {show.plural(len(model.estimator.columns), 'column')}")
    say(f"serving at {address(listening)}")
