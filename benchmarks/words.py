"""Words anywhere in a text, two or three of them: thinning with hints of what is still to be read, and without.

.venv/bin/python benchmarks/words.py TABLE.parquet MODEL.countless COLUMN [--questions 100] [--seed 5] [-o results.json]

The words of a question come from one random string, so that some row has them. q-errors are told as p50, p90, p95 and
the largest; the truth is DuckDB's count.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any
from unittest.mock import PropertyMock, patch

import numpy as np

from countless.data.columns.types import quote_identifier
from countless.data.sources.source import Source
from countless.engine.text.automaton_steps import SymbolAutomaton
from countless.estimator.answers.estimate import q_error
from countless.estimator.estimator import Estimator

WORD = re.compile(r"[a-z]{4,}")
PLACES = {"p50": 50, "p90": 90, "p95": 95, "max": 100}
SHAPES = {
    "%a% AND %b%": "{c} LIKE '%{0}%' AND {c} LIKE '%{1}%'",
    "%a% AND NOT %b%": "{c} LIKE '%{0}%' AND {c} NOT LIKE '%{1}%'",
    "%a%b%": "{c} LIKE '%{0}%{1}%'",
    "three words": "{c} LIKE '%{0}%' AND {c} LIKE '%{1}%' AND {c} LIKE '%{2}%'",
}


def main() -> None:
    options = _options()
    model, source = Estimator.load(options.model), Source.open(str(options.table))
    rng = np.random.default_rng(options.seed)
    column = quote_identifier(options.column)
    drawn = source.sampled(4 * options.questions, options.seed)
    words = [found for (text,) in drawn.rows(f"SELECT {column} FROM {drawn.table}") if len(found := _words(text)) >= 3][
        : options.questions
    ]
    result: dict[str, Any] = {"table": options.table.name, "questions": len(words), "seed": options.seed}
    for name, shape in SHAPES.items():
        clauses = [shape.format(*_chosen(each, rng), c=column) for each in words]
        truths = source.counts(clauses)
        result[name] = {
            "without hints": _errors(model, clauses, truths, False),
            "with": _errors(model, clauses, truths),
        }
        sys.stderr.write(f"{name}: {json.dumps(result[name])}\n")
    text = json.dumps(result, indent=1)
    if options.output is not None:
        options.output.write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(text + "\n")


def _words(text: str | None) -> list[str]:
    """The different words of a string, in their order."""
    return list(dict.fromkeys(WORD.findall(text or "")))


def _chosen(words: list[str], rng: np.random.Generator) -> list[str]:
    """Three of them, in their order."""
    return [words[place] for place in sorted(rng.choice(len(words), 3, replace=False))]


def _errors(model: Estimator, clauses: list[str], truths: list[int], hinted: bool = True) -> dict[str, float]:
    """Quantiles of the q-errors."""
    if hinted:
        answers = model.estimate_many(clauses)
    else:
        with patch.object(SymbolAutomaton, "hints", new_callable=PropertyMock, return_value=_Plain()):
            answers = model.estimate_many(clauses)
    found = [q_error(answer.rows, truth) for answer, truth in zip(answers, truths, strict=True)]
    return {name: round(float(np.percentile(found, place)), 2) for name, place in PLACES.items()}


class _Plain:
    """Hints that say nothing."""

    def __getitem__(self, states: Any) -> Any:
        return np.ones(len(states))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("column")
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("-o", "--output", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
