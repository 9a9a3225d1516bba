"""Our Adam is PyTorch's."""

from __future__ import annotations

import pytest
import torch

from countless.train.adam import Adam


def parameters() -> list[torch.nn.Parameter]:
    generator = torch.Generator().manual_seed(1)
    shapes = ((3, 4), (5,), (), (2,))
    return [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes]


def set_gradients(trained: list[torch.nn.Parameter], step: int) -> None:
    """Some of each step, some of which are long; the last parameter has none."""
    generator = torch.Generator().manual_seed(step)
    for parameter in trained[:-1]:
        parameter.grad = torch.randn(parameter.shape, generator=generator) * 10.0 ** (step % 3 - 1)


@pytest.mark.parametrize("clip", [0.5, 1e9, None])
def test_steps_are_those_of_pytorch(clip: float | None) -> None:
    parameters_here, parameters_of_pytorch = parameters(), parameters()
    adam, optimizer = Adam(parameters_here), torch.optim.Adam(parameters_of_pytorch, fused=True)
    for step in range(6):
        rate = 0.1 / (1 + step)
        set_gradients(parameters_here, step)
        set_gradients(parameters_of_pytorch, step)
        if step == 3:  # as from a checkpoint
            saved = {name: tensor.clone() for name, tensor in adam.tensors().items()}
            adam = Adam(parameters_here)
            adam.restore(saved)
        adam.step(rate, clip)
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(parameters_of_pytorch, clip)
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
        assert all(torch.equal(one, two) for one, two in zip(parameters_here, parameters_of_pytorch, strict=True))


def test_without_gradients_nothing_changes() -> None:
    trained = parameters()
    Adam(trained).step(0.1, clip=1.0)
    assert all(torch.equal(one, two) for one, two in zip(trained, parameters(), strict=True))
