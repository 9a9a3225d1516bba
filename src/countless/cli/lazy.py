"""A command group that imports each command's module only when it runs, and finds the commands of plugins."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import click

from countless.errors import CountlessError
from countless.extensions import installed, load
from countless_command import leaving_at_once


class Commands(click.Group):
    """Command ``name`` is the object ``name`` of the module ``{modules}.{name}``; ``summaries`` lists them all.

    Installed packages may add commands by entry points of the group ``extensions``. Those are looked up for the help,
    and for names that are not in the list.
    """

    def __init__(
        self, *args: Any, modules: str, summaries: dict[str, str], extensions: str | None = None, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self._modules = modules
        self._summaries = summaries
        self._extensions = extensions

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.Abort from None  # click would print an empty line first
        except BrokenPipeError:  # the reader has closed the pipe, which is no error here, unlike in click
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes it at exit
            raise click.exceptions.Exit(0) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        plugins = installed(self._extensions) if self._extensions else {}
        return list(dict.fromkeys((*self._summaries, *plugins)))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        with leaving_at_once():
            if name in self._summaries:
                command = getattr(importlib.import_module(f"{self._modules}.{name}"), name)
            elif self._extensions and (entry := installed(self._extensions).get(name)) is not None:
                command = load(entry)
            else:
                return None
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name.startswith("-") or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        import difflib

        similar = difflib.get_close_matches(name, self.list_commands(ctx), 1)
        raise click.UsageError(f"No such command {name!r}.{f' Did you mean {similar[0]}?' if similar else ''}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._summary(ctx, name)) for name in self.list_commands(ctx)])

    def _summary(self, ctx: click.Context, name: str) -> str:
        """What a command does, in one line."""
        if name in self._summaries:
            return self._summaries[name]
        try:
            command = self.get_command(ctx, name)
        except CountlessError as error:
            return str(error)
        return (command.short_help or command.get_short_help_str()) if command is not None else ""
