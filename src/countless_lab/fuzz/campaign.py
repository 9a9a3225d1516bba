"""A campaign: random cases that test one promise of the product. A seed determines a case, and repeats it."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from countless_lab.fuzz.child import Limits

CRASHED = "crashed"


@dataclass(frozen=True)
class Outcome:
    """How a case ended, in a word or two: ``result``.

    ``message`` is what the product said, ``defects`` are sentences, ``checks`` is how many things were checked.
    """

    result: str
    message: str = ""
    defects: tuple[str, ...] = ()
    checks: int = 1


@dataclass(frozen=True)
class Campaign:
    """What a campaign does: ``job(seed, folder)`` runs one case, in a process of its own with ``limits``.

    ``command`` are the words after ``countless bench`` that repeat it. ``case`` and ``check`` are nouns, in the
    singular: a table, of which many questions are asked. ``job`` is a function of a module; it may write to ``folder``.
    """

    command: str
    case: str
    check: str
    job: Callable[[int, str], Outcome]
    about: Callable[[int], str] = lambda seed: ""
    limits: Limits = field(default_factory=Limits)
    preload: tuple[str, ...] = ()  # modules that every case needs and that are slow to load

    def repeat(self, seed: int) -> str:
        """The command that repeats a case."""
        return f"countless bench {self.command} --seed {seed} --cases 1"


def unexpected(error: BaseException) -> str:
    """The message for an exception that is not Countless's own, with the place that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    product_frames = [frame for frame in frames if "countless/" in frame.filename] or list(frames)
    location = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(product_frames[-3:]))
    return f"{type(error).__name__}: {str(error)[:500]} ({location})"
