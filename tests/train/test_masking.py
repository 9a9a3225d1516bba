"""Masks follow the scheme they are named after."""

from __future__ import annotations

import pytest
import torch

from countless.errors import TrainingError
from countless.train.masking import FixedMasking, NoMasking, UniformMasking, parse_masking


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_uniform_draws_each_number_of_masked_positions_equally_often() -> None:
    masks = UniformMasking().draw(50_000, 5, generator())
    counts = torch.bincount(masks.sum(1), minlength=6)
    assert counts[5] == 0  # at least one position is always seen
    assert torch.all((counts[:5] / 50_000 - 0.2).abs() < 0.01)
    assert torch.all((masks.float().mean(0) - 0.4).abs() < 0.01)  # no position is favoured


def test_fixed_probability() -> None:
    masks = FixedMasking(0.3).draw(50_000, 4, generator())
    assert torch.all((masks.float().mean(0) - 0.3).abs() < 0.01)


def test_none() -> None:
    assert not NoMasking().draw(10, 3, generator()).any()


@pytest.mark.parametrize("name", ["uniform", "none", "0.5"])
def test_names_are_read_back(name: str) -> None:
    assert parse_masking(name).name == name


@pytest.mark.parametrize(("name", "phrase"), [("half", "unknown masking 'half'"), ("1.5", "between 0 and 1")])
def test_unknown_schemes(name: str, phrase: str) -> None:
    with pytest.raises(TrainingError, match=phrase):
        parse_masking(name)
