"""The ``--config`` option: values for a command's options from a TOML file."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from countless.cli.parameters.options import Command, Names
from countless.data.sources.regular_files import open_regular
from countless.errors import CountlessError


def config_option(command: Command) -> Command:
    """--config, a TOML file of options; the command line overrides it."""
    option = click.option(
        "--config",
        type=click.Path(path_type=Path),
        is_eager=True,
        expose_value=False,
        callback=_read,
        metavar="FILE.toml",
        help='Take options from a TOML file, such as exclude = ["id"] and budget = "5m". The command line wins.',
    )
    return option(command)


def _read(context: click.Context, parameter: click.Parameter, path: Path | None) -> None:
    if path is None:
        return
    try:
        with open_regular(path) as file:
            config = tomllib.loads(file.read().decode("utf-8"))
    except (OSError, CountlessError, ValueError) as error:
        raise click.BadParameter(f"{path}: {error}", context, parameter) from None
    options = {option.name: option for option in context.command.params if option.name and option is not parameter}
    values: dict[str, Any] = {}
    for key, value in config.items():
        name = key.replace("-", "_")
        if name not in options:
            close = difflib.get_close_matches(name, options, 1)
            hint = f": did you mean {close[0]!r}?" if close else f"; the options are {', '.join(sorted(options))}"
            raise click.BadParameter(f"{path} has an unknown option {key!r}{hint}", context, parameter)
        values[name] = _as_parameter_value(options[name], value)
    context.default_map = {**(context.default_map or {}), **values}


def _as_parameter_value(parameter: click.Parameter, value: Any) -> Any:
    """A TOML value as the parameter takes it: a table as pairs, a list of names or expressions as a tuple."""
    if isinstance(value, Mapping) and parameter.multiple:
        return tuple(value.items())
    expressions = parameter.multiple and parameter.type is click.STRING
    if isinstance(value, list) and (expressions or isinstance(parameter.type, Names)):
        return tuple(value)
    if isinstance(value, str) and expressions:
        return (value,)
    return str(value) if isinstance(value, Mapping | list) else value  # the parameter's type reports what is wrong
