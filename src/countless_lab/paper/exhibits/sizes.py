"""Figure 6: does skipping keep its advantage when the model is smaller?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from countless.human_format import number
from countless.sheet import Sheet
from countless_lab.measurement.highlight import best
from countless_lab.paper.cells import Cell
from countless_lab.paper.drawing import color, log_scale, marker, method_legend, panels
from countless_lab.paper.exhibits.base import (
    HIGH_METRICS,
    METRIC_LABELS,
    CellResults,
    Exhibit,
    ablation_samples,
    find,
    label,
    values,
)
from countless_lab.paper.numbers import Record, summarized
from countless_lab.paper.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DASHED = ("progressive",)


class Sizes(Exhibit):
    """Errors by hidden units and embedding size, in the table's own order."""

    name = "sizes"
    in_paper = "Figure 6"
    title = "Errors by model size"

    def cells(self, study: Study) -> list[Cell]:
        return [cell for methods in study.sizes().values() for cell in methods.values()]

    def results(self, study: Study, by_cell: CellResults) -> list[Record]:
        return [
            {
                "hidden": hidden,
                "embedding": embedding,
                "method": method,
                "parameters": by_cell.get(cell.model.name, {}).get("parameters"),
                **summarized(by_cell[cell.name]),
            }
            for (hidden, embedding), methods in study.sizes().items()
            for method, cell in methods.items()
            if cell.name in by_cell
        ]

    def sheets(self, tables: Sequence[Record]) -> list[Sheet]:
        methods = values(tables, "method")
        rows = []
        for table in tables:
            for hidden, embedding in sizes_of(table):
                fields = [find(table, hidden=hidden, embedding=embedding, method=method) for method in methods]
                row = [table["data"]["name"], f"{hidden} / {embedding}"]
                for metric in HIGH_METRICS:
                    errors = [None if field is None else field[metric] for field in fields]
                    row += best(errors, ["" if error is None else number(error) for error in errors])
                rows.append(tuple(row))
        notes = (f"Q-errors with {ablation_samples(tables)}, in the table's own order. The best of each size is bold.",)
        errors_by = tuple(f"{METRIC_LABELS[metric]}: {label(method)}" for metric in HIGH_METRICS for method in methods)
        headings = ("Data set", "Hidden / embedding", *errors_by)
        return [Sheet(self.title, headings, tuple(rows), 2, notes)]

    def draw_all(self, tables: Sequence[Record], figure: Figure) -> None:
        line = panels(figure, 1, len(tables), (3.0, 2.7), 0.5)[0]
        for axes, table in zip(line, tables, strict=True):
            drawn = []
            for method in values([table], "method"):
                errors = sorted(record["max"] for record in table["results"] if record["method"] == method)
                axes.plot(
                    range(1, len(errors) + 1),
                    errors,
                    color=color(method),
                    marker=marker(method),
                    markersize=4.5,
                    linewidth=1.5,
                    linestyle="--" if method in DASHED else "-",
                )
                drawn += errors
            log_scale(axes, drawn)
            axes.set_title(table["data"]["name"], fontsize=10)
            axes.set_xlabel("model sizes, by increasing error", fontsize=8)
            axes.set_xticks(range(1, len(sizes_of(table)) + 1))
        line[0].set_ylabel("max error", fontsize=9)
        method_legend(figure, values(tables, "method"), dashed=DASHED)


def sizes_of(table: Record) -> list[tuple[int, int]]:
    """The model sizes that have a result."""
    return list(dict.fromkeys((result["hidden"], result["embedding"]) for result in table["results"]))
