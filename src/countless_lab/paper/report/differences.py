"""Differences from the paper: the tables, how much of the protocol was run, and how models are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from countless.data.columns.digits import DIGITS_FROM
from countless.data.columns.grids.grid_knots import CELLS
from countless.sheet import Sheet
from countless_lab.paper.numbers import Record
from countless_lab.paper.report.counterparts import counterpart, described, paper_name
from countless_lab.paper.report.published import DATA, PaperSettings

NOTES = (
    "Where a table only stands in for one of the paper's, compare ratios between methods, not the errors themselves.",
    "The q-error takes both the estimate and the truth as at least one row.",
    f"A column of more than {DIGITS_FROM:,} values is stored in two or three digits, each a position of its own; the"
    " paper has one softmax for any column. Forward passes count digits.",
    f"A column with too many values for a code each, such as a measurement, is stored as a grid of about {CELLS:,}"
    " cells; the paper leaves such columns out.",
    "Multi-order models are narrowed to about as many parameters as the others have, as in the paper. Since units are"
    " sorted by degree under every order, only the first and the output layer carry a signal of the order.",
    "Deviations over orders are sample deviations (divided by one less than the number); the paper does not say which"
    " it gives.",
    "The paper's methods give the paper's answers, but re-use what earlier positions, and other paths with the same"
    " symbols, have computed, which makes them several times faster than whole forward passes. Their forward passes are"
    " counted as in the paper, but for naive sampling of text, where equal prefixes count once.",
    "Particles is ours: it keeps different prefixes, each with its weight, where the paper draws independent samples."
    " Its budget is the most prefixes it holds at once.",
    "The network for text at the scales smoke and small is two blocks of width 64 that also see the last two to four"
    " characters, not eight blocks of width 32; at the scale full it is the paper's. Methods that skip are asked of a"
    " model with masked prefixes, the others of one without.",
    "Times depend on the machine and on what else it does: compare ratios.",
)


def differences(gathered: Mapping[str, Sequence[Record]]) -> list[Sheet]:
    """How every data set was measured, above the paper's own data sets."""
    together: dict[str, Record] = {}
    for tables in gathered.values():
        for table in tables:
            together.setdefault(table["data"]["name"], table)
    columns = [table for table in together.values() if not table["data"]["text"]]
    texts = [table for table in together.values() if table["data"]["text"]]
    sheets = []
    if columns:
        rows = [*map(_columns_row, columns), *map(_paper_columns_row, _papers(columns))]
        sheets.append(Sheet("Tables of columns", COLUMN_HEADINGS, tuple(rows), 2))
    if texts:
        rows = [*map(_text_row, texts), *map(_paper_text_row, _papers(texts))]
        sheets.append(Sheet("Tables of text", TEXT_HEADINGS, tuple(rows), 2))
    return sheets


COLUMN_HEADINGS = (
    "Data set", "Is", "Rows", "Columns", "Values of a column",
    "Scale", "Epochs", "Batch", "Learning rate", "Orders", "Queries",
)  # fmt: skip
TEXT_HEADINGS = ("Data set", "Is", "Rows", "Scale", "Epochs", "Network", "Queries", "Samples")


def _columns_row(table: Record) -> tuple[str, ...]:
    data, settings = table["data"], table["settings"]
    domains = data.get("domains")
    return (
        data["name"],
        described(data["name"]) + (f"; without {', '.join(data['exclude'])}" if data["exclude"] else ""),
        f"{data['rows']:,}",
        str(data.get("columns", "")),
        f"{domains[0]:,}-{domains[1]:,}" if domains else "",
        settings["scale"],
        str(settings["epochs"]),
        f"{settings['batch']:,}",
        f"{settings['learning_rate']:g}",
        f"{settings['orders']}, above {settings['first_order_above']:,} samples 1"
        if max(settings["samples"]) > settings["first_order_above"]
        else str(settings["orders"]),
        f"{data.get('queries', settings['queries']):,}",
    )


def _text_row(table: Record) -> tuple[str, ...]:
    data, settings = table["data"], table["settings"]
    return (
        data["name"],
        described(data["name"]),
        f"{data['rows']:,}",
        settings["scale"],
        str(settings["epochs"]),
        settings["network"],
        f"{data.get('queries', settings['queries']):,}",
        " or ".join(f"{count:,}" for count in settings["samples"]),
    )


def _papers(tables: Sequence[Record]) -> list[str]:
    """The paper's data sets that these are, or stand in for."""
    names = [paper_name(table) for table in tables if counterpart(table["data"]["name"])]
    return list(dict.fromkeys(names))


def _paper_columns_row(name: str) -> tuple[str, ...]:
    data, settings = DATA[name], PaperSettings()
    size = (data.rows, str(data.columns), data.domain)
    return (
        name,
        "the paper",
        *size,
        "full",
        str(data.epochs),
        f"{settings.batch:,}",
        settings.learning_rate,
        str(settings.orders),
        f"{settings.queries:,}",
    )


def _paper_text_row(name: str) -> tuple[str, ...]:
    data, settings = DATA[name], PaperSettings()
    questions = (str(settings.text_queries), f"{settings.text_samples:,}")
    return (name, "the paper", data.rows, "full", str(data.epochs), settings.text_network, *questions)
