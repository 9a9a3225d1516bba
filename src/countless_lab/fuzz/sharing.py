"""Share one estimator among threads and processes: every answer must equal that of an unshared one to the last bit."""

from __future__ import annotations

import functools
import multiprocessing
import os
import random
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from countless import Estimator
from countless.errors import CountlessError
from countless_lab.fuzz.campaign import Campaign, Outcome, unexpected
from countless_lab.fuzz.child import Limits
from countless_lab.fuzz.compiled_code import COLUMNS
from countless_lab.fuzz.predicates import PredicateMaker
from countless_lab.fuzz.small_models import make_models, questions

THREADS = 16
PREDICATES = 40  # beside the questions of every kind
ROUNDS = 2  # times that each thread asks all questions, in its own random order
FORKS = 3
PATIENCE = 120.0  # seconds for a child


def share_estimator(models: Path, seed: int, folder: str, spawn: bool = True) -> Outcome:
    """A case: ask one model from threads, from processes forked meanwhile, and from a spawned process."""
    paths = sorted(models.glob("*.countless"))
    path = paths[seed % len(paths)]
    maker = PredicateMaker(COLUMNS, random.Random(seed))
    clauses = [maker.draw().clause for _ in range(PREDICATES)]
    alone = Estimator.load(path)
    expected = {name: answer_of(ask, alone) for name, ask in _all_questions(clauses).items()}
    model = Estimator.load(path)
    defects, count = _ask_in_threads(model, clauses, expected, seed)
    if spawn:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            answers = pool.apply_async(answers_in_process, (str(path), clauses)).get(PATIENCE)
        defects += _differences("a spawned process", answers, expected)
        count += len(answers)
    return Outcome(path.stem, "", tuple(defects[:5]), count)


def answer_of(ask: Callable[[Estimator], Any], model: Estimator) -> str:
    """An answer, or the kind of the refusal, as text that has every digit of a number."""
    try:
        return repr(ask(model))
    except CountlessError as error:
        return f"refused: {type(error).__name__}"
    except Exception as error:
        return f"broken: {unexpected(error)}"


def answers_in_process(path: str, clauses: list[str]) -> dict[str, str]:
    """All answers, of a model that this process loads."""
    model = Estimator.load(path)
    return {name: answer_of(ask, model) for name, ask in _all_questions(clauses).items()}


def _all_questions(clauses: list[str]) -> dict[str, Callable[[Estimator], Any]]:
    def numbers(clause: str, model: Estimator) -> tuple[float, float, float]:
        estimate = model.estimate(clause)
        return estimate.low, estimate.rows, estimate.high

    return questions() | {f"estimate {clause}": functools.partial(numbers, clause) for clause in clauses}


def _ask_in_threads(model: Estimator, clauses: list[str], expected: dict[str, str], seed: int) -> tuple[list[str], int]:
    """Ask all questions from threads at the same time, and fork children meanwhile; return defects and answers."""
    asks, defects, counts = _all_questions(clauses), [], [0] * THREADS
    started = threading.Barrier(THREADS + 1)

    def work(number: int) -> None:
        rng = random.Random(seed * THREADS + number)
        started.wait()
        for _ in range(ROUNDS):
            for name in rng.sample(sorted(asks), len(asks)):
                defects.extend(_differences("a thread", {name: answer_of(asks[name], model)}, expected))
                counts[number] += 1

    workers = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for worker in workers:
        worker.start()
    started.wait()
    for number in range(FORKS):
        ended = _forked(functools.partial(_same_answers, model, asks, expected, seed + number))
        defects.extend([f"a forked process: {ended}"] if ended else [])
    for worker in workers:
        worker.join()
    broken = [f"{name}: {answer}" for name, answer in expected.items() if answer.startswith("broken")]
    return [*broken, *defects], sum(counts)


def _same_answers(model: Estimator, asks: dict[str, Any], expected: dict[str, str], seed: int) -> bool:
    names = random.Random(seed).sample(sorted(asks), 10)
    return all(answer_of(asks[name], model) == expected[name] for name in names)


def _forked(work: Callable[[], bool]) -> str | None:
    """The defect of a forked child, if there is one: other answers, or no end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of forks beside threads
        child = multiprocessing.get_context("fork").Process(target=_leave_with, args=(work,))
        child.start()
    child.join(PATIENCE)
    if child.is_alive():
        child.kill()
        child.join()
        return "it does not end"
    return None if child.exitcode == 0 else f"other answers, exit code {child.exitcode}"


def _leave_with(work: Callable[[], bool]) -> None:
    os._exit(0 if work() else 3)


def _differences(asker: str, answers: dict[str, str], expected: dict[str, str]) -> list[str]:
    return [
        f"{asker}, {name}: {answer}, not {expected[name]}"
        for name, answer in answers.items()
        if answer != expected[name]
    ]


def concurrency_campaign(models: Path) -> Campaign:
    """The campaign; models are made in ``models`` if they are not there."""
    make_models(models)
    return Campaign(
        "fuzz concurrency",
        "model",
        "answer",
        functools.partial(share_estimator, models),
        limits=Limits(seconds=1_800),
        preload=("countless_lab.fuzz.sharing", "sqlglot", "duckdb"),
    )
