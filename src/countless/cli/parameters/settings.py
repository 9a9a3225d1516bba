"""Command-line options made from the options dataclasses, grouped in ``--help``, and errors that name flags."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, TypeVar

import click

from countless.cli.parameters.options import Amount, CsvSetting, Duration, Names, csv_settings
from countless.errors import OptionError
from countless.options import FitOptions, TextNetwork
from countless.settings import Options, Setting, setting_of

Command = TypeVar("Command", bound=Callable[..., Any])
OptionsT = TypeVar("OptionsT", bound=Options)
CSV = re.compile(r"csv=\{(.*?)\}")
ARGUMENTS = "countless.arguments"  # key in a Click context: the words after the name of the command
TYPES: dict[str, click.ParamType[Any]] = {
    "columns": Names(),
    "seconds": Duration(),
    "memory": Amount(),
    "number": click.FLOAT,
    "path": click.Path(path_type=Path),
    "clauses": click.Path(path_type=Path),
}


class GroupedOption(click.Option):
    """An option that stands under the heading ``group`` in ``--help``."""

    def __init__(self, *declarations: Any, group: str, **about: Any) -> None:
        super().__init__(*declarations, **about)
        self.group = group


class GroupedCommand(click.Command):
    """A command whose help lists its options under their headings, those without one first.

    It also remembers the words that it was given, for a message that repeats them.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[ARGUMENTS] = tuple(args)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and not isinstance(parameter, click.Argument):
                groups.setdefault(getattr(parameter, "group", "Options"), []).append(record)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def options_from(*classes: type[Options]) -> Callable[[Command], Command]:
    """The flags of every setting of these classes that has a help text."""

    def decorate(command: Command) -> Command:
        for options in reversed(classes):
            for field in reversed(fields(options)):
                if setting_of(field).help:
                    command = _option(field, options.heading)(command)
        return command

    return decorate


def _option(field: Field[Any], group: str) -> Callable[[Command], Command]:
    setting = setting_of(field)
    about: dict[str, Any] = {"default": field.default, "help": setting.help, "metavar": setting.metavar}
    if setting.kind == "mapping":
        about |= {"type": CsvSetting(), "multiple": True, "callback": csv_settings}
    elif setting.kind == "expressions":
        about |= {"type": click.STRING, "multiple": True}
    elif setting.kind == "switch":
        about["is_flag"] = True
    else:
        about["type"] = _type(setting)
    about["show_default"] = field.default is not None and field.default is not False and field.default != ()
    return click.option(_flag(field), _parameter(field), cls=GroupedOption, group=group, **about)


def _type(setting: Setting) -> click.ParamType[Any]:
    """The Click type of a setting."""
    if setting.choices:
        return click.Choice(setting.choices)
    if setting.kind == "whole":
        return click.IntRange(_int_bound(setting.least), _int_bound(setting.most))
    return TYPES.get(setting.kind, click.STRING)


def _int_bound(bound: float | None) -> int | None:
    return None if bound is None else int(bound)


def _flag(field: Field[Any]) -> str:
    return setting_of(field).flag or f"--{field.name.replace('_', '-')}"


def _parameter(field: Field[Any]) -> str:
    """The name of the command's argument for this field."""
    return _flag(field).partition("/")[0].removeprefix("--").replace("-", "_")


def options_of(options: type[OptionsT], values: Mapping[str, Any], **unflagged: Any) -> OptionsT:
    """Options with the ``values`` of a command's flags, and with values of fields that have no flag."""
    flagged = [field for field in fields(options) if setting_of(field).help]
    return options(**{field.name: values[_parameter(field)] for field in flagged}, **unflagged)


def with_flags(error: OptionError) -> str:
    """The message of an error, with flags in place of arguments."""
    text_flags = {TextNetwork.prefix + field.name: _flag(field) for field in fields(TextNetwork)}
    return error.shown(lambda name: text_flags.get(name, f"--{name.replace('_', '-')}".replace("--csv.", "--csv ")))


def with_csv_flags(message: str) -> str:
    """A message of the library, with --csv flags in place of the argument ``csv``.

    >>> print(with_csv_flags("add csv={'delim': ';', 'thousands': '.'}"))
    add --csv delim=';' --csv thousands='.'
    """
    return CSV.sub(lambda match: re.sub(r"'(\w+)': ('.*?')(, )?", r"--csv \1=\2 ", match[1]).rstrip(), message)


def command_with_csv(messages: Iterable[str]) -> str:
    """This command again, with all the CSV options that messages of the library advise.

    If two messages advise the same option, as for columns of times in different formats, the first one counts.
    """
    context = click.get_current_context()
    words = [word for word in context.meta.get(ARGUMENTS, ()) if word != "--resume"]
    options: dict[str, str] = {}
    for advised in CSV.findall(" ".join(messages)):
        for name, value in re.findall(r"'(\w+)': '(.*?)'", advised):
            options.setdefault(name, value)
    flags = [word for name, value in options.items() for word in ("--csv", f"{name}={value}")]
    return shlex.join(["countless", str(context.info_name), *words, *flags])


def plain_options(options: FitOptions) -> dict[str, Any]:
    """The value of every flag of ``countless fit``, by its name, as plain data."""
    values_by_flag: dict[str, Any] = {}
    for part in fields(FitOptions):
        values = getattr(options, part.name)
        plain = values.to_json()
        values_by_flag |= {_parameter(field): plain[field.name] for field in fields(values) if setting_of(field).help}
    return values_by_flag
