"""Workloads: random queries with literals from real rows, queries that a user provides, and files of both."""

from countless.workload.clauses import Workload, WorkloadClause, WorkloadColumns, asked_columns, read_clauses
from countless.workload.columns import (
    accepted,
    both_clauses,
    conjunctions,
    count_codes,
    every_filter,
    mixed_clauses,
    paper_clauses,
    paper_filters,
    template_clauses,
)
from countless.workload.profile import profile
from countless.workload.queries import Query, load, save
from countless.workload.questions import questions_by_kind
from countless.workload.text import contains_clauses, every_pattern, pattern_clauses

__all__ = [
    "Query",
    "Workload",
    "WorkloadClause",
    "WorkloadColumns",
    "accepted",
    "asked_columns",
    "both_clauses",
    "conjunctions",
    "contains_clauses",
    "count_codes",
    "every_filter",
    "every_pattern",
    "load",
    "mixed_clauses",
    "paper_clauses",
    "paper_filters",
    "pattern_clauses",
    "profile",
    "questions_by_kind",
    "read_clauses",
    "save",
    "template_clauses",
]
