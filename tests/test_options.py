"""The options of a fit check themselves: every field, its type and its bounds, in a message that names the field."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import countless
from countless.errors import OptionError
from countless.options import (
    CLOCKS,
    TEXT_PRESETS,
    EncodeOptions,
    FitKeywords,
    FitOptions,
    Network,
    ReadingOptions,
    ResourceOptions,
    StorageOptions,
    TextNetwork,
    TrainingOptions,
    UpdateOptions,
)
from countless.settings import LEAST_MEMORY, Options, names, setting_of
from countless.spec import RESMADE
from countless.train import options as train_options

CLASSES = (ReadingOptions, Network, TextNetwork, TrainingOptions, UpdateOptions, ResourceOptions, StorageOptions)
KEYWORDS = {
    "table", "query", "columns", "exclude", "epochs", "budget", "seed", "masking", "learning_rate", "batch", "order",
    "orders", "text", "no_text", "max_length", "summary", "max_distinct", "dtype", "workload", "memory", "sample_rows",
    "calibrate", "evidence", "text_counts", "checkpoint", "codes", "resume", "ray", "workers", "threads", "shared",
}  # fmt: skip
OBJECTS = {"network", "text_network", "training", "listener"}
WRONG_TYPES: dict[str, tuple[Any, ...]] = {
    "whole": ("1", 1.5, True),
    "number": ("1", True, float("nan"), float("inf")),
    "seconds": ("soon", "", "5 minutes", float("inf")),
    "text": (3, ["uniform"]),
    "switch": (1, "yes"),
    "columns": (3, [1]),
    "order": (3, [1]),
    "path": (3,),
    "clauses": (3,),
    "mapping": (3, "delim=;", {3: ";"}),
    "expressions": (3, {"a": "lower(b)"}, None),
    "lengths": (3, (1, 2), (3, 2), ("2",)),
    "memory": ("2", "", "much", "-2GB", "GB", "2XB", 1.5, LEAST_MEMORY - 1, "900MB"),
    "rows": ("", "many", "-5", "0%", "101%", "5 %", "1e4", 1.5, True),
    "bytes": ("", "much", "-5", "2XB", 1.5, True),
}

BESIDE: dict[str, dict[str, Any]] = {  # what else must be given for the field to make sense
    "workers": {"ray": "auto", "shared": "."},
    "threads": {"ray": "auto", "shared": "."},
    "width": {"heads": 1},
}


def outside(options: type[Options]) -> list[tuple[str, Any]]:
    """A value beyond every bound of every field."""
    wrong: list[tuple[str, Any]] = []
    for field in fields(options):
        setting = setting_of(field)
        wrong += [(field.name, value) for value in WRONG_TYPES[setting.kind]]
        wrong += [(field.name, setting.least - 1)] if setting.least is not None else []
        wrong += [(field.name, setting.most + 1)] if setting.most is not None else []
        wrong += [(field.name, bound) for bound in (setting.above, setting.below) if bound is not None]
        wrong += [(field.name, "nosuch")] if setting.choices else []
    return wrong


@pytest.mark.parametrize(
    ("options", "name", "value"), [(options, *wrong) for options in CLASSES for wrong in outside(options)]
)
def test_a_wrong_value_is_told_by_the_name_of_its_field(options: type[Options], name: str, value: Any) -> None:
    with pytest.raises(OptionError) as caught:
        options(**{name: value})
    assert str(caught.value).startswith(f"{options.prefix}{name} must be ")
    assert repr(value) in str(caught.value) or options is TextNetwork


@pytest.mark.parametrize("options", CLASSES)
def test_the_bounds_themselves_are_accepted(options: type[Options]) -> None:
    for field in fields(options):
        setting = setting_of(field)
        values = [value for value in (setting.least, setting.most, *setting.choices) if value is not None]
        for value in values:
            given = BESIDE.get(field.name, {})
            assert getattr(options(**given, **{field.name: value}), field.name) == value


def test_options_are_frozen_and_plain() -> None:
    for options in CLASSES:
        made = options()
        assert json.loads(json.dumps(made.to_json())) == made.to_json()
        assert set(made.to_json()) == set(names(options))
        with pytest.raises(FrozenInstanceError):
            setattr(made, names(options)[0], None)


def test_values_are_brought_into_their_types(tmp_path: Path) -> None:
    reading = ReadingOptions(columns="a", exclude=["b", "c"], sample_rows=np.int64(5))  # type: ignore[arg-type]
    assert (reading.columns, reading.exclude) == (("a",), ("b", "c"))
    assert type(reading.sample_rows) is int
    assert ResourceOptions(memory="2GB").memory == 2 * 10**9  # type: ignore[arg-type]
    assert ResourceOptions(codes=str(tmp_path)).codes == tmp_path  # type: ignore[arg-type]
    for budget in (90, "90", "90s", "1m30s", timedelta(seconds=90)):
        assert TrainingOptions(budget=budget).budget == 90
    assert TrainingOptions(masking=0.5).masking == "0.5"  # type: ignore[arg-type]
    assert type(TrainingOptions(learning_rate=np.float32(0.5)).learning_rate) is float  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "given", "message"),
    [
        (
            EncodeOptions,
            {"text": "a", "no_text": "A"},
            '"a" is named by text and by no_text: name it in one of them only',
        ),
        (Network, {"order": "natural", "orders": 2}, "several orders are drawn at random: leave out order"),
        (Network, {"order": ("a",), "orders": 2}, "several orders are drawn at random"),
        (Network, {"order": "random:x"}, "the seed of a random order must be a number, as in random:3, not 'x'"),
        (TextNetwork, {"width": 10, "heads": 4}, "text_network.heads must divide the width 10 evenly"),
        (TextNetwork, {"heads": 3}, "text_network.heads must divide the width 32 evenly"),
        (TrainingOptions, {"masking": "half"}, "masking must be uniform, none, or a probability such as 0.5"),
        (TrainingOptions, {"masking": "1.5"}, "masking must be uniform, none, or a probability such as 0.5"),
        (ResourceOptions, {"threads": 2}, "workers, threads and shared need a cluster: give its address with ray"),
        (
            ResourceOptions,
            {"ray": "auto"},
            "a cluster needs a folder that all its machines can read: give it with shared",
        ),
    ],
)
def test_options_that_do_not_go_together(options: type[Options], given: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        options(**given)
    assert str(caught.value).startswith(message)


def test_an_error_calls_options_by_any_label() -> None:
    error = OptionError("{no_text} and {text_network.masking} of {'a': 1}")
    assert str(error) == "no_text and text_network.masking of {'a': 1}"
    assert error.shown(str.upper) == "NO_TEXT and TEXT_NETWORK.MASKING of {'a': 1}"


class TestTheDoorstep:
    def test_every_keyword_is_a_field_of_one_class(self) -> None:
        found = [name for part in (ReadingOptions, Network, TrainingOptions, ResourceOptions, StorageOptions)
                 for name in names(part)]  # fmt: skip
        assert sorted(found) == sorted(FitKeywords.__annotations__)

    def test_the_keywords_of_a_fit(self) -> None:
        assert set(FitKeywords.__annotations__) >= KEYWORDS
        assert set(countless.fit.__annotations__) >= OBJECTS

    def test_keywords_go_into_their_part(self) -> None:
        options = FitOptions.of(
            {"epochs": 3, "exclude": "id", "order": "random", "ray": "auto", "shared": ".", "dtype": "float32"}
        )
        assert options == FitOptions(
            ReadingOptions(exclude=("id",)),
            Network(order="random"),
            TextNetwork(),
            TrainingOptions(epochs=3),
            ResourceOptions(ray="auto", shared=Path()),
            StorageOptions(dtype="float32"),
        )

    def test_a_keyword_changes_its_field_of_a_part(self) -> None:
        options = FitOptions.of({"epochs": 3}, training=TrainingOptions(epochs=9, batch=7), text_network="paper")
        assert options.training == TrainingOptions(epochs=3, batch=7)
        assert options.text_network == TEXT_PRESETS["paper"]
        assert FitOptions.of({}, network=Network(hidden=8)).to_json()["hidden"] == 8

    def test_what_is_no_option(self) -> None:
        with pytest.raises(TypeError, match="unexpected keyword argument 'epoch': did you mean 'epochs'"):
            countless.fit("adult", epoch=3)  # type: ignore[call-arg]
        with pytest.raises(OptionError, match="training must be a TrainingOptions, not "):
            countless.fit("adult", training={"epochs": 3})  # type: ignore[arg-type]
        with pytest.raises(OptionError, match="text_network must be default or paper or a TextNetwork, not 'huge'"):
            countless.fit("adult", text_network="huge")

    def test_objects_and_keywords_fit_the_same(self) -> None:
        rows = {"a": np.arange(300) % 7, "b": np.arange(300) % 3}
        frame = pd.DataFrame(rows)
        parts = {"network": Network(hidden=8, blocks=1, embedding=4), "storage": StorageOptions(calibrate=False)}
        one = countless.fit(frame, training=TrainingOptions(epochs=1), **parts)  # type: ignore[arg-type]
        two = countless.fit(frame, epochs=1, hidden=8, blocks=1, embedding=4, calibrate=False)
        assert (
            one.estimate("a > 2 AND b = 1", summary=False).rows == two.estimate("a > 2 AND b = 1", summary=False).rows
        )


def test_names_that_other_rooms_know_too() -> None:
    assert Network().kind == RESMADE
    assert set(train_options.CLOCKS) == set(CLOCKS)
