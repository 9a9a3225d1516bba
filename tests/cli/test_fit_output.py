"""What ``fit`` prints, and from where it takes its options: --json, --quiet, --progress json, --config; completion."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_cli import Run, run

__all__ = ["run"]
SMALL = "epochs = 1\nhidden = 16\nblocks = 1\nembedding = 8\nsummary = false\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "fit.toml"
    path.write_text(SMALL)
    return path


def test_the_summary_and_the_progress_as_json(run: Run, people: Path, tmp_path: Path, config: Path) -> None:
    config.write_text(f'{SMALL}exclude = ["city"]\nbudget = "5m"\nseed = 3\noutput = "{tmp_path / "m"}"\n')
    result = run("fit", people, "--config", config, "--seed", "4", "--json", "--progress", "json")
    assert result.code == 0, result.err
    summary = json.loads(result.out)
    assert summary["file"] == str(tmp_path / "m")
    assert summary["file_bytes"] == (tmp_path / "m").stat().st_size
    assert "city" not in [column["name"] for column in summary["columns"]]
    assert summary["training"]["fit"]["options"]["seed"] == 4  # the command line wins
    events = [json.loads(line) for line in result.err.splitlines()]
    assert {"stage", "progress", "message"} <= {event["event"] for event in events}
    trained = [event for event in events if event["event"] == "progress" and "loss" in event]
    assert trained[-1]["fraction"] == 1.0
    assert summary["warnings"] == [event["message"] for event in events if event["event"] == "warning"]


def test_quiet_prints_only_warnings(run: Run, tmp_path: Path, config: Path) -> None:
    (tmp_path / "rows.csv").write_text("n;price\n" + "".join(f"{row};{row},5\n" for row in range(300)))
    result = run("fit", tmp_path / "rows.csv", "-o", tmp_path / "m", "--config", config, "--epochs", 30, "--quiet")
    assert (result.code, result.out) == (0, "")
    assert result.err.splitlines() == [
        "\"price\" looks like numbers with a decimal comma, but is read as text: add --csv decimal_separator=','"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epoch = 3", "has an unknown option 'epoch': did you mean 'epochs'?"),
        ("zzz = 3", "has an unknown option 'zzz'; the options are "),
        ("epochs = =", "Invalid value (at line 1, column 10)"),
        ("epochs = 0", "Invalid value for '--epochs'"),
        ("epochs = [1]", "Invalid value for '--epochs'"),
        ("csv = {delimiter = ';'}", "--csv has no option 'delimiter': did you mean 'delim'?"),
        ("config = 'other.toml'", "has an unknown option 'config'"),
    ],
)
def test_a_wrong_config_is_one_line(
    run: Run, people: Path, tmp_path: Path, config: Path, text: str, message: str
) -> None:
    config.write_text(text)
    result = run("fit", people, "-o", tmp_path / "m", "--config", config)
    assert result.code in (1, 2)
    assert message in " ".join(result.err.split())


def test_a_missing_config(run: Run, people: Path, tmp_path: Path) -> None:
    result = run("fit", people, "-o", tmp_path / "m", "--config", tmp_path / "nosuch.toml")
    assert (result.code, "nosuch.toml" in result.err) == (2, True)


def test_the_shell_completes_options_of_a_command() -> None:
    environment = {"_COUNTLESS_COMPLETE": "bash_complete", "COMP_WORDS": "countless fit --max", "COMP_CWORD": "2"}
    command = [str(Path(sys.executable).with_name("countless"))]
    result = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert result.stdout.splitlines() == ["plain,--max-distinct", "plain,--max-length"]
