"""Text is learned in the context of its row: what a column tells of the strings, any part of the row, and nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from countless.automata.language import Language
from countless.data.columns.strings.text import TextColumn, encode
from countless.engine.text.column_runtimes import runtimes_of
from countless.engine.text.conditional import given, log_probabilities
from countless.engine.text.runtime import TextRuntime
from countless.errors import ModelFileError, TrainingError
from countless.query.text.string_sets import Script, like
from countless.spec import SharedTextSpec
from countless.train.loop import train
from countless.train.options import TrainOptions
from countless.train.tasks.strings import GAPS_PER_STRING
from countless.train.tasks.task import stream
from countless.train.tasks.text import TextTask
from tests.train.test_loop import Stop, same

ENDINGS = (
    ".at",
    ".be",
    ".ch",
    ".de",
    ".es",
    ".fr",
    ".gr",
    ".hu",
    ".it",
    ".jp",
    ".kr",
    ".lt",
    ".mx",
    ".nl",
    ".pt",
    ".uk",
)
WORDS = (
    "alm",
    "gent",
    "berg",
    "wald",
    "sol",
    "lyon",
    "kos",
    "duna",
    "alba",
    "neko",
    "seul",
    "vilna",
    "maya",
    "tulp",
    "faro",
    "inn",
)
SIZES, GROUPS = (16, 3, 2), (1, 2)  # the country, and a number of two digits: the first tells whether there is a text
COUNT = 3000


def table(seed: int = 0) -> tuple[TextColumn, list[str | None], Any]:
    """Strings that the country decides; NULL where the number's leading digit is 2."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(SIZES, size=(COUNT, 3)).astype(np.int8)
    texts: list[str | None] = []
    for country, leading, _ in codes.tolist():
        words = [WORDS[country], "www"][: rng.integers(1, 3)]
        texts.append(None if leading == 2 else ".".join(reversed(words)) + ENDINGS[country])
    there = [text for text in texts if text is not None]
    characters = "".join(sorted(set("".join(there))))
    column = TextColumn("t", "VARCHAR", characters, max(map(len, there)), True, 20, (), (9,) * len(characters))
    return column, texts, codes


COLUMN, TEXTS, CODES = table()
STRINGS = encode(COLUMN, TEXTS)
NETWORK = SharedTextSpec.of(
    [(COLUMN.characters, COLUMN.length)],
    width=32,
    blocks=1,
    heads=2,
    inner=64,
    buckets=256,
    context=SIZES,
    context_width=32,
)
SPEC = NETWORK.column(0)
OPTIONS = TrainOptions(batch=100, epochs=12, learning_rate=0.015)


def task(options: TrainOptions = OPTIONS, masking: str = "prefix") -> TextTask:
    return TextTask([STRINGS], NETWORK, options, masking, CODES, GROUPS)


class TestTheRowOfAString:
    def test_any_number_of_columns_is_masked_and_digits_from_the_end(self) -> None:
        made = task()
        assert made._row is not None
        rows = torch.arange(COUNT)
        seen = made._row.masked(rows, stream(0, 0)) != torch.tensor(SIZES)
        country, digits = seen[:, 0], seen[:, 1:]
        assert not bool((digits[:, 1] & ~digits[:, 0]).any())
        columns = torch.bincount(country.long() + digits[:, 0].long(), minlength=3) / COUNT
        assert torch.all((columns - 1 / 3).abs() < 0.04)  # none, one or both of the columns
        assert 0.4 < float((digits[:, 1] & digits[:, 0]).sum() / digits[:, 0].sum()) < 0.6
        assert torch.equal(made._row.whole(rows), torch.from_numpy(CODES).long())
        codes = made._row.masked(rows, stream(0, 0))
        assert torch.equal(codes[seen], torch.from_numpy(CODES).long()[seen])

    def test_every_part_of_a_batch_has_the_row_of_its_string(self) -> None:
        made, rows = task(), torch.arange(100, 200)
        for masking in ("prefix", "spans", "none"):
            for batch in made.columns[0].batches(rows, masking, stream(1, 0)):
                symbols = made.columns[0]._symbols[rows[batch.strings]].long()
                first = symbols.gather(1, batch.positions[:, :1])[:, 0]
                known = batch.tokens[:, 1] != SPEC.mask
                ended = batch.targets[:, 1] == -100  # of which the next token is padding
                assert torch.equal(batch.tokens[known & ~ended, 1], first[known & ~ended])

    def test_gaps_of_any_length_are_drawn(self) -> None:
        made, rows = task(), torch.arange(1000, 2000)
        batch = made.columns[0].gaps(rows, stream(2, 0))
        assert batch.tokens.shape == (1000 * GAPS_PER_STRING, 1)
        assert bool((batch.tokens == SPEC.mask).all())
        lengths = torch.bincount(batch.positions[:, 0], minlength=SPEC.length + 1) / len(batch.positions)
        assert torch.all((lengths - 1 / (SPEC.length + 1)).abs() < 0.02)
        for string, place, target in zip(
            batch.strings.tolist(), batch.positions[:, 0].tolist(), batch.targets[:, 0].tolist(), strict=True
        ):
            own = STRINGS.symbols[1000 + string, : STRINGS.lengths[1000 + string]].tolist()
            assert target == (own[place] if place < len(own) else SPEC.end)

    def test_codes_that_do_not_fit(self) -> None:
        for codes in (None, CODES[:-1], CODES[:, :2]):
            with pytest.raises(TrainingError, match="needs 3 codes of each of 3000 rows"):
                TextTask([STRINGS], NETWORK, OPTIONS, "prefix", codes, GROUPS)
        with pytest.raises(ModelFileError, match="share out"):
            TextTask([STRINGS], NETWORK, OPTIONS, "prefix", CODES, (1, 1))


