"""The paper's published figures, and which table or part of the text each is from."""

from __future__ import annotations

from dataclasses import dataclass

COLUMN_METHODS = ("progressive", "multi-order", "skipping", "multi-order+skipping")
TEXT_METHODS = ("naive", "progressive", "skipping")
MODELS = ("baseline", "masking", "multi-order(5)", "multi-order(10)", "multi-order(15)")
MISPRINT = "a misprint: it repeats the cell of the largest error, and a median above the 99th percentile cannot be"

Pair = tuple[float, float]  # mean and deviation

# Table 5, by samples and metric; a data set's pairs are in the order of COLUMN_METHODS.
QUANTILES: dict[tuple[int, str], dict[str, tuple[Pair, Pair, Pair, Pair]]] = {
    (100, "p50"): {
        "Census": ((1.19, 0.01), (1.53, 0.32), (1.09, 0.01), (1.21, 0.03)),
        "KDD": ((1.24, 0.02), (1.41, 0.16), (1.14, 0.02), (1.25, 0.05)),
        "DMV-Full": ((1.22, 0.04), (1.70, 0.22), (1.08, 0.01), (1.22, 0.04)),
    },
    (100, "p99"): {
        "Census": ((1150, 550), (38.6, 52), (2.55, 0.29), (3.36, 0.32)),
        "KDD": ((36.4, 11), (9.82, 3.4), (4.58, 0.83), (5.07, 0.85)),
        "DMV-Full": ((1130, 1300), (80, 81), (93, 69), (6.5, 1.7)),
    },
    (100, "max"): {
        "Census": ((24500, 18000), (3490, 6700), (15.1, 7.3), (12.3, 5.3)),
        "KDD": ((345, 280), (99.9, 140), (9.97, 4.1), (9.25, 1.9)),
        "DMV-Full": ((21200, 22000), (1640, 2600), (1560, 1700), (22.7, 13)),
    },
    (1_000, "p50"): {
        "Census": ((1.06, 0.01), (1.44, 0.31), (1.09, 0.01), (1.20, 0.02)),
        "KDD": ((1.08, 0.01), (1.34, 0.17), (1.13, 0.02), (1.25, 0.05)),
        "DMV-Full": ((1.08, 0.01), (1.53, 0.24), (1.05, 0.01), (1.18, 0.04)),
    },
    (1_000, "p99"): {
        "Census": ((2.58, 0.39), (3.84, 1.1), (2.50, 0.28), (3.2, 0.28)),
        "KDD": ((5.78, 1.7), (4.69, 0.67), (4.41, 0.74), (5.05, 0.89)),
        "DMV-Full": ((105, 44), (11.3, 4.8), (4.24, 2.1), (4.92, 0.81)),
    },
    (1_000, "max"): {
        "Census": ((798, 700), (212, 330), (14.7, 7.0), (12.8, 5.1)),
        "KDD": ((30.7, 30), (9.42, 3.8), (9.95, 4.1), (9.37, 1.9)),
        "DMV-Full": ((508, 200), (39.4, 43), (114, 100), (14, 6.7)),
    },
    (10_000, "p50"): {
        "Census": ((1.03, 0.01), (6.31, 1.6), (1.09, 0.01), (1.20, 0.24)),
        "KDD": ((1.05, 0.01), (1.33, 0.18), (1.13, 0.02), (1.25, 0.05)),
        "DMV-Full": ((1.05, 0.01), (1.48, 0.24), (1.05, 0.01), (1.18, 0.04)),
    },
    (10_000, "p99"): {
        "Census": ((1.49, 0.08), (2.84, 0.70), (2.48, 0.29), (3.20, 0.29)),
        "KDD": ((2.99, 0.19), (4.43, 0.93), (4.36, 0.75), (5.08, 0.85)),
        "DMV-Full": ((5.95, 3.4), (7.23, 2.4), (2.89, 0.34), (4.96, 0.85)),
    },
    (10_000, "max"): {
        "Census": ((8.86, 14), (6.31, 1.6), (14.7, 7.0), (12.6, 5.0)),
        "KDD": ((7.0, 1.5), (7.57, 1.9), (9.97, 4.1), (9.37, 1.9)),
        "DMV-Full": ((181, 78), (13.5, 6.2), (20.2, 40), (10.5, 2.6)),
    },
}
# Table 3, bits per row, in the order of MODELS.
LIKELIHOODS: dict[str, tuple[Pair, Pair, Pair, Pair, Pair]] = {
    "Census": ((52.04, 0.009), (52.34, 0.02), (52.69, 0.02), (52.79, 0.03), (52.81, 0.03)),
    "DMV-Full": ((43.12, 0.04), (43.65, 0.06), (44.15, 0.05), (44.53, 0.06), (44.65, 0.04)),
    "KDD": ((107.5, 0.3), (116.58, 0.2), (123, 0.9), (127.6, 0.4), (128.4, 0.5)),
}
# Table 4, Dryad-URLs at 1,000 samples, in the order of TEXT_METHODS.
TEXT_SAMPLES = 1_000
TEXT: dict[str, tuple[Pair, Pair, Pair]] = {
    "max": ((6412, 1280), (4628, 1785), (115.2, 25.6)),
    "p99": ((4054, 1386), (1741, 1824), (89.5, 30.6)),
    "p50": ((1.23, 0.06), (1.66, 0.15), (1.39, 0.08)),
}


