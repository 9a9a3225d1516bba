"""Results of the paper's cells that nobody measured, but that look like it."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from countless_lab.paper.cells import Cell, CompletionSet, Data, ModelWithAdditions, QuestionSet, TrainedModel
from countless_lab.paper.exhibits import EXHIBITS
from countless_lab.paper.scale import SCALES
from countless_lab.paper.study import Study

SMALL = replace(SCALES["small"], queries=200, text_queries=60)
CENSUS = Data("census_income", "data/census_income.parquet", 299_285, ("instance_weight",))
EV = Data("ev_registrations", "data/ev_registrations.parquet", 181_458)
COVTYPE = Data("covtype", "data/covtype.parquet", 300_000)
URLS = Data("news_urls", "data/news_urls.parquet", 370_985, text=True)

VARIANCE = {  # how wide the errors of a method are spread with 100 samples
    "naive": 2.2,
    "progressive": 1.9,
    "multi-order": 1.3,
    "skipping": 0.6,
    "multi-order+skipping": 0.5,
    "particles": 0.35,
}
SHARE = {"skipping": 0.2, "multi-order+skipping": 0.2, "particles": 0.15}  # of the positions visited


class Pretended:
    """Where results are that ``make`` makes; those of cells that ``known`` does not want are absent."""

    def __init__(self, known: Callable[[Cell], bool] = lambda cell: True) -> None:
        self.known = known

    def result(self, cell: Any, /) -> dict[str, Any] | None:
        return pretend(cell) if self.known(cell) else None


class Given:
    """Where those results are that are given, by the cells' names."""

    def __init__(self, results: dict[str, dict[str, Any]]) -> None:
        self.results = results

    def result(self, cell: Any, /) -> dict[str, Any] | None:
        return self.results.get(cell.name)


def answers(*errors: float, ms: float = 1.0, forward_rows: float = 100.0) -> dict[str, Any]:
    """The result of an AnswerSet cell."""
    return {"q_errors": list(errors), "ms": [ms] * len(errors), "forward_rows": forward_rows}


def study(data: Data = CENSUS, **changes: Any) -> Study:
    """The experiments on ``data`` at the small scale, or one that differs from it."""
    return Study(data, replace(SMALL, **changes))


def facts(name: str, *tables: Data, known: Callable[[Cell], bool] = lambda cell: True) -> list[dict[str, Any]]:
    """What an exhibit gathers of fabricated results."""
    gathered = [EXHIBITS[name].gather(study(table), Pretended(known)) for table in tables]
    return [one for one in gathered if one is not None]


def pretend(cell: Cell) -> dict[str, Any]:
    """A plausible result, the same for the same cell."""
    random = np.random.default_rng(zlib.crc32(cell.name.encode()))
    hard = {"ev_registrations": 1.5, "news_urls": 1.4, "covtype": 0.9}.get(_data(cell).name, 1.0)
    if isinstance(cell, QuestionSet):
        widest = {"ev_registrations": 11_060, "covtype": 7_000}.get(cell.data.name, 1_675)
        return {
            "queries": cell.queries,
            "rows": cell.data.rows,
            "columns": 1 if cell.data.text else 41,
            "domains": [2, widest],
            "median_rows": 900,
        }
    if isinstance(cell, TrainedModel):
        recipe = cell.recipe
        cost = 0.3 * (recipe.masking != "none") + (0.4 + 0.02 * recipe.orders if recipe.orders > 1 else 0.0)
        return {
            "unmasked_bits": 28.1 * hard + cost + float(random.normal(0, 0.03)),
            "parameters": 40 * recipe.hidden**2 + 4_000 * recipe.embedding,
            "seconds": 60.0,
        }
    if isinstance(cell, ModelWithAdditions):
        return {"evidence": 100_000, "bytes": 1_000_000}
    if isinstance(cell, CompletionSet):
        chances = random.uniform(0, 1, cell.holes)
        rows = 70.0 * cell.samples
        return {"right": [bool(p > 0.4) for p in chances], "chances": list(chances), "ms": [rows], "forward_rows": rows}
    recipe = cell.model.recipe
    samples = cell.samples
    small = 1.0 + 0.15 * np.log2(256 / recipe.hidden) + 0.2 * np.log2(32 / recipe.embedding)
    width = 0.12 + VARIANCE.get(cell.method, 0.5) * hard * small * (100 / samples) ** 0.35 * float(
        random.uniform(0.7, 1.3)
    )
    if recipe.masking not in ("uniform", "none", "prefix"):
        width *= 1 + 2 * (float(recipe.masking) - 0.4) ** 2
    errors = np.exp(
        np.abs(random.normal(0, 0.15, cell.questions.queries)) + random.exponential(width / 3, cell.questions.queries)
    )
    rows = samples * 41 * SHARE.get(cell.method, 1.0)
    speed = 0.0002 if cell.method == "particles" else 0.004
    return {
        "q_errors": [round(float(error), 4) for error in errors],
        "ms": [round(speed * rows * float(random.uniform(0.8, 1.2)), 3) for _ in errors],
        "forward_rows": rows,
    }


def _data(cell: Cell) -> Data:
    return cell.data if isinstance(cell, QuestionSet | TrainedModel) else _data(cell.model)