@pytest.fixture(scope="module")
def runtime() -> TextRuntime:
    return runtimes_of(NETWORK, train(task(), OPTIONS).arrays)[0]


def language(pattern: str) -> Language:
    return Language(like(Script(COLUMN.letters, tuple(COLUMN.letters.characters)), pattern), False, True)


def contexts(leading: int = SIZES[1]) -> Any:
    """A row of each country, and one of which the country is not known."""
    return np.array([[country, leading, SIZES[2]] for country in range(SIZES[0] + 1)])


@pytest.mark.parametrize(("pattern", "ratio"), [("www.{}%", 10), ("{}%", 5), ("%{}%", 5)])
def test_the_column_decides_the_text(runtime: TextRuntime, pattern: str, ratio: float) -> None:
    right, wrong, guess = [], [], []
    for country, word in enumerate(WORDS):
        probs = given(runtime, language(pattern.format(word)), contexts(), np.ones(17), budget=400).probabilities
        right.append(probs[country])
        wrong.append(np.delete(probs[:16], country).mean())
        guess.append(probs[16])
    truth = 2 / 3 if pattern == "%{}%" else 1 / 3  # of all rows a third is NULL
    assert np.mean(guess) == pytest.approx(truth / 16, rel=0.3)
    assert np.mean(right) == pytest.approx(truth, rel=0.3)
    assert np.mean(right) > 10 * np.mean(guess)
    assert np.mean(wrong) < np.mean(guess) / ratio


def test_a_digit_tells_whether_there_is_a_text(runtime: TextRuntime) -> None:
    there = language("%")
    for leading, expected in ((0, 1.0), (1, 1.0), (2, 0.0), (3, 2 / 3)):
        conditionals = given(runtime, there, contexts(leading), np.ones(17))
        assert conditionals.exact
        assert conditionals.probabilities.mean() == pytest.approx(expected, abs=0.1)
        if leading < SIZES[1]:
            np.testing.assert_allclose(conditionals.probabilities, expected, atol=0.15)


def test_rows_are_likelier_with_their_context(runtime: TextRuntime) -> None:
    symbols, lengths = STRINGS.symbols[:500], STRINGS.lengths[:500]
    own = log_probabilities(runtime, symbols, lengths, CODES[:500]).mean()
    other = log_probabilities(runtime, symbols, lengths, CODES[500:1000]).mean()
    nothing = log_probabilities(runtime, symbols, lengths).mean()
    assert own > nothing + np.log(16) / 3 > other + np.log(16)


def test_the_same_seed_gives_the_same_model_and_a_stopped_run_goes_on_to_it(tmp_path: Path) -> None:
    options = TrainOptions(batch=100, epochs=2)
    whole = train(task(options, "spans"), options)
    assert same(whole, train(task(options, "spans"), options))
    checkpoint = tmp_path / "run.checkpoint"
    train(task(options, "spans"), options, checkpoint=checkpoint, on_progress=Stop(33))
    resumed = train(task(options, "spans"), options, checkpoint=checkpoint, resume=True)
    assert same(whole, resumed)
    assert whole.report["masked_bits"] == resumed.report["masked_bits"]
    with pytest.raises(TrainingError, match="its groups was"):
        train(
            TextTask([STRINGS], NETWORK, options, "spans", CODES, (2, 1)), options, checkpoint=checkpoint, resume=True
        )
