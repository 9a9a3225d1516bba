"""Searches for literals among the values of a table, and of its evidence rows, without SQL."""

from __future__ import annotations

from dataclasses import dataclass

from countless.data.columns.schema import Schema
from countless.data.evidence import EvidenceRows
from countless.query.domains.domain_search import Search
from countless.query.grids.plain import GridSearch


@dataclass(frozen=True, eq=False)
class Searches:
    """Searches among the values that are ``known``, those ``seen`` in evidence rows, and on the lines of grids."""

    known: Search
    seen: Search | None
    grids: GridSearch

    @classmethod
    def of(cls, schema: Schema, evidence: EvidenceRows | None) -> Searches:
        """The searches for a table; what they need is made when it is first used."""
        seen = None if evidence is None else Search(evidence.schema)
        return cls(Search(schema), seen, GridSearch(schema, seen))
