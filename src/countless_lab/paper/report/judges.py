"""Judges of findings: each decides from the facts of a data set whether a claim holds, and returns the figures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from countless.human_format import number
from countless_lab.paper.exhibits.base import find, values
from countless_lab.paper.exhibits.sizes import sizes_of
from countless_lab.paper.numbers import METRICS, Record
from countless_lab.paper.study import PAPER

SLACK = 1.01  # errors that differ by less than a hundredth are the same
ORDER_OF_MAGNITUDE = 10.0
MANY_SAMPLES = 10_000
NEAR_ONE = 2.0
NEAR_BEST = 2.0
NEAR_RIGHT = 0.01  # shares of right values that differ by less are the same
MASKED = ("skipping", "multi-order+skipping")  # the methods whose models particles use, too

KEYS = {"forward_rows": "forward passes"}  # names of figures in texts

Judged = tuple[bool | None, str]  # None: not measured
MISSING: Judged = (None, "not all of it is measured yet")


def mean_of(table: Record, metric: str, **keys: Any) -> float | None:
    """The mean of a metric in the result with these keys."""
    result = find(table, **keys)
    return None if result is None else float(result[metric]["mean"])


def lacking(table: Record, method: str) -> bool:
    """Whether an answer by this method is not there yet."""
    return any(f"-{method}-" in name for name in table["missing"])


def fewest(table: Record) -> int:
    """The smallest budget."""
    return int(min(values([table], "samples")))


def at_many_samples(table: Record) -> Judged:
    """Skipping against progressive sampling at the largest budget of the paper."""
    if MANY_SAMPLES not in values([table], "samples"):
        return None, f"nothing was asked with {MANY_SAMPLES:,} samples at this scale"
    return times_better(table, MANY_SAMPLES, "skipping", "progressive", "max", ORDER_OF_MAGNITUDE)


def times_better(table: Record, samples: int, better: str, worse: str, metric: str, at_least: float) -> Judged:
    """Whether one method's error is this many times below another's."""
    low, high = (mean_of(table, metric, samples=samples, method=method) for method in (better, worse))
    if low is None or high is None:
        return MISSING
    text = f"{metric} at {samples:,} samples: {worse} {number(high)}, {better} {number(low)}, {number(high / low)}x"
    enough = high / low >= at_least if at_least > 1 else high > low
    return enough, text


def all_hold(judged: Sequence[Judged]) -> Judged:
    """Whether all hold: False if one does not, None if one is not measured."""
    if any(holds is False for holds, _ in judged):
        holds: bool | None = False
    else:
        holds = None if any(holds is None for holds, _ in judged) or not judged else True
    return holds, "; ".join(dict.fromkeys(text for _, text in judged)) or MISSING[1]


def medians_near_one(table: Record) -> Judged:
    """The largest median of the paper's four methods."""
    medians = [
        (mean, samples, method)
        for samples in values([table], "samples")
        for method in PAPER
        if (mean := mean_of(table, "p50", samples=samples, method=method)) is not None
    ]
    if len(medians) < len(values([table], "samples")) * len(PAPER):
        return MISSING
    worst, samples, method = max(medians)
    return worst < NEAR_ONE, f"the largest is {number(worst)}: {method} at {samples:,} samples"


def combining_helps(table: Record) -> Judged:
    """Both techniques together against each alone, at the smallest budget."""
    samples, both = fewest(table), "multi-order+skipping"
    return all_hold(
        [
            times_better(table, samples, both, single, m, 1.0)
            for m in ("p99", "max")
            for single in ("multi-order", "skipping")
        ]
    )


def fewer_passes(table: Record) -> Judged:
    """Forward passes of progressive sampling over those of skipping, as far as the budgets tell."""
    ours, theirs = find(table, method="skipping"), find(table, method="progressive")
    if ours is None or theirs is None:
        return MISSING
    # If a number is only bounded, so is the ratio.
    ratio = theirs["passes"] / ours["passes"]
    smallest = 0.0 if theirs["bound"] == "at most" or ours["bound"] == "more than" else ratio
    largest = float("inf") if theirs["bound"] == "more than" or ours["bound"] == "at most" else ratio
    phrases = [
        f"{name} {result['bound']} {number(result['passes'])}"
        for name, result in (("progressive", theirs), ("skipping", ours))
    ]
    text = f"{', '.join(phrases)}; ratio {_between(smallest, largest)}"
    if smallest >= ORDER_OF_MAGNITUDE:
        return True, text
    return (False, text) if largest < ORDER_OF_MAGNITUDE else (None, f"{text}: these budgets cannot tell")


def _between(smallest: float, largest: float) -> str:
    if smallest == largest:
        return f"{number(smallest)}x"
    if largest == float("inf"):
        return f"at least {number(smallest)}x" if smallest else "unknown"
    return f"at most {number(largest)}x"


def likelihoods_in_order(table: Record) -> Judged:
    """Whether the bits rise from the baseline to masking to more and more orders."""
    bits = {record["model"]: record["bits"]["mean"] for record in table["results"]}
    multi_order = sorted((name for name in bits if name.startswith("multi")), key=lambda name: int(name[12:-1]))
    models = ["baseline", "masking", *multi_order]
    if len(models) < 4 or not all(model in bits for model in models):
        return MISSING
    ordered = all(bits[fewer] < bits[more] for fewer, more in pairwise(models))
    return ordered, ", ".join(f"{model} {bits[model]:.2f}" for model in models)


