"""The fast loss and its gradients are those of the plain forward pass."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from countless.models import crossentropy, triangular
from countless.models import first_layer as first
from countless.models import output_heads as heads
from countless.models.resmade import ResMADE
from countless.models.training_loss import FastLoss
from countless.spec import ModelSpec
from countless.train.masking import UniformMasking

SPECS = {
    "small": ModelSpec((3, 2, 4, 5), hidden=12, blocks=2, embedding=4),
    "another order": ModelSpec((3, 20, 4, 5), hidden=12, blocks=1, embedding=4, orders=((3, 1, 0, 2),)),
    "one position": ModelSpec((5,), hidden=8, blocks=2, embedding=3),
    "one position of one symbol": ModelSpec((1,), hidden=8, blocks=1, embedding=3),
    "positions of one symbol": ModelSpec((1, 4, 1, 1, 3), hidden=10, blocks=1, embedding=4),
    "digits": ModelSpec((5, 30, 30, 30, 6, 9, 9), hidden=32, blocks=2, embedding=6, groups=(1, 3, 1, 2)),
    "digits in another order": ModelSpec(
        (5, 7, 7, 6, 9, 9), hidden=32, blocks=1, embedding=6, groups=(1, 2, 1, 2), orders=((4, 1, 3, 5, 0, 2),)
    ),
    "fewer units than positions": ModelSpec((3, 2, 4, 5, 2, 2, 3), hidden=2, blocks=1, embedding=4),
    "uneven units": ModelSpec((3, 2, 40, 5, 7), hidden=150, blocks=2, embedding=4, units=(70, 0, 79, 1)),
    "no blocks": ModelSpec((3, 2, 4), hidden=12, blocks=0, embedding=4),
    "wide and narrow": ModelSpec((700, 3, 90, 1100, 2, 40), hidden=150, blocks=2, embedding=8),
    "wide in another order": ModelSpec(
        (300, 3, 90, 150, 2), hidden=130, blocks=1, embedding=40, orders=((4, 2, 3, 1, 0),)
    ),
    "several orders": ModelSpec(
        (3, 20, 4, 5), hidden=12, blocks=1, embedding=4, orders=((0, 1, 2, 3), (3, 1, 0, 2), (2, 3, 1, 0))
    ),
    "several orders of digits": ModelSpec(
        (5, 7, 7, 200, 9),
        hidden=32,
        blocks=1,
        embedding=6,
        groups=(1, 2, 1, 1),
        orders=((4, 1, 3, 0, 2), (1, 2, 0, 4, 3)),
    ),
    "many positions": ModelSpec((6, 2, 11, 3) * 12, hidden=200, blocks=1, embedding=5),
}
each_spec = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())


def batch(model: ResMADE, rows: int = 70) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs with MASK tokens, targets and counts."""
    generator = torch.Generator().manual_seed(3)
    targets = torch.stack([torch.randint(size, (rows,), generator=generator) for size in model.spec.sizes], 1)
    mask, counts = UniformMasking().draw_positions(rows, model.spec, generator)
    return torch.where(mask, model.mask_codes, targets), targets, counts


def random_model(spec: ModelSpec) -> ResMADE:
    """A model none of whose parameters are zero, not even those that the masks hide."""
    torch.manual_seed(0)
    model = ResMADE(spec)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model


def loss_and_gradients(model: ResMADE, loss: Tensor) -> tuple[float, dict[str, Tensor]]:
    model.zero_grad()
    (loss / 7).backward()  # type: ignore[no-untyped-call]
    return loss.item(), {
        name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None
    }


def check(spec: ModelSpec, scale: float = 1.0) -> None:
    model = random_model(spec).double()
    with torch.no_grad():
        model.bias.mul_(scale)
    inputs, targets, counts = batch(model)
    for order in range(len(spec.orders)):
        plain, expected = loss_and_gradients(model, -(model.log_prob(inputs, targets, order) * counts).sum())
        fast, gradients = loss_and_gradients(model, FastLoss(model)(inputs, targets, counts, order))
        assert fast == pytest.approx(plain, rel=1e-9)
        for name, gradient in expected.items():
            torch.testing.assert_close(gradients[name], gradient, rtol=1e-8, atol=1e-9, msg=name)


@each_spec
def test_it_is_the_plain_loss(spec: ModelSpec) -> None:
    check(spec)


@each_spec
def test_however_it_is_cut_to_pieces(spec: ModelSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first, "TABLE_ROWS", 20)
    monkeypatch.setattr(triangular, "STRIP", 5)
    monkeypatch.setattr(heads, "FOLDED_SYMBOLS", 9)
    monkeypatch.setattr(crossentropy, "LOGITS", 200)
    check(spec)


def test_logits_that_are_far_apart() -> None:
    """Each position is normalised by its own largest logit, and a hopeless target has a finite loss."""
    check(SPECS["wide and narrow"], scale=10_000.0)


@each_spec
def test_without_gradients(spec: ModelSpec) -> None:
    model = random_model(spec)
    with torch.no_grad():
        inputs, targets, counts = batch(model)
        loss = FastLoss(model)(inputs, targets, counts)
        torch.testing.assert_close(loss, -(model.log_prob(inputs, targets) * counts).sum(), rtol=1e-5, atol=1e-4)
    assert not loss.requires_grad


@pytest.mark.parametrize("name", ["small", "several orders"])
def test_what_every_mask_hides_stays_as_it_is(name: str) -> None:
    """Masked weights start at zero and never move, so the plain form may be asked at any time."""
    spec = SPECS[name]
    torch.manual_seed(0)
    model = ResMADE(spec)
    loss = FastLoss(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    inputs, targets, counts = batch(model)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        nats = torch.stack([loss(inputs, targets, counts, order) for order in range(len(spec.orders))]).sum()
        nats.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(nats.item())
    assert losses[-1] < losses[1] < losses[0]
    for layer in (model.first, model.out):
        assert torch.all(layer.weight[~layer.masks.any(0)] == 0)
    for name, array in model.arrays().items():
        np.testing.assert_array_equal(array, model.get_parameter(name).detach().numpy())


def test_nothing_grows_with_the_whole_of_a_large_model() -> None:
    """Two hundred positions of two thousand symbols: tables and logits are made a few positions at a time."""
    spec = ModelSpec((2000, 3) * 100)
    assert max(stack.rows for stack in first.plan_stacks(spec)) <= first.TABLE_ROWS
    plan = heads.plan_heads(spec)
    assert max(head.symbols for head in plan.folded) <= heads.FOLDED_SYMBOLS
    assert len(plan.wide) + sum(len(head.slots) for head in plan.folded) == 200
