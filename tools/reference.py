"""Writes the reference pages of the docs: the command line from its commands, the Python API from its docstrings.

``python tools/reference.py`` writes both; ``make docs`` runs it. A test says if they are stale.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import countless
from countless.cli.main import COMMANDS, cli

PAGES = Path(__file__).resolve().parents[1] / "docs" / "reference"
WRITTEN = "<!-- Written by tools/reference.py (make docs): change the commands or the docstrings instead. -->"
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
ROLE = re.compile(r":\w+:`[.~]?([^`]+)`")  # :class:`Estimate`


def cli_page() -> str:
    """Every command, its arguments, options and examples."""
    lines = ["# Command line", "", WRITTEN, "", "`countless COMMAND --help` shows the same.", ""]
    lines += ["| command | question |", "|---|---|"]
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
    lines = ["# Python", "", WRITTEN, "", "Everything here is imported from `countless`.", ""]
    for name in countless.__all__:
        value = getattr(countless, name)
        if inspect.ismodule(value) or isinstance(value, str):
            continue
        lines += ["", f"## {name}", "", *_described(name, value)]
        if inspect.isclass(value) and not issubclass(value, Exception):
            for attribute, member in vars(value).items():
                shown = getattr(member, "__func__", member)
                if not attribute.startswith("_") and (inspect.isfunction(shown) or isinstance(member, property)):
                    lines += ["", f"### {name}.{attribute}", "", *_described(attribute, shown)]
    return "\n".join(lines) + "\n"


def _described(name: str, value: Any) -> Iterator[str]:
    if callable(value) and not (inspect.isclass(value) and issubclass(value, Exception)):
        yield from ("```python", _signature(name, value), "```", "")
    elif isinstance(value, property):
        yield from ("*A property.*", "")
    text = inspect.cleandoc((value.__doc__ if not inspect.isclass(value) else vars(value).get("__doc__")) or "")
    for paragraph in text.split("\n\n"):
        if paragraph.startswith(">>>"):
            yield from ("```pycon", paragraph, "```", "")
        elif re.match(r"(Args|Raises|Returns):\n", paragraph):
            heading, *rest = paragraph.splitlines()
            yield from (f"**{heading}**", "", *(f"- {_python(line.strip())}" for line in rest), "")
        else:
            yield from (_python(" ".join(paragraph.split())), "")


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
