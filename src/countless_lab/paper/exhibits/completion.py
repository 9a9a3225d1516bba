"""The paper's application: a hidden value is filled in without sampling the values before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from countless.human_format import number
from countless.sheet import Sheet
from countless_lab.measurement.highlight import best
from countless_lab.paper.cells import Cell
from countless_lab.paper.completion import AFTER, BEFORE, KNOWN_SHARE
from countless_lab.paper.drawing import annotate, color, panels
from countless_lab.paper.exhibits.base import CellResults, Exhibit, find
from countless_lab.paper.numbers import Record
from countless_lab.paper.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES = {"accuracy": "Right", "chance": "Chance of the truth", "ms": "ms", "forward_rows": "Forward passes"}


class Completion(Exhibit):
    """A hidden value of a column, where a random half of the others is known."""

    name = "completion"
    in_paper = "The section on applications"
    title = "Filling in a hidden value"
    holes = f"Of the other columns of a row, each is known with probability {KNOWN_SHARE:g}."

    def cells(self, study: Study) -> list[Cell]:
        return [*study.completions()]

    def results(self, study: Study, by_cell: CellResults) -> list[Record]:
        return [
            {
                "method": cell.method,
                "samples": cell.samples,
                "holes": len(result["right"]),
                "accuracy": round(float(np.mean(result["right"])), 4),
                "chance": round(float(np.mean(result["chances"])), 4),
                "ms": round(float(np.median(result["ms"])), 3),
                "forward_rows": result["forward_rows"],
            }
            for cell in study.completions()
            if (result := by_cell.get(cell.name)) is not None
        ]

    def sheets(self, tables: Sequence[Record]) -> list[Sheet]:
        budgets = _budgets(tables)
        rows = []
        for table in tables:
            for figure, heading in FIGURES.items():
                figures = [_figure(table, method, samples, figure) for method, samples in budgets]
                texts = ["" if value is None else _written(figure, value) for value in figures]
                # Of what is right, more is better.
                ranks = [None if value is None else value if figure not in SHARES else -value for value in figures]
                rows.append((table["data"]["name"], heading, *best(ranks, texts)))
        holes = " or ".join(sorted({f"{record['holes']:,}" for table in tables for record in table["results"]}))
        notes = (
            f"{self.holes} {holes} random rows, which the models may have seen. The masked model reads what is known,"
            " and weighs every value by what comes after it. The unmasked model draws what is hidden, and weighs each"
            " sample by how likely it makes what is known. The paper has no figures for this.",
            "Particles have no place here: one value is asked for, and all that it may be are tried. ms: the median of"
            " the processor time. The best of each row is bold.",
        )
        headings = ("Data set", "", *(_label(method, samples) for method, samples in budgets))
        return [Sheet(self.title, headings, tuple(rows), 2, notes)]

    def draw_all(self, tables: Sequence[Record], figure: Figure) -> None:
        line = panels(figure, 1, len(tables), (3.6, 2.4), 0.0)[0]
        for axes, table in zip(line, tables, strict=True):
            for x, record in enumerate(table["results"]):
                axes.bar(x, 100 * record["accuracy"], 0.7, color=color(record["method"]))
                percent = 100 * record["accuracy"]
                annotate(axes, f"{percent:.0f}%", x, percent, size=8)
            labels = [_label(record["method"], record["samples"]).replace(", ", "\n") for record in table["results"]]
            axes.set_xticks(range(len(labels)), labels, fontsize=7)
            axes.set_ylim(0, 110)
            axes.tick_params(axis="x", length=0)
            axes.set_title(table["data"]["name"], fontsize=10)
        line[0].set_ylabel("filled in right, %", fontsize=9)


class TextCompletion(Completion):
    """A hidden character, of whose string only a few neighbours are known."""

    name = "text-completion"
    title = "Filling in a hidden character"
    text = True
    holes = f"Of a string, {BEFORE} characters before and {AFTER} after the hidden one are known, and their place."


SHARES = ("accuracy", "chance")


def _budgets(tables: Sequence[Record]) -> list[tuple[str, int]]:
    return list(dict.fromkeys((record["method"], record["samples"]) for table in tables for record in table["results"]))


def _figure(table: Record, method: str, samples: int, figure: str) -> float | None:
    result = find(table, method=method, samples=samples)
    return None if result is None else float(result[figure])


def _written(figure: str, value: float) -> str:
    return f"{value:.1%}" if figure in SHARES else number(value)


def _label(method: str, samples: int) -> str:
    return "Masked, no samples" if method == "skipping" else f"Unmasked, {samples:,} samples"
