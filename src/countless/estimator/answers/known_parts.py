"""Narrowing of evidence: hits among the evidence rows of a part of the question whose rows were counted.

Of ``LIKE '/usr/%' AND LIKE '%.so'``, or of ``section = 'doc' AND package = 'x'``, both parts are counted. The
evidence rows of the rarer part are a sample of its rows, whose number is known. The share of them that satisfies the
rest estimates the answer better than the share of all evidence rows does.
"""

from __future__ import annotations

from countless.automata.string_table import like_pattern
from countless.engine.fusion.pair_bounds import CountedPart, Counts
from countless.engine.runtimes import Runtimes
from countless.engine.text.substring_answers import KnownPart, smallest_part
from countless.estimator.answers.evidence import Evidence
from countless.estimator.calibration.posterior import SampleCount
from countless.query.question import Question
from countless.region import Box

# Evidence rows of a part for each hit: a larger part narrows the answer hardly more than the whole table.
LARGE_PART = 10
FEW_HITS = 100  # of a question about columns: with more, only its single filters are looked at


def narrowed(hits: SampleCount, evidence: Evidence, runtimes: Runtimes, question: Question) -> SampleCount:
    """The ``hits`` of a question among the rows of its rarest counted part; as they are without one."""
    region = question.region
    if hits.are_all or len(region.boxes) != 1:
        return hits
    (box,) = region.boxes
    found, alone = hits, not box.filters and len(box.texts) == 1
    for item in box.texts:
        summary = runtimes.summaries[item.column]
        if summary is None or item.language.null:
            continue
        part = smallest_part(item.language.pattern, summary, alone)
        if part is not None and part.rows < found.total:
            found = _among(hits, evidence.count_strings(item.column, _pattern(part)), part.rows, part.most)
    return _among_filters(hits, found, evidence, runtimes, box, bool(box.texts) or question.among is not None)


def _among_filters(
    hits: SampleCount, found: SampleCount, evidence: Evidence, runtimes: Runtimes, box: Box, more: bool
) -> SampleCount:
    """The hits among the rows of the rarest filters that were counted, if these are rarer than what was ``found``.

    If the question asks for ``more`` than the filters of the box, these may be all of them.
    """
    if runtimes.counts is None or not box.filters or (len(box.filters) < 2 and not more):
        return found
    if hits.count > FEW_HITS and not more:
        part = _rarest_filter(runtimes.counts, box)
    else:
        part = runtimes.box_counts(Box(box.filters) if box.texts else box).rarest_part(whole=more)
    if part is None or part.rows >= found.total:
        return found
    if not more and part.rows * hits.share > LARGE_PART * max(hits.count, 1):
        return found
    return _among(hits, evidence.count_box(part.box), part.rows, part.most)


def _rarest_filter(counts: Counts, box: Box) -> CountedPart | None:
    """The filter of the fewest rows, if they were counted."""
    rarest: CountedPart | None = None
    for one in box.filters:
        rows = counts.filter_counts(one).rows
        if rows is not None and (rarest is None or rows < rarest.rows):
            rarest = CountedPart(Box((one,)), rows, rows)
    return rarest


def _among(hits: SampleCount, part_hits: int, rows: float, most: float) -> SampleCount:
    """The hits among those of a part that has about ``rows`` rows, and at most ``most``."""
    part_hits = max(part_hits, hits.count)
    return SampleCount(hits.count, part_hits, max(round(rows), part_hits), slack=max(1.0, most) / max(1.0, rows))


def _pattern(part: KnownPart) -> bytes:
    pieces = [*([] if part.begins else [""]), part.text, *([] if part.ends else [""])]
    return like_pattern(pieces)
