"""The style of the paper's pictures: one colour per method, plain panels, and equal files for equal figures."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from countless_lab.measurement.plotting import short
from countless_lab.measurement.requirements import require_plotting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colour, mark, and a short label. As in the paper, methods without skipping are black and turquoise, those with it
# orange and red. Ours are blue.
STYLES = {
    "naive": ("#8a8a8a", "v", "naive"),
    "progressive": ("#1a1a1a", "s", "progressive (baseline)"),
    "multi-order": ("#1fb5a6", "D", "multi-order"),
    "skipping": ("#f28e1c", "o", "skipping"),
    "multi-order+skipping": ("#d62a2a", "^", "multi-order + skipping"),
    "particles": ("#2458d3", "P", "particles (ours)"),
    "particles on skipping": ("#2458d3", "P", "particles (ours), skipping's model"),
    "particles on multi-order+skipping": ("#8a5bd6", "X", "particles (ours), multi-order + skipping's model"),
}
# For methods that plugins bring.
OTHER_COLORS = ("#7a8f1a", "#b3508f", "#7b5b3a", "#3f8fb5")
OTHER_MARKERS = ("h", "<", ">", "*")
SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "countless",
    "svg.fonttype": "path",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.edgecolor": "#888888",
    "axes.linewidth": 0.8,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}
METADATA = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}  # omitted: they differ between runs


def color(method: str) -> str:
    """The colour of a method; that of a plugin's method depends on its name."""
    if method in STYLES:
        return STYLES[method][0]
    return OTHER_COLORS[zlib.crc32(method.encode()) % len(OTHER_COLORS)]


def marker(method: str) -> str:
    """The mark of a method, likewise."""
    if method in STYLES:
        return STYLES[method][1]
    return OTHER_MARKERS[zlib.crc32(method.encode()) % len(OTHER_MARKERS)]


def pictures(draw: Callable[[Figure], None], kinds: Sequence[str] = tuple(METADATA)) -> dict[str, bytes]:
    """What ``draw`` draws, as the content of files of these kinds."""
    require_plotting()
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(SETTINGS):
        figure = Figure(layout="constrained")
        draw(figure)
        drawn = {}
        for kind in kinds:
            content = io.BytesIO()
            figure.savefig(content, format=kind, dpi=110, metadata=METADATA[kind])
            drawn[kind] = content.getvalue()
    return drawn


def panels(figure: Figure, rows: int, columns: int, size: tuple[float, float], legend: float = 0.5) -> list[list[Axes]]:
    """A grid of panels, each of a size in inches, with room of this many inches for a legend above."""
    figure.set_size_inches(max(4.0, columns * size[0]), rows * size[1] + legend)
    axes = figure.subplots(rows, columns, squeeze=False)
    for row in axes:
        for panel in row:
            plain(panel)
    return [list(row) for row in axes]


def plain(axes: Axes) -> None:
    """A panel without a frame on the right and above, with faint lines."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8, color="#888888")


def annotate(axes: Axes, text: str, x: float, y: float, size: int = 7) -> None:
    """Write ``text`` above the top of a bar."""
    axes.annotate(text, (x, y), (0, 2), textcoords="offset points", ha="center", fontsize=size)


def log_scale(axes: Axes, values: Iterable[float]) -> None:
    """A log scale with ticks that can be read, over all ``values``."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    positive = [value for value in values if value > 0]
    axes.set_yscale("log")
    if positive:
        low, high = min(positive), max(positive)
        margin = max(1.12, (high / low) ** 0.08)
        axes.set_ylim(low / margin, high * margin)
    axes.yaxis.set_major_locator(FixedLocator(_ticks(*axes.get_ylim())))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def method_legend(figure: Figure, methods: Sequence[str], bars: bool = False, dashed: Sequence[str] = ()) -> None:
    """The methods' colours and marks, above all panels, in as many columns as fit."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if not methods:
        return
    labels = [STYLES[name][2] if name in STYLES else name for name in methods]
    widest = 0.7 + 0.063 * max(map(len, labels))  # inches
    handles = [
        Patch(color=color(name))
        if bars
        else Line2D(
            [], [], color=color(name), marker=marker(name), markersize=5, linestyle="--" if name in dashed else "-"
        )
        for name in methods
    ]
    columns = max(1, min(3, len(labels), int(figure.get_figwidth() / widest)))
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False, fontsize=8)


def _ticks(low: float, high: float) -> list[float]:
    """A few round numbers between two, with steps that suit the range.

    >>> _ticks(0.9, 5.2), _ticks(0.8, 3e4)
    ([1.0, 2.0, 5.0], [1.0, 10.0, 100.0, 1000.0, 10000.0])
    """
    for steps in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)):
        ticks = [step * 10.0**power for power in range(-3, 13) for step in steps if low <= step * 10.0**power <= high]
        if len(ticks) >= 3:
            return ticks
    middle = [low * (high / low) ** share for share in (0.1, 0.5, 0.9)]
    return [float(f"{value:.3g}") for value in middle]
