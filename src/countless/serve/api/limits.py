"""Limits on the size of a request."""

from __future__ import annotations

BODY_BYTES = 1_000_000
CLAUSES = 1_000  # in one request
CLAUSE_CHARACTERS = 20_000  # of a SELECT too
COLUMNS = 100  # of one request for distributions
BINS = 1_000
TOP = 1_000  # values of a category
PIECES = 100  # beginnings, and endings, of a text column
NAME_LENGTH = 1_000  # characters of a column's name, or of what is looked for
SAMPLE_ROWS = 10_000
RESULT_ROWS = 10_000  # of a query
LEAST_HITS = 5  # evidence rows that share a value of an expression, or a piece of text; fewer are not shown
SEED = 2**63 - 1
WAITING = 1_000  # requests that are worked on, or wait to be
KEPT_ANSWERS = 10_000
KEPT_QUESTIONS = 64  # of each model: conditions that are compiled and counted
KEPT_BYTES = 64_000_000
