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

from countless.arrays import DTYPES
from countless.csv_options import csv_options
from countless.errors import OptionError
from countless.settings import Options, Seconds, names, setting

MAX_DISTINCT = 100_000
MOST_LENGTH = 10_000
MOST_SEED = 2**31 - 1
NATURAL, RANDOM, FALLING, RISING = "natural", "random", "falling", "rising"
EVEN, BY_ENTROPY = "even", "entropy"
UNIFORM, NO_MASKING = "uniform", "none"
TEXT_MASKINGS = ("prefix", "spans", "none")  # what is masked when a text model is trained
CLOCKS = ("wall", "processor")
SCHEDULES = ("stable", "cosine")  # of the learning rate
LEAST_TEXT_WIDTH = 32  # the smallest width that a fit chooses for a text network


@dataclass(frozen=True)
class EncodeOptions(Options):
    """Which columns to encode, and how."""

    columns: tuple[str, ...] | None = setting(
        None, "columns", "Fit only these columns; a struct's name stands for all its fields."
    )
    exclude: tuple[str, ...] = setting(
        (), "columns", "Leave these columns out; a struct's name stands for all its fields."
    )
    max_distinct: int = setting(MAX_DISTINCT, "whole", "Store columns with more values as a quantile grid.", least=1)
    text: tuple[str, ...] = setting((), "columns", "Model these columns of strings character by character.")
    no_text: tuple[str, ...] = setting(
        (), "columns", "Do not model these columns as text, even if their strings are long."
    )
    max_length: int | None = setting(
        None,
        "whole",
        "Most characters of a string to model  [default: the length of 99% of the strings, up to 256]",
        least=1,
        most=MOST_LENGTH,
    )
    flatten: int = setting(
        1,
        "whole",
        "Levels of structs that become columns, such as address.city; 0 leaves structs out.",
        least=0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        no_text = {name.casefold() for name in self.no_text}
        for name in self.text:
            if name.casefold() in no_text:
                raise OptionError(f'"{name}" is named by {{text}} and by {{no_text}}: name it in one of them only')


@dataclass(frozen=True)
class ReadingOptions(EncodeOptions):
    """What to read, and which columns to fit. Each field is a keyword of :func:`countless.fit`.

    >>> ReadingOptions(exclude="id", csv={"delim": ";"}).exclude
    ('id',)
    """

    heading: ClassVar[str] = "Reading"

    table: str | None = setting(
        None, "text", "The table of a database, such as orders or sales.orders. Not needed if there is only one."
    )
    query: str | None = setting(
        None, "text", "A SELECT on the database or on files. Its rows are learned instead of a table."
    )
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
        None, "whole", "Train on this many random rows. Exact counts and error bars still use all rows.", least=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.csv is not None:
            object.__setattr__(self, "csv", csv_options(self.csv))


@dataclass(frozen=True)
class Network(Options):
    """The model of the columns: a ResMADE, or another kind that a plugin registers.

    >>> Network(hidden=64, blocks=1).hidden
    64
    """

    heading: ClassVar[str] = "Network"

    hidden: int | None = setting(
        None, "whole", "Units of a hidden layer  [default: 128, 256 or 512, by the size of the table]", least=1
    )
    blocks: int | None = setting(
        None, "whole", "Residual blocks of two layers  [default: 3, or 2 with 512 units]", least=0
    )
    embedding: int = setting(32, "whole", "Size of an embedding.", least=1)
    kind: str = setting("resmade", "text", "Kind of model for the columns. Plugins can add kinds.")
    units: str = setting(
        BY_ENTROPY,
        "text",
        "Give more hidden units to columns with more entropy, or the same to all.",
        choices=(BY_ENTROPY, EVEN),
    )
    order: str | tuple[str, ...] | None = setting(
        None,
        "order",
        "Order of the columns: natural, random, random:SEED, by entropy (falling, rising), or names that come first.  "
        "[default: natural; random with several --orders]",
    )
    orders: int = setting(1, "whole", "Learn this many random column orders, and average their answers.", least=1)
    text_model: bool = setting(
        False,
        "switch",
        "Train a Transformer on text columns, for samples, completion, anomalies and the paper's methods. Always on "
        "without evidence rows.",
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
    """The Transformer that learns the text columns. Sizes that are None are chosen by the table.

    ``width`` and ``inner`` are the sizes of its layers. It has ``blocks`` layers of ``heads`` attention heads. N-grams
    of the lengths ``grams`` are hashed into ``buckets`` embeddings.

    >>> TextNetwork(width=64, heads=8).heads
    8
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
        "What the text model learns to skip: prefixes, also gaps inside strings (spans), or nothing.",
        choices=TEXT_MASKINGS,
        flag="--text-masking",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        width = self.width or LEAST_TEXT_WIDTH
        if width % self.heads:
            raise OptionError(f"{{text_network.heads}} must divide the width {width} evenly, and {self.heads} does not")

    @classmethod
    def preset(cls, name: str) -> TextNetwork:
        """A network by its name.

        Args:
            name: ``default`` or ``paper``.

        Returns:
            The network.

        Raises:
            OptionError: There is no such name.

        >>> TextNetwork.preset("paper").width
        32
        """
        if name not in TEXT_PRESETS:
            raise OptionError(f"{{text_network}} must be {' or '.join(TEXT_PRESETS)} or a TextNetwork, not {name!r}")
        return TEXT_PRESETS[name]


TEXT_PRESETS = {
    "default": TextNetwork(),
    "paper": TextNetwork(width=32, blocks=8, heads=4, inner=256, grams=()),
}


@dataclass(frozen=True)
class TrainingOptions(Options):
    """How to train. ``epochs`` and ``budget`` both end the training; the first one that is reached counts.

    These fields are for experiments. The learning rate rises during the first ``warmup`` share of the training. By
    ``schedule`` it then stays at its peak and falls at the end (``stable``), or falls all the time (``cosine``).
    ``clip`` limits the gradient's norm. ``held_out`` is the share of rows for validation. ``smooth`` makes the first
    embeddings of neighbouring values similar (0 to 1). ``clock`` measures the budget in ``wall`` or ``processor`` time.
    A step on text takes about ``text_tokens`` characters, unless ``batch`` is given.

    >>> TrainingOptions(budget="1m30s").budget
    90.0
    """

    heading: ClassVar[str] = "Training"

    epochs: int | None = setting(
        None,
        "whole",
        "Passes over the table  [default: 20 to 100 by its size, within the budget]",
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
        None,
        "number",
        "Adam's peak learning rate  [default: 0.008, down to 0.002 in long fits; 0.006 for text]",
        above=0,
    )
    masking: str = setting(UNIFORM, "text", "Input masking: uniform, none, or a probability.")
    seed: int = setting(0, "whole", "Seed of everything random.", least=0, most=MOST_SEED)
    workload: Any = setting(
        None,
        "clauses",
        "A file of WHERE clauses that will likely be asked, one per line or with semicolons. The last part of "
        "training is about their columns.",
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
    """How long to learn new rows. Defaults depend on the fit."""

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
    """How long to train a finished model further. ``budget`` includes reading and calibrating."""

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
    """Where the work is done, and where a stopped fit can continue from.

    ``checkpoint`` is a file that keeps the training. ``codes`` is a folder for the encoded table.

    >>> ResourceOptions(memory="2GB").memory
    2000000000
    """

    heading: ClassVar[str] = "Resources"

    memory: int | None = setting(
        None,
        "memory",
        "The most memory to use, such as 2GB  [default: what the machine has left]. A table that needs more than "
        "half of it is written to a folder beside the model file, and read from there.",
    )
    ray: str | None = setting(
        None, "text", "Fit on a Ray cluster: HOST:PORT, or auto for the one on this machine.", metavar="ADDRESS"
    )
    workers: int | None = setting(
        None,
        "whole",
        "Processes of the cluster that train together  [default: one per GPU, or one per machine]",
        least=1,
    )
    threads: int | None = setting(None, "whole", "CPUs of each worker  [default: 1]", least=1)
    shared: Path | None = setting(
        None, "path", "A folder that all machines of the cluster can read and write  [default: that of the model file]"
    )
    resume: bool = setting(False, "switch", "Continue a stopped fit from the files that it left beside the model file.")
    checkpoint: Path | None = setting(None, "path")
    codes: Path | None = setting(None, "path")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ray is None and not (self.workers is None and self.threads is None and self.shared is None):
            raise OptionError("{workers}, {threads} and {shared} need a cluster: give its address with {ray}")
        if self.ray is not None and self.shared is None and self.checkpoint is None:
            raise OptionError("a cluster needs a folder that all its machines can read: give it with {shared}")


@dataclass(frozen=True)
class StorageOptions(Options):
    """What the model file holds besides the network. Without ``calibrate`` there are no calibrated error bars.

    >>> StorageOptions(evidence="5%").evidence
    '5%'
    """

    heading: ClassVar[str] = "What to store"

    summary: bool = setting(
        True,
        "switch",
        "Store exact counts: of values and pairs of values (about 300 kB), and of frequent substrings of text "
        "(--text-counts). Questions about one or two columns become exact, others more accurate.",
        flag="--summary/--no-summary",
    )
    text_counts: str = setting(
        "auto",
        "bytes",
        "Size of the substring counts of each text column, such as 2MB, or none.  [default: a tenth of the column's "
        "compressed size, without its evidence rows, and at least 500kB]",
        metavar="SIZE",
    )
    evidence: str = setting(
        "auto",
        "rows",
        "Random rows to keep in the file: 50000, 5%, all or none. Questions are counted in them first, and the model "
        "refines the count.  [default: 100,000, or all rows of a smaller table; of more than 10 million rows one in a "
        "hundred, at most 500,000]",
        metavar="ROWS",
    )
    dtype: str = setting(
        DTYPES[0],
        "text",
        "Type of the stored weights. float16 takes 2.5 times the bytes of int8, float32 5 times.",
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
        """The options of these parts, or the default ones; ``keywords`` override their fields."""
        if (text := parts.get("text_network")) is not None:
            keywords = {"text_model": True, **keywords}
            parts["text_network"] = TextNetwork.preset(text) if isinstance(text, str) else text
        unused, checked = dict(keywords), {}
        for field in fields(cls):
            default: Any = field.default
            part: Any = default if parts.get(field.name) is None else parts[field.name]
            if not isinstance(part, type(default)):
                raise OptionError(f"{{{field.name}}} must be a {type(default).__name__}, not {part!r}")
            field_names = () if isinstance(part, TextNetwork) else names(type(part))
            checked[field.name] = part.changed({name: unused.pop(name) for name in field_names if name in unused})
        if unused:
            keyword = next(iter(unused))
            similar = difflib.get_close_matches(keyword, [*FitKeywords.__annotations__], 1)
            hint = f": did you mean {similar[0]!r}?" if similar else ""
            raise TypeError(f"fit() got an unexpected keyword argument {keyword!r}{hint}")
        return cls(**checked)

    @property
    def trains_text(self) -> bool:
        """Whether a text network is trained: if requested, or if the file holds no strings as evidence."""
        return self.network.text_model or self.storage.evidence == "none"

    def to_json(self) -> dict[str, Any]:
        """Every option by its keyword; the options of the text network are one object."""
        parts = {field.name: getattr(self, field.name).to_json() for field in fields(self)}
        text_network = parts.pop("text_network")
        return {name: value for part in parts.values() for name, value in part.items()} | {"text_network": text_network}


def _is_probability(masking: str) -> bool:
    try:
        return 0.0 <= float(masking) <= 1.0
    except ValueError:
        return False
