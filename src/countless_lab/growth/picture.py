"""The picture of growth: a column of panels for each dimension, latency on top."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from countless_lab.growth.report import Record, records_along
from countless_lab.measurement.plotting import png, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The dimensions of the model come first; along the others only the question grows.
X_LABELS = {
    "columns": "columns of the table",
    "distinct": "distinct values of a column",
    "rows": "rows of the table",
    "filters": "filters per query",
    "batch": "clauses per call",
}
OF_THE_MODEL = ("columns", "distinct", "rows")
LINEAR_RANGE = 8.0  # values with a larger factor between the largest and the smallest are drawn on a log scale

Lines = dict[str, Callable[[Record], float]]

LATENCY: Lines = {
    "p50": lambda record: record["serving"]["latency_ms"]["p50"],
    "p99": lambda record: record["serving"]["latency_ms"]["p99"],
}
THROUGHPUT: Lines = {
    "estimate_many": lambda record: record["serving"]["many_per_second"],
    "loop of estimate": lambda record: record["serving"]["loop_per_second"],
}
MODEL_PANELS: dict[str, Lines] = {
    "training (rows/s)": {"training": lambda record: record["fit"]["rows_per_second"]},
    "peak memory (MB)": {
        "fit": lambda record: record["fit"]["peak_bytes"] / 1e6,
        "serving": lambda record: record["serving"]["peak_bytes"] / 1e6,
    },
    "model file (MB)": {"file": lambda record: record["fit"]["file_bytes"] / 1e6},
}


def draw(report: Record) -> bytes:
    """The report of :func:`countless_lab.growth.report.report` as a PNG."""
    return png(lambda figure: _draw(figure, report), 14, 9, dpi=90)


def _draw(figure: Figure, report: Record) -> None:
    grid = figure.add_gridspec(1 + len(MODEL_PANELS), len(X_LABELS), height_ratios=[1.6] + [1] * len(MODEL_PANELS))
    for column, dimension in enumerate(X_LABELS):
        records = records_along(report["points"], dimension)
        lines, label = (THROUGHPUT, "clauses per second") if dimension == "batch" else (LATENCY, "latency (ms)")
        _panel(figure.add_subplot(grid[0, column]), records, lines, X_LABELS[dimension], label)
        for row, (label, lines) in enumerate(MODEL_PANELS.items(), 1):
            if dimension in OF_THE_MODEL:
                _panel(figure.add_subplot(grid[row, column]), records, lines, X_LABELS[dimension], label)
    _notes(figure, grid[1:, len(OF_THE_MODEL) :], report)


def draw_lines(sizes: Sequence[int], lines: dict[str, list[float]], x_label: str, y_label: str) -> bytes:
    """One panel of lines over ``sizes``, both on a log scale, as a PNG."""

    def panel(figure: Figure) -> None:
        axes = figure.add_subplot()
        for name, values in lines.items():
            axes.plot(sizes, values, marker="o", markersize=4, label=name)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.grid(alpha=0.3)
        axes.legend(loc="best")

    return png(panel, 6, 4)


def _panel(axes: Axes, records: Sequence[Record], lines: Lines, x_label: str, y_label: str) -> None:
    """One panel; a dimension that was not measured leaves it empty."""
    from matplotlib.ticker import LogLocator

    axes.set_xlabel(x_label, fontsize=8)
    axes.set_ylabel(y_label, fontsize=8)
    axes.tick_params(labelsize=7)
    axes.grid(alpha=0.3)
    if not records:
        axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", color="grey")
        return
    sizes = [int(record["value"]) for record in records]
    drawn = []
    for name, value in lines.items():
        values = [float(value(record)) for record in records]
        axes.plot(sizes, values, marker="o", markersize=3, linewidth=1.2, label=name)
        drawn += values
    axes.set_xscale("log")
    axes.set_xticks(sizes, [short(size) for size in sizes])
    if min(drawn) > 0 and max(drawn) > LINEAR_RANGE * min(drawn):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    else:
        axes.set_ylim(0, 1.1 * max(drawn))
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    if len(lines) > 1:
        axes.legend(fontsize=7)


def _notes(figure: Figure, cells: Any, report: Record) -> None:
    """Write ratios and the machine into the space that the panels leave free."""
    axes = figure.add_subplot(cells)
    axes.axis("off")
    ratios = [f"{value:.2f}x  {name}" for name, value in report["ratios"].items()]
    machine = report["machine"]
    lines = [
        *ratios,
        "",
        f"{machine['cores']} cores, Python {machine['python']}, NumPy {machine['numpy']}",
        "latency: all of estimate(), one by one; batches use every core",
    ]
    axes.text(0.03, 0.95, "\n".join(lines), transform=axes.transAxes, va="top", fontsize=9)
