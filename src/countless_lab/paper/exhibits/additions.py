"""Our additions to the paper's model and sampler, one after the other, beside Figure 5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from countless.human_format import number
from countless.sheet import Sheet
from countless_lab.measurement.highlight import best
from countless_lab.paper.cells import MAX_EVIDENCE, Cell
from countless_lab.paper.drawing import annotate, log_scale
from countless_lab.paper.exhibits.base import METRIC_LABELS, CellResults, Exhibit, budget_panels, find, values
from countless_lab.paper.numbers import METRICS, Record, over_orders, summarized, written
from countless_lab.paper.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = {
    "skipping": ("Skipping", "#f28e1c"),
    "particles": ("Particles", "#2458d3"),
    "counts": ("and counts", "#4f8fdc"),
    "look-ahead": ("and look-ahead", "#1b9e77"),
    "evidence": ("and evidence rows", "#8a5bd6"),
}


class Additions(Exhibit):
    """The paper's sampler and ours on one model, then with counts, look-ahead and evidence rows."""

    name = "additions"
    in_paper = "Beside Figure 5"
    title = "What our additions do"

    def cells(self, study: Study) -> list[Cell]:
        return [
            cell
            for samples in study.scale.samples
            for order in study.scale.orders_for(samples)
            for cell in study.additions(samples, order).values()
        ]

    def results(self, study: Study, by_cell: CellResults) -> list[Record]:
        results = []
        for samples in study.scale.samples:
            answer_sets = {order: study.additions(samples, order) for order in study.scale.orders_for(samples)}
            for step in STEPS:
                results_by_order = {
                    order: by_cell[cells[step].name]
                    for order, cells in answer_sets.items()
                    if cells[step].name in by_cell
                }
                if results_by_order:
                    summary = over_orders([summarized(result) for result in results_by_order.values()])
                    results.append({"samples": samples, "step": step, "orders": list(results_by_order), **summary})
        return results

    def sheets(self, tables: Sequence[Record]) -> list[Sheet]:
        rows = []
        for samples in sorted(values(tables, "samples")):
            for table in tables:
                fields = [find(table, samples=samples, step=step) for step in STEPS]
                for metric in (*METRICS, "ms"):
                    means = [None if field is None else field[metric]["mean"] for field in fields]
                    texts = [
                        ""
                        if field is None
                        else number(field["ms"]["mean"])
                        if metric == "ms"
                        else written(field[metric])
                        for field in fields
                    ]
                    heading = METRIC_LABELS.get(metric, metric)
                    rows.append((f"{samples:,}", table["data"]["name"], heading, *best(means, texts)))
        notes = (
            "Q-errors on the same model, whose weights are the paper's. Every column has what those before it have."
            " Counts bound and correct answers, and answer some questions exactly. Look-ahead thins particles by what"
            f" counts say of later filters. Evidence rows: {MAX_EVIDENCE:,} random rows, of a smaller table a third."
            " The paper's methods never use any of this. The best of each row is bold.",
        )
        headings = ("Samples", "Data set", "Metric", *(label for label, _ in STEPS.values()))
        return [Sheet(self.title, headings, tuple(rows), 3, notes)]

    def draw_all(self, tables: Sequence[Record], figure: Figure) -> None:
        budgets, rows = budget_panels(figure, tables, (2.7, 1.75))
        for table, metric, line in rows:
            drawn = [1.0]
            for axes, samples in zip(line, budgets, strict=True):
                for x, (step, (_, shade)) in enumerate(STEPS.items()):
                    result = find(table, samples=samples, step=step)
                    if result is not None:
                        mean = result[metric]["mean"]
                        axes.bar(x, mean, 0.75, color=shade)
                        annotate(axes, number(mean), x, mean)
                        drawn.append(1.2 * mean)
                axes.set_xticks([])
            for axes in line:
                log_scale(axes, drawn)
                axes.set_ylim(bottom=0.9)
        labels = [label for label, _ in STEPS.values()]
        for axes in rows[-1][2]:
            axes.set_xticks(range(len(STEPS)), labels, rotation=30, ha="right", fontsize=7)
