"""Table 4: how many strings contain a piece?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from countless.human_format import number
from countless.sheet import Sheet
from countless_lab.paper.cells import Cell
from countless_lab.paper.drawing import annotate, color, log_scale, method_legend, panels
from countless_lab.paper.exhibits.base import CellResults, Exhibit, best_means, find, label, values
from countless_lab.paper.numbers import RESAMPLES, Record, bootstrapped, summarized
from countless_lab.paper.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS = {"max": "Max error", "p99": "P99 error", "p50": "Median error"}  # in the paper's order


class TextExhibit(Exhibit):
    """Errors on random pieces of 3 to 5 characters, with bootstrap deviations."""

    name = "text"
    in_paper = "Table 4"
    title = "Pattern matching in text"
    text = True

    def cells(self, study: Study) -> list[Cell]:
        return list(study.text_contest().values())

    def results(self, study: Study, by_cell: CellResults) -> list[Record]:
        results = []
        for method, cell in study.text_contest().items():
            if cell.name in by_cell:
                answers = by_cell[cell.name]
                summary = {**summarized(answers), **bootstrapped(answers["q_errors"])}
                results.append({"method": method, "samples": cell.samples, **summary})
        return results

    def sheets(self, tables: Sequence[Record]) -> list[Sheet]:
        methods = values(tables, "method")
        errors, work = [], []
        for table in tables:
            results = [find(table, method=method) for method in methods]
            samples = " or ".join(f"{count:,}" for count in values([table], "samples"))
            for metric, heading in ROWS.items():
                fields = [None if field is None else field[metric] for field in results]
                errors.append((table["data"]["name"], samples, heading, *best_means(fields)))
            for key, heading in (("ms", "ms"), ("forward_rows", "forward passes")):
                texts = ["" if field is None else number(field[key]) for field in results]
                work.append((table["data"]["name"], heading, *texts))
        labels = tuple(label(method) for method in methods)
        note = (
            f"± is the bootstrap deviation of {RESAMPLES:,} resamples of the queries. The best of each row is bold."
            " Particles has a tenth of the samples."
        )
        unit = "ms: the median time of a query. Forward passes: rows of logits per query, on average."
        return [
            Sheet(self.title, ("Data set", "Samples", "Metric", *labels), tuple(errors), 3, (note,)),
            Sheet("Time and work of a query", ("Data set", "Per query", *labels), tuple(work), 2, (unit,)),
        ]

    def draw_all(self, tables: Sequence[Record], figure: Figure) -> None:
        line = panels(figure, 1, len(tables), (5.0, 2.9), 0.6)[0]
        for axes, table in zip(line, tables, strict=True):
            results = table["results"]
            width = 0.84 / len(results)
            drawn = [1.0]
            for slot, record in enumerate(results):
                for group, metric in enumerate(reversed(ROWS)):
                    x = group + (slot - (len(results) - 1) / 2) * width
                    mean, deviation = record[metric]["mean"], record[metric]["deviation"]
                    method = record["method"]
                    axes.bar(x, mean, width * 0.9, color=color(method))
                    low = max(mean - deviation, 1.0)
                    axes.errorbar(x, mean, [[mean - min(low, mean)], [deviation]], color="#555555", capsize=2, lw=1)
                    annotate(axes, number(mean), x, mean + deviation)
                    drawn.append(1.15 * (mean + deviation))
            log_scale(axes, drawn)
            axes.set_ylim(bottom=0.9)
            axes.set_xticks(range(len(ROWS)), ["median", "p99", "max"])
            axes.tick_params(axis="x", length=0)
            axes.set_title(table["data"]["name"], fontsize=10)
        line[0].set_ylabel("q-error", fontsize=9)
        method_legend(figure, values(tables, "method"), bars=True)
