"""Figure 5 and Table 5: every method at every budget, under several orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from countless.human_format import number
from countless.sheet import Sheet
from countless_lab.paper.cells import AnswerSet, Cell
from countless_lab.paper.drawing import color, log_scale, marker, method_legend
from countless_lab.paper.exhibits.base import (
    METRIC_LABELS,
    CellResults,
    Exhibit,
    best_means,
    budget_panels,
    find,
    label,
    names,
    values,
)
from countless_lab.paper.numbers import METRICS, Record, over_orders, summarized
from countless_lab.paper.study import PAPER, PARTICLES, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Main(Exhibit):
    """The paper's four methods, and particles on the same masked models."""

    name = "main"
    in_paper = "Figure 5 and Table 5"
    title = "Errors of every method by samples"

    def cells(self, study: Study) -> list[Cell]:
        cells: list[Cell] = []
        for samples in study.scale.samples:
            for order in study.scale.orders_for(samples):
                cells += study.contest(samples, order).values()
                cells += [cell for rungs in study.rungs(samples, order).values() for cell in rungs]
        return cells

    def results(self, study: Study, by_cell: CellResults) -> list[Record]:
        results = []
        for samples in study.scale.samples:
            contests = {order: _contest(study, samples, order, by_cell) for order in study.scale.orders_for(samples)}
            for method in dict.fromkeys(method for contest in contests.values() for method in contest):
                cells = {order: contest[method] for order, contest in contests.items() if method in contest}
                summary = over_orders([summarized(by_cell[cell.name]) for cell in cells.values()])
                budgets = [cell.samples for cell in cells.values()]
                results.append(
                    {"samples": samples, "method": method, "orders": list(cells), "budgets": budgets, **summary}
                )
        return results

    def sheets(self, tables: Sequence[Record]) -> list[Sheet]:
        return [self._errors(tables), self._work(tables)]

    def _errors(self, tables: Sequence[Record]) -> Sheet:
        methods = values(tables, "method")
        rows = []
        for samples in sorted(values(tables, "samples")):
            for metric in METRICS:
                for table in tables:
                    fields = [_measured(table, samples, method, metric) for method in methods]
                    row = (f"{samples:,}", METRIC_LABELS[metric], table["data"]["name"])
                    if any(fields):
                        rows.append((*row, *best_means(fields)))
        headings = ("Samples", "Metric", "Data set", *(label(method) for method in methods))
        notes = (
            "Q-errors: mean and sample deviation over random orders. The best of each row is bold.",
            "Particles has as many samples, or up to 10 times as many where that takes no more forward passes than the"
            " paper's method on the same model.",
            _orders_note(tables),
        )
        return Sheet("Quantiles of the q-error", headings, tuple(rows), 3, notes)

    def _work(self, tables: Sequence[Record]) -> Sheet:
        methods = values(tables, "method")
        rows = []
        for samples in sorted(values(tables, "samples")):
            for table in tables:
                for metric, unit in (("ms", "ms"), ("forward_rows", "forward passes")):
                    fields = [_measured(table, samples, method, metric) for method in methods]
                    if any(fields):
                        texts = ["" if field is None else number(field["mean"]) for field in fields]
                        rows.append((f"{samples:,}", table["data"]["name"], unit, *texts))
        headings = ("Samples", "Data set", "Per query", *(label(method) for method in methods))
        notes = (
            "ms: the median time of a query. Forward passes: rows of logits per query, on average; a sample takes one"
            " for every position it visits.",
        )
        return Sheet("Time and work of a query", headings, tuple(rows), 3, notes)

    def draw_all(self, tables: Sequence[Record], figure: Figure) -> None:
        budgets, rows = budget_panels(figure, tables, (3.1, 1.75))
        for table, metric, line in rows:
            errors = [
                error
                for axes, samples in zip(line, budgets, strict=True)
                for error in _panel(axes, table, samples, metric)
            ]
            for axes in line:
                log_scale(axes, errors)
        for axes in rows[-1][2]:
            axes.set_xlabel("orders, by increasing error", fontsize=8)
        method_legend(figure, values(tables, "method"))


def _contest(study: Study, samples: int, order: int, by_cell: CellResults) -> dict[str, AnswerSet]:
    """The finished cells of every method; of particles the largest budget that takes no more forward passes."""
    cells = {method: cell for method, cell in study.contest(samples, order).items() if cell.name in by_cell}
    particles = {}
    for base, rungs in study.rungs(samples, order).items():
        measured = [cell for cell in rungs if cell.name in by_cell]
        if base in cells and measured:
            limit = by_cell[cells[base].name]["forward_rows"]
            within = [cell for cell in measured if by_cell[cell.name]["forward_rows"] <= limit]
            particles[f"{PARTICLES} on {base}"] = within[-1] if within else measured[0]
    paper = {method: cell for method, cell in cells.items() if method in PAPER}
    return {**paper, **particles, **cells}


def _panel(axes: Axes, table: Record, samples: int, metric: str) -> list[float]:
    """Draw every method's errors under the orders, sorted; return them all."""
    methods = values([table], "method")
    errors = {
        method: sorted(field["values"])
        for method in methods
        if (field := _measured(table, samples, method, metric)) is not None
    }
    longest = max((len(sorted_errors) for sorted_errors in errors.values()), default=1)
    for slot, (method, sorted_errors) in enumerate(errors.items()):
        # Under a single order the methods stand side by side, so that none hides another.
        aside = 0.7 * (slot / (len(errors) - 1) - 0.5) if longest == 1 and len(errors) > 1 else 0.0
        ranks = [1 + aside + rank for rank in range(len(sorted_errors))]
        axes.plot(
            ranks,
            sorted_errors,
            color=color(method),
            marker=marker(method),
            markersize=4.5,
            linewidth=1.4,
            alpha=0.9,
        )
    axes.set_xlim(0.5, longest + 0.5)
    axes.set_xticks(range(1, longest + 1), ["1 order"] if longest == 1 else None)
    if not errors:
        axes.text(0.5, 0.5, "not measured yet", transform=axes.transAxes, ha="center", color="grey")
        axes.set_xticks([])
    return [error for sorted_errors in errors.values() for error in sorted_errors]


def _measured(table: Record, samples: int, method: str, metric: str) -> Record | None:
    result = find(table, samples=samples, method=method)
    return None if result is None else result[metric]


def _orders_note(tables: Sequence[Record]) -> str:
    """How many orders each budget was tried under."""
    phrases = []
    for samples in sorted(values(tables, "samples")):
        counts = sorted(
            {len(result["orders"]) for table in tables for result in table["results"] if result["samples"] == samples}
        )
        text = " or ".join(map(str, counts)) + (" order" if counts == [1] else " orders")
        phrases.append(f"{text} at {samples:,} samples")
    text_of_orders = f"Measured under {', '.join(phrases)}." if phrases else ""
    return text_of_orders + (f" Data sets: {', '.join(names(tables))}." if tables else "Nothing is measured yet.")
