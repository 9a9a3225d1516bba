"""Advice on PostgreSQL's extended statistics: where its planner misestimates, and which statistics would help."""

from countless.advise.advice import advise
from countless.advise.findings import Advised

__all__ = ["Advised", "advise"]
