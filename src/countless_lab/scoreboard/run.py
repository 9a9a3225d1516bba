"""A run of the scoreboard: every step of every table, each kept when it is done."""

from __future__ import annotations

import hashlib
import inspect
import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from countless import workload
from countless.data.output import json_bytes, make_folder, write_bytes
from countless.errors import CountlessError
from countless.workload import calendar, patterns, profile, questions, text
from countless.workload import load as load_queries
from countless_lab.runner.run_job import run_job
from countless_lab.scoreboard import workloads
from countless_lab.scoreboard.answers import Answers, figures, nearer, ratio_of_medians, read_answers
from countless_lab.scoreboard.history import Run, add_run, code_fingerprint, origin
from countless_lab.scoreboard.plan import Scale, Step, steps_of
from countless_lab.scoreboard.tables import BenchmarkTable

MODULE = "countless_lab.scoreboard.steps"
GENERATORS = (workloads, questions, patterns, calendar, profile, text, workload.columns)  # of the questions
OWN = "countless"


class Watch:
    """Hears how a run goes on; override what you want to show."""

    def step(self, step: Step, done: int, total: int, seconds_left: float) -> None:
        """A step begins."""

    def finished(self, step: Step, facts: dict[str, Any], seconds: float | None) -> None:
        """A step is done; it took so long, or nothing because it was kept from an earlier run."""


