"""Where PostgreSQL's planner errs, by a model's lights, and the extended statistics that would help it."""

from countless.advise.advice import Advised, advise

__all__ = ["Advised", "advise"]
