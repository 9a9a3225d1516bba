"""What a fit tells at its end: a warning for each network that was trained too little, with a command."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from countless.cli.model_files.longer_training import short_training, table_words
from countless.cli.terminal.display import CommandConsole
from countless.cli.terminal.fit_progress import FitView
from countless.data.columns.schema import Column, Schema
from countless.data.columns.strings.text import TextColumn
from countless.data.progress import ScanProgress


def fitted(epochs: float, text_epochs: float, strings: int = 7_000_000, length: int = 130) -> Any:
    """What is known of a fit of some columns and a text column, ``path``, of a minute each."""
    seen = round(text_epochs * strings)
    text = {"columns": ["path"], "epochs": text_epochs, "train_rows": strings, "rows_seen": seen, "seconds": 60.0}
    report = {"epochs": epochs, "seconds": 60.0, "text": text}
    schema = SimpleNamespace(coded=("a",), texts=(SimpleNamespace(name="path", length=length),))
    return SimpleNamespace(report=report, schema=schema)


def warnings(*facts: Any, **more: Any) -> list[str]:
    return short_training(fitted(*facts, **more), Path("files.countless"), ["files.parquet"])


def test_nothing_is_told_of_networks_that_were_trained_enough() -> None:
    assert warnings(20.0, 1.0, strings=1_000) == []
    assert warnings(3.0, 0.2) == []  # of seven million strings


def test_each_network_has_its_own_warning_with_a_command() -> None:
    columns, text = warnings(1.5, 0.01)
    assert columns.startswith("fewer than 3 passes over the table")
    assert columns.endswith("train longer: countless train files.countless files.parquet --budget 10m")
    assert text.startswith("the text of path was trained on 70,000 of 7,000,000 strings, too few")
    assert "countless train files.countless files.parquet --budget 10m" in text
    assert text.endswith("or fit it again with a --max-length below 130")


def test_text_alone_is_warned_about_even_if_the_columns_are_well() -> None:
    (text,) = warnings(20.0, 0.01, length=40)
    assert text.startswith("the text of path")
    assert "--max-length" not in text


def test_the_command_holds_no_password_and_has_the_workload() -> None:
    table = table_words("postgresql://ann:secret@db/shop", "sales.orders")
    (text,) = short_training(fitted(20.0, 0.01, length=40), Path("my m"), table, Path("asked.sql"))
    assert "secret" not in text
    assert "countless train 'my m' " in text
    assert "@db/shop::sales.orders" in text
    assert text.endswith(" --workload asked.sql")


def test_a_time_left_is_shown_only_if_it_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    view = FitView(CommandConsole(sys.stdout))
    view.stage("counting n-grams of path")
    view.reading(ScanProgress(0.0, None, None))
    assert "left" not in capsys.readouterr().out
    view.reading(ScanProgress(0.5, 1_000.0, 75.0))
    assert "50%  1,000 rows/s  1m15s left" in capsys.readouterr().out


def test_calibration_shows_progress_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    view = FitView(CommandConsole(sys.stdout))
    view.stage("calibrating")
    time.sleep(0.2)
    view.calibrating(50, 2_000)
    assert "50/2,000 queries  at most " in capsys.readouterr().out
    view = FitView(CommandConsole(sys.stdout), ends=time.monotonic())
    view.calibrating(38, 1_200)
    assert capsys.readouterr().out == "38/1,200 queries\n"


def test_all_columns_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    text = TextColumn("t", "VARCHAR", "abc", 100, False, 9)
    FitView(CommandConsole(sys.stdout)).table(Schema(240_000, (Column("a", "BIGINT", ("1",), False), text)))
    assert capsys.readouterr().out.startswith("240,000 rows, 2 columns, 1 of them text\n")
