"""Figure 6: does skipping keep its advantage when the model is smaller?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from countless.human_format import number
from countless.sheet import Sheet
from countless_lab.measurement.highlight import best
from countless_lab.paper.cells import Cell
from countless_lab.paper.drawing import color, log_scale, marker, method_legend, nothing, panels
from countless_lab.paper.exhibits.base import METRIC_LABELS, Exhibit, Found, find, label, values
from countless_lab.paper.numbers import Record, summarized
from countless_lab.paper.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DASHED = ("progressive",)
SHOWN = ("p99", "max")


class Sizes(Exhibit):
    """Errors by hidden units and embedding size, in the table's own order."""

    name = "sizes"
    place = "Figure 6"
    title = "Errors by model size"

    def cells(self, study: Study) -> list[Cell]:
        return [cell for methods in study.sizes().values() for cell in methods.values()]

    def results(self, study: Study, found: Found) -> list[Record]:
        return [
            {
                "hidden": hidden,
                "embedding": embedding,
                "method": method,
                "parameters": found.get(cell.model.name, {}).get("parameters"),
                **summarized(found[cell.name]),
            }
            for (hidden, embedding), methods in study.sizes().items()
            for method, cell in methods.items()
            if cell.name in found
        ]

    def sheets(self, facts: Sequence[Record]) -> list[Sheet]:
        methods = values(facts, "method")
        rows = []
        for one in facts:
            for hidden, embedding in sizes_of(one):
                found = [find(one, hidden=hidden, embedding=embedding, method=method) for method in methods]
                row = [one["data"]["name"], f"{hidden} / {embedding}"]
                for metric in SHOWN:
                    errors = [None if field is None else field[metric] for field in found]
                    row += best(errors, ["" if error is None else number(error) for error in errors])
                rows.append(tuple(row))
        samples = sorted({one["settings"]["ablation_samples"] for one in facts})
        notes = (
            f"Q-errors with {' or '.join(f'{count:,}' for count in samples) or 'no'} samples, in the table's own order."
            " The best of each size is bold.",
        )
        errors_by = tuple(f"{METRIC_LABELS[metric]}: {label(method)}" for metric in SHOWN for method in methods)
        headings = ("Data set", "Hidden / embedding", *errors_by)
        return [Sheet(self.title, headings, tuple(rows), 2, notes)]

    def draw(self, facts: Sequence[Record], figure: Figure) -> None:
        if not facts:
            return nothing(figure)
        line = panels(figure, 1, len(facts), (3.0, 2.7), 0.5)[0]
        for axes, one in zip(line, facts, strict=True):
            drawn = []
            for method in values([one], "method"):
                errors = sorted(record["max"] for record in one["results"] if record["method"] == method)
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
            axes.set_title(one["data"]["name"], fontsize=10)
            axes.set_xlabel("model sizes, by increasing error", fontsize=8)
            axes.set_xticks(range(1, len(sizes_of(one)) + 1))
        line[0].set_ylabel("max error", fontsize=9)
        method_legend(figure, values(facts, "method"), dashed=DASHED)
        return None


def sizes_of(facts: Record) -> list[tuple[int, int]]:
    """The sizes of which something is known."""
    return list(dict.fromkeys((one["hidden"], one["embedding"]) for one in facts["results"]))
