"""Where PostgreSQL's planner errs, by a model's lights, and the extended statistics that would help it."""

from countless.advise.advice import advise
from countless.advise.findings import Advised

__all__ = ["Advised", "advise"]
