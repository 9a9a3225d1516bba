"""Random questions with literals from real rows, those that someone wrote down, and the files that keep them."""

from countless.workload.clauses import Asked, Clause, Workload, asked_columns, read_clauses
from countless.workload.columns import (
    accepted,
    both_clauses,
    clauses_of_kinds,
    count_codes,
    mixed_clauses,
    paper_clauses,
    paper_filters,
    template_clauses,
)
from countless.workload.queries import Query, load, save
from countless.workload.text import contains_clauses, pattern_clauses

__all__ = [
    "Asked",
    "Clause",
    "Query",
    "Workload",
    "accepted",
    "asked_columns",
    "both_clauses",
    "clauses_of_kinds",
    "contains_clauses",
    "count_codes",
    "load",
    "mixed_clauses",
    "paper_clauses",
    "paper_filters",
    "pattern_clauses",
    "read_clauses",
    "save",
    "template_clauses",
]
