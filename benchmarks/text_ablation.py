"""What a network of text adds at equal bytes, by kind of question.

    .venv/bin/python benchmarks/text_ablation.py TABLE.parquet COLUMN FOLDER [--budget 75] [--questions 40] [-o FILE]

Three models of the table are fitted, with a budget of processor seconds each:

- ``plain``: default options, so counts of substrings and evidence rows;
- ``network``: with ``--text-model``;
- ``counts``: without a network, and as many more bytes for counts of substrings as the network takes.

Each is asked the questions of ``benchmarks/text_kinds.py``. FOLDER keeps models, questions and answers; a step that has
left its file there is not done again, so a stopped run goes on with the same command. The result has no literals.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

from countless.estimator.estimator import Estimator
from countless.estimator.fitting.fit import fit
from countless_lab.measurement.script import script_parser, write_result

PLAIN, NETWORK, COUNTS = "plain", "network", "counts"
KINDS_SCRIPT = Path(__file__).with_name("text_kinds.py")


def main() -> None:
    options = _options()
    options.folder.mkdir(parents=True, exist_ok=True)
    answered = {name: _answers(options, _model(options, name)) for name in (PLAIN, NETWORK, COUNTS)}
    result = {
        "table": options.table.name,
        "budget": options.budget,
        "models": {name: _contents(_path(options, name)) for name in answered},
        "answers": answered,
    }
    write_result(result, options.output)


def _path(options: argparse.Namespace, name: str) -> Path:
    path: Path = options.folder / f"{options.table.stem}-{name}.countless"
    return path


def _model(options: argparse.Namespace, name: str) -> Path:
    """The file of a model, which is fitted unless it is there."""
    path = _path(options, name)
    if path.exists():
        return path
    keywords: dict[str, Any] = {}
    if name == NETWORK:
        keywords["text_model"] = True
    if name == COUNTS:
        plain, network = (_contents(_path(options, model_name)) for model_name in (PLAIN, NETWORK))
        keywords["text_counts"] = plain["counts_bytes"] + network["bytes"] - plain["bytes"]
    unfinished = path.with_suffix(".unfinished")
    model = fit(options.table, budget=options.budget, clock="processor", columns=options.columns, **keywords)
    model.save(unfinished)
    os.replace(unfinished, path)
    return path


def _contents(path: Path) -> dict[str, Any]:
    """What a file holds, in bytes, and for how long its network of text was trained."""
    info = Estimator.load(path).info()
    with zipfile.ZipFile(path) as archive:
        sections = {entry.filename: entry.compress_size for entry in archive.infolist()}
    training = info["training"]
    text = training.get("text", training if info["text_model"] and not info["columns"] else {})
    return {
        "bytes": path.stat().st_size,
        "counts_bytes": sum(size for name, size in sections.items() if "substrings" in name),
        "evidence_bytes": info["evidence"]["bytes"],
        "threshold": [text_column["summary"]["threshold"] for text_column in info["texts"]],
        "text_training": {key: text[key] for key in ("seconds", "epochs", "masked_bits") if key in text},
    }


def _answers(options: argparse.Namespace, model: Path) -> dict[str, Any]:
    """The summary by kind of a model's answers, which are asked for unless they are there."""
    path = model.with_suffix(".json")
    if not path.exists():
        truths = options.folder / f"{options.table.stem}-truths.json"
        unfinished = model.with_suffix(".json.unfinished")
        command = [sys.executable, KINDS_SCRIPT, options.table, model, options.column, "--no-scans"]
        command += ["--questions", str(options.questions), "--seed", str(options.seed), "--truths", truths]
        subprocess.run([*command, "-o", unfinished], check=True)
        os.replace(unfinished, path)
    answers: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return {key: answers[key] for key in ("all", "true rows >= 1,500", "kinds")}


def _options() -> argparse.Namespace:
    parser = script_parser(__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("column")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--budget", type=float, default=75.0, help="seconds of processor for each fit")
    parser.add_argument("--columns", nargs="*", help="columns to learn (all)")
    parser.add_argument("--questions", type=int, default=40, help="of each kind")
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("-o", "--output", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