def at_every_size(table: Record, better: str, worse: str, above: float = 1.0) -> Judged:
    """Whether one method's largest error over another's is above a ratio at every model size."""
    ratios = {}
    for hidden, embedding in sizes_of(table):
        results = [find(table, hidden=hidden, embedding=embedding, method=method) for method in (better, worse)]
        if results[0] is not None and results[1] is not None:
            ratios[hidden, embedding] = results[1]["max"] / results[0]["max"]
    if not ratios or lacking(table, better) or lacking(table, worse):
        return MISSING
    won = sum(ratio > above for ratio in ratios.values())
    worst_size = min(ratios, key=lambda size: ratios[size])
    hidden_and_embedding = " / ".join(map(str, worst_size))
    text = (
        f"at {won} of {len(ratios)} sizes; the least ratio is {number(ratios[worst_size])}x, at {hidden_and_embedding}"
    )
    return won == len(ratios), text


def uniform_is_robust(table: Record) -> Judged:
    """The largest error with uniform masking against the lowest of all schemes."""
    errors = {record["masking"]: record["max"] for record in table["results"] if record["method"] == "skipping"}
    if "uniform" not in errors or len(errors) < 2 or lacking(table, "skipping"):
        return MISSING
    lowest = min(errors, key=lambda scheme: errors[scheme])
    ratio = errors["uniform"] / errors[lowest]
    text = f"max: uniform {number(errors['uniform'])}, lowest {number(errors[lowest])} ({lowest}), {number(ratio)}x"
    return ratio <= NEAR_BEST, text


def fills_in(table: Record) -> Judged:
    """How often the masked model is right, and its work, against the unmasked one's samples."""
    masked = [record for record in table["results"] if record["method"] == "skipping"]
    plain = [record for record in table["results"] if record["method"] != "skipping"]
    if table["missing"] or not masked or not plain:
        return MISSING
    largest, right = max(plain, key=lambda record: record["samples"]), max(record["accuracy"] for record in plain)
    text = (
        f"right: masked {masked[0]['accuracy']:.1%}, unmasked {right:.1%}; forward passes: masked "
        f"{number(masked[0]['forward_rows'])}, unmasked with {largest['samples']:,} samples "
        f"{number(largest['forward_rows'])}"
    )
    as_often = masked[0]["accuracy"] >= right - NEAR_RIGHT
    return as_often and largest["forward_rows"] >= ORDER_OF_MAGNITUDE * masked[0]["forward_rows"], text


def _text_times(table: Record, better: str, worse: str, metric: str, at_least: float) -> Judged:
    low, high = (mean_of(table, metric, method=method) for method in (better, worse))
    if low is None or high is None:
        return MISSING
    text = f"{metric}: {worse} {number(high)}, {better} {number(low)}, {number(high / low)}x"
    return high / low >= at_least, text


def text_tails(table: Record) -> Judged:
    """Skipping against the paper's other two on text, at p99 and max."""
    pairs = [(metric, worse) for metric in ("p99", "max") for worse in ("naive", "progressive")]
    return all_hold([_text_times(table, "skipping", worse, metric, ORDER_OF_MAGNITUDE) for metric, worse in pairs])


def text_median(table: Record) -> Judged:
    """Naive sampling against the paper's other two, in the median."""
    return all_hold([_text_times(table, "naive", method, "p50", 1.0) for method in ("progressive", "skipping")])


def text_particles(table: Record) -> Judged:
    """Particles against each of the paper's methods on text, in every metric."""
    pairs = [(metric, method) for metric in METRICS for method in ("naive", "progressive", "skipping")]
    return all_hold([_text_times(table, "particles", method, metric, 1 / SLACK) for metric, method in pairs])


def same_model(table: Record) -> Judged:
    """Particles against the paper's sampler on the same model, at each budget."""
    judged: list[Judged] = []
    for samples in values([table], "samples"):
        for base in MASKED:
            ours, theirs = (find(table, samples=samples, method=name) for name in (f"particles on {base}", base))
            if ours is None or theirs is None:
                judged.append(MISSING)
                continue
            keys = (*METRICS, "forward_rows")
            worse = [key for key in keys if ours[key]["mean"] > SLACK * theirs[key]["mean"]]
            errors = ", ".join(
                f"{KEYS.get(key, key)} {number(ours[key]['mean'])} against {number(theirs[key]['mean'])}"
                for key in worse or keys
            )
            judged.append((not worse, f"{base} at {samples:,}: {errors}"))
    return _failures_first(judged)


def best_of_all(table: Record) -> Judged:
    """The better of the two particles against the best of the paper's four, by metric and budget."""
    judged: list[Judged] = []
    for samples in values([table], "samples"):
        for metric in METRICS:
            theirs = [mean_of(table, metric, samples=samples, method=method) for method in PAPER]
            ours = [mean_of(table, metric, samples=samples, method=f"particles on {base}") for base in MASKED]
            if None in theirs or None in ours:
                judged.append(MISSING)
                continue
            mine, best = (min(mean for mean in group if mean is not None) for group in (ours, theirs))
            text = f"{metric} at {samples:,}: {number(mine)} against {number(best)}"
            judged.append((mine <= SLACK * best, text))
    return _failures_first(judged)


def _failures_first(judged: Sequence[Judged]) -> Judged:
    """Whether all hold; where not all do, only those that do not are listed."""
    failed = [verdict for verdict in judged if verdict[0] is False]
    if not failed:
        return all_hold(judged)
    holds, text = all_hold(failed)
    return holds, f"not in {len(failed)} of {len(judged)}: {text}"


def tenth_of_the_time(table: Record) -> Judged:
    """The median times on the same model, at each budget."""
    return all_hold(
        [
            times_better(table, samples, f"particles on {base}", base, "ms", ORDER_OF_MAGNITUDE)
            for samples in values([table], "samples")
            for base in MASKED
        ]
    )
