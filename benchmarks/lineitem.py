"""A table larger than memory: TPC-H's lineitem, fitted within --memory.

.venv/bin/python benchmarks/lineitem.py --work FOLDER [--scale 2] [--memory 2GB] [--budget 10m] [-o FOLDER]

The table is made by tpchgen-cli (pip install 'countless[lab]'); scale factor 2 has 12 million rows. Measured are the
rows a second of encoding, the peak memory of a whole fit, the training rate from files beside the rate in memory, of
the same rows, in turn; and the q-errors of random queries about columns and of patterns about l_comment. Each step is a
process of its own. What is done stays in the folder of --work, and is not done again; the results are lineitem.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from countless import fit, load
from countless.cli.parameters.options import Amount, Duration
from countless.cli.terminal import display as show
from countless.cli.terminal.fit_progress import FitView
from countless.data.encoding.available_memory import peak_memory
from countless.data.encoding.blocks import blocks
from countless.data.encoding.code_files import CodesFolder
from countless.data.encoding.memory_limit import Memory
from countless.data.encoding.out_of_core import mapped_table
from countless.data.encoding.table import Table
from countless.evaluation.evaluate import evaluate, random_workload
from countless.spec import ModelSpec
from countless.train.loop import train
from countless.train.options import TrainOptions
from countless.train.tasks.columns import ColumnsTask
from countless_lab.measurement.machine import machine_facts

SEED = 5
ROUNDS = 4  # of training from files and in memory, in turn


def tell(line: str) -> None:
    sys.stderr.write(line + "\n")


class Timed(FitView):
    """Shows the fit, and keeps how long each stage takes."""

    def __init__(self, console: show.CommandConsole) -> None:
        super().__init__(console)
        self.started: list[tuple[str, float]] = []

    def stage(self, name: str) -> None:
        self.started.append((name, time.monotonic()))
        super().stage(name)

    def seconds(self) -> dict[str, float]:
        ends = [*(start for _, start in self.started[1:]), time.monotonic()]
        return {name: round(end - start, 2) for (name, start), end in zip(self.started, ends, strict=True)}


def fitted(settings: argparse.Namespace) -> dict[str, Any]:
    """Fit the table within the memory, and keep the model and the codes."""
    view = Timed(show.progress())
    with view:
        estimator = fit(
            table_of(settings),
            memory=settings.memory,
            budget=settings.budget,
            codes=codes_of(settings),
            seed=SEED,
            listener=view,
        )
        seconds = view.seconds()
    estimator.save(settings.work / "lineitem.countless")
    encoding = seconds["encoding rows"] + seconds["shuffling rows"]
    return {
        "rows": estimator.rows,
        "seconds": seconds,
        "encoded_rows_per_second": round(estimator.rows / encoding),
        "peak_bytes": peak_memory(),
        "codes_bytes": sum(file.stat().st_size for file in codes_of(settings).iterdir()),
        "epochs": estimator.report["epochs"],
        "training_rows_per_second": estimator.report["rows_per_second"],
        "text_rows_per_second": estimator.report.get("text", {}).get("rows_per_second"),
    }


def rates(settings: argparse.Namespace) -> dict[str, Any]:
    """The training rate from files and in memory, of the same rows."""
    mapped = mapped_table(CodesFolder.open(codes_of(settings)), Memory(settings.memory))
    matrix = np.concatenate(list(blocks(mapped.matrix())))
    schema = mapped.schema
    spec = ModelSpec(schema.sizes, 512, 2, 32, groups=schema.groups)
    options = TrainOptions(budget=settings.round, seed=SEED)
    found: dict[str, list[float]] = {"mapped": [], "in memory": []}
    for round_ in range(ROUNDS):
        for name, window in (("mapped", mapped.window), ("in memory", None)):
            codes = mapped.matrix() if window else matrix
            report = train(ColumnsTask(codes, spec, options, window=window), options).report
            found[name].append(report["rows_per_second"])
            tell(f"round {round_ + 1} of {ROUNDS}, {name}: {report['rows_per_second']:,} rows/s")
    median = {name: float(np.median(values)) for name, values in found.items()}
    return {"rows_per_second": found, "ratio": round(median["mapped"] / median["in memory"], 3)}


def in_memory(settings: argparse.Namespace) -> dict[str, Any]:
    """What encoding takes if all is kept in memory."""
    view = Timed(show.progress())
    with view:
        table = Table.encode(table_of(settings), events=view)
        seconds = view.seconds()
    rate = round(table.rows / seconds["encoding rows"])
    return {"seconds": seconds, "encoded_rows_per_second": rate, "peak_bytes": peak_memory()}


def q_errors(settings: argparse.Namespace) -> dict[str, Any]:
    """Random queries about columns, and about text, against DuckDB."""
    estimator = load(settings.work / "lineitem.countless")
    found = {}
    for name, patterns in (("columns", None), ("text", "mix"), ("both", "both")):
        tell(f"counting {settings.queries} queries about {name}")
        queries = random_workload(estimator.schema, table_of(settings), settings.queries, SEED, patterns)
        found[name] = evaluate(estimator.estimate, queries, "particles").to_json()
    return found


STEPS = {"fit": fitted, "in memory": in_memory, "rates": rates, "q_errors": q_errors}


def table_of(settings: argparse.Namespace) -> Path:
    folder: Path = settings.work
    return folder / f"scale-{settings.scale:g}" / "lineitem.parquet"


def codes_of(settings: argparse.Namespace) -> Path:
    folder: Path = settings.work
    return folder / "lineitem.codes"


def generate(settings: argparse.Namespace) -> None:
    """Make the table, if it is not there."""
    table = table_of(settings)
    if table.exists():
        return
    tell(f"making {table}")
    generator = Path(sys.executable).with_name("tpchgen-cli")
    partial = table.parent.with_name(table.parent.name + ".partial")
    arguments = ["parquet", "-s", f"{settings.scale:g}", "--tables=lineitem", f"--output-dir={partial}"]
    subprocess.run([generator, *arguments], check=True, stdout=sys.stderr)
    partial.rename(table.parent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--scale", type=float, default=2.0)
    parser.add_argument("--memory", type=lambda text: Amount().convert(text, None, None), default=2 * 10**9)
    parser.add_argument("--budget", type=lambda text: Duration().convert(text, None, None), default=600.0)
    parser.add_argument("--round", type=lambda text: Duration().convert(text, None, None), default=30.0)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("-o", "--out", type=Path, default=Path("docs/results/scaling"))
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    settings = parser.parse_args()
    if settings.step:
        json.dump(STEPS[settings.step](settings), sys.stdout)
        return
    settings.work.mkdir(parents=True, exist_ok=True)
    generate(settings)
    results = {name: kept(name, settings) for name in STEPS}
    chosen = {name: getattr(settings, name) for name in ("scale", "memory", "budget", "round", "queries")}
    settings.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"settings": chosen, "machine": machine_facts(), **results}, indent=1)
    (settings.out / "lineitem.json").write_text(text + "\n")
    tell(f"wrote {settings.out / 'lineitem.json'}")


def kept(name: str, settings: argparse.Namespace) -> Any:
    """What a step found, now in a process of its own or when it was run before with these settings."""
    path = settings.work / f"{name.replace(' ', '-')}.json"
    used = [settings.scale, settings.memory, settings.budget, settings.round, settings.queries]
    if path.exists():
        record = json.loads(path.read_text())
        if record["settings"] == used:
            return record["result"]
    tell(f"--- {name}")
    done = subprocess.run(
        [sys.executable, __file__, *sys.argv[1:], "--step", name], check=True, stdout=subprocess.PIPE, text=True
    )
    result = json.loads(done.stdout)
    path.write_text(json.dumps({"settings": used, "result": result}))
    return result


if __name__ == "__main__":
    main()
