"""Command-line options and parameter types that several commands share."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from countless.csv_options import PREFIX, csv_option_of_text
from countless.data.columns.names import split_names
from countless.engine.methods import DEFAULT_METHOD, METHODS
from countless.errors import OptionError
from countless.settings import memory_size, seconds, setting_of

Command = TypeVar("Command", bound=Callable[..., Any])


class Duration(click.ParamType[float]):
    """A time such as ``90``, ``90s``, ``5m`` or ``1h30m``, in seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            total = seconds("time", value)
        except OptionError:
            self.fail(f"{value!r} is not a time: write 90s, 5m or 1h30m", param, ctx)
        if total <= 0:
            self.fail(f"{value!r} is no time at all: it must be more than zero", param, ctx)
        return total


class Amount(click.ParamType[int]):
    """An amount of memory such as ``2GB``, in bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return memory_size("memory", str(value))
        except OptionError as error:
            self.fail(error.shown(lambda name: f"--{name}"), param, ctx)


class Names(click.ParamType[tuple[str, ...]]):
    """Column names between commas; a name with a comma, or a space at an end, stands in double quotes."""

    name = "a,b"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        return value if isinstance(value, tuple) else split_names(value)


class ChosenNames(Names):
    """Names between commas, each of which is one of ``choices``."""

    def __init__(self, choices: Iterable[str]) -> None:
        self.choices = tuple(choices)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        names = super().convert(value, param, ctx)
        unknown = [name for name in names if name not in self.choices]
        if unknown or not names:
            self.fail(f"{', '.join(unknown) or 'nothing'}: choose from {', '.join(self.choices)}", param, ctx)
        return names


class CsvSetting(click.ParamType[tuple[str, Any]]):
    """An option for reading a CSV file, such as ``delim=;``.

    >>> CsvSetting().convert("header=false", None, None)
    ('header', False)
    """

    name = "name=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).partition("=")
        if not equals:
            self.fail(f"{value!r} has no value: write {value}=VALUE, such as delim=';'", param, ctx)
        try:
            return name.strip(), csv_option_of_text(name.strip(), text)
        except OptionError as error:
            self.fail(error.shown(lambda name: name.removeprefix(PREFIX)), param, ctx)


def csv_settings(ctx: click.Context, param: click.Parameter, pairs: Iterable[tuple[str, Any]]) -> dict[str, Any] | None:
    """The settings by name; an option that takes several values may be repeated."""
    options: dict[str, Any] = {}
    for name, value in pairs:
        if isinstance(value, list):
            options[name] = options.get(name, []) + value
        else:
            options[name] = options.get(name, {}) | value if isinstance(value, dict) else value
    return options or None


def csv_option(command: Command) -> Command:
    """--csv, how to read a CSV file."""
    from countless.options import ReadingOptions

    (csv,) = [field for field in fields(ReadingOptions) if field.name == "csv"]
    option = click.option(
        "--csv",
        type=CsvSetting(),
        multiple=True,
        callback=csv_settings,
        metavar="NAME=VALUE",
        help=setting_of(csv).help,
    )
    return option(command)


class BinsOrEdges(click.ParamType[int | tuple[str, ...]]):
    """A number of bins, or their edges between commas.

    >>> BinsOrEdges().convert("12", None, None), BinsOrEdges().convert("0,2.5", None, None)
    (12, ('0', '2.5'))
    """

    name = "n|a,b,c"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | tuple[str, ...]:
        if isinstance(value, int | tuple):
            return value
        if "," in value:
            return tuple(edge.strip() for edge in value.split(","))
        if not value.strip().isdecimal() or int(value) < 1:
            self.fail(f"{value!r} is neither a number of bins nor edges such as 20,40,60", param, ctx)
        return int(value)


def model_argument(command: Command) -> Command:
    """MODEL, a model file. If another argument is one instead, the error says that MODEL comes first."""

    @wraps(command)
    def with_model_first(*args: Any, model: Path, **arguments: Any) -> Any:
        _require_model_first(model, arguments.values())
        return command(*args, model=model, **arguments)

    decorated: Any = click.argument("model", type=click.Path(path_type=Path))(with_model_first)
    return decorated  # type: ignore[no-any-return]


def _require_model_first(model: Path, others: Iterable[Any]) -> None:
    from countless.store import is_model

    texts = [text for value in others for text in (value if isinstance(value, tuple) else [value])]
    swapped = next((text for text in texts if isinstance(text, str) and is_model(Path(text))), None)
    if swapped is not None and not is_model(model):
        command = shlex.join(["countless", click.get_current_context().info_name or "", swapped, str(model)])
        raise click.UsageError(f"{swapped} is a model file, and the model file comes first: {command}")


def table_argument(name: str = "table") -> Callable[[Command], Command]:
    """TABLE, and --csv with the options of a CSV file: the command receives a path or a CsvFile."""

    def decorate(command: Command) -> Command:
        from countless.data.sources.csv_files import with_csv_options

        @wraps(command)
        def read_as_csv(*args: Any, csv: dict[str, Any] | None, **arguments: Any) -> Any:
            arguments[name] = with_csv_options(arguments[name], csv)
            return command(*args, **arguments)

        decorated: Any = click.argument(name)(csv_option(read_as_csv))
        return decorated  # type: ignore[no-any-return]

    return decorate


def method_options(*extra: str) -> Callable[[Command], Command]:
    """--method, with ``extra`` methods beside the engine's, and --particles."""

    def decorate(command: Command) -> Command:
        particles = click.option(
            "--particles",
            type=click.IntRange(min=1),
            help="Number of particles (or samples)  [default: chosen for each question; 1000 samples]",
        )
        method = click.option(
            "--method",
            type=click.Choice([*METHODS, *extra]),
            default=DEFAULT_METHOD,
            show_default=True,
            help="How to answer. fused is evidence rows and the model together, the others are the model alone. naive"
            " is for text only; skipping and progressive read the first order of a model of several; plain- ones make a"
            " whole forward pass at every step, as the paper does.",
        )
        return method(particles(command))

    return decorate


def output_option(content: str) -> Callable[[Command], Command]:
    """-o, a file to write a table to."""
    message = f"Write {content} to a CSV or Parquet file, by its ending."
    return click.option("--out", "-o", type=click.Path(path_type=Path), help=message)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
