"""Adam as training uses it: one fused operation for all parameters.

PyTorch's own optimizers import its compiler, which takes longer than importing the rest of PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # as torch.optim.Adam names them


class Adam:
    """The same updates as ``torch.optim.Adam(parameters, fused=True)`` after ``clip_grad_norm_``.

    >>> parameter = torch.nn.Parameter(torch.zeros(2))
    >>> parameter.grad = torch.tensor([3.0, -4.0])
    >>> Adam([parameter]).step(learning_rate=0.1)
    >>> parameter.detach().round(decimals=4)
    tensor([-0.1000,  0.1000])
    """

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        self._parameters = list(parameters)
        self._moments = [
            {
                "step": torch.zeros((), device=detached.device),
                **{name: torch.zeros_like(detached) for name in MOMENTS[1:]},
            }
            for detached in (parameter.detach() for parameter in self._parameters)
        ]

    def step(self, learning_rate: float, clip: float | None = None) -> None:
        """Update every parameter that has a gradient. The norm of all gradients is first clipped to ``clip``."""
        with torch.no_grad():
            trained = [
                (parameter, parameter.grad, *(moments[name] for name in MOMENTS))
                for parameter, moments in zip(self._parameters, self._moments, strict=True)
                if parameter.grad is not None
            ]
            if not trained:
                return
            parameters, gradients, steps, means, squares = map(list, zip(*trained, strict=True))
            if clip is not None:
                norm = torch.nn.utils.get_total_norm(gradients) + 1e-6
                if norm > clip:
                    torch._foreach_mul_(gradients, clip / norm)
            torch._foreach_add_(steps, 1)
            torch._fused_adam_(
                parameters,
                gradients,
                means,
                squares,
                [],
                steps,
                lr=learning_rate,
                beta1=BETA1,
                beta2=BETA2,
                weight_decay=0.0,
                eps=EPSILON,
                amsgrad=False,
                maximize=False,
            )

    def tensors(self) -> dict[str, Tensor]:
        """The moments by name, ``index.moment``, for a checkpoint."""
        return {
            f"{index}.{name}": tensor for index, moments in enumerate(self._moments) for name, tensor in moments.items()
        }

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Continue with moments from :meth:`tensors`."""
        for name, tensor in self.tensors().items():
            if name in tensors:
                tensor.copy_(tensors[name])
