"""Random predicates, answered by a model that holds its whole table and counted by DuckDB: both must agree."""

from __future__ import annotations

import math
import random
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from countless import Estimator, Network, fit
from countless.data.columns.types import sql_literal
from countless.data.sources.arrow_batches import UNREADABLE
from countless.data.sources.source import Source
from countless.errors import CountlessError, EmptyTableError, SourceError
from countless.estimator.answers.estimate import Estimate
from countless_lab.fuzz.answers import random_values
from countless_lab.fuzz.campaign import Campaign, Outcome, unexpected
from countless_lab.fuzz.child import Limits, limited_processor_time
from countless_lab.fuzz.fitting import BUDGET, EPOCHS, NETWORK, PRELOADED, excluded_by
from countless_lab.fuzz.forms import materialize
from countless_lab.fuzz.predicates import ColumnValues, PredicateMaker, RandomPredicate
from countless_lab.fuzz.tables import DUCKDB, RandomTable, draw_table

QUESTIONS = 2_500  # of each table
VALUES = 8  # of a column, which questions name
SLOW = 2.0  # seconds of processor time, which other load does not change; DuckDB's processes have their own limits
HANGS = 60.0  # seconds of processor time
GROWTH = 400 * 1024**2  # bytes that the process may take more at the end than after a quarter of the questions
MAX_DEFECTS = 5  # that are shown of a table
CLAUSE_CHARACTERS = 1_000  # of a clause that are shown
EXACT, ESTIMATED, REFUSED, BOTH_REFUSE, LENIENT = "exact", "estimated", "refused", "refused by both", "lenient"
STATIC = ("Binder Error", "Catalog Error")  # errors of DuckDB that do not depend on rows; parser errors are no defect


@dataclass
class AnswerTally:
    """How the questions of a table were answered, and the defects."""

    counts: dict[str, int] = field(default_factory=dict)
    defects: list[str] = field(default_factory=list)

    def add(self, result: str) -> None:
        """Count a question."""
        self.counts[result] = self.counts.get(result, 0) + 1


def ask_table(seed: int, folder: str, questions: int = QUESTIONS) -> Outcome:
    """A case: fit the table of this seed, ask the model and DuckDB."""
    table = draw_table(seed, DUCKDB)
    source_path = materialize(table, Path(folder))
    model = _fitted(source_path, table)
    if model is None:
        return Outcome("nothing to model", checks=0)
    path = Path(folder) / "made.countless"
    model.save(path)
    model = Estimator.load(path)
    source, rng, tally = Source.open(source_path), random.Random(seed), AnswerTally()
    source.run("SET threads = 1")
    source = source.selected(f"SELECT * FROM {source.table}")  # in memory, and in the types that the model stores
    maker = PredicateMaker(list(_columns(model, source, seed)), rng)
    memory_after_warm_up = 0
    for number in range(questions):
        if number == questions // 4:
            memory_after_warm_up = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with limited_processor_time(HANGS):
            _ask(model, source, maker.draw(), rng.random() < 0.2, tally)
        if len(tally.defects) >= MAX_DEFECTS:
            return _outcome(tally)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory_after_warm_up) * 1024
    if grown > GROWTH:
        tally.defects.append(f"memory grew by {grown / 1024**2:,.0f} MB during {questions - questions // 4} questions")
    return _outcome(tally)


def _outcome(tally: AnswerTally) -> Outcome:
    counts_text = ", ".join(f"{count} {result}" for result, count in sorted(tally.counts.items()))
    return Outcome("asked", counts_text, tuple(tally.defects), sum(tally.counts.values()))


def _fitted(source_path: str, table: RandomTable) -> Estimator | None:
    """A model of the whole table, or sometimes of some of its rows; None if no column is left."""
    excluded: list[str] = []
    choices: dict[int, str | int] = {0: "none", 1: 3}
    evidence = choices.get(table.seed % 8, "auto")
    while True:
        try:
            return fit(
                source_path,
                exclude=excluded,
                max_distinct=table.max_distinct,
                text=[name for name in table.text if name not in excluded],
                network=NETWORK if table.seed % 4 else Network(hidden=8, blocks=1, embedding=2),
                epochs=EPOCHS,
                budget=BUDGET,
                evidence=evidence,
                seed=table.seed % 2**31,
            )
        except EmptyTableError:
            return None
        except CountlessError as error:
            names = [name for name in excluded_by(str(error)) if name not in excluded]
            if not names:
                raise
            excluded += names


