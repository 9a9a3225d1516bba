"""Narrowing of evidence: hits among the evidence rows of a part of the question whose rows were counted.

Of ``LIKE '/usr/%' AND LIKE '%.so'`` both parts are counted. How many of the evidence rows of the rarer part satisfy the
rest tells more than how many of all evidence rows do: those of the part are a sample of so many rows as were counted.
"""

from __future__ import annotations

from countless.automata.string_table import like_pattern
from countless.engine.runtimes import Runtimes
from countless.engine.text.substring_answers import KnownPart, smallest_part
from countless.estimator.answers.evidence import Evidence
from countless.estimator.calibration.posterior import SampleCount
from countless.query.question import Question
from countless.region import Box


def narrowed(hits: SampleCount, evidence: Evidence, runtimes: Runtimes, question: Question) -> SampleCount:
    """The ``hits`` of a question about text among the rows of its rarest counted part; as they are without one."""
    region = question.region
    if hits.are_all or len(region.boxes) != 1 or not region.boxes[0].texts or question.among is not None:
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
    counts = runtimes.counts
    for one in box.filters if counts is not None else ():
        assert counts is not None
        known = counts.known(Box((one,))).answer
        if known is not None and known.counted and known.density * hits.total < found.total:
            rows = known.density * hits.total
            found = _among(hits, evidence.count_box(Box((one,))), rows, rows)
    return found


def _among(hits: SampleCount, part_hits: int, rows: float, most: float) -> SampleCount:
    """The hits among those of a part, which has about so many rows, and ``most`` at most."""
    part_hits = max(part_hits, hits.count)
    return SampleCount(hits.count, part_hits, max(round(rows), part_hits), slack=max(1.0, most) / max(1.0, rows))


def _pattern(part: KnownPart) -> bytes:
    pieces = [*([] if part.begins else [""]), part.text, *([] if part.ends else [""])]
    return like_pattern(pieces)
