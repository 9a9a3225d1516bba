"""Questions about one text column, kind by kind: a model beside a plain sample of rows and DuckDB's exact count.

.venv/bin/python benchmarks/text_kinds.py TABLE.parquet MODEL.countless COLUMN [--questions 84] [--seed 11]
    [--without-network] [--truths FILE] [--sample 100000] [--answers FILE] [-o results.json]

A question of each kind is drawn as ``countless evaluate --kinds`` draws it. Times are milliseconds of processor, all
threads together, with the table and the sample in DuckDB's memory; the exact count is timed for a few of each kind.
The result has no literals. ``--truths`` keeps the questions with their true counts for another run.

A percentile of 84 questions depends on which rows the one sample happened to have. So the result also has,
for each percentile, its median over many samples of that size (``usual_sample``), which are simulated from the true
counts, and in what share of them the sample was as far off as the model or further (``as_near``).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from countless.arrays import FloatArray
from countless.data.columns.types import quote_identifier
from countless.data.sources.source import Source
from countless.estimator.answers.estimate import q_error
from countless.estimator.estimator import Estimator
from countless.store import TEXT
from countless.workload import questions_by_kind
from countless_lab.measurement.script import script_parser
from countless_lab.measurement.timer import timed

TEXT_KINDS = (
    "LIKE 'x%'",
    "LIKE '%x'",
    "LIKE '%x%'",
    "ILIKE",
    "LIKE OR LIKE",
    "LIKE AND LIKE",
    "LIKE 'x%' AND LIKE '%y'",
    "NOT LIKE",
    "regular expression",
    "text function",
    "text equality",
    "LIKE and filters",
)
PERCENTILES = (50, 95, 99)
NEARER = 1.01  # the factor by which one q-error must be less than the other to count
TIMED_SCANS = 3  # exact counts of each kind that are timed
SIMULATED = 200  # samples
MANY_ROWS = 1_500  # true rows from which a question is common: 20 of 100,000 rows of the largest table


def main() -> None:
    options = _options()
    questions = _questions(options)
    model = Estimator.load(options.model)
    if options.without_network:
        model = _without_network(model)
    sample = Source.open(str(options.table)).sampled(options.sample, options.seed + 1)
    factor = model.rows / options.sample
    model.estimate(questions[0]["where"])  # loads the parser
    answers: list[dict[str, Any]] = []
    for index in np.random.default_rng(options.seed).permutation(len(questions)).tolist():
        question = questions[index]
        where, truth = question["where"], question["rows"]
        answer, ms = timed(partial(model.estimate, where))
        (hits,), sample_ms = timed(partial(sample.counts, [where]))
        answers.append(
            {
                **question,
                "estimate": answer.rows,
                "low": answer.low,
                "high": answer.high,
                "sampled": hits * factor,
                "hits": answer.hits,
                "walked": answer.forward_rows,
                "ms": ms,
                "sample_ms": sample_ms,
                "error": q_error(answer.rows, truth),
                "sample_error": q_error(hits * factor, truth),
            }
        )
    result: dict[str, Any] = {
        "table": options.table.name,
        "rows": model.rows,
        "model_bytes": options.model.stat().st_size,
        "sample": options.sample,
        "seed": options.seed,
        "network": not options.without_network,
    }
    draws = _Draws(model.rows, options.sample, options.seed)
    result["all"] = _summary(answers, draws)
    result["true rows >= 1,500"] = _summary([answer for answer in answers if answer["rows"] >= MANY_ROWS], draws)
    result["kinds"] = {
        kind: _summary([answer for answer in answers if answer["kind"] == kind], draws) for kind in TEXT_KINDS
    }
    if not options.no_scans:
        result["exact_ms"] = _scans(options, questions)
    _write(options, answers, result)


def _questions(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The questions with their true counts, from a file if there is one."""
    if options.truths is not None and options.truths.exists():
        questions: list[dict[str, Any]] = json.loads(options.truths.read_text(encoding="utf-8"))
        return questions
    source = Source.open(str(options.table))
    column = quote_identifier(options.column)
    drawn = [pair for pair in questions_by_kind(source, 4 * options.questions, options.seed) if column in pair[0]]
    selected: list[tuple[str, str]] = []
    for kind in TEXT_KINDS:
        selected += [pair for pair in drawn if pair[1] == kind][: options.questions]
    truths = source.counts([where for where, _ in selected], batch=32)
    questions = [{"where": w, "kind": k, "rows": rows} for (w, k), rows in zip(selected, truths, strict=True)]
    if options.truths is not None:
        options.truths.write_text(json.dumps(questions), encoding="utf-8")
    return questions


def _without_network(model: Estimator) -> Estimator:
    """The same model, as if no network had been trained on its text."""
    sections = model._sections
    networks = {name: network for name, network in sections.networks.items() if name != TEXT}
    return Estimator(model.schema, replace(sections, networks=networks), model.calibration, model.report)


