"""The command line is made from the options: its help is grouped, and its errors name flags."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import click
import pytest

from countless.cli.parameters.settings import GroupedCommand, command_with_csv, with_flags
from countless.errors import OptionError
from countless.options import Network, ReadingOptions, ResourceOptions, StorageOptions, TrainingOptions, UpdateOptions
from countless.settings import Options, setting_of
from tests.cli.test_cli import Run, run

__all__ = ["run"]


def sections(text: str) -> dict[str, list[str]]:
    """The flags under each heading of a help text."""
    flags: dict[str, list[str]] = {}
    for part in re.split(r"\n(?=\S[^\n]*:\n)", text):
        heading, _, rest = part.partition(":\n")
        flags[heading.strip()] = re.findall(r"^  (?:-\w, )?--([\w-]+)", rest, re.M)
    return flags


def flags(options: type[Options]) -> list[str]:
    named = {field.name: field for field in fields(options)}
    return [name.replace("_", "-") for name, field in named.items() if setting_of(field).help]


def test_the_help_of_fit_has_headings(run: Run) -> None:
    help_text = run("fit", "--help").out
    found = sections(help_text)
    assert found["Options"] == ["output", "config", "quiet", "json", "progress", "help"]
    assert found["Reading"] == flags(ReadingOptions)
    assert found["Network"] == [*flags(Network), "text-preset", "text-masking"]
    assert found["Training"] == flags(TrainingOptions)
    assert found["Resources"] == flags(ResourceOptions)
    assert found["What to store"] == [*flags(StorageOptions), "keep-training"]
    assert "[default: 0; 0<=x<=2147483647]" in " ".join(help_text.split())
    assert "Examples:\n" in help_text


def test_a_command_is_repeated_with_all_csv_options_that_are_advised() -> None:
    command = GroupedCommand("fit", params=[click.Argument(["source"]), click.Option(["--resume"], is_flag=True)])
    messages = [
        "add csv={'decimal_separator': ',', 'thousands': '.'}",
        "add csv={'timestampformat': '%d.%m.%Y %H:%M'}, or '%m' if so",
        "add csv={'timestampformat': '%Y.%m.%d'}",
    ]
    with command.make_context("fit", ["my orders.csv", "--resume"]):
        assert command_with_csv(messages) == (
            "countless fit 'my orders.csv' --csv decimal_separator=, --csv thousands=. "
            "--csv 'timestampformat=%d.%m.%Y %H:%M'"
        )


def test_the_help_of_update_has_headings(run: Run) -> None:
    found = sections(run("update", "--help").out)
    assert found["Training"] == flags(UpdateOptions)
    assert found["Options"] == ["csv", "output", "replay", "help"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--masking", "half"), "error: --masking must be uniform, none, or a probability"),
        (("--learning-rate", "-1"), "error: --learning-rate must be more than 0, not -1.0"),
        (
            ("--threads", "2"),
            "error: --workers, --threads and --shared need a cluster: give its address with --ray",
        ),
        (("--text", "city", "--no-text", "city"), 'error: "city" is named by --text and by --no-text'),
        (("--order", "natural", "--orders", "2"), "error: several --orders are drawn at random: leave out --order"),
        (("--kind", "magic"), "error: --kind must be resmade"),
        (("--no-text", "nosuch"), 'error: --no-text names an unknown column "nosuch"'),
        (("--memory", "much"), "--memory must be a number and a unit, such as 2GB or 900MB, not 'much'"),
        (("--csv", "delimiter=;"), "Invalid value for '--csv': csv has no option 'delimiter': did you mean 'delim'?"),
        (("--csv", "header=maybe"), "Invalid value for '--csv': header must be True or False, not 'maybe'"),
        (("--csv", "header"), "'header' has no value: write header=VALUE"),
        (("--csv", "delim=;"), "error: --csv is for CSV files, and"),
        (("--epochs", "0"), "Invalid value for '--epochs'"),
    ],
)
def test_errors_name_flags(run: Run, people: Path, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    result = run("fit", people, "-o", tmp_path / "m", *arguments)
    assert result.code in (1, 2)
    assert message in result.err
    assert not list(tmp_path.iterdir())


def test_flags_of_the_text_network() -> None:
    assert with_flags(OptionError("{text_network.masking} or {max_length}")) == "--text-masking or --max-length"
