"""Further training of a finished model: it gets better or stays, and its table must be the same."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from countless import Estimator, Listener, Network, TextNetwork, fit, load
from countless.data.sources.source import connect
from countless.errors import DataError, OptionError
from countless.store import COLUMNS

SMALL: dict[str, Any] = {"network": Network(hidden=32, blocks=1, embedding=8), "batch": 100}


@pytest.fixture(scope="module")
def begun(people: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Estimator, Path]:
    """A model after an epoch, and the checkpoint of its fit."""
    checkpoint = tmp_path_factory.mktemp("begun") / "run"
    return fit(people, exclude="id", epochs=1, checkpoint=checkpoint, **SMALL), checkpoint


@pytest.fixture
def checkpoint(begun: tuple[Estimator, Path], tmp_path: Path) -> Path:
    return Path(shutil.copy(begun[1], tmp_path / "run"))


class Notices(Listener):
    def __init__(self) -> None:
        self.told: list[str] = []

    def notice(self, message: str) -> None:
        self.told.append(message)


def weights(estimator: Estimator) -> dict[str, Any]:
    return dict(estimator._sections.networks[COLUMNS].weights)


def same_weights(one: Estimator, other: Estimator) -> bool:
    return all(np.array_equal(array, weights(other)[name]) for name, array in weights(one).items())


def test_it_goes_on_where_the_fit_ended(begun: tuple[Estimator, Path], checkpoint: Path, people: Path) -> None:
    estimator, notices = begun[0], Notices()
    trained = estimator.train(people, epochs=4, checkpoint=checkpoint, listener=notices)
    assert notices.told == []
    (entry,) = trained.report["more_training"]
    fitted = estimator.report
    assert entry["before"]["masked_bits"] == pytest.approx(fitted["masked_bits"], rel=1e-6)
    assert entry["after"]["masked_bits"] < entry["before"]["masked_bits"] - 0.1
    assert trained.report["epochs"] == 5.0
    assert trained.report["options"] == fitted["options"]
    assert entry["options"]["learning_rate"] == fitted["options"]["learning_rate"] / 2
    where = "age > 40 AND city = 'Oslo'"
    assert trained.estimate(where).rows == estimator.estimate(where).rows  # counted exactly
    clauses = [query.where for query in trained.calibration.queries]
    assert clauses
    # The checkpoint is that of the new model: another run goes on from it.
    again = trained.train(people, epochs=1, checkpoint=checkpoint, listener=notices)
    assert notices.told == []
    assert [round(each["epochs"]) for each in again.report["more_training"]] == [4, 1]


def test_the_same_training_makes_the_same_model(
    begun: tuple[Estimator, Path], checkpoint: Path, people: Path, tmp_path: Path
) -> None:
    twin = Path(shutil.copy(checkpoint, tmp_path / "twin"))
    one, two = (begun[0].train(people, epochs=1, checkpoint=path) for path in (checkpoint, twin))
    assert same_weights(one, two)


def test_without_a_checkpoint_it_starts_from_the_stored_weights(
    begun: tuple[Estimator, Path], checkpoint: Path, people: Path, tmp_path: Path
) -> None:
    loaded = load(begun[0].save(tmp_path / "m.countless"))
    for place, message in (
        (None, "no checkpoint of its training was given"),
        (tmp_path / "nothing", f"there is no {tmp_path / 'nothing'}"),
    ):
        notices = Notices()
        trained = loaded.train(people, epochs=1, checkpoint=place, listener=notices)
        assert notices.told == [f"{message}: training starts from the weights as the model stores them"]
        assert trained.report["train_bits"] < loaded.report["train_bits"]
    assert (tmp_path / "nothing").exists()  # for the next time
    other = fit(people, exclude="id", epochs=1, seed=5, **SMALL)
    damaged = tmp_path / "damaged"
    damaged.write_text("nothing")
    for model, place, phrase in ((other, checkpoint, "is of another model"), (loaded, damaged, "cannot be read")):
        notices = Notices()
        model.train(people, epochs=1, checkpoint=place, listener=notices)
        assert phrase in notices.told[0]


def test_weights_that_did_not_get_better_stay(begun: tuple[Estimator, Path], checkpoint: Path, people: Path) -> None:
    trained = begun[0].train(people, epochs=1, learning_rate=10.0, checkpoint=checkpoint)
    assert same_weights(trained, begun[0])
    assert trained.report["train_bits"] == pytest.approx(begun[0].report["train_bits"], rel=1e-6)


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        ("SELECT * FROM '{}' LIMIT 2999", "it has 2,999 rows, and the model was made of 3,000"),
        ("SELECT * REPLACE (age + 1 AS age) FROM '{}'", "it has other values"),
        ("SELECT * REPLACE (CASE WHEN id = 7 THEN NOT married ELSE married END AS married) FROM '{}'", '"married" has'),
    ],
)
def test_a_table_that_has_changed_is_refused(
    begun: tuple[Estimator, Path], people: Path, change: str, phrase: str
) -> None:
    with pytest.raises(DataError, match=r"countless update adds new rows") as caught:
        begun[0].train(connect().sql(change.format(people)), epochs=1)
    assert phrase in str(caught.value)


def test_wrong_options_are_told_before_any_work(begun: tuple[Estimator, Path]) -> None:
    with pytest.raises(OptionError, match="epochs"):
        begun[0].train("nothing.parquet", epochs=0)


def test_an_interrupt_keeps_the_best_so_far(begun: tuple[Estimator, Path], checkpoint: Path, people: Path) -> None:
    class Stop(Listener):
        steps = 0

        def training(self, progress: Any) -> None:
            self.steps += 1
            if self.steps == 3:
                os.kill(os.getpid(), signal.SIGINT)

    trained = begun[0].train(people, epochs=10_000, checkpoint=checkpoint, listener=Stop())
    (entry,) = trained.report["more_training"]
    assert entry["interrupted"]
    assert not trained.report["interrupted"]  # the model is whole
    assert trained.report["train_bits"] <= begun[0].report["train_bits"] + 1e-6
    assert sorted(path.name for path in checkpoint.parent.iterdir()) == ["run"]


def test_a_failure_leaves_the_checkpoint_as_it_was(
    begun: tuple[Estimator, Path], checkpoint: Path, people: Path
) -> None:
    class FailingError(Exception):
        pass

    class Fail(Listener):
        def training(self, progress: Any) -> None:
            if progress.epoch > 2:
                raise FailingError

    before = checkpoint.read_bytes()
    with pytest.raises(FailingError):
        begun[0].train(people, epochs=5, checkpoint=checkpoint, listener=Fail())
    assert checkpoint.read_bytes() == before
    assert sorted(path.name for path in checkpoint.parent.iterdir()) == ["run"]


def test_columns_and_text_are_both_trained(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcd"), size=12)) for _ in range(600)]
    table = pd.DataFrame({"word": words, "kind": rng.integers(3, size=600)})
    path = tmp_path / "run"
    text: dict[str, Any] = {
        "text": "word",
        "text_network": TextNetwork(width=8, blocks=1, heads=2, inner=16, buckets=16),
    }
    estimator = fit(table, epochs=1, checkpoint=path, **SMALL, **text)
    notices = Notices()
    trained = estimator.train(table, epochs=1, checkpoint=path, listener=notices)
    assert notices.told == []
    (entry,) = trained.report["more_training"]
    assert entry["text"]["after"]["train_bits"] < entry["text"]["before"]["train_bits"]
    assert trained.report["text"]["epochs"] == 2.0
    assert trained.report["text"]["columns"] == ["word"]
    with pytest.raises(DataError, match='"word" has other values'):
        trained.train(table.assign(word=["aaaaaaaaaaaa", *words[1:]]), epochs=1)
