"""Densities of regions by a named method: the entry point of the engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from countless.cancellation import check_cancelled
from countless.data.summaries.substrings import Substrings
from countless.engine.answer import Answer
from countless.engine.columns.particle_budget import effort
from countless.engine.fusion.text_in_context import with_texts
from countless.engine.methods import METHODS, MODEL_METHOD, for_columns, for_text, of_model
from countless.engine.runtimes import Runtimes
from countless.engine.text.substring_answers import are_estimated, is_counted
from countless.errors import CountlessError
from countless.record import record
from countless.region import Box, Region

MOST_COUNTED = 8  # boxes of a question whose counts are looked up before evidence rows are counted
WHOLE_TABLE = Answer(1.0, exact=True, particles=1, visited=(), forward_rows=0, counted=True, least=1.0)


@record(eq=True)
class Density:
    """A region's density, with the answer of each of its disjoint boxes."""

    value: float
    answers: tuple[Answer, ...]

    @property
    def least(self) -> float:
        """What the table's own density is at least, by counts that are exact."""
        return sum([answer.least for answer in self.answers])

    @property
    def most(self) -> float:
        """What it is at most."""
        return min(1.0, sum([answer.most for answer in self.answers]))

    @property
    def excess(self) -> float:
        """How many times the rows that these bounds leave the model found."""
        total = sum([answer.density for answer in self.answers])
        return sum([answer.density * answer.excess for answer in self.answers]) / total if total > 0 else 1.0

    @property
    def steps(self) -> int:
        """How many counts of substrings were chained, at most."""
        return max([answer.steps for answer in self.answers], default=0)

    @property
    def exact(self) -> bool:
        """Whether no box was sampled."""
        return all(answer.exact for answer in self.answers)


def densities(
    runtimes: Runtimes, regions: Sequence[Region], method: str, budget: int | None, seed: int
) -> list[Density]:
    """Each region's density: the sum over its disjoint boxes, clipped to the bounds that its cover gives.

    ``budget`` is a number of particles or samples; None is the method's own choice.
    """
    if method not in METHODS or METHODS[method].uses_evidence:
        raise CountlessError(f"unknown method {method!r}: choose one of {', '.join(of_model())}")
    if budget is not None and budget < 1:
        raise CountlessError(f"the number of particles or samples must be at least 1, not {budget}")
    boxes = [box for region in regions for box in (*region.boxes, *region.cover)]
    answers = iter(_answers(runtimes, boxes, method, budget, seed))
    return [_density(region, answers) for region in regions]


def counts_answer(runtimes: Runtimes, region: Region) -> bool:
    """Whether exact counts alone tell the density, so that nothing is walked: of columns, or of a text."""
    if any(box.texts for box in region.boxes):
        if len(region.boxes) > 1:
            return False
        (box,) = region.boxes
        if box.filters or len(box.texts) > 1 or box.texts[0].language.lengths is not None:
            return False
        summary = runtimes.summaries[box.texts[0].column]
        return summary is not None and is_counted(box.texts[0].language.pattern, summary)
    return _counts_tell(runtimes, region.boxes, counted=True)


def counts_estimate(runtimes: Runtimes, region: Region) -> bool:
    """Whether counts alone give an estimate and bounds, of text or of columns, so that the density costs little."""
    if any(box.texts for box in region.boxes):
        return not any(box.filters or not box.texts for box in region.boxes) and texts_are_estimated(
            runtimes.summaries, region
        )
    return bool(region.boxes) and _counts_tell(runtimes, (*region.boxes, *region.cover), counted=False)


def what_counts_tell(runtimes: Runtimes, region: Region) -> tuple[bool, bool]:
    """Whether :func:`counts_answer`, and whether :func:`counts_estimate`: at once for a box of columns alone."""
    if len(region.boxes) != 1 or region.cover or region.boxes[0].texts or not region.boxes[0].filters:
        return counts_answer(runtimes, region), counts_estimate(runtimes, region)
    answer = None if runtimes.counts is None else runtimes.box_counts(region.boxes[0]).answer
    return answer is not None and answer.counted, answer is not None


