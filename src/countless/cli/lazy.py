"""A group of commands, each in a module of its own that is loaded when it is run."""

from __future__ import annotations

import importlib
from typing import Any

import click


class Commands(click.Group):
    """Command ``name`` is the object ``name`` of the module ``{modules}.{name}``; ``summaries`` lists them all."""

    def __init__(self, *args: Any, modules: str, summaries: dict[str, str], **options: Any) -> None:
        super().__init__(*args, **options)
        self._modules = modules
        self._summaries = summaries

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._summaries)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self._summaries:
            return None
        command = getattr(importlib.import_module(f"{self._modules}.{name}"), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self._summaries.items()))
