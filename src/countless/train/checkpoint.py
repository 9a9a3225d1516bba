"""Checkpoints of a training run: weights, optimizer and random state in one safetensors file."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from countless.errors import TrainingError
from countless.human_format import size

VERSION = 1
COPIES = 5  # of the weights: the current and the best ones, two moments of each, and the model file at the end


@dataclass
class Checkpoint:
    """The state of a run after some step.

    ``identity`` describes the run (options, spec, data); a run resumes only from its own checkpoint.
    ``tensors`` holds the model, the best model so far, Adam's moments and the generator's state by name.
    """

    identity: dict[str, Any]
    epoch: int
    step: int  # steps done within the epoch
    updates: int  # steps done in all
    seconds: float
    epoch_bits: float  # sum of training bits within the epoch
    best_bits: float
    best_epoch: float
    limit: float | None = None  # seconds of the whole run
    history: list[dict[str, Any]] = field(default_factory=list)
    tensors: dict[str, Tensor] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write atomically: after a crash the previous checkpoint is intact."""
        fields = {name: value for name, value in asdict(self).items() if name != "tensors"}
        metadata = {"countless_checkpoint": json.dumps({"version": VERSION, **fields})}
        partial = path.with_name(path.name + ".partial")
        try:
            save_file(self.tensors, partial, metadata=metadata)
            os.replace(partial, path)
        except (OSError, SafetensorError) as error:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise TrainingError(f"cannot write the checkpoint {path}: {error}") from None

    @staticmethod
    def require_space(path: Path, model: nn.Module) -> None:
        """Raise a :class:`TrainingError` now, not after training, if the disk cannot hold a checkpoint of ``model``."""
        weights = sum(weight.numel() * weight.element_size() for weight in model.parameters())
        needed, free = COPIES * weights, shutil.disk_usage(path.parent).free
        if free < needed:
            raise TrainingError(
                f"cannot keep a checkpoint at {path}: it takes {size(needed)}, and {size(free)} are free on that disk; "
                "free some space, or choose another place"
            )

    @classmethod
    def load(cls, path: Path, identity: dict[str, Any] | None = None) -> Checkpoint:
        """The checkpoint at ``path``. If ``identity`` is given, the checkpoint must belong to that run."""
        try:
            with safe_open(path, framework="pt") as file:
                fields = json.loads((file.metadata() or {})["countless_checkpoint"])
                if fields.pop("version") != VERSION:
                    raise TrainingError(f"{path} was written by another version: fit again without --resume")
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
                checkpoint = cls(**fields, tensors=tensors)
        except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
            raise TrainingError(f"cannot resume from {path} ({error}): fit again without --resume") from None
        if identity is None:
            return checkpoint
        for name, was, now in _differences(checkpoint.identity, json.loads(json.dumps(identity))):
            raise TrainingError(
                f"cannot resume from {path}: its {name} was {was!r}, now {now!r}; "
                "use the same options and table, or fit again without --resume"
            )
        return checkpoint

    def without_model(self) -> Checkpoint:
        """A checkpoint with only what further training needs: the best weights, and Adam's moments."""
        tensors = {name: tensor for name, tensor in self.tensors.items() if name.startswith(("best.", "adam."))}
        return replace(self, tensors=tensors)

    def group(self, prefix: str) -> dict[str, Tensor]:
        """The tensors named ``prefix.*``, without the prefix."""
        return {
            name[len(prefix) + 1 :]: tensor for name, tensor in self.tensors.items() if name.startswith(prefix + ".")
        }


def saved_spec(path: Path) -> dict[str, Any] | None:
    """The description of the network in the checkpoint at ``path``; None if there is none that can be read."""
    try:
        with safe_open(path, framework="pt") as file:
            spec = json.loads((file.metadata() or {})["countless_checkpoint"])["identity"]["spec"]
    except (OSError, SafetensorError, KeyError, TypeError, ValueError):
        return None  # loading it reports the error
    return spec if isinstance(spec, dict) else None


def _differences(saved: dict[str, Any], current: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Name, old and new value of everything that differs."""
    for name in sorted(set(saved) | set(current)):
        was, now = saved.get(name), current.get(name)
        if isinstance(was, dict) and isinstance(now, dict):
            yield from _differences(was, now)
        elif was != now:
            yield name, was, now
