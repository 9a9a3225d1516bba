"""Writes the reference pages of the docs: the command line from its commands, the Python API from its docstrings.

``python tools/reference.py`` writes both; ``make docs`` runs it. They are not in git, so they are never stale.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import click

import countless
from countless.cli.main import COMMANDS, cli
from countless.data.frame import Frame
from countless.settings import Options, setting_of

PAGES = Path(__file__).resolve().parents[1] / "docs" / "reference"
WRITTEN = "<!-- Written by tools/reference.py (make docs): change the commands or the docstrings instead. -->"
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
SECTION = re.compile(r"(Args|Attributes|Raises|Returns):\n")
ROLE = re.compile(r":\w+:`[.~]?([^`]+)`")  # :class:`Estimate`


def cli_page() -> str:
    """Every command, its arguments, options and examples."""
    lines = ["# Command line", "", WRITTEN, "", "`countless COMMAND --help` shows the same.", ""]
    lines += ["| command | what it does, or answers |", "|---|---|"]
    lines += [f"| [`{name}`](#countless-{name}) | {summary} |" for name, summary in COMMANDS.items()]
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        lines += ["", *_command(command, click.Context(command, info_name=f"countless {name}"))]
    return "\n".join(lines) + "\n"


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"## {context.info_name}"
    yield ""
    yield from ("```console", f"$ {' '.join([str(context.info_name), *command.collect_usage_pieces(context)])}", "```")
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        yield ""
        yield _plain(" ".join(paragraph.split()))
    groups: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(context):
        if (record := parameter.get_help_record(context)) is not None:
            groups.setdefault(getattr(parameter, "group", "Options"), []).append(record)
    for heading, records in groups.items():
        yield from ("", f"| {heading.lower()} | |", "|---|---|")
        for flags, help_text in records:
            yield f"| `{_cell(flags)}` | {_plain(_cell(' '.join(help_text.split())))} |"
    if command.epilog:
        examples = inspect.cleandoc(command.epilog.replace("\b\n", "")).partition("\n")[2]
        yield from ("", "```console", *(f"$ {line.strip()}" for line in examples.splitlines()), "```")


def python_page() -> str:
    """Every public name, its signature and docstring; of classes their public methods too."""
    lines = ["# Python", "", WRITTEN, "", "Everything here except `Frame` is imported from `countless`.", ""]
    names = [name for name in countless.__all__ if not name.startswith("_")]
    values: dict[str, Any] = {name: getattr(countless, name) for name in sorted(names, key=_rank)}
    for name, value in (values | {"Frame": Frame}).items():
        lines += ["", f"## {name}", "", *_described(name, value)]
        if inspect.isclass(value) and not issubclass(value, Exception):
            if value is not Frame and issubclass(value, Frame):
                lines += ["It is a [`Frame`](#frame), with its methods.", ""]
            for attribute, member in _members(value).items():
                lines += ["", f"### {name}.{attribute}", "", *_described(attribute, member)]
    return "\n".join(lines) + "\n"


def _rank(name: str) -> int:
    """Functions first, then what they return, options, and errors."""
    value = getattr(countless, name)
    if not inspect.isclass(value):
        return 0
    if value is countless.Estimator:
        return 1
    return 4 if issubclass(value, Exception) else 3 if issubclass(value, Options) else 2


def _members(kind: type) -> dict[str, Any]:
    """The public methods and properties of a class; without those that every frame and every class of options has."""
    members: dict[str, Any] = {}
    for base in kind.__mro__:
        if base in (Frame, Options) and base is not kind:
            continue
        for name, member in vars(base).items():
            function = getattr(member, "__func__", member)
            if base is not object and (inspect.isfunction(function) or isinstance(member, property | cached_property)):
                members.setdefault(name, function)
    return {name: member for name, member in members.items() if not name.startswith("_")}


def _described(name: str, value: Any) -> Iterator[str]:
    if callable(value) and not (inspect.isclass(value) and issubclass(value, Exception)):
        yield from ("```python", _signature(name, value), "```", "")
    elif isinstance(value, property | cached_property):
        yield from ("*A property.*", "")
    text = inspect.cleandoc((value.__doc__ if not inspect.isclass(value) else vars(value).get("__doc__")) or "")
    for paragraph in text.split("\n\n"):
        if paragraph.startswith(">>>"):
            yield from ("```pycon", paragraph, "```", "")
        elif SECTION.match(paragraph):
            heading, _, entries = paragraph.partition("\n")
            yield from (f"**{heading}**", "")
            if heading == "Returns:":
                yield from (_python(" ".join(entries.split())), "")
            else:
                yield from (*map(_item, _entries(entries)), "")
        elif paragraph.startswith("- "):
            yield from (*(_python(f"- {item}") for item in _entries(paragraph)), "")
        else:
            yield from (_python(" ".join(paragraph.split())), "")

    if inspect.isclass(value) and issubclass(value, Options):
        yield from _fields(value)


def _fields(options: type[Options]) -> Iterator[str]:
    """The fields of an options class, with their help texts."""
    yield from ("| field | default | |", "|---|---|---|")
    for field in dataclasses.fields(options):
        help_text = _plain(_cell(setting_of(field).help)).replace("  [default: ", " [default: ")
        yield f"| `{field.name}` | `{field.default!r}` | {help_text} |"
    yield ""


def _entries(text: str) -> list[str]:
    """The entries of a section. A line that is indented further belongs to the entry above it.

    >>> _entries("    path: The file,\\n        or a glob.\\n    options: How to read it.")
    ['path: The file, or a glob.', 'options: How to read it.']
    """
    entries: list[str] = []
    for line in inspect.cleandoc("\n" + text).splitlines():
        if line.startswith(" "):
            entries[-1] += f" {line.strip()}"
        else:
            entries.append(line.removeprefix("- "))
    return entries


def _item(entry: str) -> str:
    """An entry as an item of a list; a name in front of a colon is code.

    >>> _item("path: The file."), _item("The estimator that was saved.")
    ('- `path`: The file.', '- The estimator that was saved.')
    """
    return "- " + re.sub(r"^(\w+): ", r"`\1`: ", _python(entry))


def _signature(name: str, value: Any) -> str:
    try:
        text = str(inspect.signature(value))
    except ValueError:  # a class of C
        return f"{name}(...)"
    text = re.sub(r"'([^']*)'", r"\1", text)  # annotations are strings
    if len(name + text) <= 100:
        return name + text
    signature = inspect.signature(value)
    lines, star = [], False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            lines.append("    *,")
            star = True
        star = star or parameter.kind is parameter.VAR_POSITIONAL
        lines.append(re.sub(r"'([^']*)'", r"\1", f"    {parameter},"))
    ends = text.rpartition(" -> ")
    return "\n".join([f"{name}(", *lines, f"){' -> ' + ends[2] if ends[1] else ''}"])


def _python(text: str) -> str:
    return ROLE.sub(r"`\1`", text).replace("``", "`")


def _plain(text: str) -> str:
    """Text that Markdown leaves as it is, but for flags, which become code."""
    return FLAG.sub(r"`\g<0>`", re.sub(r"([*_<>])", r"\\\1", text))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def pages() -> dict[Path, str]:
    """Every page and what it should hold."""
    return {PAGES / "cli.md": cli_page(), PAGES / "python.md": python_page()}


def main() -> None:
    for path, text in pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
