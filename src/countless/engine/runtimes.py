"""The runtimes of all models of a table."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

from countless.data.summaries.substrings import Substrings
from countless.engine.columns.runtime import Runtime
from countless.engine.fusion.pair_bounds import BoxCounts, Counts
from countless.engine.memo import Memo
from countless.engine.text.runtime import TextRuntime
from countless.errors import NoTextModelError
from countless.region import Box

A = TypeVar("A")


@dataclass(frozen=True, eq=False)
class Runtimes:
    """The models of a table: one of all its columns, if it has any but text, and perhaps one of each text column.

    ``columns`` is that model under each order it knows. ``texts`` is empty if no network of text was trained.
    ``summaries`` has the counts of substrings of each text column,
    None where there are none, and ``counts`` those of columns and pairs of columns, if there are any.
    ``memo`` keeps the walks of one question while it lives.
    """

    columns: tuple[Runtime[Any], ...]
    texts: tuple[TextRuntime, ...] = ()
    summaries: tuple[Substrings | None, ...] = ()
    counts: Counts | None = None
    memo: Memo | None = None

    def without_summaries(self) -> Runtimes:
        """The same models on their own."""
        return Runtimes(self.columns, self.texts, (None,) * len(self.summaries))

    def text(self, column: int, purpose: str) -> TextRuntime:
        """The model of the text column at ``column``; an error that names the ``purpose`` if there is none."""
        if not self.texts:
            raise NoTextModelError(purpose)
        return self.texts[column]

    def remembering(self) -> Runtimes:
        """The same models, for one question: what it walks is kept, and walked once."""
        return Runtimes(self.columns, self.texts, self.summaries, self.counts, Memo())

    def once(self, key: Hashable, make: Callable[[], A]) -> A:
        """What ``make`` returns; if walks are kept, what it returned for the same ``key`` before."""
        return make() if self.memo is None else self.memo.once(key, make)

    def box_counts(self, box: Box) -> BoxCounts:
        """What counts tell of a box with filters; there are counts."""
        counts = self.counts
        assert counts is not None
        if self.memo is None:
            return counts.of_box(box)
        # By identity, which is found faster than equality; what is kept keeps these filters too.
        return self.memo.quick(tuple(map(id, (*box.filters, *box.texts))), counts.of_box, box)

    def hinted(self, box: Box) -> Box:
        """The box with what counts tell of its filters, if there are any."""
        return box if self.counts is None or not box.filters else self.box_counts(box).box