def _counts_tell(runtimes: Runtimes, boxes: Sequence[Box], counted: bool) -> bool:
    """Whether counts of pairs tell the rows of each box of columns, exactly if that is asked (``counted``)."""
    if len(boxes) > MOST_COUNTED:
        return False
    for box in boxes:
        if not box.filters:
            continue
        if runtimes.counts is None:
            return False
        answer = runtimes.box_counts(box).answer
        if answer is None or (counted and not answer.counted):
            return False
    return True


def texts_are_estimated(summaries: Sequence[Substrings | None], region: Region) -> bool:
    """Whether counts of substrings alone tell what is asked of text, exactly or not."""
    for item in (item for box in (*region.boxes, *region.cover) for item in box.texts):
        summary = summaries[item.column]
        if summary is None or item.language.lengths is not None or not are_estimated(item.language.pattern, summary):
            return False
    return True


def lacks_network(runtimes: Runtimes, region: Region, method: str) -> bool:
    """Whether ``method`` cannot answer, since there is no network of text and no count that tells."""
    if runtimes.texts or not any(box.texts for box in (*region.boxes, *region.cover)):
        return False
    return not METHODS[method].uses_counts or not texts_are_estimated(runtimes.summaries, region)


def _answers(runtimes: Runtimes, boxes: Sequence[Box], name: str, budget: int | None, seed: int) -> list[Answer]:
    """Each box's density: that of its columns, times the chance of each text column it asks about."""
    filtered = [index for index, box in enumerate(boxes) if box.filters]
    if len(filtered) == len(boxes):
        answers = _of_columns(runtimes, boxes, name, budget, seed)
    else:
        answers = [WHOLE_TABLE] * len(boxes)
        column_answers = _of_columns(runtimes, [boxes[index] for index in filtered], name, budget, seed)
        for index, answer in zip(filtered, column_answers, strict=True):
            answers[index] = answer
    with_text = [index for index, box in enumerate(boxes) if box.texts]
    if not with_text:
        return answers
    methods = for_text()
    if name not in methods:
        raise CountlessError(f"unknown method {name!r} for text: choose one of {', '.join(methods)}")
    if not METHODS[name].uses_counts:
        runtimes = replace(runtimes, summaries=(None,) * len(runtimes.summaries))
    for index in with_text:
        answers[index] = with_texts(runtimes, boxes[index], answers[index], methods[name], budget, seed)
    return answers


def _of_columns(runtimes: Runtimes, boxes: Sequence[Box], name: str, budget: int | None, seed: int) -> list[Answer]:
    """The density of each box's columns."""
    if not boxes:
        return []
    ask_columns = METHODS[name].columns
    if ask_columns is None:
        raise CountlessError(f"the method {name!r} is for text columns only: choose one of {', '.join(for_columns())}")
    if runtimes.counts is None or not METHODS[name].uses_counts:
        return ask_columns(runtimes.columns, boxes, budget, seed)
    counts, box_counts, runtime = runtimes.counts, list(map(runtimes.box_counts, boxes)), runtimes.columns[0]
    if name != MODEL_METHOD or len(runtimes.columns) > 1 or runtime.kernel is None or not counts.are_compiled:
        return counts.answers(box_counts, lambda boxes: ask_columns(runtimes.columns, boxes, budget, seed))
    walk_effort = effort(budget, seed, len(runtime.sizes))
    answers: list[Answer] = []
    for counted in box_counts:
        if answers:  # an answer that is begun is finished, and kept for the next one who asks
            check_cancelled()
        answers.append(counts.answer(counted, runtime.kernel, walk_effort))
    return answers


def _density(region: Region, answers: Iterator[Answer]) -> Density:
    """The density of a region from the answers of its boxes and of its cover, in turn."""
    box_answers = tuple([next(answers) for _ in region.boxes])
    if len(box_answers) == 1 and not region.cover:
        (answer,) = box_answers
        return Density(min(1.0, answer.most, max(answer.least, answer.density)), box_answers)
    value = sum([answer.density for answer in box_answers])
    bounds = [next(answers).density for _ in region.cover]
    if bounds:
        value = min(max(value, *bounds), sum(bounds))
    density = Density(value, box_answers)
    return replace(density, value=min(density.most, max(density.least, value)))
