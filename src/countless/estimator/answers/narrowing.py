"""Narrowing of evidence: the share of hits among the evidence rows of one part of the question.

In ``LIKE '/usr/%' AND LIKE '%.so'``, or ``section = 'doc' AND package = 'x'``, the exact count of each part is known.
The evidence rows that match the rarer part are a sample of its rows. The share of them that satisfies the rest of the
question gives a better estimate than the share of hits among all evidence rows.
"""

from __future__ import annotations

from countless.automata.string_table import like_pattern
from countless.engine.fusion.pair_bounds import CountedPart, Counts
from countless.engine.runtimes import Runtimes
from countless.engine.text.substring_answers import CountedText, smallest_part
from countless.estimator.answers.evidence import Evidence
from countless.estimator.calibration.posterior import SampleCount
from countless.query.question import Question
from countless.region import Box

LARGE_PART = 10  # evidence rows of a part per hit; a larger part is hardly better than the whole table
FEW_HITS = 100  # hits up to which combinations of filters are tried; with more hits only single filters are


def narrowed_hits(hits: SampleCount, evidence: Evidence, runtimes: Runtimes, question: Question) -> SampleCount:
    """The ``hits`` of a question as a sample of its rarest counted part; unchanged if no part is counted."""
    region = question.region
    if hits.are_all or len(region.boxes) != 1:
        return hits
    (box,) = region.boxes
    narrowed, is_only_filter = hits, not box.filters and len(box.texts) == 1
    for text_filter in box.texts:
        summary = runtimes.summaries[text_filter.column]
        if summary is None or text_filter.language.null:
            continue
        part = smallest_part(text_filter.language.pattern, summary, is_only_filter)
        if part is not None and part.rows < narrowed.total:
            part_hits = evidence.count_strings(text_filter.column, _like_pattern(part))
            narrowed = _hits_in_part(hits, part_hits, part.rows, part.most)
    has_other_filters = bool(box.texts) or question.among is not None
    return _narrowed_by_columns(hits, narrowed, evidence, runtimes, box, has_other_filters)


def _narrowed_by_columns(
    hits: SampleCount,
    narrowed: SampleCount,
    evidence: Evidence,
    runtimes: Runtimes,
    box: Box,
    has_other_filters: bool,
) -> SampleCount:
    """The hits as a sample of the rarest counted filters on columns, or ``narrowed`` if that part is rarer.

    If the question also ``has_other_filters``, the part may consist of all filters of the box.
    """
    if runtimes.counts is None or not box.filters or (len(box.filters) < 2 and not has_other_filters):
        return narrowed
    if hits.count > FEW_HITS and not has_other_filters:
        part = _rarest_filter(runtimes.counts, box)
    else:
        part = runtimes.box_counts(Box(box.filters) if box.texts else box).rarest_part(whole=has_other_filters)
    if part is None or part.rows >= narrowed.total:
        return narrowed
    if not has_other_filters and part.rows * hits.share > LARGE_PART * max(hits.count, 1):
        return narrowed
    return _hits_in_part(hits, evidence.count_box(part.box), part.rows, part.most)


def _rarest_filter(counts: Counts, box: Box) -> CountedPart | None:
    """The filter with the fewest rows, among those whose rows were counted."""
    rarest: CountedPart | None = None
    for candidate in box.filters:
        rows = counts.filter_counts(candidate).rows
        if rows is not None and (rarest is None or rows < rarest.rows):
            rarest = CountedPart(Box((candidate,)), rows, rows)
    return rarest


def _hits_in_part(hits: SampleCount, part_hits: int, rows: float, most: float) -> SampleCount:
    """The hits as a sample of a part with ``part_hits`` evidence rows and about ``rows`` rows, at most ``most``."""
    part_hits = max(part_hits, hits.count)
    return SampleCount(hits.count, part_hits, max(round(rows), part_hits), slack=max(1.0, most) / max(1.0, rows))


def _like_pattern(part: CountedText) -> bytes:
    pieces = [*([] if part.begins else [""]), part.text, *([] if part.ends else [""])]
    return like_pattern(pieces)