def _columns(model: Estimator, source: Source, seed: int) -> Iterator[ColumnValues]:
    """The columns of the model, with some of their values."""
    for column in (*model.schema.columns, *model.schema.texts):
        values = random_values(source, column.name, VALUES, seed)
        literals = tuple(sql_literal(value, column.type) for value in values if len(value) <= 200)
        yield ColumnValues(column.name, column.type, literals)


def _ask(model: Estimator, source: Source, predicate: RandomPredicate, prepare: bool, tally: AnswerTally) -> None:
    """Ask the model and DuckDB, and record a disagreement."""
    count = _counted(source, predicate.clause)
    prepare = prepare and bool(predicate.parameters)
    started = time.process_time()
    answer: Estimate | CountlessError
    try:
        answer = _answered(model, predicate, prepare)
    except CountlessError as error:
        answer = error
    except Exception as error:
        tally.defects.append(f"WHERE {_clause_text(predicate, prepare)}: {unexpected(error)}")
        return
    seconds = time.process_time() - started
    if seconds > SLOW:
        tally.defects.append(f"WHERE {_clause_text(predicate, prepare)}: takes {seconds:.1f} s of processor time")
    result, wrong = _compared(answer, count, model.rows)
    tally.add(result)
    if wrong:
        tally.defects.append(f"WHERE {_clause_text(predicate, prepare)}: {wrong}")


def _answered(model: Estimator, predicate: RandomPredicate, prepare: bool) -> Estimate:
    if prepare:
        return model.prepare(predicate.prepared)(*predicate.parameters).estimate()
    return model.estimate(predicate.clause)


def _counted(source: Source, clause: str) -> int | str:
    try:
        return int(source.rows(f"SELECT count(*) FROM {source.table} WHERE {clause}")[0][0])
    except SourceError as error:
        return str(error).removeprefix(UNREADABLE)


def _compared(answer: Estimate | CountlessError, count: int | str, rows: int) -> tuple[str, str | None]:
    """How both answered, in a word, and the defect if there is one."""
    if isinstance(answer, CountlessError):
        if not str(answer).strip():
            return REFUSED, "an error without a message"
        return REFUSED if isinstance(count, int) else BOTH_REFUSE, None
    numbers = (answer.low, answer.rows, answer.high)
    if not all(math.isfinite(number) and -1e-9 <= number <= rows * (1 + 1e-9) for number in numbers):
        return ESTIMATED, f"{answer.rows} rows, from {answer.low} to {answer.high}, of {rows}"
    if not answer.low <= answer.rows <= answer.high:
        return ESTIMATED, f"{answer.rows} rows is not between {answer.low} and {answer.high}"
    if isinstance(count, str):
        return LENIENT, f"{answer.rows:g} rows, but DuckDB refuses it: {count}" if count.startswith(STATIC) else None
    if answer.exact and answer.rows != count:
        return EXACT, f"exactly {answer.rows:g}, but DuckDB counts {count}"
    return EXACT if answer.exact else ESTIMATED, None


def _clause_text(predicate: RandomPredicate, prepare: bool) -> str:
    text = f"{predicate.prepared} with {predicate.parameters}" if prepare else predicate.clause
    return text if len(text) <= CLAUSE_CHARACTERS else f"{text[:CLAUSE_CHARACTERS]}..."


PREDICATES = Campaign(
    "fuzz predicates",
    "table",
    "question",
    ask_table,
    about=lambda seed: str(draw_table(seed, DUCKDB)),
    limits=Limits(seconds=3_600),
    preload=(*PRELOADED, "countless_lab.fuzz.asking", "sqlglot"),
)
