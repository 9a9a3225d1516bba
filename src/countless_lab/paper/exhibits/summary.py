"""Figure 1: how many forward passes a method needs until its 99th percentile is a single digit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from countless.human_format import number
from countless.sheet import Sheet
from countless_lab.measurement.highlight import best
from countless_lab.measurement.plotting import short
from countless_lab.paper.cells import Cell
from countless_lab.paper.drawing import annotate, color, log_scale, method_legend, panels
from countless_lab.paper.exhibits.base import LABELS, CellResults, Exhibit, find, label, names, values
from countless_lab.paper.exhibits.main import Main
from countless_lab.paper.numbers import Record, over_orders, summarized
from countless_lab.paper.study import PARTICLES, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TARGET = 10.0
SIGNS = {"about": "", "at most": "≤ ", "more than": "> "}


class Summary(Exhibit):
    """Forward passes for a single-digit error at p99, from the cells of the main exhibit."""

    name = "summary"
    in_paper = "Figure 1"
    title = "Forward passes for a single-digit error at the 99th percentile"

    def cells(self, study: Study) -> list[Cell]:
        return Main().cells(study)

    def results(self, study: Study, by_cell: CellResults) -> list[Record]:
        by_method: dict[str, dict[int, dict[int, Record]]] = {}  # then by budget, then by order
        for samples in study.scale.samples:
            for order in study.scale.orders_for(samples):
                cells = list(study.contest(samples, order).items())
                for base, rungs in study.rungs(samples, order).items():
                    cells += [(f"{PARTICLES} on {base}", cell) for cell in rungs]
                for method, cell in cells:
                    if cell.name in by_cell:
                        budgets = by_method.setdefault(method, {})
                        budgets.setdefault(cell.samples, {})[order] = summarized(by_cell[cell.name])
        return [{"method": method, **needed(points), "points": points} for method, points in _points(by_method)]

    def sheets(self, tables: Sequence[Record]) -> list[Sheet]:
        methods = values(tables, "method")
        rows = []
        for table in tables:
            fields = [find(table, method=method) for method in methods]
            passes = [None if field is None else field["passes"] for field in fields]
            usable = [
                index for index, field in enumerate(fields) if field is not None and field["bound"] != "more than"
            ]
            rows.append((table["data"]["name"], *best(passes, [_text(field) for field in fields], usable)))
        notes = (
            "A method's forward passes per query at the smallest budget where the mean of its 99th percentiles over"
            f" orders is below {TARGET:g}; between that budget and the one before it, interpolated on log scales (so"
            " only approximate). ≤: the smallest budget meets the target already. >: the largest does not.",
        )
        return [Sheet(self.title, ("Data set", *(label(method) for method in methods)), tuple(rows), 1, notes)]

    def draw_all(self, tables: Sequence[Record], figure: Figure) -> None:
        methods = values(tables, "method")
        axes = panels(figure, 1, 1, (max(6.0, 0.8 + 0.5 * len(tables) * (len(methods) + 1)), 3.3), 0.7)[0][0]
        width = 0.86 / len(methods)
        drawn = []
        for slot, method in enumerate(methods):
            for group, table in enumerate(tables):
                result = find(table, method=method)
                if result is None:
                    continue
                x = group + (slot - (len(methods) - 1) / 2) * width
                open_ended = result["bound"] == "more than"
                bar = axes.bar(x, result["passes"], width * 0.9, color=color(method))
                if open_ended:
                    bar[0].set(hatch="////", edgecolor="white", linewidth=0)
                text = SIGNS[result["bound"]].strip() + short(result["passes"])
                annotate(axes, text, x, result["passes"])
                drawn.append(result["passes"])
        log_scale(axes, [*drawn, min(drawn) / 3, max(drawn) * 1.2])
        axes.set_xticks(range(len(tables)), names(tables), fontsize=9)
        axes.set_xlim(-0.5, len(tables) - 0.5)
        axes.tick_params(axis="x", length=0)
        axes.set_ylabel("forward passes per query", fontsize=9)
        method_legend(figure, methods, bars=True)


def needed(points: Sequence[Record]) -> Record:
    """The forward passes at which p99 falls below the target, and whether that is ``about``, ``at most`` or more.

    >>> points = [{"forward_rows": 1e3, "p99": 1000.0}, {"forward_rows": 1e5, "p99": 1.0}]
    >>> {name: round(value) if name == "passes" else value for name, value in needed(points).items()}
    {'passes': 21544, 'bound': 'about'}
    >>> needed(points[:1]), needed(points[1:])
    ({'passes': 1000.0, 'bound': 'more than'}, {'passes': 100000.0, 'bound': 'at most'})
    """
    before: Record | None = None
    for point in points:
        if point["p99"] < TARGET:
            if before is None:
                return {"passes": point["forward_rows"], "bound": "at most"}
            return {"passes": _crossing(before, point), "bound": "about"}
        before = point
    assert before is not None
    return {"passes": before["forward_rows"], "bound": "more than"}


def _crossing(above: Record, below: Record) -> float:
    """Where the straight line between two points, on log scales, meets the target."""
    share = math.log(above["p99"] / TARGET) / math.log(above["p99"] / below["p99"])
    passes = above["forward_rows"] * (below["forward_rows"] / above["forward_rows"]) ** share
    return float(f"{passes:.6g}")


def _text(result: Record | None) -> str:
    return "" if result is None else SIGNS[result["bound"]] + number(result["passes"])


def _points(by_method: dict[str, dict[int, dict[int, Record]]]) -> Iterator[tuple[str, list[Record]]]:
    """Every method's means over orders, by budget; methods in the order of the main exhibit."""
    ordered = [method for method in LABELS if method in by_method]
    for method in [*ordered, *(method for method in by_method if method not in ordered)]:
        points = []
        for samples, by_order in sorted(by_method[method].items()):
            means = over_orders(list(by_order.values()))
            figures = {name: means[name]["mean"] for name in ("p99", "forward_rows")}
            points.append({"samples": samples, "orders": len(by_order), **figures})
        yield method, points
