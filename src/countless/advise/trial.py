"""A trial of suggested statistics: create them one by one in transactions, and read the planner's estimates again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from countless.advise.findings import Advised, Effect, Finding, Suggestion, quantiles
from countless.advise.planner import Planner
from countless.estimator.answers.estimate import q_error

LEAST_GAIN = 0.01  # share of the logarithm: a smaller gain may come from another random sample of ANALYZE


def tried(planner: Planner, advised: Advised, keep: bool) -> Advised:
    """Create the statistics, the best first, each in a savepoint, and continue with those that help.

    The first ANALYZE is run without them, so that the effect of fresh statistics on single columns does not count. With
    ``keep`` the helpful ones stay in the database.
    """
    with planner.trial() as transaction:
        planner.run(f"ANALYZE {planner.table}")
        findings = _with_new_estimates(planner, advised.findings)
        suggestions = []
        for suggestion in advised.suggestions:
            with planner.trial() as savepoint:
                for statement in suggestion.statistics.statements:
                    planner.run(statement)
                planner.run(f"ANALYZE {planner.table}")
                new_findings = _with_new_estimates(planner, findings)
                effect = _effect(suggestion, findings, new_findings)
                savepoint.keep = effect.helped
            findings = new_findings if effect.helped else findings
            suggestions.append(replace(suggestion, effect=effect))
        transaction.keep = keep and any(
            savepoint.effect is not None and savepoint.effect.helped for savepoint in suggestions
        )
    after = quantiles([replace(finding, planner=finding.after or 1.0) for finding in findings])
    applied = "kept" if transaction.keep else "undone"
    return replace(advised, findings=findings, suggestions=tuple(suggestions), after=after, applied=applied)


def _with_new_estimates(planner: Planner, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(replace(finding, after=planner.expected(finding.clause)) for finding in findings)


def _effect(suggestion: Suggestion, before: Sequence[Finding], after: Sequence[Finding]) -> Effect:
    """The effect on the questions that filter two or more of the columns."""
    columns = {name.casefold() for name in suggestion.statistics.columns}
    is_about = [len(columns & {name.casefold() for name in finding.columns}) > 1 for finding in before]
    log_before, log_after = (_mean_log_error(findings, is_about) for findings in (before, after))
    return Effect(math.exp(log_before), math.exp(log_after), log_after < log_before * (1 - LEAST_GAIN))


def _mean_log_error(findings: Sequence[Finding], is_about: Sequence[bool]) -> float:
    """The mean logarithm of the planner's q-error against the model, over the marked findings."""
    errors = [
        math.log(q_error(finding.after or 1.0, finding.model))
        for finding, is_marked in zip(findings, is_about, strict=True)
        if is_marked
    ]
    return sum(errors) / max(1, len(errors))
