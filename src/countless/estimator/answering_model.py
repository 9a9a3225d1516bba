"""What answers need of an estimator: the model, its evidence rows and the compiler of clauses."""

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
from countless.estimator.answers.known_parts import narrowed
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

NEARLY_ALL = 0.9  # distinct strings for each row, from which a column counts as one of unique strings


@dataclass(frozen=True, eq=False)
class AnsweringModel:
    """All that answers need of an estimator."""

    schema: Schema
    runtimes: Runtimes
    calibration: Calibration
    seed: int
    evidence: Evidence | None = None

    @cached_property
    def compiler(self) -> Compiler:
        """The compiler of clauses; it brings the SQL parser and DuckDB, which plain questions do not need."""
        with one_time_work():
            from countless.query.compile import Compiler

        return Compiler(self.schema, self._rows, self.filters.search)

    @cached_property
    def filters(self) -> CachedCompiler:
        """The compiler, with what it made of filters before."""
        return CachedCompiler(Searches.of(self.schema, self._rows), lambda: self.compiler)

    @property
    def _rows(self) -> EvidenceRows | None:
        return None if self.evidence is None else self.evidence.rows

    @cached_property
    def outer(self) -> Outer:
        """What DuckDB makes of a statement's aggregates."""
        from countless.query.select.outer_statement import Outer

        return Outer(self.schema)

    def method(self, name: str) -> str:
        """The method called ``name``; without evidence rows there is nothing to fuse, and the model answers."""
        return MODEL_METHOD if uses_evidence(name) and self.evidence is None else name

    def fusion(self, runtimes: Runtimes, question: Question) -> Fusion:
        """What evidence rows say of ``question``, to be fused with what the model says."""
        assert self.evidence is not None
        counted, estimated = (False, False) if question.beyond else what_counts_tell(runtimes, question.region)
        estimated = estimated and question.among is None
        silent = lacks_network(runtimes, question.region, MODEL_METHOD)
        if silent:
            question = self._without_text(question)
            silent = question.among is None
        hits = self.evidence.hits(question)
        among = hits if counted else narrowed(hits, self.evidence, runtimes, question)
        unique = estimated and all(box.texts and self._asks_for_unique(box) for box in question.region.boxes)
        decided = None if counted else dependency(hits, self.evidence, runtimes, question)
        return Fusion(question, hits, among, self.calibration, counted, estimated, silent, unique, decided)

    def _without_text(self, question: Question) -> Question:
        """The same question if it has filters on columns besides text: the evidence rows then answer the text."""
        boxes, evidence = question.region.boxes, self.evidence
        if evidence is None or question.among is not None or len(boxes) != 1 or not boxes[0].filters:
            return question
        texts = replace(question, region=Region((Box((), boxes[0].texts),)))
        return replace(question, region=Region((Box(boxes[0].filters),)), among=evidence.marks(texts))

    def _asks_for_unique(self, box: Box) -> bool:
        """Whether a box asks for whole strings of text in which nearly all are different."""
        texts = self.schema.texts
        return all(
            item.language.pattern.is_finite and texts[item.column].distinct >= NEARLY_ALL * self.schema.rows
            for item in box.texts
        )

    def checked_seed(self, seed: int | None) -> int:
        """The ``seed`` that is asked for, or the model's own."""
        return self.seed if seed is None else whole(seed, "the seed", 0)
