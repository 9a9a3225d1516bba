"""Explanations of an estimate: how it was computed, for a person."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from countless.data.columns.schema import Schema
from countless.engine.density import Density
from countless.estimator.answers.estimate import UNCALIBRATED, Estimate, format_interval, format_rows, format_share
from countless.query.hints import midnights, unseen_literals
from countless.query.question import Comparison, Question

MOST_BOXES_SHOWN = 10
# Terms of an explanation: the text that shows that the term is used, its meaning, and what one can do about it.
TERMS = (
    ("fused", "fused", "the default method: exact counts, evidence rows and the model together"),
    ("evidence rows", "evidence", "random rows of the table in the model file; more of them: fit with --evidence N"),
    ("model", "\nmodel", "the trained network; it learns more with countless train"),
    ("by search", "(by search)", "the column's values were compared one by one, without SQL"),
    ("by duckdb", "(by duckdb)", "DuckDB evaluated the filter for each value of the column; slower than by search"),
    ("grid", "in a grid of", "a column with many values is stored in cells; counts inside a cell are interpolated"),
    ("visited", "\nvisited", "columns that the model looked at, in this order; each one takes time"),
    ("skipped", "\nskipped", "columns that the question does not mention; they cost nothing"),
    ("box", "\nbox", "one combination of filters; a clause with OR has several"),
    ("density", "density", "the share of all rows that the model expects in the box"),
    ("particles", "particle", "random paths through the model; more of them: --particles N"),
    ("sampling error", "sampling error", "how much the density varies with the random seed; it falls with --particles"),
    ("context", " context", "values of the other columns for which the text was read"),
    ("limited by", "limited by", "exact counts in the model file say that there cannot be more rows"),
)


@dataclass(frozen=True)
class BoxExplanation:
    """One disjoint box: the columns it visits in order, and its density."""

    visited: tuple[str, ...]
    density: float
    exact: bool
    particles: int
    forward_rows: int
    sampling_error: float | None
    counted: bool = False  # the density is from exact counts that the model file stores
    clipped: tuple[str, ...] = ()  # columns whose exact counts limit the density
    factor: float = 1.0  # the model's density was multiplied by it, to agree with the counts of these columns:
    corrected: tuple[str, ...] = ()
    contexts: int = 0  # rows of the other columns for which the text was read


@dataclass(frozen=True)
class Explanation:
    """How a question was answered."""

    estimate: Estimate
    comparisons: tuple[Comparison, ...]
    boxes: tuple[BoxExplanation, ...]
    visited: tuple[str, ...]
    skipped: tuple[str, ...]
    stages_ms: dict[str, float]
    multiplied: bool = False  # text and other columns were treated as independent
    beyond: tuple[str, ...] = ()  # filters that only evidence rows can answer
    counted: bool = False  # answered by exact counts of the model file alone
    table_rows: int = 0  # rows of the fitted table
    unseen: tuple[str, ...] = ()  # a sentence for each literal that the table does not hold, with what to write instead
    notes: tuple[str, ...] = ()  # filters that likely mean something else than what they say

    def to_json(self) -> dict[str, Any]:
        """The fields as a dictionary that can be written as JSON."""
        return asdict(self)

    @property
    def _source(self) -> str:
        """Where the answer comes from."""
        answer = self.estimate
        if self.counted:
            return "exact counts in the model file"
        if answer.hits is not None and answer.exact:
            if answer.evidence_rows == self.table_rows:
                return "counted in the evidence rows, which are all rows of the table"
            return "found among the evidence rows; a column without duplicates allows no more rows"
        if answer.hits is not None:
            return "evidence rows alone" if answer.model_rows is None else "evidence rows and the model together"
        return "the model, with random sampling" if answer.sampled else "the model, without random sampling"

    @property
    def _evidence_lines(self) -> list[str]:
        """The answers of the evidence rows and of the model, each alone, and why the model was asked or not."""
        answer = self.estimate
        if answer.hits is None or answer.evidence_rows is None:
            return []
        share = answer.hits / answer.evidence_rows
        lines = [f"evidence  {answer.hits:,} of {answer.evidence_rows:,} evidence rows match ({format_share(share)})"]
        lines += [f"evidence  only the evidence rows can answer {sql}" for sql in self.beyond]
        if answer.exact:
            return lines
        if answer.model_rows is not None:
            rows = f"{format_rows(answer.model_rows)} rows"
            return [*lines, f"model     {rows}; it was asked because few evidence rows match"]
        return [*lines, "model     not asked: enough evidence rows match"]

    def __str__(self) -> str:
        answer = self.estimate
        lines = [f"{format_rows(answer.rows)} rows  ({format_interval(answer)})"]
        lines.append(f"method    {answer.method}: {self._source}")
        lines += self._evidence_lines
        lines += [f"filter    {item.sql}: {_selected_values(item)}" for item in self.comparisons]
        lines += [f"unseen    {sentence}" for sentence in self.unseen]
        lines += [f"note      {sentence}" for sentence in self.notes]
        if self.multiplied:
            lines.append("note      text and the other columns are treated as independent, which may be far off")
        if not answer.calibrated:
            lines.append(f"note      {UNCALIBRATED}")
        if self.boxes:
            lines.append(f"visited   {', '.join(self.visited) or 'no column'}")
            lines.append(f"skipped   {', '.join(self.skipped) or 'no column'}")
        for number, box in enumerate(self.boxes[:MOST_BOXES_SHOWN], 1):
            columns = ", then ".join(box.visited) or "every row"
            lines.append(f"box {number:<5} {columns}: density {box.density:.3g}, {_how_computed(box)}")
        if len(self.boxes) > MOST_BOXES_SHOWN:
            lines.append(f"          and {len(self.boxes) - MOST_BOXES_SHOWN} more boxes")
        lines.append("time      " + ", ".join(f"{stage} {ms:.2f} ms" for stage, ms in self.stages_ms.items()))
        return "\n".join(lines)

    @property
    def legend(self) -> tuple[tuple[str, str], ...]:
        """The terms that this explanation uses, and what each means.

        >>> for term, meaning in est.explain("age > 35 AND hours_per_week > 45").legend:
        ...     print(f"{term}: {meaning}")
        fused: the default method: exact counts, evidence rows and the model together
        evidence rows: random rows of the table in the model file; more of them: fit with --evidence N
        by search: the column's values were compared one by one, without SQL
        """
        text = str(self)
        return tuple((term, meaning) for term, sign, meaning in TERMS if sign in text)


def _how_computed(box: BoxExplanation) -> str:
    """How the density of a box was computed."""
    if box.counted:
        how = "counted in the table"
    elif not box.particles:
        how = "from the counts of its values"
    else:
        particles = f"{box.particles:,} particle{'s' if box.particles != 1 else ''}"
        how = f"{'no sampling' if box.exact else 'sampled'}, {particles}"
    if box.sampling_error is not None:
        how += f", sampling error about {box.sampling_error:.1%}"
    if box.contexts:
        how += f", text in {box.contexts} context{'s' if box.contexts != 1 else ''}"
    if box.corrected:
        how += f", corrected by a factor of {box.factor:.3g} from the counts of {' and '.join(box.corrected)}"
    if box.clipped:
        how += f", limited by the counts of {' and '.join(box.clipped)}"
    return how


def _selected_values(comparison: Comparison) -> str:
    """How many values of its column a comparison selects, and how they were found."""
    if comparison.values is None:
        plural = "s" if comparison.states != 1 else ""
        return f"strings of {comparison.column} (by an automaton of {comparison.states:,} state{plural})"
    if comparison.cells is None or comparison.how == "search":
        return f"{comparison.values:,} of {comparison.of:,} values of {comparison.column} (by {comparison.how})"
    share = comparison.values / comparison.of
    text = f"about {100 * share:.3g}% of the {comparison.of:,} values of {comparison.column}, "
    text += "by its knots" if comparison.how == "knots" else "by interpolation"
    text += f" in a grid of {comparison.cells:,} cells"
    return f"{text}; a value counts as the mean of its cell, whether it occurs or not" if comparison.equality else text


def explanation(
    schema: Schema, question: Question, density: Density | None, estimate: Estimate, stages_ms: dict[str, float]
) -> Explanation:
    """The explanation of an estimate; ``density`` is the model's, if the model was asked."""
    boxes = []
    answers = () if density is None else density.answers
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
    visited = {name for box in boxes for name in box.visited}
    return Explanation(
        estimate=estimate,
        comparisons=question.comparisons,
        boxes=tuple(boxes),
        visited=tuple(name for name in (*schema.names, *(part.name for part in schema.hidden)) if name in visited),
        skipped=tuple(name for name in schema.names if name not in visited),
        stages_ms=stages_ms,
        multiplied=any(
            answer.texts and len(answer.texts) + len(answer.visited) > 1 and not answer.contexts for answer in answers
        ),
        beyond=question.beyond,
        counted=estimate.exact and density is not None,
        table_rows=schema.rows,
        unseen=unseen_literals(question.comparisons, schema),
        notes=midnights(question.comparisons, schema),
    )
