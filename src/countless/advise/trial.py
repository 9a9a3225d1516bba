"""A trial of suggested statistics: create them one by one, revertibly, and read the planner's estimates again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from countless.advise.findings import Advised, Effect, Finding, Suggestion, quantiles
from countless.advise.planner import Planner
from countless.estimator.answers.estimate import q_error

LEAST = 0.01  # of the logarithm of the factor: a smaller gain may be that of another sample of ANALYZE's


def tried(planner: Planner, advised: Advised, keep: bool) -> Advised:
    """Create the statistics, the best first, each where it can be undone, and continue with those that help.

    The first ANALYZE is without any, so that the effect of fresh statistics of single columns does not count. With
    ``keep`` those that help stay.
    """
    with planner.trial() as whole:
        planner.run(f"ANALYZE {planner.table}")
        findings = _asked(planner, advised.findings)
        suggestions = []
        for suggestion in advised.suggestions:
            with planner.trial() as one:
                for statement in suggestion.statistics.statements:
                    planner.run(statement)
                planner.run(f"ANALYZE {planner.table}")
                later = _asked(planner, findings)
                effect = _effect(suggestion, findings, later)
                one.keep = effect.helped
            findings = later if effect.helped else findings
            suggestions.append(replace(suggestion, effect=effect))
        whole.keep = keep and any(one.effect is not None and one.effect.helped for one in suggestions)
    after = quantiles([replace(finding, planner=finding.after or 1.0) for finding in findings])
    applied = "kept" if whole.keep else "undone"
    return replace(advised, findings=findings, suggestions=tuple(suggestions), after=after, applied=applied)


def _asked(planner: Planner, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(replace(finding, after=planner.expected(finding.clause)) for finding in findings)


def _effect(suggestion: Suggestion, before: Sequence[Finding], after: Sequence[Finding]) -> Effect:
    """The factor by which the planner is off the model, of the questions about the columns."""
    columns = {name.casefold() for name in suggestion.statistics.columns}
    about = [len(columns & {name.casefold() for name in finding.columns}) > 1 for finding in before]
    first, then = (_mean(findings, about) for findings in (before, after))
    return Effect(math.exp(first), math.exp(then), then < first * (1 - LEAST))


def _mean(findings: Sequence[Finding], about: Sequence[bool]) -> float:
    """The mean logarithm of the factors."""
    errors = [
        math.log(q_error(finding.after or 1.0, finding.model))
        for finding, counts in zip(findings, about, strict=True)
        if counts
    ]
    return sum(errors) / max(1, len(errors))
