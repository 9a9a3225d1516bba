"""Figure 7: how much should be masked in training?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from countless.human_format import number
from countless.sheet import Sheet
from countless_lab.measurement.highlight import best
from countless_lab.paper.cells import Cell
from countless_lab.paper.drawing import color, log_scale, marker, method_legend, panels
from countless_lab.paper.exhibits.base import METRIC_LABELS, CellResults, Exhibit, ablation_samples, find, label, values
from countless_lab.paper.numbers import METRICS, Record, summarized
from countless_lab.paper.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Maskings(Exhibit):
    """Errors by the scheme of masking, in the table's own order."""

    name = "maskings"
    in_paper = "Figure 7"
    title = "Errors by masking scheme"

    def cells(self, study: Study) -> list[Cell]:
        return [cell for methods in study.maskings().values() for cell in methods.values()]

    def results(self, study: Study, by_cell: CellResults) -> list[Record]:
        return [
            {"masking": masking, "method": method, **summarized(by_cell[cell.name])}
            for masking, methods in study.maskings().items()
            for method, cell in methods.items()
            if cell.name in by_cell
        ]

    def sheets(self, tables: Sequence[Record]) -> list[Sheet]:
        schemes = values(tables, "masking")
        rows = []
        for table in tables:
            for method in values([table], "method"):
                for metric in METRICS:
                    fields = [find(table, masking=scheme, method=method) for scheme in schemes]
                    errors = [None if field is None else field[metric] for field in fields]
                    texts = ["" if error is None else number(error) for error in errors]
                    rows.append((table["data"]["name"], label(method), METRIC_LABELS[metric], *best(errors, texts)))
        notes = (
            f"Q-errors with {ablation_samples(tables)}, in the table's own order,"
            " by the probability that a value is masked in training; uniform draws it anew for every row. The best of"
            " each row is bold.",
        )
        return [Sheet(self.title, ("Data set", "Method", "Metric", *schemes), tuple(rows), 3, notes)]

    def draw_all(self, tables: Sequence[Record], figure: Figure) -> None:
        line = panels(figure, 1, len(tables), (3.0, 2.7), 0.5)[0]
        for axes, table in zip(line, tables, strict=True):
            schemes = sorted(values([table], "masking"), key=lambda scheme: (not scheme[0].isdigit(), scheme))
            drawn: list[float] = []
            for method in values([table], "method"):
                largest = {
                    record["masking"]: record["max"] for record in table["results"] if record["method"] == method
                }
                for fixed in (True, False):  # a line through the probabilities; the others are not on their scale
                    indices = [
                        n for n, scheme in enumerate(schemes) if scheme in largest and scheme[0].isdigit() == fixed
                    ]
                    errors = [largest[schemes[index]] for index in indices]
                    axes.plot(
                        indices,
                        errors,
                        color=color(method),
                        marker=marker(method),
                        markersize=4.5 if fixed else 8,
                        linewidth=1.5,
                        linestyle="-" if fixed else "none",
                    )
                drawn += largest.values()
            log_scale(axes, drawn)
            axes.set_xticks(range(len(schemes)), schemes)
            axes.margins(x=0.1)
            axes.set_title(table["data"]["name"], fontsize=10)
            axes.set_xlabel("probability of masking", fontsize=8)
        line[0].set_ylabel("max error", fontsize=9)
        method_legend(figure, values(tables, "method"))