@dataclass(frozen=True)
class _Draws:
    """Random samples of ``size`` of a table's ``rows``."""

    rows: int
    size: int
    seed: int

    def percentiles(self, truths: Sequence[int]) -> FloatArray:
        """The percentiles of the q-errors in each sample, (samples, percentiles); questions are drawn one by one."""
        rng, true = np.random.default_rng(self.seed), np.array(truths)
        hits = rng.hypergeometric(true, self.rows - true, self.size, size=(SIMULATED, len(true)))
        logs = np.log(np.maximum(hits * (self.rows / self.size), 1.0)) - np.log(np.maximum(true, 1))
        percentiles: FloatArray = np.percentile(np.exp(np.abs(logs)), PERCENTILES, axis=1).T
        return percentiles


def _summary(answers: list[dict[str, Any]], draws: _Draws) -> dict[str, Any]:
    if not answers:
        return {"questions": 0}
    inside = [answer["low"] <= answer["rows"] <= answer["high"] for answer in answers]
    widths = [max(answer["high"], 1.0) / max(answer["low"], 1.0) for answer in answers]
    simulated = draws.percentiles([answer["rows"] for answer in answers])
    model_errors = np.percentile([answer["error"] for answer in answers], PERCENTILES)
    as_near = np.mean(simulated >= model_errors / NEARER, axis=0).tolist()
    return {
        "questions": len(answers),
        "q_error": _percentiles([answer["error"] for answer in answers]),
        "sample_q_error": _percentiles([answer["sample_error"] for answer in answers]),
        "usual_sample": _named(np.median(simulated, axis=0).tolist()),
        "as_near": _named(as_near),
        "coverage": round(float(np.mean(inside)), 3),
        "width": round(float(np.median(widths)), 2),
        "ms": _percentiles([answer["ms"] for answer in answers]),
        "sample_ms": _percentiles([answer["sample_ms"] for answer in answers]),
        "nearer": sum(answer["error"] * NEARER < answer["sample_error"] for answer in answers),
        "sample_nearer": sum(answer["sample_error"] * NEARER < answer["error"] for answer in answers),
        "network_asked": sum(answer["walked"] > 0 for answer in answers),
    }


def _percentiles(values: list[float]) -> dict[str, float]:
    return _named(np.percentile(values, PERCENTILES).tolist())


def _named(numbers: Sequence[float]) -> dict[str, float]:
    return {f"p{percent}": float(f"{number:.4g}") for percent, number in zip(PERCENTILES, numbers, strict=True)}


def _scans(options: argparse.Namespace, questions: list[dict[str, Any]]) -> dict[str, float]:
    """The median time of an exact count of each kind, with the table in memory and one thread."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute(f"CREATE TABLE t AS FROM read_parquet('{options.table}')")
    medians = {}
    for kind in TEXT_KINDS:
        clauses = [question["where"] for question in questions if question["kind"] == kind][:TIMED_SCANS]
        times = [timed(partial(connection.execute, f"SELECT count(*) FROM t WHERE {where}")) for where in clauses]
        if times:
            medians[kind] = round(float(np.median([ms for _, ms in times])), 1)
    return medians


def _write(options: argparse.Namespace, answers: list[dict[str, Any]], result: dict[str, Any]) -> None:
    if options.answers is not None:
        options.answers.write_text(json.dumps(answers, indent=0), encoding="utf-8")
    text = json.dumps(result, indent=1)
    if options.output is not None:
        options.output.write_text(text + "\n", encoding="utf-8")
    for kind, summary in {
        "all": result["all"],
        "true rows >= 1,500": result["true rows >= 1,500"],
        **result["kinds"],
    }.items():
        if summary["questions"]:
            q, s, ms = summary["q_error"], summary["sample_q_error"], summary["ms"]
            errors = " / ".join(f"{q[percent]:.4g}" for percent in q)
            theirs = " / ".join(f"{s[percent]:.4g}" for percent in s)
            usual = " / ".join(f"{number:.4g}" for number in summary["usual_sample"].values())
            usual += f" ({' / '.join(f'{share:.0%}' for share in summary['as_near'].values())})"
            sys.stdout.write(
                f"{kind:24} {summary['questions']:5}  {errors}   {summary['coverage']:.0%} {summary['width']:.2f}"
                f"   sample {theirs}   usual {usual}"
                f"   {summary['nearer']} : {summary['sample_nearer']}   ms {ms['p50']:.2f} / {ms['p99']:.4g}"
                f"  sample {summary['sample_ms']['p50']:.2f} exact {result.get('exact_ms', {}).get(kind, 0)}"
                f"  walks {summary['network_asked']}\n"
            )


def _options() -> argparse.Namespace:
    parser = script_parser(__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("column")
    parser.add_argument("--questions", type=int, default=84, help="of each kind")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--sample", type=int, default=100_000, help="rows of the plain sample")
    parser.add_argument("--without-network", action="store_true", help="as if the text column had no network")
    parser.add_argument("--no-scans", action="store_true", help="do not time the exact counts")
    parser.add_argument("--truths", type=Path)
    parser.add_argument("--answers", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
