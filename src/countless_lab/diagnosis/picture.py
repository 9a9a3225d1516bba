"""A diagnosis on one page of pictures."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from countless.evaluation.diagnosis.diagnosis import Diagnosis
from countless.evaluation.diagnosis.groups import QUANTILES, Group
from countless.evaluation.diagnosis.suspects import SURE, Suspect
from countless_lab.measurement.plotting import short
from countless_lab.measurement.requirements import require_plotting
from countless_lab.paper.drawing import log_scale, panels, pictures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, RED, GREY = "#2458d3", "#d62a2a", "#999999"
SHADES = dict(zip(QUANTILES, ("#2458d3", "#1fb5a6", "#f28e1c", "#d62a2a"), strict=True))
BARS = 12  # columns, and pairs of them


def drawer() -> Callable[[Diagnosis], dict[str, bytes]]:
    """The function that draws a diagnosis; raise an error if a package for drawing is missing."""
    require_plotting()
    return draw


def draw(diagnosis: Diagnosis) -> dict[str, bytes]:
    """The picture as the content of an SVG and of a PNG file."""

    def page(figure: Figure) -> None:
        (filters, truths, scatter), (columns, pairs, whose) = panels(figure, 2, 3, (4.4, 3.7), 0.0)
        _groups(filters, diagnosis.by_filters, "filters in the query")
        _groups(truths, diagnosis.by_truth, "true count")
        filters.legend(frameon=False, fontsize=8, loc="upper left")
        _truth_and_estimate(scatter, diagnosis)
        _suspects(columns, diagnosis.columns, "columns")
        _suspects(pairs, diagnosis.pairs, "pairs of columns")
        _whose(whose, diagnosis)

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)  # a column's name may be in any script
        return pictures(page)


def _groups(axes: Axes, groups: Sequence[Group], label: str) -> None:
    xs = range(len(groups))
    for name, shade in SHADES.items():
        axes.plot(xs, [group.q_error[name] for group in groups], "o-", color=shade, ms=4, lw=1.3, label=name)
    axes.set_xticks(xs, [_short_label(group.label) for group in groups], fontsize=8)
    log_scale(axes, [error for group in groups for error in (1.0, *group.q_error.values())])
    axes.set_xlabel(label, fontsize=9)
    axes.set_ylabel("q-error", fontsize=9)
    axes.set_title(f"Error by {'number of filters' if label.startswith('filters') else label}", fontsize=10)


def _truth_and_estimate(axes: Axes, diagnosis: Diagnosis) -> None:
    truths = [max(1.0, answer.question.truth) for answer in diagnosis.answers]
    answers = [max(1.0, answer.estimate) for answer in diagnosis.answers]
    _scatter(axes, truths, answers, [RED if answer.is_samplers else BLUE for answer in diagnosis.answers])
    ends = (0.8, 1.25 * max(*truths, *answers))
    axes.plot(ends, ends, color=GREY, lw=0.8, zorder=1)
    axes.set_xlim(ends)
    axes.set_ylim(ends)
    axes.set_xlabel("true count", fontsize=9)
    axes.set_ylabel("answer", fontsize=9)
    axes.set_title("Answers and truth (red: the sampler's error)", fontsize=10)


def _suspects(axes: Axes, suspects: Sequence[Suspect], label: str) -> None:
    """Bars of the excess with two standard errors, the most suspect on top."""
    axes.set_title(f"Excess error by {label}", fontsize=10)
    if not suspects:
        axes.text(0.5, 0.5, "too few queries to tell", transform=axes.transAxes, ha="center", color="grey")
        axes.set_axis_off()
        return
    top = suspects[:BARS]
    heights = [-rank for rank in range(len(top))]
    excesses = [suspect.excess for suspect in top]
    axes.barh(heights, excesses, color=[RED if suspect.stands_out else GREY for suspect in top], height=0.65)
    axes.errorbar(
        excesses, heights, xerr=[SURE * suspect.standard_error for suspect in top], fmt="none", ecolor="#333333", lw=0.8
    )
    axes.set_yticks(heights, [_clipped(" + ".join(suspect.columns)) for suspect in top], fontsize=7, parse_math=False)
    axes.axvline(0.0, color="#888888", lw=0.8)
    axes.set_xlabel("excess of |ln q-error|, with two standard errors", fontsize=9)


def _whose(axes: Axes, diagnosis: Diagnosis) -> None:
    models = [answer.model_error for answer in diagnosis.answers]
    samplers = [answer.sampler_error for answer in diagnosis.answers]
    _scatter(axes, models, samplers, [RED if answer.is_samplers else BLUE for answer in diagnosis.answers])
    ends = (0.95, 1.15 * max(*models, *samplers, 2.0))
    axes.plot(ends, ends, color=GREY, lw=0.8, zorder=1)
    axes.set_xlim(ends)
    axes.set_ylim(ends)
    axes.set_xlabel("the model's own error (factor)", fontsize=9)
    axes.set_ylabel("the sampler's error (factor)", fontsize=9)
    axes.set_title("Whose error is it?", fontsize=10)


def _scatter(axes: Axes, across: Sequence[float], up: Sequence[float], colors: Sequence[str]) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.scatter(across, up, s=9, c=colors, alpha=0.55, linewidths=0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
        axis.set_minor_formatter(NullFormatter())


def _short_label(label: str) -> str:
    """A band of counts in few characters.

    >>> _short_label("1,000-9,999"), _short_label("7"), _short_label("over")
    ('1k+', '7', 'over')
    """
    low, dash, _ = label.partition("-")
    return f"{short(float(low.replace(',', '')))}+" if dash else label


def _clipped(text: str, longest: int = 34) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
