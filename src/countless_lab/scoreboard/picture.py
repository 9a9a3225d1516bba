"""The scoreboard in one picture: q-errors above, latency below, one panel a table."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from countless_lab.measurement.requirements import require_plotting

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLACES = ("p50", "p90", "p95", "p99", "max")
METHODS = {"Countless": "C0", "sample of 100,000 rows": "C1", "sample of as many bytes": "C2", "DuckDB, exact": "C7"}
NAMES = {"sample of 100,000 rows": "sample", "sample of as many bytes": "same bytes", "DuckDB, exact": "duckdb"}


def draw_picture(runs: dict[str, dict[str, Any]]) -> bytes:
    """The newest run of each table as a PNG: questions as people ask them."""
    require_plotting()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = {name: run for name, run in runs.items() if any("people" in fit for fit in run["fits"])}
    figure = Figure(figsize=(2.1 * max(3, len(shown)), 5.6), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle("Questions as people ask them: q-error above, processor time of an answer below", fontsize=10)
    axes = figure.subplots(2, max(1, len(shown)), squeeze=False, sharey="row")
    for place, (name, run) in enumerate(shown.items()):
        fit = next(fit for fit in run["fits"] if "people" in fit)
        found = {
            "Countless": fit["people"],
            **{title: run["opponents"]["people"].get(key) for title, key in NAMES.items()},
        }
        _errors(axes[0][place], {title: facts for title, facts in found.items() if facts and title != "DuckDB, exact"})
        _latency(axes[1][place], {title: facts for title, facts in found.items() if facts})
        axes[0][place].set_title(f"{name}\n{run['table']['rows']:,} rows", fontsize=8)
    axes[0][0].set_ylabel("q-error", fontsize=8)
    axes[1][0].set_ylabel("milliseconds, p50 to p99", fontsize=8)
    handles = [axes[1][0].plot([], [], color=color, marker="o", markersize=4)[0] for color in METHODS.values()]
    figure.legend(handles, METHODS, loc="outside lower center", ncols=len(METHODS), fontsize=8)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=100, metadata={"Software": None})
    return content.getvalue()


def _errors(axes: Axes, found: dict[str, dict[str, Any]]) -> None:
    for title, facts in found.items():
        axes.plot(PLACES, [facts["q_error"][place] for place in PLACES], color=METHODS[title], marker="o", markersize=3)
    axes.set_yscale("log")
    axes.tick_params(labelsize=7)
    axes.grid(alpha=0.3)


def _latency(axes: Axes, found: dict[str, dict[str, Any]]) -> None:
    for place, (title, facts) in enumerate(found.items()):
        ends = [max(1e-3, facts["latency_ms"][name]) for name in ("p50", "p99")]
        axes.plot([place, place], ends, color=METHODS[title], linewidth=2)
        axes.plot([place], ends[:1], color=METHODS[title], marker="o", markersize=5)
    axes.set_yscale("log")
    axes.set_xticks([])
    axes.tick_params(labelsize=7)
    axes.grid(alpha=0.3, axis="y")