@dataclass(frozen=True)
class Published:
    """A figure of the paper. One that is not ``comparable`` must not be compared with; ``remark`` says why."""

    source: str
    data: str
    metric: str
    method: str
    value: float
    deviation: float | None = None
    samples: int | None = None
    comparable: bool = True
    remark: str = ""


@dataclass(frozen=True)
class PaperTable:
    """A data set of the paper (Table 1), and how many epochs its models were trained for. Rows are rounded as there."""

    name: str
    rows: str
    columns: int
    domain: str
    epochs: int = 20


DATA = {
    "DMV-Full": PaperTable("DMV-Full", "11.6M", 19, "2-32K"),
    "Census": PaperTable("Census", "2.5M", 67, "2-18"),
    "KDD": PaperTable("KDD", "95K", 100, "2-896", epochs=200),
    "Dryad-URLs": PaperTable("Dryad-URLs", "2.4M", 100, "78"),
}


@dataclass(frozen=True)
class PaperSettings:
    """What the paper's experiments have in common (Table 2, Section 5.3)."""

    batch: int = 2_048
    learning_rate: str = "0.0005"
    orders: int = 8
    queries: int = 1_000
    text_network: str = "8 blocks of width 32, inner 256, 4 heads"
    text_queries: int = 100
    text_samples: int = TEXT_SAMPLES


# Section 5.4, in words: from about so much with progressive sampling to so much with skipping. Most are read off the
# figure, and differ from the means of Table 5.
_IN_WORDS = (
    ("Census", 100, "p99", 1000.0, 2.5),
    ("KDD", 100, "p99", 30.0, 3.0),
    ("DMV-Full", 100, "p99", 1000.0, 100.0),
    ("Census", 1_000, "max", 500.0, 10.0),
    ("KDD", 1_000, "max", 15.0, 8.0),
    ("DMV-Full", 1_000, "max", 500.0, 100.0),
    ("DMV-Full", 10_000, "max", 150.0, 5.0),
)


def table_figures() -> list[Published]:
    """Every figure of Tables 3, 4 and 5."""
    figures = []
    for (samples, metric), by_data in QUANTILES.items():
        for data, pairs in by_data.items():
            for method, (value, deviation) in zip(COLUMN_METHODS, pairs, strict=True):
                misprint = (samples, metric, data, method) == (10_000, "p50", "Census", "multi-order")
                remark = MISPRINT if misprint else ""
                figures.append(
                    Published("Table 5", data, metric, method, value, deviation, samples, not misprint, remark)
                )
    for data, bits in LIKELIHOODS.items():
        for model, (value, deviation) in zip(MODELS, bits, strict=True):
            figures.append(Published("Table 3", data, "bits", model, value, deviation))
    for metric, errors in TEXT.items():
        for method, (value, deviation) in zip(TEXT_METHODS, errors, strict=True):
            figures.append(Published("Table 4", "Dryad-URLs", metric, method, value, deviation, TEXT_SAMPLES))
    return figures


def figures_in_words() -> list[Published]:
    """The figures that Section 5.4 gives in words; all are approximate."""
    return [
        Published("Section 5.4", data, metric, method, value, samples=samples, remark="approximate")
        for data, samples, metric, before, after in _IN_WORDS
        for method, value in (("progressive", before), ("skipping", after))
    ]


def published(data: str, metric: str, method: str, samples: int | None = None) -> Published | None:
    """The figure of a table, if the paper has it.

    >>> found = published("Census", "p99", "skipping", 100)
    >>> found.source, found.value, found.deviation
    ('Table 5', 2.55, 0.29)
    """
    key = (data, metric, method, samples)
    return next(
        (figure for figure in table_figures() if (figure.data, figure.metric, figure.method, figure.samples) == key),
        None,
    )
