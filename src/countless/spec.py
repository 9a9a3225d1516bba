"""Specifications of networks, without weights. Training, the engine and the model file share them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from countless.arrays import IntArray
from countless.errors import ModelFileError
from countless.json_forms import COLUMNS_NETWORK, NETWORK, TEXT_NETWORK, check_section, fields_in, plain

RESMADE = "resmade"


@dataclass(frozen=True)
class ModelSpec:
    """A model of *positions* (a column is one or more of them): a ResMADE, or another ``kind`` that reads the same.

    ``sizes[p]`` is the number of symbols of position ``p``; symbol ``sizes[p]`` is its MASK token. ``orders``
    lists autoregressive orders, each a permutation of the positions: ``order[k]`` is the position at step ``k``.
    Its *rank* is that ``k``. ``groups`` has the number of positions of each column; an order visits the positions of a
    column in sequence, so that the walk can leave a column after some of its leading positions. The last ``parts``
    columns are calendar parts of others, which do not count for the bits of a row.

    Hidden units are sorted by degree, the same in every layer: ``units[d]`` of them have degree ``d``, by default
    about as many of each, from 0 to ``n - 2``. A unit sees positions of rank at most its degree, and the logits of a
    position see the units of smaller degree than its rank, which are exactly the first ``cuts[rank]`` units.

    >>> spec = ModelSpec(sizes=(3, 2, 5), hidden=4, blocks=1, embedding=8)
    >>> spec.degrees.tolist(), spec.cuts.tolist()
    ([0, 0, 1, 1], [0, 2, 4])
    """

    sizes: tuple[int, ...]
    hidden: int = 256
    blocks: int = 3
    embedding: int = 32
    orders: tuple[tuple[int, ...], ...] = ()
    groups: tuple[int, ...] = ()
    kind: str = RESMADE
    units: tuple[int, ...] = ()
    parts: int = 0

    def __post_init__(self) -> None:
        positions = len(self.sizes)
        if not self.groups:
            object.__setattr__(self, "groups", (1,) * positions)
        if not self.orders:
            object.__setattr__(self, "orders", (tuple(range(positions)),))
        if positions == 0 or any(size < 1 for size in self.sizes):
            raise ModelFileError("a model needs at least one position, each with at least one symbol")
        if min(self.hidden, self.embedding) < 1 or self.blocks < 0:
            raise ModelFileError("hidden units and embedding size must be at least 1, blocks at least 0")
        for order in self.orders:
            if sorted(order) != list(range(positions)):
                raise ModelFileError(f"an order must be a permutation of the {positions} positions")
        if not 0 <= self.parts < len(self.groups):
            raise ModelFileError("a model cannot consist of calendar parts alone")
        if min(self.groups) < 1 or sum(self.groups) != positions:
            raise ModelFileError(f"the groups must share out the {positions} positions")
        if self.units and (len(self.units), sum(self.units)) != (max(1, positions - 1), self.hidden):
            raise ModelFileError(f"units must share out the {self.hidden} hidden ones over {positions} positions")
        if min(self.units, default=0) < 0:
            raise ModelFileError("there cannot be fewer than 0 units of a degree")
        non_leading = np.flatnonzero(self.depths)
        for index in range(len(self.orders)):
            ranks = self.ranks(index)
            if np.any(ranks[non_leading] < ranks[non_leading - 1]):
                raise ModelFileError("an order must visit the positions of a column in their own order")

    @property
    def visible(self) -> int:
        """How many positions are not of calendar parts."""
        return sum(self.groups[: len(self.groups) - self.parts])

    @property
    def depths(self) -> IntArray:
        """For each position, how many positions of the same column come before it."""
        return np.concatenate([np.arange(count) for count in self.groups])

    @property
    def degrees(self) -> IntArray:
        """Degree of each hidden unit, ascending."""
        if self.units:
            return np.repeat(np.arange(len(self.units)), self.units)
        return np.arange(self.hidden, dtype=np.int64) * (len(self.sizes) - 1) // self.hidden

    @property
    def cuts(self) -> IntArray:
        """``cuts[rank]``: how many leading units the position of that rank may see."""
        ranks = np.arange(len(self.sizes))
        if self.units:
            return np.cumsum([0, *self.units])[ranks]
        return -(-ranks * self.hidden // max(1, len(self.sizes) - 1))

    def ranks(self, order: int = 0) -> IntArray:
        """``ranks[position]``: the step at which ``orders[order]`` visits it."""
        return np.argsort(np.asarray(self.orders[order]))

    @property
    def parameters(self) -> int:
        """How many numbers the model learns."""
        positions, rows, features = len(self.sizes), sum(self.sizes) + len(self.sizes), self._features
        layers = 2 * self.blocks * (self.hidden + 1) * self.hidden
        signals = positions * self.hidden + features * (positions - 1) if len(self.orders) > 1 else 0
        return (
            rows * (self.embedding + 1) + (features + 1) * self.hidden + layers + features * (self.hidden + 1) + signals
        )

    def narrowed(self) -> ModelSpec:
        """The spec with fewer hidden units, so that it has no more parameters than the same network for one order."""
        most = replace(self, orders=self.orders[:1]).parameters
        hidden = self.hidden
        while hidden > 1 and replace(self, hidden=hidden).parameters > most:
            hidden -= 1
        return replace(self, hidden=hidden)

    @property
    def _features(self) -> int:
        return len(self.sizes) * self.embedding

    @property
    def lookups(self) -> tuple[str, ...]:
        """The arrays whose rows are only looked up and added. There are none."""
        return ()

    @property
    def coarse(self) -> tuple[str, ...]:
        """The arrays whose rounding errors matter least: those inside the residual blocks."""
        return tuple(f"blocks.{block}.{half}.weight" for block in range(self.blocks) for half in ("inner", "outer"))

    def to_json(self) -> dict[str, Any]:
        """JSON data for the model file."""
        data: dict[str, Any] = plain(self)
        return data

    @classmethod
    def from_json(cls, data: Any) -> ModelSpec:
        """The spec that :meth:`to_json` wrote; anything else is a :class:`ModelFileError`."""
        check_section("the model's description", COLUMNS_NETWORK, data)
        return cls(**fields_in(cls, data))


SHARED_TEXT = "transformer"
AFTER_CHARACTERS = 4  # UNKNOWN, END, CUT and NULL


@dataclass(frozen=True)
class TextSpec:
    """A causal Transformer over the characters of one text column, as the engine evaluates it.

    A string is written in symbols: the alphabet's ``characters``, then UNKNOWN (any rarer character), END, CUT (the
    string goes on, but the model does not see how) and NULL. What the network reads is one of these or MASK, at a
    *position*: the token at position ``p`` is the last one before symbol ``p``, and its output predicts that symbol.
    MASK at position ``p`` stands for ``p`` symbols that are not known, so that every string begins with MASK at 0.

    ``grams`` lists lengths of character n-grams that have embeddings of their own, in ``buckets`` by a hash.
    ``hash_ids`` has the number of each symbol, MASK included, in that hash; by default the symbol itself.
    ``context`` has the number of symbols of each position of the columns' network, if the row's other columns are an
    input. The symbol after these is MASK, for an unknown value. A hidden layer of ``context_width`` units reads all of
    them. Without a context, strings do not depend on other columns. With ``gaps`` the network has also learned what
    follows MASK inside a string.

    >>> spec = TextSpec(characters=26, length=100)
    >>> spec.unknown, spec.end, spec.cut, spec.null, spec.mask, spec.symbols
    (26, 27, 28, 29, 30, 30)
    """

    characters: int
    length: int
    width: int = 64
    blocks: int = 4
    heads: int = 4
    inner: int = 256
    grams: tuple[int, ...] = (2, 3, 4)
    buckets: int = 1 << 14
    context: tuple[int, ...] = ()
    context_width: int = 64
    gaps: bool = False
    hash_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        sizes = (self.length, self.width, self.blocks, self.heads, self.inner, self.buckets, *self.grams)
        if min(*sizes, self.context_width, *self.context) < 1 or self.characters < 0:
            raise ModelFileError("a text model has at least 1 character of length, 1 block, 1 head and 1 unit")
        if self.width % self.heads:
            raise ModelFileError(f"{self.heads} heads cannot share a width of {self.width} evenly")
        if list(self.grams) != sorted(set(self.grams)) or min(self.grams, default=2) < 2:
            raise ModelFileError("the lengths of n-grams must ascend from 2")
        if not self.hash_ids:
            object.__setattr__(self, "hash_ids", tuple(range(self.symbols + 1)))
        if len(self.hash_ids) != self.symbols + 1 or min(self.hash_ids) < 0 or max(self.hash_ids) >= 1 << 31:
            raise ModelFileError("every symbol, and MASK, has one number in the hash of n-grams")

    @property
    def unknown(self) -> int:
        """The symbol for a character that is not in the alphabet."""
        return self.characters

    @property
    def end(self) -> int:
        """The symbol for the end of a string."""
        return self.characters + 1

    @property
    def cut(self) -> int:
        """The symbol for the place where a longer string was cut."""
        return self.characters + 2

    @property
    def null(self) -> int:
        """The symbol for NULL."""
        return self.characters + 3

    @property
    def symbols(self) -> int:
        """How many symbols there are."""
        return self.characters + AFTER_CHARACTERS

    @property
    def mask(self) -> int:
        """The token for symbols that are not known."""
        return self.symbols


@dataclass(frozen=True)
class SharedTextSpec:
    """One Transformer for all text columns of a table.

    The network's alphabet is the union of the columns' alphabets: ``alphabets[c]`` has the network's number of each
    character of column ``c``, in ascending order. ``lengths[c]`` is where the strings of that column are cut.

    The columns share the layers and the embeddings of characters, n-grams and the row's symbols. Each column has its
    own embeddings of positions, which tell the network the column; its own output biases; and its own map from the
    row's hidden layer. To the engine each column is a model of its own, :meth:`column`. The other fields are those of
    :class:`TextSpec`.

    >>> spec = SharedTextSpec(alphabets=((0, 1, 2), (1, 3)), lengths=(20, 5))
    >>> spec.characters, spec.column(1).characters, spec.column(1).hash_ids
    (4, 2, (1, 3, 4, 5, 6, 7, 8))
    """

    alphabets: tuple[tuple[int, ...], ...]
    lengths: tuple[int, ...]
    width: int = 64
    blocks: int = 2
    heads: int = 4
    inner: int = 256
    grams: tuple[int, ...] = (2, 3, 4)
    buckets: int = 1 << 14
    context: tuple[int, ...] = ()
    context_width: int = 64
    gaps: bool = False

    def __post_init__(self) -> None:
        if not self.lengths or len(self.lengths) != len(self.alphabets):
            raise ModelFileError("a text model has at least 1 column, each with an alphabet and a length")
        if any(list(alphabet) != sorted(set(alphabet)) or min(alphabet, default=0) < 0 for alphabet in self.alphabets):
            raise ModelFileError("the characters of a column must have ascending numbers")
        for index in range(len(self.lengths)):
            self.column(index)

    @classmethod
    def of(cls, columns: Sequence[tuple[str, int]], **sizes: Any) -> SharedTextSpec:
        """The network for columns of these characters and lengths.

        >>> SharedTextSpec.of([("abc", 20), ("bx", 5)]).alphabets
        ((0, 1, 2), (1, 3))
        """
        union = {character: number for number, character in enumerate(sorted({*"".join(text for text, _ in columns)}))}
        alphabets = tuple(tuple(union[character] for character in text) for text, _ in columns)
        return cls(alphabets, tuple(length for _, length in columns), **sizes)

    @property
    def characters(self) -> int:
        """How many different characters the columns have together."""
        return 1 + max((number for alphabet in self.alphabets for number in alphabet), default=-1)

    @property
    def union(self) -> range:
        """The network's numbers of all characters, of UNKNOWN, END, CUT and NULL, and of MASK."""
        return range(self.characters + AFTER_CHARACTERS + 1)

    @property
    def lookups(self) -> tuple[str, ...]:
        """The arrays whose rows are only looked up and added, so that a file may always store them in bytes."""
        return ("grams", "context.embedding")

    @property
    def coarse(self) -> tuple[str, ...]:
        """The arrays whose rounding errors matter least. There are none."""
        return ()

    def column(self, index: int) -> TextSpec:
        """The model of one column, as the engine evaluates it."""
        alphabet = self.alphabets[index]
        shared = {item.name: getattr(self, item.name) for item in fields(self)[2:]}  # all but alphabets and lengths
        hash_ids = (*alphabet, *self.union[self.characters :])
        return TextSpec(len(alphabet), self.lengths[index], hash_ids=hash_ids, **shared)

    def to_json(self) -> dict[str, Any]:
        """JSON data for the model file."""
        return {"kind": SHARED_TEXT, **plain(self)}

    @classmethod
    def from_json(cls, data: Any) -> SharedTextSpec:
        """The spec that :meth:`to_json` wrote; anything else is a :class:`ModelFileError`."""
        check_section("the model's description", NETWORK, data)
        if data["kind"] != SHARED_TEXT:
            raise ModelFileError(f"unknown kind of model {data['kind']!r}: upgrade Countless to read this file")
        check_section("the model's description", TEXT_NETWORK, data)
        return cls(**fields_in(cls, data))
