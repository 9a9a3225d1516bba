"""One network learns several text columns: each its own language, from the rows they share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from countless.automata.language import Language
from countless.data.columns.strings.text import TextColumn, encode
from countless.engine.text.column_runtimes import runtimes_of
from countless.engine.text.density import text_density
from countless.engine.text.methods import PARTICLES
from countless.query.text.string_sets import Script, like
from countless.spec import SharedTextSpec
from countless.train.loop import train
from countless.train.options import TrainOptions
from countless.train.tasks.text import TextTask
from tests.train.test_loop import Stop, same

ANIMALS, PLACES = ("cat", "dove", "eel", "unicorn"), ("rome", "oslo", "bonn", "cairo", "lima")
ROWS = 1200


def column(name: str, texts: list[str]) -> TextColumn:
    characters = "".join(sorted(set("".join(texts))))
    return TextColumn(name, "VARCHAR", characters, max(map(len, texts)), False, 5, (), (9,) * len(characters))


def table(seed: int = 0) -> list[list[str]]:
    """Animals, alone or in pairs, beside places that have nothing to do with them."""
    rng = np.random.default_rng(seed)
    animals = [" ".join(rng.choice(ANIMALS, size=rng.integers(1, 3))) for _ in range(ROWS)]
    return [animals, rng.choice(PLACES, size=ROWS).tolist()]


TEXTS = table()
COLUMNS = [column("animal", TEXTS[0]), column("place", TEXTS[1])]
STRINGS = [encode(each, list(texts)) for each, texts in zip(COLUMNS, TEXTS, strict=True)]
SIZES: dict[str, Any] = {"width": 16, "blocks": 1, "heads": 2, "inner": 32, "buckets": 64}
SPEC = SharedTextSpec.of([(each.characters, each.length) for each in COLUMNS], **SIZES)


def task(options: TrainOptions) -> TextTask:
    return TextTask(STRINGS, SPEC, options)


def test_each_column_has_its_own_language() -> None:
    options = TrainOptions(batch=50, epochs=12, learning_rate=0.01)
    runtimes = runtimes_of(SPEC, train(task(options), options).arrays)

    def share(index: int, pattern: str) -> float:
        letters = COLUMNS[index].letters
        language = Language(like(Script(letters, tuple(letters.characters)), pattern), False, False)
        return text_density(runtimes[index], language, PARTICLES, None, 0).density

    for index, words in enumerate((ANIMALS, PLACES)):
        for word in words:
            truth = sum(text.startswith(word) for text in TEXTS[index]) / ROWS
            assert share(index, f"{word}%") == pytest.approx(truth, rel=0.3)
    assert share(0, "cairo%") < 0.01  # the other column's word, in letters that both have
    assert share(1, "eel%") < 0.01


def test_a_step_reads_the_strings_of_its_rows_in_every_column() -> None:
    made = task(TrainOptions())
    symbols = sum(int(strings.lengths.sum()) for strings in STRINGS)
    assert made.rows == ROWS
    assert made.batch == round(1024 * ROWS / symbols)


def test_a_stopped_run_goes_on_to_the_same_model(tmp_path: Path) -> None:
    options = TrainOptions(batch=100, epochs=2)
    whole = train(task(options), options)
    train(task(options), options, checkpoint=tmp_path / "c", on_progress=Stop(15))
    assert same(whole, train(task(options), options, checkpoint=tmp_path / "c", resume=True))
