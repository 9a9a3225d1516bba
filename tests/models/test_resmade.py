"""The contract of a model: autoregressive, normalised, and it learns."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from countless.models.resmade import ResMADE
from countless.spec import ModelSpec

SPECS = [
    ModelSpec((3, 2, 4, 5), hidden=12, blocks=2, embedding=4),
    ModelSpec((3, 2, 4, 5), hidden=12, blocks=1, embedding=4, orders=((3, 1, 0, 2),)),
    ModelSpec((3, 2, 4, 5, 2, 2, 3), hidden=2, blocks=1, embedding=4),
    ModelSpec((3, 2, 4, 5), hidden=12, blocks=1, embedding=4, units=(1, 9, 2)),
]
SEVERAL = ModelSpec(
    (3, 2, 4, 5), hidden=12, blocks=2, embedding=4, orders=((0, 1, 2, 3), (3, 1, 0, 2), (1, 3, 0, 2), (2, 0, 3, 1))
)
EACH_ORDER = [(spec, 0) for spec in SPECS] + [(SEVERAL, order) for order in range(len(SEVERAL.orders))]


def random_model(spec: ModelSpec, seed: int = 0) -> ResMADE:
    """A model with nothing that is zero, signals of the order included."""
    torch.manual_seed(seed)
    model = ResMADE(spec)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return model


@pytest.mark.parametrize(("spec", "order"), EACH_ORDER)
def test_autoregressive_by_its_gradients(spec: ModelSpec, order: int) -> None:
    """The logits of a position depend on no embedding of its own rank or later, and on those before it."""
    model = random_model(spec)
    ranks = spec.ranks(order)
    codes = torch.stack([torch.randint(size + 1, (40,)) for size in spec.sizes], 1)
    for position in range(len(spec.sizes)):
        inputs = torch.nn.functional.embedding(codes + model.offsets, model.embedding).detach().requires_grad_()
        out = model.features(inputs, order)[:, position]
        (gradient,) = torch.autograd.grad((out * torch.randn_like(out)).sum(), inputs, allow_unused=True)
        seen = {p for p in range(len(spec.sizes)) if gradient[:, p].abs().sum() > 0}
        allowed = {p for p in range(len(spec.sizes)) if ranks[p] < ranks[position]}
        assert seen <= allowed
        if spec.hidden > len(spec.sizes):
            assert seen == allowed


@pytest.mark.parametrize(("spec", "order"), EACH_ORDER)
def test_the_joint_sums_to_one(spec: ModelSpec, order: int) -> None:
    model = random_model(spec, seed=1)
    grids = torch.meshgrid(*(torch.arange(size) for size in spec.sizes), indexing="ij")
    every_row = torch.stack([grid.flatten() for grid in grids], 1)
    with torch.no_grad():
        total = model.log_prob(every_row, every_row, order).sum(1).exp().sum()
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


def test_a_model_of_several_orders_can_tell_them_apart() -> None:
    """Orders 1 and 2 let the last two positions see the same inputs at the same ranks: only signals differ."""
    model = random_model(SEVERAL)
    codes = torch.tensor([[0, 1, 2, 3], [2, 0, 1, 4]])
    with torch.no_grad():
        one, other = (model.log_prob(codes, codes, order)[:, 2] for order in (1, 2))
    assert not torch.allclose(one, other)


def test_it_learns_what_differs_between_orders() -> None:
    """The signals alone suffice to predict another symbol under each order."""
    spec = ModelSpec((2, 2), hidden=6, blocks=1, embedding=4, orders=((0, 1), (1, 0)))
    torch.manual_seed(0)
    model = ResMADE(spec)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    masked = torch.tensor([[2, 2]])
    targets = (torch.tensor([[0, 1]]), torch.tensor([[0, 0]]))  # of the second position: 1 if it comes last, else 0
    for step in range(200):
        loss = -model.log_prob(masked, targets[step % 2], step % 2)[:, 1].sum()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    with torch.no_grad():
        probs = [float(model.log_prob(masked, targets[order], order)[:, 1].exp()) for order in (0, 1)]
    assert min(probs) > 0.95


@pytest.mark.parametrize("spec", [*SPECS, SEVERAL])
def test_the_spec_knows_the_number_of_parameters(spec: ModelSpec) -> None:
    assert spec.parameters == sum(parameter.numel() for parameter in ResMADE(spec).parameters())


def test_a_smooth_start_has_neighbours_alike() -> None:
    torch.manual_seed(0)
    model = ResMADE(ModelSpec((200, 3), hidden=8, blocks=1, embedding=16))
    few = model.embedding[201:204].clone()
    model.start_smooth(0.9)
    rows = model.embedding[:200].detach()
    near, far = (rows[1:] - rows[:-1]).square().sum(1).mean(), (rows[100:] - rows[:100]).square().sum(1).mean()
    assert near < 0.3 * far
    assert 0.5 < rows.square().sum(1).mean() < 2.0
    assert torch.equal(model.embedding[201:204], few)
