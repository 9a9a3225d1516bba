"""The picture: the time of an answer and the bytes that it needs, against the rows of the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from countless_lab.measurement.plotting import png
from countless_lab.scaling.questions import COLUMNS, TEXT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METHODS = {
    "countless": ("Countless", "C0"),
    "sample": ("sample of 100,000 rows", "C1"),
    "same bytes": ("sample of as many bytes", "C2"),
    "scan of codes": ("scan of packed codes, columns only", "C4"),
    "DuckDB in memory": ("DuckDB in memory", "C7"),
    "DuckDB on Parquet": ("DuckDB on Parquet", "C5"),
}

Value = Callable[[dict[str, Any]], float | None]


def draw_scaling(parts: list[dict[str, Any]]) -> bytes:
    """A PNG of three panels: milliseconds of questions about columns, of LIKE, and bytes."""
    return png(lambda figure: _draw(figure, parts), 11, 4, dpi=110)


def _draw(figure: Figure, parts: list[dict[str, Any]]) -> None:
    columns, text, size = figure.subplots(1, 3)
    _panel(columns, parts, lambda method: _median(method, COLUMNS), "filters on columns: milliseconds")
    _panel(text, parts, lambda method: _median(method, TEXT), "LIKE: milliseconds")
    _panel(size, parts, lambda method: (method.get("bytes") or 0) / 1e6 or None, "what it needs: megabytes")
    figure.legend(*columns.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8, frameon=False)


def _median(method: dict[str, Any], kind: str) -> float | None:
    figures = method["classes"].get(kind)
    return None if figures is None else float(figures["latency_ms"]["p50"])


def _panel(axes: Axes, parts: list[dict[str, Any]], value: Value, title: str) -> None:
    """A line for each method, both axes on a log scale."""
    for method, (label, color) in METHODS.items():
        points = [
            (part["rows"], y)
            for part in parts
            if method in part["methods"] and (y := value(part["methods"][method])) is not None
        ]
        width = 2.5 if method == "countless" else 1.2
        axes.plot(*zip(*points, strict=True) if points else ([], []), "o-", ms=3, lw=width, color=color, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:,g}")
    axes.set_title(title, fontsize=9)
    axes.set_xlabel("rows of the table", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
