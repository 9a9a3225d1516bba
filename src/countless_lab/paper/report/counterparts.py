"""The paper's data set that a table is or stands in for, and the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from countless.sheet import Sheet
from countless_lab.paper.exhibits.base import METRIC_LABELS, find, label, values
from countless_lab.paper.exhibits.likelihoods import model_label
from countless_lab.paper.exhibits.text import ROWS
from countless_lab.paper.numbers import METRICS, Record, written
from countless_lab.paper.report.published import COLUMN_METHODS as METHODS
from countless_lab.paper.report.published import (
    MODELS,
    TEXT_METHODS,
    TEXT_SAMPLES,
    Published,
    figures_in_words,
    published,
)


@dataclass(frozen=True)
class Counterpart:
    """A data set of the paper that a table is the ``same`` as, or stands in for."""

    paper: str
    same: bool


COUNTERPARTS = {
    "census": Counterpart("Census", True),
    "kdd": Counterpart("KDD", True),
    "dmv-full": Counterpart("DMV-Full", True),
    "dryad-urls": Counterpart("Dryad-URLs", True),
    "census_income": Counterpart("Census", False),
    "covtype": Counterpart("KDD", False),
    "ev_registrations": Counterpart("DMV-Full", False),
    "news_urls": Counterpart("Dryad-URLs", False),
}


def counterpart(name: str) -> Counterpart | None:
    """The paper's data set that a table is or stands in for, whatever kind of model is named behind it."""
    return COUNTERPARTS.get(name.split(" (")[0])


def paper_name(table: Record) -> str:
    """The name of that data set, for a table that has one."""
    match = counterpart(table["data"]["name"])
    assert match is not None
    return match.paper


def described(name: str) -> str:
    """The relation of a table to the paper's data sets.

    >>> described("census"), described("covtype"), described("flights")
    ("the paper's Census", "a stand-in for the paper's KDD", "none of the paper's")
    """
    match = counterpart(name)
    if match is None:
        return "none of the paper's"
    return f"the paper's {match.paper}" if match.same else f"a stand-in for the paper's {match.paper}"


def beside_the_paper(exhibit: str, tables: Sequence[Record]) -> list[Sheet]:
    """Our figures and the paper's, row by row, if the paper has published any for this exhibit and these tables."""
    comparable = [table for table in tables if counterpart(table["data"]["name"])]
    sheets = [make(comparable) for make in _SHEETS.get(exhibit, ()) if comparable]
    return [sheet for sheet in sheets if sheet.rows]


def _main(tables: Sequence[Record]) -> Sheet:
    rows = []
    for samples in sorted(values(tables, "samples")):
        for metric in METRICS:
            for table in tables:
                paper = paper_name(table)
                results = [find(table, samples=samples, method=method) for method in METHODS]
                theirs = [published(paper, metric, method, samples) for method in METHODS]
                if any(results) and any(theirs):
                    row = (f"{samples:,}", METRIC_LABELS[metric])
                    ours = [written(field and field[metric]) for field in results]
                    rows += _pair(row, table["data"]["name"], ours, paper, theirs)
    headings = ("Samples", "Metric", "Data set", *(label(method) for method in METHODS))
    note = "*: a misprint in the paper (its median repeats its largest error), not to be compared with."
    return Sheet("Beside the paper's Table 5", headings, tuple(rows), 3, (note,))


def _in_words(tables: Sequence[Record]) -> Sheet:
    rows = []
    figures = {(figure.data, figure.samples, figure.metric, figure.method): figure for figure in figures_in_words()}
    methods = ("progressive", "skipping")
    for data, samples, metric in dict.fromkeys(key[:3] for key in figures):
        for table in tables:
            results = [find(table, samples=samples, method=method) for method in methods]
            if paper_name(table) == data and any(results):
                theirs = [figures[data, samples, metric, method] for method in methods]
                row = (f"{samples:,}", METRIC_LABELS[metric])
                ours = [written(field and field[metric]) for field in results]
                rows += _pair(row, table["data"]["name"], ours, data, theirs)
    headings = ("Samples", "Metric", "Data set", *(label(method) for method in methods))
    note = "The paper's are approximate, and some differ from its own Table 5."
    return Sheet("Beside what the paper says in words (Section 5.4)", headings, tuple(rows), 3, (note,))


def _likelihoods(tables: Sequence[Record]) -> Sheet:
    rows = []
    for table in tables:
        paper = paper_name(table)
        results = [find(table, model=model) for model in MODELS]
        theirs = [published(paper, "bits", model) for model in MODELS]
        rows += _pair((), table["data"]["name"], [written(field and field["bits"]) for field in results], paper, theirs)
    note = "Bits of different tables cannot be compared; how they grow from the left to the right can."
    return Sheet("Beside the paper's Table 3", ("Data set", *map(model_label, MODELS)), tuple(rows), 1, (note,))


def _text(tables: Sequence[Record]) -> Sheet:
    rows = []
    for table in tables:
        paper = paper_name(table)
        for metric, heading in ROWS.items():
            results = [find(table, method=method) for method in TEXT_METHODS]
            theirs = [published(paper, metric, method, TEXT_SAMPLES) for method in TEXT_METHODS]
            rows += _pair((heading,), table["data"]["name"], [written(f and f[metric]) for f in results], paper, theirs)
    headings = ("Metric", "Data set", *(label(method) for method in TEXT_METHODS))
    return Sheet("Beside the paper's Table 4", headings, tuple(rows), 2)


def _pair(
    row: tuple[str, ...], name: str, ours: Sequence[str], paper: str, theirs: Sequence[Published | None]
) -> list[tuple[str, ...]]:
    """A row of ours, and below it the paper's."""
    return [(*row, f"{name} (ours)", *ours), (*row, f"{paper} (the paper)", *map(_theirs, theirs))]


def _theirs(figure: Published | None) -> str:
    if figure is None:
        return ""
    return written({"mean": figure.value, "deviation": figure.deviation}) + ("" if figure.comparable else " *")


_SHEETS: dict[str, tuple[Callable[[Sequence[Record]], Sheet], ...]] = {
    "main": (_main, _in_words),
    "likelihoods": (_likelihoods,),
    "text": (_text,),
}
