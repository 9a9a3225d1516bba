"""Training: masking, the training loop and checkpoints.

>>> from countless.train.tasks.masking import UniformMasking
>>> UniformMasking().name
'uniform'
"""

from countless.errors import MissingExtraError


def require_torch(work: str) -> None:
    """Raise :class:`MissingExtraError` before any ``work`` if PyTorch is not installed."""
    try:
        import torch  # noqa: F401
    except ImportError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError(f"{work} needs PyTorch: pip install 'countless[train]'") from None
