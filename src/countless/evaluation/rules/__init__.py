"""Consistency rules of counts (e.g. monotonicity), and how often a model's answers violate them.

``cases.py`` draws questions that go together, ``literals.py`` knows what to ask of a column, and ``measure.py`` asks
and judges.
"""

from countless.evaluation.rules.measure import RuleViolations, measure

__all__ = ["RuleViolations", "measure"]
