"""Table 3: what masking, and learning several orders, cost in likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from countless.sheet import Sheet
from countless_lab.measurement.highlight import best
from countless_lab.paper.cells import Cell
from countless_lab.paper.drawing import color, panels
from countless_lab.paper.exhibits.base import CellResults, Exhibit, find, values
from countless_lab.paper.numbers import Record, mean_and_deviation
from countless_lab.paper.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class LikelihoodExhibit(Exhibit):
    """Bits per row of rows held out, with nothing masked."""

    name = "likelihoods"
    in_paper = "Table 3"
    title = "Negative log-likelihoods by training scheme"

    def cells(self, study: Study) -> list[Cell]:
        return [cell for order in range(study.scale.orders) for cell in study.likelihoods(order).values()]

    def results(self, study: Study, by_cell: CellResults) -> list[Record]:
        results = []
        models = {order: study.likelihoods(order) for order in range(study.scale.orders)}
        for name in models[0]:
            trained = {
                order: by_cell[by_name[name].name] for order, by_name in models.items() if by_name[name].name in by_cell
            }
            if trained:
                reports = list(trained.values())
                bits = mean_and_deviation([report["unmasked_bits"] for report in reports])
                results.append(
                    {"model": name, "orders": list(trained), "bits": bits, "parameters": reports[0]["parameters"]}
                )
        return results

    def sheets(self, tables: Sequence[Record]) -> list[Sheet]:
        models = values(tables, "model")
        rows = []
        for table in tables:
            fields = [find(table, model=model) for model in models]
            means = [None if field is None else field["bits"]["mean"] for field in fields]
            rows.append((table["data"]["name"], *best(means, [_text(field) for field in fields])))
        counts = sorted({len(record["orders"]) for table in tables for record in table["results"]})
        orders = f"{' or '.join(map(str, counts))} order{'' if counts == [1] else 's'}" if counts else "no order"
        notes = (
            f"Bits per row, of rows held out and with nothing masked: mean and sample deviation over {orders}.",
            "Particles have no place here: a sampler does not change a likelihood.",
        )
        return [Sheet(self.title, ("Data set", *map(model_label, models)), tuple(rows), 1, notes)]

    def draw_all(self, tables: Sequence[Record], figure: Figure) -> None:
        line = panels(figure, 1, len(tables), (2.5, 2.8), 0.0)[0]
        for axes, table in zip(line, tables, strict=True):
            results = table["results"]
            for x, record in enumerate(results):
                bits = record["bits"]
                axes.plot([x] * len(bits["values"]), bits["values"], ".", color="#999999", markersize=5)
                axes.errorbar(
                    x, bits["mean"], bits["deviation"], color=_color(record["model"]), marker="o", capsize=4, ms=6
                )
            labels = [model_label(record["model"]).replace("Random input", "Input") for record in results]
            axes.set_xticks(range(len(results)), labels, rotation=35, ha="right", rotation_mode="anchor", fontsize=8)
            axes.margins(0.12, 0.15)
            axes.set_title(table["data"]["name"], fontsize=10)
        line[0].set_ylabel("bits per row (held out)", fontsize=9)


def model_label(model: str) -> str:
    """A model as the paper's table has it.

    >>> model_label("masking"), model_label("multi-order(10)")
    ('Random input masking', 'Multi-order(10)')
    """
    return "Random input masking" if model == "masking" else model.capitalize()


def _color(model: str) -> str:
    names = {"baseline": "progressive", "masking": "skipping"}
    return color(names.get(model, "multi-order"))


def _text(result: Record | None) -> str:
    if result is None:
        return ""
    bits = result["bits"]
    return f"{bits['mean']:.2f}" if bits["deviation"] is None else f"{bits['mean']:.2f} ± {bits['deviation']:.2f}"
