"""The loss of the training step and its gradients are those of the plain forward pass and autograd."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from countless.models import crossentropy, training_step, triangular
from countless.models import first_layer as first
from countless.models import output_heads as heads
from countless.models.resmade import ResMADE
from countless.models.training_step import TrainingStep
from countless.spec import ModelSpec
from countless.train.tasks.masking import UniformMasking

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


def gradients_of(model: ResMADE) -> dict[str, Tensor]:
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None}


def check(spec: ModelSpec, scale: float = 1.0, dtype: torch.dtype = torch.float64, tolerance: float = 1e-8) -> None:
    model = random_model(spec).to(dtype)
    with torch.no_grad():
        model.bias.mul_(scale)
    step = TrainingStep(model)
    inputs, targets, counts = batch(model)
    for rows in (slice(None), slice(0, 3), slice(None)):  # what a step leaves behind is not seen by the next
        for order in range(len(spec.orders)):
            asked = inputs[rows], targets[rows], counts[rows] / 7
            model.zero_grad()
            plain = -(model.log_prob(*asked[:2], order) * asked[2]).sum()
            plain.backward()  # type: ignore[no-untyped-call]
            expected = gradients_of(model)
            assert step.gradients(*asked, order).item() == pytest.approx(plain.item(), rel=tolerance)
            gradients = gradients_of(model)
            assert gradients.keys() == expected.keys()
            for name, gradient in expected.items():
                torch.testing.assert_close(gradients[name], gradient, rtol=tolerance, atol=tolerance, msg=name)


@each_spec
def test_it_is_the_plain_loss(spec: ModelSpec) -> None:
    check(spec)


@each_spec
def test_in_single_precision(spec: ModelSpec) -> None:
    check(spec, dtype=torch.float32, tolerance=1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_any_spec(seed: int) -> None:
    """Random positions, digits, orders, blocks and units."""
    rng = np.random.default_rng(seed)
    groups = tuple(int(rng.choice([1, 1, 1, 2, 3])) for _ in range(rng.integers(1, 9)))
    sizes = tuple(int(rng.choice([1, 2, 5, 30, 127, 128, 129, 400])) for _ in range(sum(groups)))
    columns = np.split(np.arange(len(sizes)), np.cumsum(groups)[:-1])

    def order() -> tuple[int, ...]:
        """Random, but for the positions of a column, which come in their own order."""
        owners = rng.permutation(np.repeat(np.arange(len(groups)), groups))
        waiting = [iter(column.tolist()) for column in columns]
        return tuple(next(waiting[owner]) for owner in owners)

    orders = tuple(order() for _ in range(rng.choice([1, 1, 3])))
    hidden = int(rng.integers(1, 200))
    units = tuple(rng.multinomial(hidden, rng.dirichlet(np.ones(max(1, len(sizes) - 1)))).tolist())
    check(ModelSpec(sizes, hidden, int(rng.integers(0, 4)), int(rng.integers(1, 40)), orders, groups, units=units))


@each_spec
def test_however_it_is_cut_to_pieces(spec: ModelSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first, "TABLE_ROWS", 20)
    monkeypatch.setattr(first, "TABLE_SYMBOLS", 6)
    monkeypatch.setattr(triangular, "STRIP", 5)
    monkeypatch.setattr(heads, "FOLDED_SYMBOLS", 9)
    monkeypatch.setattr(crossentropy, "LOGITS", 200)
    check(spec)


def test_logits_that_are_far_apart() -> None:
    """Each position is normalised by its own largest logit, and a hopeless target has a finite loss."""
    check(SPECS["wide and narrow"], scale=10_000.0)


@each_spec
def test_without_gradients(spec: ModelSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_step, "MEASURED_ROWS", 16)
    model = random_model(spec)
    inputs, targets, counts = batch(model)
    loss = TrainingStep(model).nats(inputs, targets, counts)
    torch.testing.assert_close(loss, -(model.log_prob(inputs, targets) * counts).sum(), rtol=1e-5, atol=1e-4)
    assert not gradients_of(model)


@pytest.mark.parametrize("name", ["small", "several orders"])
def test_what_every_mask_hides_stays_as_it_is(name: str) -> None:
    """Masked weights start at zero and never move, so the plain form may be asked at any time."""
    spec = SPECS[name]
    torch.manual_seed(0)
    model = ResMADE(spec)
    step = TrainingStep(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    inputs, targets, counts = batch(model)
    losses = []
    for number in range(30):
        nats = step.gradients(inputs, targets, counts, number % len(spec.orders))
        optimizer.step()
        losses.append(nats.item())
    assert losses[-1] < losses[0]
    for layer in (model.first, model.out):
        assert torch.all(layer.weight[~layer.masks.any(0)] == 0)
    for name, array in model.arrays().items():
        np.testing.assert_array_equal(array, model.get_parameter(name).detach().numpy())


def test_nothing_grows_with_the_whole_of_a_large_model() -> None:
    """Two hundred positions of two thousand symbols: tables and logits are made a few positions at a time."""
    spec = ModelSpec((2000, 3) * 100)
    inputs = first.plan_inputs(spec)
    assert len(inputs.wide) + sum(map(len, inputs.stacks)) == 200
    for stack in inputs.stacks:
        assert sum(slot.symbols.stop - slot.symbols.start for slot in stack) <= first.TABLE_ROWS
    plan = heads.plan_heads(spec)
    assert max(head.symbols for head in plan.folded) <= heads.FOLDED_SYMBOLS
    assert len(plan.wide) + sum(len(head.slots) for head in plan.folded) == 200
