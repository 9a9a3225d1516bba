"""Questions about columns and text together, beside the truth and beside products of the two.

.venv/bin/python benchmarks/mixed.py TABLE.parquet MODEL.countless [--queries 300] [--seeds 5] [--contexts 16] [-o FILE]

Every query takes 1 to 3 filters on columns and a pattern from one random row, so that a row at least matches. There are
two products: of the *true* shares of the two parts, which is the best that independence can do, and of the model's.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from countless.data.sources.source import Source
from countless.engine.fusion import text_in_context as mixed
from countless.estimator.answers.estimate import q_error
from countless.estimator.estimator import Estimator
from countless.workload import both_clauses
from countless_lab.measurement.script import percentiles, script_parser, write_result


def main() -> None:
    options = _options()
    mixed.CONTEXTS = options.contexts
    model, source = Estimator.load(options.model), Source.open(str(options.table))
    questions = [
        query for seed in range(options.seeds) for query in both_clauses(model.schema, source, options.queries, seed)
    ]
    parts = [_split(model, where) for where, _ in questions]
    truths = source.counts([where for where, _ in questions])
    columns, texts = source.counts([part[0] for part in parts]), source.counts([part[1] for part in parts])
    answers, times = [], []
    for where, _ in questions:
        started = time.perf_counter()
        answers.append(model.estimate(where))
        times.append((time.perf_counter() - started) * 1e3)
    inside = [answer.low <= truth <= answer.high for answer, truth in zip(answers, truths, strict=True)]
    products = [columns_part * text_part / model.rows for columns_part, text_part in zip(columns, texts, strict=True)]
    products_of_model = [
        model.estimate(columns_part).rows * model.estimate(text_part).rows / model.rows
        for columns_part, text_part in parts
    ]
    contenders = {
        "model": [answer.rows for answer in answers],
        "product_of_true_shares": products,
        "product_of_the_models_shares": products_of_model,
    }
    kinds = [kind for _, kind in questions]
    result: dict[str, Any] = {
        "table": options.table.name,
        "rows": model.rows,
        "queries": len(questions),
        "seeds": options.seeds,
        "contexts": options.contexts,
        "calibrated": bool(model.calibration.queries),
        "true_rows": {"p50": float(np.median(truths)), "p5": float(np.percentile(truths, 5))},
        "latency_ms": percentiles(times, (50, 95), 2),
        "coverage": round(float(np.mean(inside)), 3) if model.calibration.queries else None,
        "q_error": {name: _q_errors(rows, truths) for name, rows in contenders.items()},
        "by_kind": {
            kind: {
                name: _q_errors([r for r, k in zip(rows, kinds, strict=True) if k == kind], _of(truths, kinds, kind))
                for name, rows in contenders.items()
            }
            for kind in sorted(set(kinds))
        },
        "worst": [
            {"where": where, "rows": truth, "estimate": round(rows, 2), "q_error": round(error, 2)}
            for error, where, truth, rows in sorted(
                (
                    (q_error(answer.rows, truth), where, truth, answer.rows)
                    for answer, (where, _), truth in zip(answers, questions, truths, strict=True)
                ),
                reverse=True,
            )[:5]
        ],
    }
    write_result(result, options.output)


def _split(model: Estimator, where: str) -> tuple[str, str]:
    """The filters on columns and the pattern, which comes last."""
    quoted = min(where.index(f'"{text.name}"') for text in model.schema.texts if f'"{text.name}"' in where)
    columns, text = where[:quoted], where[quoted:]
    return columns.removesuffix(" AND "), text


def _of(rows: Sequence[int], kinds: Sequence[str], kind: str) -> list[int]:
    return [truth for truth, question_kind in zip(rows, kinds, strict=True) if question_kind == kind]


def _q_errors(rows: Sequence[float], truths: Sequence[int]) -> dict[str, float]:
    errors = [q_error(estimate, truth) for estimate, truth in zip(rows, truths, strict=True)]
    return dict(percentiles(errors))


def _options() -> Any:
    parser = script_parser(__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--queries", type=int, default=300, help="of each seed")
    parser.add_argument("--seeds", type=int, default=5, help="from 0 on")
    parser.add_argument("--contexts", type=int, default=mixed.CONTEXTS, help="rows in which text is read, at most")
    parser.add_argument("-o", "--output", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
