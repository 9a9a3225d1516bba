"""All that finds literals among the values of a table, and of its evidence rows, without SQL."""

from __future__ import annotations

from dataclasses import dataclass

from countless.data.columns.schema import Schema
from countless.data.evidence import EvidenceRows
from countless.query.domains.domain_search import Search
from countless.query.grids.plain import GridSearch


@dataclass(frozen=True, eq=False)
class Searches:
    """The values that are ``known``, those of evidence rows that were ``seen``, and the lines of grids."""

    known: Search
    seen: Search | None
    grids: GridSearch

    @classmethod
    def of(cls, schema: Schema, evidence: EvidenceRows | None) -> Searches:
        """What is needed for a table; nothing is made before it is asked for."""
        seen = None if evidence is None else Search(evidence.schema)
        return cls(Search(schema), seen, GridSearch(schema, seen))