@dataclass(frozen=True)
class Workshop:
    """Where a run keeps what it has done: tables and questions by themselves, models and answers by code."""

    folder: Path
    data: Path
    scale: Scale

    def run(self, tables: Sequence[BenchmarkTable], results: Path, watch: Watch) -> None:
        """All steps that are not done yet. The results of a table are written as soon as its last step is done."""
        steps = steps_of(tables, self.scale)
        expected = [step.expected_seconds(self.scale) for step in steps]
        found: dict[tuple[str, str, int | None], dict[str, Any]] = {}
        for number, step in enumerate(steps):
            watch.step(step, number, len(steps), sum(expected[number:]))
            started = time.monotonic()
            kept = self._kept(step)
            if kept is None:
                facts = self._do(step, found)
                write_bytes(self._file(step), json_bytes(facts))
                watch.finished(step, facts, time.monotonic() - started)
            else:
                facts = kept
                watch.finished(step, facts, None)
            found[step.table.name, step.name, step.seed] = facts
            if number + 1 == len(steps) or steps[number + 1].table != step.table:
                add_run(results, step.table.name, self.scale.name, self._summary(step.table, found))

    def _do(self, step: Step, found: dict[tuple[str, str, int | None], dict[str, Any]]) -> dict[str, Any]:
        table, scale = self._table(step.table), self.scale
        folder = str(self._questions_folder(step.table))
        match step.name:
            case "questions":
                return run_job(
                    "questions",
                    module=MODULE,
                    table=str(table),
                    paper=scale.paper_questions,
                    per_kind=scale.questions_per_kind,
                    folder=folder,
                )
            case "fit":
                model = self._model(step)
                return run_job(
                    "fit", module=MODULE, table=str(table), model=str(model), budget=scale.budget, seed=step.seed
                )
            case "rate":
                return _or_failed("rate", table=str(table), seconds=scale.rate_seconds)
            case "ask":
                if "failed" in found[step.table.name, "fit", step.seed]:
                    return {"failed": "there is no model"}
                return _or_failed(
                    "ask",
                    one_thread=True,
                    model=str(self._model(step)),
                    folder=folder,
                    answers=str(self._answers(step)),
                    seconds=scale.seconds,
                )
            case _:
                return run_job(
                    "oppose",
                    module=MODULE,
                    one_thread=True,
                    table=str(table),
                    folder=folder,
                    answers=str(self._answers(step)),
                    seconds=scale.opponent_seconds,
                    model_bytes=found[step.table.name, "ask", 0].get("bytes"),
                )

    def _table(self, table: BenchmarkTable) -> Path:
        """The table as it is measured, made when it is first needed."""
        source = table.path(self.data)
        assert source is not None
        path = self._folder(table) / "table.parquet"
        wanted = [n for n in (table.rows, self.scale.rows) if n is not None]
        settings = {"exclude": table.exclude, "rows": min(wanted, default=None), "bytes": source.stat().st_size}
        facts = path.with_suffix(".json")
        if not facts.is_file() or json.loads(facts.read_text(encoding="utf-8"))["settings"] != _plain(settings):
            found = run_job(
                "prepare",
                module=MODULE,
                source=str(source),
                exclude=table.exclude,
                rows=settings["rows"],
                table=str(path),
            )
            shutil.rmtree(self._questions_folder(table), ignore_errors=True)
            write_bytes(facts, json_bytes({**found, "settings": settings}))
        return path

    def _summary(self, table: BenchmarkTable, found: dict[tuple[str, str, int | None], dict[str, Any]]) -> Run:
        """Every figure of a table."""
        facts = json.loads((self._folder(table) / "table.json").read_text(encoding="utf-8"))
        folder = self._questions_folder(table)
        queries = {name: load_queries(folder / f"{name}.jsonl") for name in (workloads.PAPER, workloads.PEOPLE)}
        opponents = read_answers(self._answers(Step("oppose", table)))
        fits, first = [], None
        for seed in range(self.scale.seeds):
            fit, asked = found[table.name, "fit", seed], found[table.name, "ask", seed]
            fits.append({"seed": seed, **fit, **({"ask_failed": asked["failed"]} if "failed" in asked else asked)})
            if "failed" not in fit and "failed" not in asked:
                own = {
                    name: answers[OWN]
                    for name, answers in read_answers(self._answers(Step("ask", table, seed))).items()
                }
                first = first or own
                fits[-1] |= {name: figures(answers, queries[name]) for name, answers in own.items()}
        return {
            **origin(),
            "scale": self.scale.to_json(),
            "table": {name: facts[name] for name in ("rows", "columns", "parquet_bytes")},
            "fits": fits,
            "rate": found[table.name, "rate", None],
            "opponents": {
                **found[table.name, "oppose", None],
                **{
                    name: {
                        method: {
                            **figures(answers, queries[name]),
                            **({} if first is None else _compared(first[name], answers, queries[name])),
                        }
                        for method, answers in methods.items()
                    }
                    for name, methods in opponents.items()
                },
            },
        }

    def _kept(self, step: Step) -> dict[str, Any] | None:
        """What a step found earlier, if what it left is still there. A failure is tried again."""
        path = self._file(step)
        if not path.is_file():
            return None
        facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        left = {"fit": self._model(step), "ask": self._answers(step), "oppose": self._answers(step)}.get(step.name)
        return None if "failed" in facts or (left is not None and not left.is_file()) else facts

    def _folder(self, table: BenchmarkTable) -> Path:
        cut = "" if self.scale.rows is None else f"-{self.scale.rows}"
        folder = self.folder / f"{table.name}{cut}"
        make_folder(folder)
        return folder

    def _questions_folder(self, table: BenchmarkTable) -> Path:
        sources = "".join(inspect.getsource(module) for module in GENERATORS)
        sizes = f"{self.scale.paper_questions}-{self.scale.questions_per_kind}"
        folder = self._folder(table)
        name = f"questions-{hashlib.blake2b(sources.encode(), digest_size=4).hexdigest()}-{sizes}"
        make_folder(folder / name)
        return folder / name

    def _coded(self, table: BenchmarkTable) -> Path:
        """The folder of what depends on the product's code."""
        folder = self._folder(table)
        name = f"{self.scale.name}-{self.scale.budget:g}s-{code_fingerprint()}"
        make_folder(folder / name)
        return folder / name

    def _file(self, step: Step) -> Path:
        if step.name == "questions":
            return self._questions_folder(step.table) / "done.json"
        seed = "" if step.seed is None else f"-{step.seed}"
        asked = "" if step.name in ("fit", "rate") else f"-{self._questions_folder(step.table).name}"
        return self._coded(step.table) / f"{step.name}{seed}{asked}.json"

    def _model(self, step: Step) -> Path:
        return self._coded(step.table) / f"model-{step.seed}.countless"

    def _answers(self, step: Step) -> Path:
        path = self._file(step)
        return path.with_name(f"answers-{path.name}")


def _or_failed(name: str, one_thread: bool = False, **arguments: Any) -> dict[str, Any]:
    """What a step finds, or its error: one that fails leaves the others as they are."""
    try:
        return run_job(name, module=MODULE, one_thread=one_thread, **arguments)
    except CountlessError as error:
        return {"failed": str(error)}


def _compared(own: Answers, other: Answers, queries: Sequence[workload.Query]) -> dict[str, Any]:
    """How the model stands beside an opponent."""
    return {"time_ratio": ratio_of_medians(other, own), "nearer": nearer(own, other, queries)}


def _plain(settings: dict[str, Any]) -> Any:
    return json.loads(json.dumps(settings))
