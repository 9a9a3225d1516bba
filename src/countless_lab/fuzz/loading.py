"""Damaged model files. Each must be refused when it is loaded, or answer with numbers that can be counts."""

from __future__ import annotations

import functools
import math
import numbers
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from countless import Estimator
from countless.errors import CountlessError, ModelFileError
from countless_lab.fuzz.campaign import Campaign, Outcome, unexpected
from countless_lab.fuzz.child import Limits, limited_processor_time
from countless_lab.fuzz.mutations import mutated
from countless_lab.fuzz.small_models import Ask, make_models, questions

FILES = 250  # of each case
SECONDS = 20.0  # of processor time, for one file
MEMORY = 4 * 1024**3
QUESTIONS = 5  # that each file is asked
TWICE = 0.25  # share of the files that are damaged in two places
MAX_DEFECTS = 5  # that are shown of a case
ROUNDING = 1e-6


def damage_files(models: Path, seed: int, folder: str, files: int = FILES) -> Outcome:
    """A case: damaged copies of a model file of each kind, loaded and asked. ``models`` is a folder of good ones."""
    originals = {path.stem: path.read_bytes() for path in sorted(models.glob("*.countless"))}
    path, asks, defects, counts = Path(folder) / "mutated.countless", questions(), [], {"refused": 0, "answered": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # absurd weights overflow
        for number in range(files):
            rng = np.random.default_rng([seed, number])
            kind = sorted(originals)[int(rng.integers(len(originals)))]
            path.write_bytes(_damaged(originals[kind], rng))
            with limited_processor_time(SECONDS):
                result, file_defects = check_file(path, asks, rng)
            counts[result] += 1
            if file_defects:
                path.rename(path.with_name(f"{number}.countless"))
            defects += [f"file {number}, of {kind}: {defect}" for defect in file_defects]
            if len(defects) >= MAX_DEFECTS:
                break
    counts_text = ", ".join(f"{count} {result}" for result, count in counts.items())
    return Outcome("loaded", counts_text, tuple(defects), sum(counts.values()))


def check_file(path: Path, asks: dict[str, Ask], rng: np.random.Generator) -> tuple[str, list[str]]:
    """Load a file and ask it; return whether it was ``refused`` or ``answered``, and the defects."""
    try:
        model = Estimator.load(path)
    except ModelFileError as error:
        return "refused", [] if str(error).strip() else ["an error without a message"]
    except Exception as error:
        return "refused", [f"load: {unexpected(error)}"]
    defects = []
    names = [str(name) for name in rng.choice(list(asks), QUESTIONS, replace=False)]
    for name, ask in {"info": Estimator.info, **{name: asks[name] for name in names}}.items():
        try:
            answer = ask(model)
        except CountlessError as error:  # such as a column that has another name now
            defects += [] if str(error).strip() else [f"{name}: an error without a message"]
        except Exception as error:
            defects.append(f"{name}: {unexpected(error)}")
        else:
            wrong = None if name in ("info", "sample") else _wrong(name, answer, model.rows)
            defects += [f"{name}: {wrong}"] if wrong else []
    return "answered", defects


def _wrong(name: str, answer: Any, rows: int) -> str | None:
    """The defect of an answer's numbers, if there is one."""
    values = [float(number) for number in _numbers(answer)]
    bad = [number for number in values if math.isnan(number)]
    if name.startswith(("estimate ", "prepared", "distribution", "joint")):  # counts; averages may be negative
        bad = [number for number in values if not -ROUNDING <= number <= rows * (1 + ROUNDING) + ROUNDING]
    if name.startswith(("estimate ", "prepared")) and name != "estimate many":
        low, middle, high = values
        if not low <= middle * (1 + ROUNDING) or not middle <= high * (1 + ROUNDING):
            return f"{middle} rows is not between {low} and {high}"
    return f"{bad[0]} is among the answers" if bad else None


def _numbers(answer: Any) -> Iterator[float]:
    """Every number in nested lists."""
    if isinstance(answer, numbers.Real):
        yield float(answer)
    elif isinstance(answer, list | tuple):
        for element in answer:
            yield from _numbers(element)


def _damaged(original: bytes, rng: np.random.Generator) -> bytes:
    once = mutated(original, rng)
    if rng.random() >= TWICE:
        return once
    try:
        return mutated(once, rng)
    except Exception:  # the damaged file cannot be read for a second mutation
        return once


def files_campaign(models: Path) -> Campaign:
    """The campaign; the good files are made in ``models`` if they are not there."""
    make_models(models)
    return Campaign(
        "fuzz files",
        "round",
        "file",
        functools.partial(damage_files, models),
        limits=Limits(seconds=900, memory=MEMORY),
        preload=("countless_lab.fuzz.loading", "sqlglot", "duckdb"),
    )
