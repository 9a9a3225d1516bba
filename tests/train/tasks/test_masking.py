"""Masks follow the scheme they are named after."""

from __future__ import annotations

from typing import ClassVar

import pytest
import torch

from countless.spec import ModelSpec
from countless.train.tasks.masking import FixedMasking, NoMasking, UniformMasking, WorkloadMasking, parse_masking


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_uniform_draws_each_number_of_masked_positions_equally_often() -> None:
    masks = UniformMasking().draw(50_000, 5, generator())
    counts = torch.bincount(masks.sum(1), minlength=6)
    assert counts[5] == 0  # at least one position is always seen
    assert torch.all((counts[:5] / 50_000 - 0.2).abs() < 0.01)
    assert torch.all((masks.float().mean(0) - 0.4).abs() < 0.01)  # no position is favoured


def test_uniform_may_also_mask_everything() -> None:
    for columns in (1, 4):
        masks = UniformMasking(everything=True).draw(50_000, columns, generator())
        counts = torch.bincount(masks.sum(1), minlength=columns + 1) / 50_000
        assert torch.all((counts - 1 / (columns + 1)).abs() < 0.01)
        assert torch.all((masks.float().mean(0) - 0.5).abs() < 0.01)


def test_fixed_probability() -> None:
    masks = FixedMasking(0.3).draw(50_000, 4, generator())
    assert torch.all((masks.float().mean(0) - 0.3).abs() < 0.01)


def test_none() -> None:
    assert not NoMasking().draw(10, 3, generator()).any()


SPEC = ModelSpec((5, 4, 4, 4, 6), groups=(1, 3, 1))


def test_digits_are_masked_from_the_end_and_count_only_after_their_leaders() -> None:
    mask, counts = UniformMasking().draw_positions(20_000, SPEC, generator())
    digits = mask[:, 1:4]
    assert torch.equal(digits, digits.cummax(1).values)  # once masked, masked to the end
    assert set(digits.sum(1).tolist()) == {0, 1, 2, 3}
    assert counts[:, [0, 1, 4]].all()
    assert torch.equal(counts[:, 2:4], ~mask[:, 1:3])
    some = digits[~digits[:, 0]]  # a column that is seen is seen in part as often as whole
    assert torch.all((torch.bincount(some.sum(1)) / len(some) - 1 / 3).abs() < 0.02)


def test_without_masking_every_digit_is_seen_and_counts() -> None:
    mask, counts = NoMasking().draw_positions(10, SPEC, generator())
    assert not mask.any()
    assert counts.all()


def test_without_digits_positions_are_columns() -> None:
    spec = ModelSpec((5, 4, 6))
    mask, counts = UniformMasking().draw_positions(100, spec, generator())
    assert torch.equal(mask, UniformMasking().draw(100, 3, generator()))
    assert counts.all()


@pytest.mark.parametrize("name", ["uniform", "none", "0.5"])
def test_names_are_read_back(name: str) -> None:
    assert parse_masking(name).name == name


class TestWorkload:
    ASKED: ClassVar[dict[tuple[int, ...], float]] = {(0,): 1.0, (1, 2): 3.0}

    def test_the_sets_that_are_asked_are_seen_as_often_as_they_are_asked(self) -> None:
        masks = WorkloadMasking(UniformMasking(), self.ASKED, 4).draw(20_000, 4, generator())
        column_sets, counts = torch.unique(~masks, dim=0, return_counts=True)
        assert column_sets.tolist() == [[False, True, True, False], [True, False, False, False]]
        assert (counts / 20_000).tolist() == pytest.approx([0.75, 0.25], abs=0.01)

    def test_half_of_the_rows_are_the_workloads_and_count_only_what_is_asked(self) -> None:
        spec = ModelSpec((5, 4, 6, 3))
        mask, counts = WorkloadMasking(NoMasking(), self.ASKED, 4).draw_positions(1_001, spec, generator())
        assert mask.shape == counts.shape == (1_001, 4)
        assert torch.equal(counts[:500], ~mask[:500])
        assert {tuple(row) for row in (~mask[:500]).int().tolist()} == {(1, 0, 0, 0), (0, 1, 1, 0)}
        assert counts[500:].all()
        assert not mask[500:].any()

    def test_digits_are_seen_in_part(self) -> None:
        mask, counts = WorkloadMasking(NoMasking(), {(1,): 1.0}, 3).draw_positions(2_000, SPEC, generator())
        mask, counts = mask[:1_000], counts[:1_000]
        assert mask[:, [0, 4]].all()
        assert not counts[:, [0, 4]].any()
        assert set(mask[:, 1:4].sum(1).tolist()) == {0, 1, 2}
        assert counts[:, 1].all()
        assert torch.equal(counts[:, 2:4], ~mask[:, 1:3])

    def test_a_single_row(self) -> None:
        mask, _ = WorkloadMasking(UniformMasking(), self.ASKED, 4).draw_positions(
            1, ModelSpec((2, 2, 2, 2)), generator()
        )
        assert mask.shape == (1, 4)
