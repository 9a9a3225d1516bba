"""The base class of exhibits: it names cells, gathers their results, and shows them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from countless.sheet import Sheet
from countless.spec import RESMADE
from countless_lab.measurement.highlight import best
from countless_lab.paper.cells import Cell
from countless_lab.paper.drawing import panels
from countless_lab.paper.numbers import Record, written
from countless_lab.paper.study import Study, with_needs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CellResults = dict[str, Record]  # by the cells' names

LABELS = {
    "naive": "Naive sampling",
    "progressive": "Progressive (baseline)",
    "multi-order": "Multi-order",
    "skipping": "Skipping",
    "multi-order+skipping": "Multi-order + skipping",
    "particles": "Particles",
    "particles on skipping": "Particles on the model of skipping",
    "particles on multi-order+skipping": "Particles on the model of multi-order + skipping",
}
METRIC_LABELS = {"p50": "P50", "p99": "P99", "max": "Max"}
HIGH_METRICS = ("p99", "max")  # those that pictures show


class Results(Protocol):
    """A store of the results of cells."""

    def result(self, job: Any, /) -> Record | None:
        """The result of a cell, or None."""


class Exhibit(ABC):
    """A table or figure of the paper. ``in_paper`` says which, ``title`` what it shows.

    The facts of one data set are plain data: ``data``, ``settings``, the cells that are ``missing``, and ``results``, a
    list of records with a key or two and the figures. A missing figure is absent or None. The name of the data set ends
    with the kind of model, unless that is the paper's.
    """

    name: ClassVar[str]
    in_paper: ClassVar[str]
    title: ClassVar[str]
    text: ClassVar[bool] = False

    @abstractmethod
    def cells(self, study: Study) -> list[Cell]:
        """The cells that the exhibit shows, without those that these need."""

    @abstractmethod
    def results(self, study: Study, by_cell: CellResults) -> list[Record]:
        """The records of the finished cells."""

    @abstractmethod
    def sheets(self, tables: Sequence[Record]) -> list[Sheet]:
        """Tables over all data sets, the paper's first."""

    def draw(self, tables: Sequence[Record], figure: Figure) -> None:
        """The picture, on a figure that may be given another size."""
        if tables:
            self.draw_all(tables, figure)
        else:
            figure.set_size_inches(5, 1.5)
            figure.text(0.5, 0.5, "not measured yet", ha="center", va="center", color="grey")

    @abstractmethod
    def draw_all(self, tables: Sequence[Record], figure: Figure) -> None:
        """The picture of at least one data set."""

    def gather(self, study: Study, store: Results) -> Record | None:
        """The facts of one data set so far; None if no cell is finished."""
        cells = with_needs(self.cells(study))
        by_cell = {cell.name: result for cell in cells if (result := store.result(cell)) is not None}
        results = self.results(study, by_cell)
        if not results:
            return None
        return {
            "data": {**_data(study), **by_cell.get(study.questions.name, {})},
            "settings": _settings(study),
            "missing": [cell.name for cell in cells if cell.name not in by_cell],
            "results": results,
        }

    def markdown(self, tables: Sequence[Record]) -> str:
        """The tables in Markdown, over all data sets."""
        sections = [
            f"# {self.title} ({self.in_paper} of the paper)",
            *(sheet.markdown() for sheet in self.sheets(tables)),
        ]
        return "\n\n".join([*sections, *_gaps(tables)]) + "\n"


def label(method: str) -> str:
    """The label of a method in tables; that of a plugin's method is its name.

    >>> label("multi-order+skipping"), label("stratified")
    ('Multi-order + skipping', 'Stratified')
    """
    return LABELS.get(method, method.capitalize())


def find(table: Record, **keys: Any) -> Record | None:
    """The one result of ``facts`` with these keys."""
    return next(
        (result for result in table["results"] if all(result.get(key) == value for key, value in keys.items())), None
    )


def names(tables: Sequence[Record]) -> list[str]:
    """The data sets."""
    return [table["data"]["name"] for table in tables]


def values(tables: Sequence[Record], key: str) -> list[Any]:
    """The distinct values of ``key`` in the results of all data sets, in their order."""
    return list(dict.fromkeys(record[key] for table in tables for record in table["results"] if key in record))


def best_means(fields: Sequence[Record | None]) -> list[str]:
    """Means with their deviations, the smallest mean in bold."""
    means = [None if field is None else field["mean"] for field in fields]
    return best(means, [written(field) for field in fields])


def ablation_samples(tables: Sequence[Record]) -> str:
    """The numbers of samples of an ablation, in words."""
    counts = sorted({table["settings"]["ablation_samples"] for table in tables})
    return f"{' or '.join(f'{count:,}' for count in counts) or 'no'} samples"


def budget_panels(
    figure: Figure, tables: Sequence[Record], size: tuple[float, float]
) -> tuple[list[int], list[tuple[Record, str, list[Axes]]]]:
    """The budgets, and for every table and high metric a row of panels, one for each budget."""
    budgets = sorted(values(tables, "samples"))
    keys = [(table, metric) for table in tables for metric in HIGH_METRICS]
    grid = panels(figure, len(keys), len(budgets), size, 0.7)
    for line, (table, metric) in zip(grid, keys, strict=True):
        line[0].set_ylabel(f"{table['data']['name']}\n{METRIC_LABELS[metric]} error", fontsize=9)
    for axes, samples in zip(grid[0], budgets, strict=True):
        axes.set_title(f"{samples:,} samples", fontsize=10)
    return budgets, [(table, metric, line) for (table, metric), line in zip(keys, grid, strict=True)]


def missing_note(table: Record) -> str | None:
    """A note about missing cells; None if all are finished."""
    missing = table["missing"]
    if not missing:
        return None
    return f"{table['data']['name']}: not measured yet: {len(missing):,} of the cells, such as {missing[0]}."


def _gaps(tables: Sequence[Record]) -> list[str]:
    return [note for table in tables if (note := missing_note(table)) is not None] or (
        [] if tables else ["Nothing yet."]
    )


def _data(study: Study) -> Record:
    data = study.data
    return {
        "name": data.name if data.text or study.kind == RESMADE else f"{data.name} ({study.kind})",
        "source": Path(data.source).name,
        "rows": data.rows,
        "exclude": list(data.exclude),
        "text": data.text,
    }


def _settings(study: Study) -> Record:
    """The settings that figures depend on, besides the data."""
    scale, data = study.scale, study.data
    if data.text:
        return {
            "scale": scale.name,
            "epochs": scale.text_epochs,
            "network": scale.text_network,
            "queries": scale.text_queries,
            "samples": [scale.text_samples],
        }
    return {
        "scale": scale.name,
        "orders": scale.orders,
        "first_order_above": scale.first_order_above,
        "epochs": scale.epochs_for(data.name, data.rows),
        "batch": scale.batch,
        "learning_rate": scale.learning_rate,
        "kind": study.kind,
        "hidden": scale.hidden,
        "embedding": scale.embedding,
        "ensemble": scale.ensemble,
        "queries": scale.queries,
        "samples": list(scale.samples),
        "ablation_samples": scale.ablation_samples,
    }
