"""Text is learned whole and after gaps of any length: what a batch holds, and what comes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from countless.data.columns.strings.text import Strings, TextColumn, encode
from countless.errors import TrainingError
from countless.spec import SharedTextSpec
from countless.train.loop import Progress, Trained, train
from countless.train.options import TrainOptions
from countless.train.tasks.strings import IGNORED, WINDOW, ColumnStrings, StringBatch
from countless.train.tasks.task import stream
from countless.train.tasks.text import DEFAULT_EPOCHS, TextTask
from tests.train.test_loop import Stop, same

# Ended and cut strings, shorter and longer than a window, an empty one and NULL.
ROWS = ["abba", "", None, "ab" * 10, "ba" * 10 + "b", "b" * 30, "a"]
LONG = TextColumn("t", "VARCHAR", "ab", 21, True, 9, (), (9, 9))
WORDS = ("cat", "dove", "eel", "unicorn")


def spec_of(column: TextColumn, **sizes: Any) -> SharedTextSpec:
    chosen = {"width": 16, "blocks": 1, "heads": 2, "inner": 32, "buckets": 64} | sizes
    return SharedTextSpec.of([(column.characters, column.length)], **chosen)


def task(rows: list[Any], column: TextColumn = LONG, masking: str = "prefix", **options: Any) -> TextTask:
    return TextTask([encode(column, rows)], spec_of(column), TrainOptions(**options), masking)


def symbols(row: Any, column: TextColumn = LONG) -> list[int]:
    """The symbols of one string, the last one included."""
    table = encode(column, [row])
    return [int(symbol) for symbol in table.symbols[0, : table.lengths[0]]]


def padded(values: list[int], size: int, padding: int = IGNORED) -> list[int]:
    return (values + [padding] * size)[:size]


def items(batch: StringBatch) -> list[tuple[list[int], list[int], list[int]]]:
    """Tokens, positions and targets of each string of a batch."""
    return list(zip(batch.tokens.tolist(), batch.positions.tolist(), batch.targets.tolist(), strict=True))


def strings_of(rows: list[Any]) -> ColumnStrings:
    return task(rows).columns[0]


class TestBatches:
    def test_whole_strings_are_read_from_their_beginning(self) -> None:
        chosen = [6, 0, 2, 3]
        made = strings_of(ROWS)
        batch = made.whole(torch.tensor(chosen))
        assert batch.tokens.shape == (4, 21)
        for row, (tokens, positions, targets) in zip(chosen, items(batch), strict=True):
            string = symbols(ROWS[row])
            assert positions == list(range(21))
            assert targets == padded(string, 21)
            assert tokens[: len(string)] == [made.spec.mask, *string[:-1]]

    def test_a_cut_string_does_not_end(self) -> None:
        made = strings_of(ROWS)
        ((_, positions, targets),) = items(made.whole(torch.tensor([5])))
        assert positions[-1] == LONG.length
        assert targets == [1] * 21 + [made.spec.cut]

    @pytest.mark.parametrize("row", range(len(ROWS)))
    def test_windows_share_out_the_string_from_a_random_place_on(self, row: int) -> None:
        made, string = strings_of(ROWS), symbols(ROWS[row])
        seen_beginnings = set()
        for seed in range(150):
            batch = items(made.windows(torch.tensor([row]), stream(seed, 0)))
            first = batch[0][1][0] if batch else None
            seen_beginnings.add(first)
            starts = [] if first is None else list(range(first, len(string), WINDOW))
            assert [positions[0] for _, positions, _ in batch] == starts
            for start, (tokens, positions, targets) in zip(starts, batch, strict=True):
                assert positions == [min(start + index, LONG.length) for index in range(WINDOW + 1)]
                assert targets == [IGNORED, *padded(string[start + 1 :], WINDOW)]
                window_symbols = string[start : start + WINDOW]
                assert tokens[: len(window_symbols) + 1] == [made.spec.mask, *window_symbols]
        beginnings = set(range(min(WINDOW, len(string))))
        assert seen_beginnings == (beginnings if len(string) >= WINDOW else {*beginnings, None})

    def test_no_string_has_no_window(self) -> None:
        batch = strings_of(ROWS).windows(torch.tensor([], dtype=torch.long), stream(0, 0))
        assert batch.tokens.shape == batch.targets.shape == (0, WINDOW + 1)

    @pytest.mark.parametrize("row", range(len(ROWS)))
    def test_a_gap_inside_is_one_mask(self, row: int) -> None:
        made, string = strings_of(ROWS), symbols(ROWS[row])
        end, mask = made.spec.end, made.spec.mask
        chosen = torch.tensor([row, 5])  # beside a long one, which makes room
        beyond = 0
        for seed in range(200):
            tokens, positions, targets = items(made.with_gaps(chosen, stream(seed, 0)))[0]
            assert tokens[0] == mask
            if mask not in tokens[1:]:  # the gap begins with the last symbol of the longest strings
                assert (tokens[1:], targets) == (string[:-1], string)
                continue
            before = tokens.index(mask, 1) - 1  # symbols before the gap
            after = positions[before + 1]  # the first one after it
            assert 0 <= before < len(string)
            assert before < after <= LONG.length
            rest = string[after:]
            assert positions[: before + 1] == list(range(before + 1))
            assert tokens[1 : before + 1] == string[:before]
            assert targets[: before + 1] == string[: before + 1]
            assert tokens[before + 2 : before + 1 + len(rest)] == rest[:-1]
            expected = rest or [end]
            assert targets[before + 1 :] == padded(expected, len(targets) - before - 1)
            last = before + 1 + len(expected)
            assert positions[before + 1 : last] == list(range(after, after + len(expected)))
            beyond += not rest
        assert beyond > 0 or len(string) > LONG.length

    def test_a_fifth_of_the_strings_is_read_whole(self) -> None:
        rows: list[Any] = ["ab" * 10] * 50
        for masking, sizes in (("prefix", [40, 10]), ("spans", [40, 10]), ("none", [50])):
            batches = strings_of(rows).batches(torch.arange(50), masking, stream(0, 0))
            strings = [int((batch.tokens[:, 0] == 6).sum()) for batch in batches]
            assert strings[1:] == sizes[1:]
            assert sizes[0] <= strings[0] <= 2 * sizes[0]
        gaps = strings_of(rows).batches(torch.arange(50), "spans", stream(0, 0))[1]
        assert ((gaps.tokens == 6).sum(1) == 2).sum() > 5

    def test_what_follows_a_gap_is_the_share_of_rows(self) -> None:
        made = strings_of(ROWS)
        for index in range(LONG.length + 1):
            expected = np.zeros(made.spec.symbols)
            for row in ROWS:
                expected[padded(symbols(row), LONG.length + 1, made.spec.end)[index]] += 1 / len(ROWS)
            np.testing.assert_allclose(made.gap_distribution[index].numpy(), expected, rtol=1e-6)


def sentences(count: int = 2400, seed: int = 0) -> tuple[TextColumn, list[str]]:
    """One word, or two: each as likely."""
    rng = np.random.default_rng(seed)
    rows = [" ".join(rng.choice(WORDS, size=rng.integers(1, 3))) for _ in range(count)]
    characters = "".join(sorted(set("".join(rows))))
    return TextColumn("t", "VARCHAR", characters, max(map(len, rows)), False, 20, (), (9,) * len(characters)), rows


COLUMN, SENTENCES = sentences()
STRINGS = encode(COLUMN, list(SENTENCES))


def learn(strings: Strings = STRINGS, masking: str = "prefix", **options: Any) -> tuple[TextTask, Trained]:
    keywords = {key: options.pop(key) for key in ("checkpoint", "resume", "on_progress") if key in options}
    chosen = TrainOptions(**{"batch": 100, "epochs": 2} | options)
    made = TextTask([strings], spec_of(COLUMN), chosen, masking)
    return made, train(made, chosen, **keywords)


def bits_per_symbol() -> float:
    """What a perfect model needs: a bit for the number of words, two for each word."""
    words = np.array([1 + sentence.count(" ") for sentence in SENTENCES])
    return float((1 + 2 * words).sum() / STRINGS.lengths.sum())


def chances_after_gaps(made: TextTask) -> torch.Tensor:
    positions = torch.arange(made.columns[0].spec.length + 1)[:, None]
    with torch.no_grad():
        logits: torch.Tensor = made.model(torch.full_like(positions, made.columns[0].spec.mask), positions)
    return logits[:, 0].softmax(-1)


@pytest.mark.parametrize("masking", ["prefix", "spans"])
def test_it_learns_a_language(masking: str) -> None:
    made, trained = learn(masking=masking, epochs=12, learning_rate=0.01)
    everything = torch.arange(len(SENTENCES))
    assert made.bits(everything, "unmasked", stream(0, 0)) == pytest.approx(bits_per_symbol(), rel=0.15)
    # what follows a gap is what rows have there; of those that have ended, END
    difference = (chances_after_gaps(made) - made.columns[0].gap_distribution).abs()
    assert float(difference.mean()) < 0.01
    assert float(difference.max()) < 0.12
    report = trained.report
    assert report["unit"] == "character"
    assert (report["held_out_rows"], report["train_rows"]) == (24, 2376)
    assert report["unmasked_bits"] == pytest.approx(bits_per_symbol(), rel=0.35)
    assert report["masked_bits"] > 0


def test_without_masking_only_whole_strings_are_learned() -> None:
    made, trained = learn(masking="none", epochs=8, learning_rate=0.01)
    assert trained.report["unmasked_bits"] == pytest.approx(bits_per_symbol(), rel=0.35)
    assert trained.report["train_bits"] == pytest.approx(bits_per_symbol(), rel=0.35)
    assert float((chances_after_gaps(made) - made.columns[0].gap_distribution)[1:].abs().max()) > 0.2


def test_bits_are_per_character() -> None:
    made, _ = learn(epochs=1)
    with torch.no_grad():
        made.model.load_state_dict({name: torch.zeros_like(t) for name, t in made.model.state_dict().items()})
    for inputs in ("as trained", "masked", "unmasked"):  # a model that knows nothing needs the same for each symbol
        bits = made.bits(torch.arange(50), inputs, stream(0, 0))
        assert bits == pytest.approx(np.log2(made.columns[0].spec.symbols), rel=1e-3)


def test_the_same_seed_gives_the_same_model_and_another_does_not() -> None:
    (_, one), (_, two), (_, three) = (learn(seed=seed, epochs=1) for seed in (4, 4, 5))
    assert same(one, two)
    assert not same(one, three)


@pytest.mark.parametrize("after", [1, 20, 30])
def test_a_stopped_run_goes_on_to_the_same_model(tmp_path: Path, after: int) -> None:
    _, whole = learn(masking="spans")
    checkpoint = tmp_path / "run.checkpoint"
    _, stopped = learn(masking="spans", checkpoint=checkpoint, on_progress=Stop(after))
    assert stopped.interrupted
    _, resumed = learn(masking="spans", checkpoint=checkpoint, resume=True)
    assert not resumed.interrupted
    assert same(whole, resumed)
    assert whole.report["masked_bits"] == resumed.report["masked_bits"]


def test_a_checkpoint_of_another_masking(tmp_path: Path) -> None:
    learn(checkpoint=tmp_path / "c", on_progress=Stop(3))
    with pytest.raises(TrainingError, match="its text_masking was 'prefix', now 'spans'"):
        learn(masking="spans", checkpoint=tmp_path / "c", resume=True)


def test_progress_is_told_in_characters() -> None:
    reports: list[Progress] = []
    learn(epochs=1, on_progress=reports.append)
    assert {progress.unit for progress in reports} == {"character"}
    assert len(reports) == 24


class TestHowLong:
    def test_a_step_reads_about_as_many_tokens_however_long_the_strings(self) -> None:
        assert task(["ab" * 10] * 5).batch == round(1024 / 21)
        assert task([""] * 5).batch == 1024
        assert task(["ab"] * 5, batch=17).batch == 17

    def test_a_large_table_takes_larger_steps(self) -> None:
        assert task(["ab" * 10] * 30_000).batch == 75
        assert task(["ab" * 10] * 400_000).batch == round(2048 / 21)
        assert task(["ab" * 10] * 400_000, text_tokens=8192).batch == round(8192 / 21)

    def test_the_epochs_follow_from_the_size(self) -> None:
        assert task(["ab"] * 5).epochs == DEFAULT_EPOCHS[1]
        assert task(["ab"] * 5, epochs=3).epochs == 3
        assert task(["ab"] * 5, budget=3.0).epochs is None


@pytest.mark.parametrize("rows", [["a"], [""], [None, "b"], ["b" * 50], [None]])
def test_tiny_tables(rows: list[Any]) -> None:
    options = TrainOptions(epochs=2)
    for masking in ("prefix", "spans", "none"):
        trained = train(TextTask([encode(LONG, rows)], spec_of(LONG), options, masking), options)
        assert np.isfinite(trained.report["train_bits"])
        assert all(np.isfinite(array).all() for array in trained.arrays.values())
