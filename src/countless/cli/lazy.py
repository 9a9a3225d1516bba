"""A group of commands, each in a module of its own that is loaded when it is run."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import click

from countless_command import leaving_at_once


class Commands(click.Group):
    """Command ``name`` is the object ``name`` of the module ``{modules}.{name}``; ``summaries`` lists them all."""

    def __init__(self, *args: Any, modules: str, summaries: dict[str, str], **options: Any) -> None:
        super().__init__(*args, **options)
        self._modules = modules
        self._summaries = summaries

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.Abort from None  # before click makes an empty line of it
        except BrokenPipeError:  # who reads has seen enough: no error, which click would make of it
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # let the interpreter flush into nothing
            raise click.exceptions.Exit(0) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._summaries)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self._summaries:
            return None
        with leaving_at_once():
            command = getattr(importlib.import_module(f"{self._modules}.{name}"), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self._summaries.items()))
