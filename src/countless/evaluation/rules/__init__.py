"""Consistency rules of counts (e.g. monotonicity), and how often a model's answers violate them.

``cases.py`` draws related questions, ``literals.py`` makes conditions on a column, and ``measure.py`` estimates and
checks them.
"""

from countless.evaluation.rules.measure import RuleViolations, measure

__all__ = ["RuleViolations", "measure"]
