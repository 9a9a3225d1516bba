"""The scoreboard in one picture: q-errors above, latency below, one panel a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from countless_lab.measurement.plotting import png

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

QUANTILES = ("p50", "p90", "p95", "p99", "max")
METHODS = {"Countless": "C0", "sample of 100,000 rows": "C1", "sample of as many bytes": "C2", "DuckDB, exact": "C7"}
NAMES = {"sample of 100,000 rows": "sample", "sample of as many bytes": "same bytes", "DuckDB, exact": "duckdb"}


def draw_picture(runs: dict[str, dict[str, Any]]) -> bytes:
    """The newest run of each table as a PNG: questions as people ask them."""
    answered = {name: run for name, run in runs.items() if any("people" in fit for fit in run["fits"])}
    return png(lambda figure: _draw(figure, answered), 2.1 * max(3, len(answered)), 5.6)


def _draw(figure: Figure, runs: dict[str, dict[str, Any]]) -> None:
    figure.suptitle("Questions as people ask them: q-error above, processor time of an answer below", fontsize=10)
    axes = figure.subplots(2, max(1, len(runs)), squeeze=False, sharey="row")
    for (above, below), (name, run) in zip(axes.T, runs.items(), strict=False):
        fit = next(fit for fit in run["fits"] if "people" in fit)
        opponents = {title: run["opponents"]["people"].get(key) for title, key in NAMES.items()}
        figures = {title: value for title, value in {"Countless": fit["people"], **opponents}.items() if value}
        _errors(above, {title: value for title, value in figures.items() if title != "DuckDB, exact"})
        _latency(below, figures)
        above.set_title(f"{name}\n{run['table']['rows']:,} rows", fontsize=8)
    axes[0][0].set_ylabel("q-error", fontsize=8)
    axes[1][0].set_ylabel("milliseconds, p50 to p99", fontsize=8)
    handles = [axes[1][0].plot([], [], color=color, marker="o", markersize=4)[0] for color in METHODS.values()]
    figure.legend(handles, METHODS, loc="outside lower center", ncols=len(METHODS), fontsize=8)


def _errors(axes: Axes, figures: dict[str, dict[str, Any]]) -> None:
    for title, values in figures.items():
        errors = [values["q_error"][quantile] for quantile in QUANTILES]
        axes.plot(QUANTILES, errors, color=METHODS[title], marker="o", markersize=3)
    axes.set_yscale("log")
    axes.tick_params(labelsize=7)
    axes.grid(alpha=0.3)


def _latency(axes: Axes, figures: dict[str, dict[str, Any]]) -> None:
    for x, (title, values) in enumerate(figures.items()):
        ends = [max(1e-3, values["latency_ms"][quantile]) for quantile in ("p50", "p99")]
        axes.plot([x, x], ends, color=METHODS[title], linewidth=2)
        axes.plot([x], ends[:1], color=METHODS[title], marker="o", markersize=5)
    axes.set_yscale("log")
    axes.set_xticks([])
    axes.tick_params(labelsize=7)
    axes.grid(alpha=0.3, axis="y")
