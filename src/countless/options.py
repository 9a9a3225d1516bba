"""The options of a fit, as frozen dataclasses that check themselves.

Every field is a keyword of :func:`countless.fit`, and a field with a help text is an option of ``countless fit``.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, TypedDict

from countless.csv_options import csv_options
from countless.errors import OptionError
from countless.settings import Options, Seconds, names, setting

MAX_DISTINCT = 100_000
MOST_LENGTH = 10_000
MOST_SEED = 2**31 - 1
NATURAL, RANDOM, FALLING, RISING = "natural", "random", "falling", "rising"
EVEN, BY_ENTROPY = "even", "entropy"
UNIFORM, NO_MASKING = "uniform", "none"
TEXT_MASKINGS = ("prefix", "spans", "none")  # what a text model may be trained to skip
CLOCKS = ("wall", "processor")
SCHEDULES = ("stable", "cosine")  # of the learning rate
DTYPES = ("int8", "float16", "float32")  # in which a model may be stored; it is always evaluated in float32
LEAST_TEXT_WIDTH = 32  # of a text network whose width is chosen by the table


@dataclass(frozen=True)
class EncodeOptions(Options):
    """Which columns to encode, and how.

    A column with more values than ``max_distinct`` becomes a grid, or text. ``text`` names columns to be modelled
    character by character, ``no_text`` such as must not be. Of text no more than ``max_length`` characters are read.
    """

    columns: tuple[str, ...] | None = setting(
        None, "columns", "Fit only these columns; a struct's name stands for all its fields."
    )
    exclude: tuple[str, ...] = setting((), "columns", "Leave these columns out; likewise.")
    max_distinct: int = setting(MAX_DISTINCT, "whole", "Store columns with more values as a quantile grid.", least=1)
    text: tuple[str, ...] = setting((), "columns", "Model these columns of strings character by character.")
    no_text: tuple[str, ...] = setting((), "columns", "Do not model these as text, however long and many.")
    max_length: int | None = setting(
        None,
        "whole",
        "Characters of a string to model  [default: as many as 99% of the strings have, up to 256]",
        least=1,
        most=MOST_LENGTH,
    )
    flatten: int = setting(
        1,
        "whole",
        "Make columns such as address.city of so many levels of structs; 0 leaves structs out.",
        least=0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        others = {name.casefold() for name in self.no_text}
        for name in self.text:
            if name.casefold() in others:
                raise OptionError(f'"{name}" is named by {{text}} and by {{no_text}}: it can be only one of them')


@dataclass(frozen=True)
class ReadingOptions(EncodeOptions):
    """What to read: the rows of ``table`` or of ``query`` in a database, some of their columns, and a sample of them.

    ``csv`` says how to read a CSV file, by the names of DuckDB's options. ``derive`` adds columns that DuckDB computes
    from one row, such as ``lower(city) AS city_lower``.
    ``sample_rows`` is how many random rows to train on. Domains, exact counts and error bars are those of all rows.
    """

    heading: ClassVar[str] = "Reading"

    table: str | None = setting(
        None, "text", "The table of a database: orders, or sales.orders; not needed if there is only one."
    )
    query: str | None = setting(None, "text", "A SELECT, whose rows are learned instead of a table of the database.")
    csv: dict[str, Any] | None = setting(
        None,
        "mapping",
        "How to read a CSV file, by DuckDB's names, such as delim=';' or decimal_separator=','; may be repeated.",
        metavar="NAME=VALUE",
    )
    derive: tuple[str, ...] = setting(
        (),
        "expressions",
        "Add a column that is computed from one row, such as 'lower(city) AS city_lower'; may be repeated.",
        metavar="'EXPRESSION AS NAME'",
    )
    sample_rows: int | None = setting(
        None, "whole", "Train on so many random rows; exact counts and error bars are still those of all.", least=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.csv is not None:
            object.__setattr__(self, "csv", csv_options(self.csv))


@dataclass(frozen=True)
class Network(Options):
    """The model of the columns: a ResMADE, or another kind that is registered.

    ``hidden`` units and ``blocks`` that are not given are chosen by the table and the time to train. ``units`` tells
    how a ResMADE of one order shares its hidden units out over the columns: by ``entropy``, more to those that tell
    more, or ``even``, as the paper has it. ``order`` is that in which the columns are read; with several ``orders``
    they are random.
    """

    heading: ClassVar[str] = "Network"

    hidden: int | None = setting(
        None, "whole", "Units of a hidden layer  [default: 128, 256 or 512, by rows and passes]", least=1
    )
    blocks: int | None = setting(
        None, "whole", "Residual blocks of two layers  [default: 3, or 2 of 512 units]", least=0
    )
    embedding: int = setting(32, "whole", "Size of an embedding.", least=1)
    kind: str = setting("resmade", "text", "Kind of model for the columns; plugins may bring others.")
    units: str = setting(
        BY_ENTROPY,
        "text",
        "Share units out over the columns by what each tells, or evenly.",
        choices=(BY_ENTROPY, EVEN),
    )
    order: str | tuple[str, ...] | None = setting(
        None,
        "order",
        "How to read the columns: natural, random, random:SEED, by entropy (falling, rising), or these first: a,b.  "
        "[default: natural; random if there are several]",
    )
    orders: int = setting(1, "whole", "Learn so many random orders at once, and answer by their mean.", least=1)
    text_model: bool = setting(
        False,
        "switch",
        "Train a Transformer on text: for samples, completion, anomalies, the paper's methods. Without evidence rows "
        "it is trained anyway.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        kind, _, seed = self.order.partition(":") if isinstance(self.order, str) else ("", "", "")
        if kind == RANDOM and seed and not seed.isdecimal():
            raise OptionError(f"the seed of a random {{order}} must be a number, as in random:3, not {seed!r}")
        if self.orders > 1 and self.order is not None and kind != RANDOM:
            raise OptionError("several {orders} are drawn at random: leave out {order}, or give random:SEED")


@dataclass(frozen=True)
class TextNetwork(Options):
    """The Transformer that learns the text columns, and how it is masked: ``prefix``, ``spans`` or ``none``.

    ``spans`` also learns what follows a gap inside a string. N-grams of the lengths ``grams`` have embeddings in so
    many ``buckets``. A ``width``, ``inner`` layer or number of ``buckets`` that is not given is chosen by the table.
    """

    heading: ClassVar[str] = "Network"
    prefix: ClassVar[str] = "text_network."

    width: int | None = setting(None, "whole", least=1)
    blocks: int = setting(2, "whole", least=1)
    heads: int = setting(4, "whole", least=1)
    inner: int | None = setting(None, "whole", least=1)
    grams: tuple[int, ...] = setting((2, 3, 4), "lengths")
    buckets: int | None = setting(None, "whole", least=1)
    masking: str = setting(
        "prefix",
        "text",
        "What text is trained to skip: prefixes; gaps inside strings too (spans); nothing.",
        choices=TEXT_MASKINGS,
        flag="--text-masking",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        width = self.width or LEAST_TEXT_WIDTH
        if width % self.heads:
            raise OptionError(
                f"{{text_network.heads}} must divide the width of {width} evenly, which {self.heads} do not"
            )

    @classmethod
    def preset(cls, name: str) -> TextNetwork:
        """The network called ``name``: ``default`` or ``paper``."""
        if name not in TEXT_PRESETS:
            raise OptionError(f"{{text_network}} must be {' or '.join(TEXT_PRESETS)} or a TextNetwork, not {name!r}")
        return TEXT_PRESETS[name]


TEXT_PRESETS = {
    "default": TextNetwork(),
    "paper": TextNetwork(width=32, blocks=8, heads=4, inner=256, grams=()),
}


@dataclass(frozen=True)
class TrainingOptions(Options):
    """How to train. ``epochs`` and ``budget`` (the time of the whole fit) both end the run, whichever comes first.

    ``masking`` is ``uniform`` (the paper's), ``none``, or a probability. ``workload`` is a file of WHERE clauses that
    will likely be asked, or a list of them. The others are for experiments: the learning rate climbs over the first
    ``warmup`` of the run and falls to zero at its end by a ``schedule``, ``stable`` (at the peak, then along a line) or
    ``cosine`` (falling from the start); ``clip`` bounds the gradient's norm; ``held_out`` is the share of rows for
    validation; ``smooth`` is the share of an embedding's first variance in which neighbouring values are alike;
    ``clock`` is that on the ``wall``, or the ``processor``'s, by which runs beside others can be compared; a step on
    text takes rows of about ``text_tokens`` characters, if ``batch`` is not given and the table has enough of them.
    """

    heading: ClassVar[str] = "Training"

    epochs: int | None = setting(
        None,
        "whole",
        "Passes over the table, however long they take  [default: by its size, 20 to 100, within the budget]",
        least=1,
    )
    budget: Any = setting(
        None,
        "seconds",
        "Time for the whole fit, such as 90s, 5m or 1h  [default: at most 5m, or no limit with --epochs]",
        above=0,
    )
    batch: int | None = setting(None, "whole", "Rows per step  [default: by the table's size, 128 to 256]", least=1)
    learning_rate: float | None = setting(
        None, "number", "Adam's peak learning rate  [default: 0.008; of text 0.006]", above=0
    )
    masking: str = setting(UNIFORM, "text", "Input masking: uniform, none, or a probability.")
    seed: int = setting(0, "whole", "Seed of everything random.", least=0, most=MOST_SEED)
    workload: Any = setting(
        None,
        "clauses",
        "A file of WHERE clauses that will likely be asked, one a line or each ended by a semicolon: the last part "
        "of training is about their columns.",
    )
    warmup: float = setting(0.03, "number", least=0, below=1)
    clip: float = setting(5.0, "number", above=0)
    held_out: float = setting(0.01, "number", least=0, below=0.5)
    smooth: float = setting(0.0, "number", least=0, most=1)
    clock: str = setting("wall", "text", choices=CLOCKS)
    schedule: str = setting("stable", "text", choices=SCHEDULES)
    text_tokens: int = setting(2_048, "whole", least=1)

    def __post_init__(self) -> None:
        masking: Any = self.masking
        if isinstance(masking, float):
            object.__setattr__(self, "masking", str(masking))
        super().__post_init__()
        if self.masking not in (UNIFORM, NO_MASKING) and not _is_probability(self.masking):
            raise OptionError(
                f"{{masking}} must be uniform, none, or a probability such as 0.5, from 0 to 1, not {self.masking!r}"
            )


@dataclass(frozen=True)
class UpdateOptions(Options):
    """How long to learn new rows; what is not given follows from the fit."""

    heading: ClassVar[str] = "Training"

    epochs: int | None = setting(None, "whole", "Passes over old and new rows  [default: by --budget]", least=1)
    budget: Any = setting(
        None, "seconds", "Time to train for, such as 90s or 5m  [default: an eighth of the fit's time]", above=0
    )
    learning_rate: float | None = setting(
        None, "number", "Adam's peak learning rate  [default: a quarter of the fit's]", above=0
    )
    seed: int = setting(0, "whole", "Seed of everything random.", least=0, most=MOST_SEED)


@dataclass(frozen=True)
class MoreTrainingOptions(Options):
    """How long to go on training a finished model; ``budget`` is for reading and calibrating too."""

    heading: ClassVar[str] = "Training"

    budget: Any = setting(
        None,
        "seconds",
        "Time for everything: reading, training, error bars  [default: 5m, or no limit with --epochs]",
        above=0,
    )
    epochs: int | None = setting(None, "whole", "More passes over the table  [default: by --budget]", least=1)
    learning_rate: float | None = setting(
        None, "number", "Adam's peak learning rate  [default: half of the fit's]", above=0
    )
    workload: Any = setting(None, "clauses", "The WHERE clauses that the fit was given with --workload.")


@dataclass(frozen=True)
class ResourceOptions(Options):
    """Where the work is done, and where it is kept so that a stopped fit can go on.

    ``memory`` is in bytes, or an amount such as ``"2GB"``. ``ray`` is the address of a cluster, of which so many
    ``workers`` of so many ``threads`` each train; all its machines see the folder ``shared``. ``checkpoint`` is a file
    that keeps the training and ``codes`` a folder for the encoded table; with ``resume`` a fit goes on from them.
    """

    heading: ClassVar[str] = "Resources"

    memory: int | None = setting(
        None,
        "memory",
        "Take no more memory than this, such as 2GB  [default: what the machine has left]. A table that would take "
        "more than half of it goes to a folder beside the model file, and training reads it from there.",
    )
    ray: str | None = setting(
        None, "text", "Fit on a Ray cluster: HOST:PORT, or auto for the one that runs here.", metavar="ADDRESS"
    )
    workers: int | None = setting(
        None,
        "whole",
        "Processes of the cluster that train together  [default: one per GPU, or else per machine]",
        least=1,
    )
    threads: int | None = setting(None, "whole", "CPUs of each worker  [default: 1]", least=1)
    shared: Path | None = setting(
        None, "path", "A folder that all machines of the cluster see  [default: that of the model file]"
    )
    resume: bool = setting(False, "switch", "Go on from what a stopped fit left beside the model file.")
    checkpoint: Path | None = setting(None, "path")
    codes: Path | None = setting(None, "path")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ray is None and not (self.workers is None and self.threads is None and self.shared is None):
            raise OptionError("{workers}, {threads} and {shared} are about a cluster: give its address with {ray}")
        if self.ray is not None and self.shared is None and self.checkpoint is None:
            raise OptionError("a cluster needs a folder that all its machines see: give it with {shared}")


@dataclass(frozen=True)
class StorageOptions(Options):
    """What the model file holds beside the network: exact counts, evidence rows, error bars."""

    heading: ClassVar[str] = "What to store"

    summary: bool = setting(
        True,
        "switch",
        "Store exact counts with the model: of values and of pairs of values, some 300 kB, and of frequent substrings "
        "of text (--text-counts). Short questions become exact, and others better.",
        flag="--summary/--no-summary",
    )
    text_counts: str = setting(
        "auto",
        "bytes",
        "Bytes of the file for counts of substrings, of each text column: 2MB or none.  [default: a tenth of the "
        "column's bytes, compressed, without its evidence rows, and at least 500kB]",
        metavar="SIZE",
    )
    evidence: str = setting(
        "auto",
        "rows",
        "Random rows to keep in the file: 50000, 5%, all or none. They are counted first, and the model adds what "
        "they cannot tell.  [default: 100,000; a smaller table is kept whole]",
        metavar="ROWS",
    )
    dtype: str = setting(
        DTYPES[0],
        "text",
        "How weights are stored; float16 takes 2.5 times as many bytes, float32 5 times.",
        choices=DTYPES,
    )
    calibrate: bool = setting(True, "switch")


class FitKeywords(TypedDict, total=False):
    """Every option of a fit by its own name."""

    columns: Iterable[str] | None
    exclude: Iterable[str]
    flatten: int
    max_distinct: int
    text: Iterable[str]
    no_text: Iterable[str]
    max_length: int | None
    table: str | None
    query: str | None
    csv: Mapping[str, Any] | None
    derive: Iterable[str]
    sample_rows: int | None
    hidden: int | None
    blocks: int | None
    embedding: int
    kind: str
    units: str
    order: str | Sequence[str] | None
    orders: int
    text_model: bool
    epochs: int | None
    budget: Seconds | None
    batch: int | None
    learning_rate: float | None
    masking: str
    seed: int
    workload: Any
    warmup: float
    clip: float
    held_out: float
    smooth: float
    clock: str
    schedule: str
    text_tokens: int
    memory: str | int | None
    ray: str | None
    workers: int | None
    threads: int | None
    shared: str | os.PathLike[str] | None
    resume: bool
    checkpoint: str | os.PathLike[str] | None
    codes: str | os.PathLike[str] | None
    summary: bool
    text_counts: str | int
    evidence: str | int
    dtype: str
    calibrate: bool


@dataclass(frozen=True)
class FitOptions:
    """All options of a fit.

    >>> FitOptions.of({"epochs": 3, "exclude": "id"}, network=Network(hidden=64)).reading.exclude
    ('id',)
    """

    reading: ReadingOptions = ReadingOptions()
    network: Network = Network()
    text_network: TextNetwork = TextNetwork()
    training: TrainingOptions = TrainingOptions()
    resources: ResourceOptions = ResourceOptions()
    storage: StorageOptions = StorageOptions()

    @classmethod
    def of(cls, keywords: Mapping[str, Any], **parts: Options | str | None) -> FitOptions:
        """The options of these parts, or the default ones, with some fields changed by ``keywords``."""
        if (text := parts.get("text_network")) is not None:
            keywords = {"text_model": True, **keywords}
            parts["text_network"] = TextNetwork.preset(text) if isinstance(text, str) else text
        left, made = dict(keywords), {}
        for field in fields(cls):
            default: Any = field.default
            part: Any = default if parts.get(field.name) is None else parts[field.name]
            if not isinstance(part, type(default)):
                raise OptionError(f"{{{field.name}}} must be of the class {type(default).__name__}, not {part!r}")
            own = () if isinstance(part, TextNetwork) else names(type(part))
            made[field.name] = part.changed({name: left.pop(name) for name in own if name in left})
        if left:
            close = difflib.get_close_matches(next(iter(left)), [*FitKeywords.__annotations__], 1)
            hint = f": did you mean {close[0]!r}?" if close else ""
            raise TypeError(f"fit() got an unexpected keyword argument {next(iter(left))!r}{hint}")
        return cls(**made)

    @property
    def trains_text(self) -> bool:
        """Whether a network learns text: if asked, or if no strings are kept."""
        return self.network.text_model or self.storage.evidence == "none"

    def to_json(self) -> dict[str, Any]:
        """Every option by its keyword; those of the text network together."""
        parts = {field.name: getattr(self, field.name).to_json() for field in fields(self)}
        text_network = parts.pop("text_network")
        return {name: value for part in parts.values() for name, value in part.items()} | {"text_network": text_network}


def _is_probability(masking: str) -> bool:
    try:
        return 0.0 <= float(masking) <= 1.0
    except ValueError:
        return False
