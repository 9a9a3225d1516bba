"""The contract of a model: autoregressive, normalised, and it learns."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from countless.errors import TrainingError
from countless.models.resmade import ResMADE
from countless.spec import ModelSpec

SPECS = [
    ModelSpec((3, 2, 4, 5), hidden=12, blocks=2, embedding=4),
    ModelSpec((3, 2, 4, 5), hidden=12, blocks=1, embedding=4, orders=((3, 1, 0, 2),)),
    ModelSpec((3, 2, 4, 5, 2, 2, 3), hidden=2, blocks=1, embedding=4),
]


@pytest.mark.parametrize("spec", SPECS)
def test_autoregressive_by_its_gradients(spec: ModelSpec) -> None:
    """The logits of a position depend on no embedding of its own rank or later, and on those before it."""
    torch.manual_seed(0)
    model = ResMADE(spec)
    ranks = spec.ranks()
    codes = torch.stack([torch.randint(size + 1, (40,)) for size in spec.sizes], 1)
    for position in range(len(spec.sizes)):
        inputs = torch.nn.functional.embedding(codes + model.offsets, model.embedding).detach().requires_grad_()
        h = model.first(inputs.flatten(1))
        for block in model.blocks:
            h = block(h)
        out = model.out(torch.relu(h)).view(40, len(spec.sizes), spec.embedding)[:, position]
        (gradient,) = torch.autograd.grad((out * torch.randn_like(out)).sum(), inputs, allow_unused=True)
        seen = {p for p in range(len(spec.sizes)) if gradient[:, p].abs().sum() > 0}
        allowed = {p for p in range(len(spec.sizes)) if ranks[p] < ranks[position]}
        assert seen <= allowed
        if spec.hidden > len(spec.sizes):
            assert seen == allowed


@pytest.mark.parametrize("spec", SPECS)
def test_the_joint_sums_to_one(spec: ModelSpec) -> None:
    torch.manual_seed(1)
    model = ResMADE(spec)
    grids = torch.meshgrid(*(torch.arange(size) for size in spec.sizes), indexing="ij")
    every_row = torch.stack([grid.flatten() for grid in grids], 1)
    with torch.no_grad():
        total = model.log_prob(every_row, every_row).sum(1).exp().sum()
    assert float(total) == pytest.approx(1.0, rel=1e-4)


def test_it_starts_from_the_marginals() -> None:
    model = ResMADE(SPECS[0])
    counts = [np.array([5, 3, 2]), np.array([1, 9]), np.array([1, 2, 3, 4]), np.array([0, 0, 10, 0, 0])]
    model.start_from_marginals(counts)
    logits = model.logits(torch.zeros(1, 4, 4), 1)
    np.testing.assert_allclose(torch.softmax(logits, 1).detach()[0].numpy(), [1.5 / 11, 9.5 / 11], rtol=1e-5)


def test_every_layer_keeps_learning_after_a_forward_pass() -> None:
    """A masked weight that was cached would stop learning after the first pass."""
    model = ResMADE(SPECS[0])
    codes = torch.tensor([[0, 1, 2, 3], [2, 0, 1, 4]])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(20):
        loss = -model.log_prob(codes, codes).sum()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[1] < losses[0]


def test_masked_inputs_are_not_seen() -> None:
    model = ResMADE(SPECS[0])
    one, two = torch.tensor([[0, 1, 2, 3]]), torch.tensor([[2, 1, 2, 3]])
    targets = torch.tensor([[0, 1, 2, 3]])
    one[:, 0] = two[:, 0] = 3  # MASK of the first position
    with torch.no_grad():
        torch.testing.assert_close(model.log_prob(one, targets), model.log_prob(two, targets))


def test_several_orders_are_refused() -> None:
    with pytest.raises(TrainingError, match="exactly one order"):
        ResMADE(ModelSpec((2, 2), orders=((0, 1), (1, 0))))
