"""The part of an estimator that answers questions: the model, its evidence rows and the compiler of clauses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from countless.cached_property import cached_property
from countless.data.columns.schema import Schema
from countless.data.evidence import EvidenceRows
from countless.engine.density import lacks_network, what_counts_tell
from countless.engine.methods import MODEL_METHOD, uses_evidence
from countless.engine.runtimes import Runtimes
from countless.estimator.answers.dependencies import dependency
from countless.estimator.answers.evidence import Evidence
from countless.estimator.answers.fused import Fusion
from countless.estimator.answers.narrowing import narrowed_hits
from countless.estimator.arguments import whole
from countless.estimator.calibration.conformal import Calibration
from countless.query.answer_clock import one_time_work
from countless.query.domains.searches import Searches
from countless.query.filter_cache import CachedCompiler
from countless.query.question import Question
from countless.region import Box, Region

if TYPE_CHECKING:
    from countless.query.compile import Compiler
    from countless.query.select.outer_statement import Outer

UNIQUE_SHARE = 0.9  # distinct strings per row, from which the strings of a column count as unique


@dataclass(frozen=True, eq=False)
class AnsweringModel:
    """The model, its evidence rows and the compiler: all that an answer needs."""

    schema: Schema
    runtimes: Runtimes
    calibration: Calibration
    seed: int
    evidence: Evidence | None = None

    @cached_property
    def compiler(self) -> Compiler:
        """The compiler of clauses. It imports the SQL parser and DuckDB, which simple questions do not need."""
        with one_time_work():
            from countless.query.compile import Compiler

        return Compiler(self.schema, self._rows, self.filters.search)

    @cached_property
    def filters(self) -> CachedCompiler:
        """The compiler, with a cache of compiled filters."""
        return CachedCompiler(Searches.of(self.schema, self._rows), lambda: self.compiler)

    @property
    def _rows(self) -> EvidenceRows | None:
        return None if self.evidence is None else self.evidence.rows

    @cached_property
    def outer(self) -> Outer:
        """DuckDB, which evaluates the expressions around a statement's aggregates."""
        from countless.query.select.outer_statement import Outer

        return Outer(self.schema)

    def method(self, name: str) -> str:
        """The method to use for ``name``. Without evidence rows, the model alone answers instead of ``fused``."""
        return MODEL_METHOD if uses_evidence(name) and self.evidence is None else name

    def fusion(self, runtimes: Runtimes, question: Question) -> Fusion:
        """The hits of ``question`` among the evidence rows, to be fused with the model's density."""
        assert self.evidence is not None
        counted, estimated = (False, False) if question.beyond else what_counts_tell(runtimes, question.region)
        estimated = estimated and question.among is None
        silent = lacks_network(runtimes, question.region, MODEL_METHOD)
        if silent:
            question = self._with_text_as_evidence(question)
            silent = question.among is None
        hits = self.evidence.hits(question)
        narrow = hits if counted else narrowed_hits(hits, self.evidence, runtimes, question)
        unique = estimated and all(box.texts and self._asks_for_unique(box) for box in question.region.boxes)
        deciding_filter = None if counted else dependency(hits, self.evidence, runtimes, question)
        return Fusion(question, hits, narrow, self.calibration, counted, estimated, silent, unique, deciding_filter)

    def _with_text_as_evidence(self, question: Question) -> Question:
        """The question with its filters on text answered by evidence rows; unchanged if it has no other filters."""
        boxes, evidence = question.region.boxes, self.evidence
        if evidence is None or question.among is not None or len(boxes) != 1 or not boxes[0].filters:
            return question
        text_question = replace(question, region=Region((Box((), boxes[0].texts),)))
        return replace(question, region=Region((Box(boxes[0].filters),)), among=evidence.matches(text_question))

    def _asks_for_unique(self, box: Box) -> bool:
        """Whether a box asks for whole strings of text columns whose strings are nearly all different."""
        texts = self.schema.texts
        return all(
            text_filter.language.pattern.is_finite
            and texts[text_filter.column].distinct >= UNIQUE_SHARE * self.schema.rows
            for text_filter in box.texts
        )

    def checked_seed(self, seed: int | None) -> int:
        """The requested ``seed``, or the model's own."""
        return self.seed if seed is None else whole(seed, "the seed", 0)
