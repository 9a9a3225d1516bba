"""Explanations of an estimate: how it was computed, for a person."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from countless.data.columns.schema import Schema
from countless.engine.density import Density
from countless.estimator.answers.estimate import UNCALIBRATED, Estimate, format_interval, format_rows
from countless.query.question import Comparison, Question

MOST_BOXES_SHOWN = 10


@dataclass(frozen=True)
class BoxExplanation:
    """One disjoint box: the columns it visits in order, and its density."""

    visited: tuple[str, ...]
    density: float
    exact: bool
    particles: int
    forward_rows: int
    sampling_error: float | None
    counted: bool = False  # from exact counts that the model file stores
    clipped: tuple[str, ...] = ()  # the columns that have no more rows than this, alone or together
    factor: float = 1.0  # by which the model's answer was corrected, because it is wrong about these columns
    corrected: tuple[str, ...] = ()
    contexts: int = 0  # rows of the other columns in which text was read


@dataclass(frozen=True)
class Explanation:
    """How a question was answered."""

    estimate: Estimate
    comparisons: tuple[Comparison, ...]
    boxes: tuple[BoxExplanation, ...]
    visited: tuple[str, ...]
    skipped: tuple[str, ...]
    stages_ms: dict[str, float]
    multiplied: bool = False  # a text column and others, or several text columns, as if they were independent
    beyond: tuple[str, ...] = ()  # filters that only evidence rows can answer
    counted: bool = False  # by exact counts that are stored with the model, alone

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @property
    def unseen(self) -> tuple[str, ...]:
        """Literals that the clause looks for and the table does not hold, as sentences."""
        return tuple(f"{text} does not occur in {item.column}" for item in self.comparisons for text in item.unseen)

    @property
    def _how(self) -> str:
        answer = self.estimate
        if self.counted:
            return "from exact counts that the model file stores"
        if answer.hits is not None and answer.exact:
            return "counted in the evidence rows, which are all rows of the table"
        if answer.hits is not None:
            return "evidence rows alone" if answer.model_rows is None else "evidence rows and the model"
        return "sampled" if answer.sampled else "exact under the model"

    @property
    def _evidence(self) -> list[str]:
        """What evidence rows and the model say, each alone, and why the model was asked or not."""
        answer = self.estimate
        if answer.hits is None or answer.evidence_rows is None:
            return []
        share = answer.hits / answer.evidence_rows
        hits = f"{answer.hits:,} of {answer.evidence_rows:,} stored rows match, {share:.3%}"
        lines = [f"evidence  {hits}"]
        lines += [f"evidence  only stored rows can answer {sql}" for sql in self.beyond]
        if answer.exact:
            return lines
        if answer.model_rows is not None:
            return [
                *lines,
                f"model     {format_rows(answer.model_rows)} rows; it was asked because few stored rows match",
            ]
        return [*lines, "model     not asked: enough stored rows match"]

    def __str__(self) -> str:
        answer = self.estimate
        lines = [f"{format_rows(answer.rows)} rows  ({format_interval(answer)})"]
        lines.append(f"method    {answer.method}, {self._how}")
        lines += self._evidence
        lines += [f"filter    {item.sql}: {_kept(item)}" for item in self.comparisons]
        lines += [f"unseen    {sentence}" for sentence in self.unseen]
        if self.multiplied:
            lines.append("note      text and the other columns are treated as independent")
        if not answer.calibrated:
            lines.append(f"note      {UNCALIBRATED}")
        if self.boxes:
            lines.append(f"visited   {', '.join(self.visited) or 'no column'}")
            lines.append(f"skipped   {', '.join(self.skipped) or 'no column'}")
        for number, box in enumerate(self.boxes[:MOST_BOXES_SHOWN], 1):
            sampled = "no sampling" if box.exact else "sampled"
            how = f"{sampled}, {box.particles:,} particle{'s' if box.particles != 1 else ''}"
            if box.counted:
                how = "counted in the table"
            elif not box.particles:
                how = "by the counts of its values"
            if box.sampling_error is not None:
                how += f", sampling error about {box.sampling_error:.1%}"
            if box.contexts:
                how += f", text in {box.contexts} context{'s' if box.contexts != 1 else ''}"
            if box.corrected:
                how += f", times {box.factor:.3g} by the counts of {' and '.join(box.corrected)}"
            if box.clipped:
                how += f", but no more than the rows of {' and '.join(box.clipped)}"
            lines.append(
                f"box {number:<5} {', then '.join(box.visited) or 'every row'}: density {box.density:.3g}, {how}"
            )
        if len(self.boxes) > MOST_BOXES_SHOWN:
            lines.append(f"          and {len(self.boxes) - MOST_BOXES_SHOWN} more boxes")
        lines.append("time      " + ", ".join(f"{stage} {ms:.2f} ms" for stage, ms in self.stages_ms.items()))
        return "\n".join(lines)


def _kept(item: Comparison) -> str:
    """How much of its column a comparison keeps, and how that is known."""
    if item.values is None:
        return f"strings of {item.column} (by an automaton of {item.states:,} state{'s' if item.states != 1 else ''})"
    if item.cells is None or item.how == "search":
        return f"{item.values:,} of {item.of:,} values of {item.column} (by {item.how})"
    text = f"about {100 * item.values / item.of:.3g}% of the {item.of:,} values of {item.column}, "
    text += "by its knots" if item.how == "knots" else "by interpolation"
    text += f" in a grid of {item.cells:,} cells"
    return f"{text}; a value counts as the mean of its cell, whether it occurs or not" if item.equality else text


def explanation(
    schema: Schema, question: Question, found: Density | None, estimate: Estimate, stages_ms: dict[str, float]
) -> Explanation:
    """Put together what the rooms know, in the names of the table's columns."""
    boxes = []
    answers = () if found is None else found.answers
    for answer in answers:
        columns = dict.fromkeys(schema.modelled[schema.column_of(position)].name for position in answer.visited)
        texts = [schema.texts[index].name for index in answer.texts]
        boxes.append(
            BoxExplanation(
                (*columns, *texts),
                answer.density,
                answer.exact,
                answer.particles,
                answer.forward_rows,
                answer.sampling_error,
                answer.counted,
                tuple(schema.modelled[index].name for index in answer.clipped),
                answer.factor,
                tuple(schema.modelled[index].name for index in answer.corrected),
                answer.contexts,
            )
        )
    asked = {name for box in boxes for name in box.visited}
    return Explanation(
        estimate=estimate,
        comparisons=question.comparisons,
        boxes=tuple(boxes),
        visited=tuple(name for name in (*schema.names, *(part.name for part in schema.hidden)) if name in asked),
        skipped=tuple(name for name in schema.names if name not in asked),
        stages_ms=stages_ms,
        multiplied=any(
            answer.texts and len(answer.texts) + len(answer.visited) > 1 and not answer.contexts for answer in answers
        ),
        beyond=question.beyond,
        counted=estimate.exact and found is not None,
    )
