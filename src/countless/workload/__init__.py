"""Random questions with literals from real rows, and the files that keep them with their true counts."""

from countless.workload.columns import (
    accepted,
    clauses_of_kinds,
    count_codes,
    mixed_clauses,
    paper_clauses,
    paper_filters,
)
from countless.workload.queries import Query, load, save
from countless.workload.text import contains_clauses, pattern_clauses

__all__ = [
    "Query",
    "accepted",
    "clauses_of_kinds",
    "contains_clauses",
    "count_codes",
    "load",
    "mixed_clauses",
    "paper_clauses",
    "paper_filters",
    "pattern_clauses",
    "save",
]
