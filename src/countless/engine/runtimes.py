"""All models of a table together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from countless.data.ngrams import NGrams
from countless.engine.counts import Counts
from countless.engine.runtime import Runtime
from countless.engine.text.runtime import TextRuntime
from countless.region import Box


@dataclass(frozen=True, eq=False)
class Runtimes:
    """The models of a table: one of all its columns, if it has any but text, and one of each text column.

    ``columns`` is that model under each order it knows. ``summaries`` has the counts of n-grams that stand beside each
    text model, None where there are none, and ``counts`` those of columns and pairs of columns, if there are any.
    """

    columns: tuple[Runtime[Any], ...]
    texts: tuple[TextRuntime, ...] = ()
    summaries: tuple[NGrams | None, ...] = ()
    counts: Counts | None = None

    def without_summaries(self) -> Runtimes:
        """The same models on their own."""
        return Runtimes(self.columns, self.texts, (None,) * len(self.texts))

    def hinted(self, box: Box) -> Box:
        """The box with what counts tell of its filters, if there are any."""
        return box if self.counts is None or not box.filters else replace(box, hints=self.counts.crossed(box))
