"""Fit a random table. It must end with a model that answers, or with an error whose remedy works."""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from countless import Estimator, Network, fit
from countless.data.columns.names import split_names
from countless.data.columns.types import stored_type
from countless.data.sources.source import Source
from countless.errors import CountlessError, EmptyTableError
from countless.estimator.fitting.salvage import missing_parts
from countless_lab.fuzz.answers import wrong_answers
from countless_lab.fuzz.campaign import Campaign, Outcome, unexpected
from countless_lab.fuzz.forms import materialize
from countless_lab.fuzz.tables import INVALID_UTF8, RandomTable, draw_table

BUDGET = 1.0  # seconds of a fit
EPOCHS = 2
NETWORK = Network(hidden=16, blocks=1, embedding=4)
EXCLUDE = re.compile(r"--exclude\s.*\Z", re.DOTALL)
ICONV = re.compile(r"iconv (?P<drops>-c )?-f (?P<old>[\w-]+) -t UTF-8")
MODEL, REFUSED = "model", "refused"
IGNORED_WARNING = "invalid value encountered in matmul"  # BLAS may leave the flag set without an invalid number


@dataclass
class _Case:
    """A table that is being fitted. ``source`` changes if a remedy converts the file."""

    table: RandomTable
    source: Any
    folder: Path
    excluded: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    converted: bool = False

    def fitted(self) -> Estimator:
        """Try to fit the table."""
        return fit(
            self.source,
            exclude=self.excluded,
            max_distinct=self.table.max_distinct,
            text=self.table.text,
            network=NETWORK,
            epochs=EPOCHS,
            budget=BUDGET,
            evidence=3,
            seed=self.table.seed % 2**31,
        )

    def columns(self) -> dict[str, str]:
        """Names and types of the columns of the source."""
        return dict(Source.open(self.source).columns())


def fit_table(seed: int, folder: str) -> Outcome:
    """A case, in its own process."""
    return check_fit(draw_table(seed), Path(folder))


def check_fit(table: RandomTable, folder: Path) -> Outcome:
    """Fit the table, follow the remedies of errors, and ask the model. Files are written to ``folder``."""
    case = _Case(table, materialize(table, folder), folder)
    with _strict_warnings():
        try:
            model = _model_after_remedies(case)
            defects = [] if model is None else _model_defects(case, model)
        except _Defect as defect:
            return Outcome(REFUSED, case.messages[0] if case.messages else "", (str(defect),))
        except Exception as error:
            return Outcome(REFUSED, "", (unexpected(error),))
    return Outcome(REFUSED if model is None else MODEL, (case.messages or [""])[0], tuple(defects))


class _Defect(Exception):  # noqa: N818 - what is found, not what went wrong
    """A promise that was not kept."""


def _model_after_remedies(case: _Case) -> Estimator | None:
    """The model; None if the fit rightly says that there is nothing to model."""
    for _ in range(len(case.table.columns) + 3):
        try:
            return case.fitted()
        except EmptyTableError as error:
            case.messages.append(str(error))
            _require_nothing_left(case, str(error))
            return None
        except CountlessError as error:
            case.messages.append(str(error))
            _follow(case, str(error))
    raise _Defect(f"no end of errors: {case.messages[-1]}")


def _require_nothing_left(case: _Case, message: str) -> None:
    usable = [name for name, kind in case.columns().items() if name not in case.excluded and stored_type(kind)]
    if usable:
        raise _Defect(f'refused as empty, but "{usable[0]}" can be modelled: {message}')


def _follow(case: _Case, message: str) -> None:
    """Follow the remedy of a message: leave a column out, or convert the file."""
    named = excluded_by(message)
    if named:
        unknown = [name for name in named if name not in case.columns()]
        if unknown or set(named) & set(case.excluded):
            raise _Defect(f"the remedy does not work, {unknown or named} is no column that is left: {message}")
        if not any(f'"{name}"' in message for name in named):
            raise _Defect(f"the error names no column: {message}")
        case.excluded += named
    elif INVALID_UTF8 in case.table.features and not case.converted and ICONV.search(message):
        case.source, case.converted = _converted(Path(case.source), message), True
    else:
        raise _Defect(f"the error names neither a column nor a remedy: {message}")


def excluded_by(message: str) -> tuple[str, ...]:
    """The columns that the remedy of a message leaves out, as a shell and the command line would read it.

    >>> excluded_by('"a,b" cannot be asked about: leave it out with --exclude \\'"a,b"\\'')
    ('a,b',)
    >>> excluded_by("no such file"), excluded_by("leave it out with --exclude")
    ((), ())
    """
    match = EXCLUDE.search(message)
    try:
        words = shlex.split(match.group()) if match else []
    except ValueError:  # a quote without its end
        return ()
    return split_names(words[1]) if len(words) > 1 else ()


def _converted(path: Path, message: str) -> str:
    """The file as ``iconv`` would write it, by the first of the message's commands that works."""
    new = path.with_name(f"new{path.suffix}")
    for command in ICONV.finditer(message):
        errors = "ignore" if command["drops"] else "strict"
        try:
            text = path.read_bytes().decode(command["old"], errors)
        except UnicodeDecodeError:
            continue
        new.write_bytes(text.encode())
        return str(new)
    raise _Defect(f"the remedy does not work, no command converts the file: {message}")


def _model_defects(case: _Case, model: Estimator) -> list[str]:
    """Defects of a model that was written and loaded again."""
    defects = [f"making the {part} failed: {reason}" for part, reason in missing_parts(model.report).items()]
    path = case.folder / "made.countless"
    model.save(path)
    try:
        loaded = Estimator.load(path)
    except CountlessError as error:
        return [*defects, f"the model cannot be loaded: {error}"]
    source = Source.open(case.source)
    expected = {name for name, kind in source.columns() if stored_type(kind) and name not in case.excluded}
    if set(loaded.columns) != expected:
        defects.append(f"the model has the columns {loaded.columns}, not {sorted(expected)}")
    return defects + wrong_answers(loaded, source, case.table.seed)


@contextmanager
def _strict_warnings() -> Iterator[None]:
    """Warnings are errors, as in the tests: a user of the library would see them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=IGNORED_WARNING)
        yield


PRELOADED = (  # by a fit, and slow to load
    *("countless_lab.fuzz.fitting", "countless.train.tasks.columns"),
    *("torch._dynamo", "torch._inductor.config", "pandas", "polars", "pyarrow.parquet"),
)
TABLES = Campaign("fuzz tables", "table", "fit", fit_table, about=lambda seed: str(draw_table(seed)), preload=PRELOADED)
