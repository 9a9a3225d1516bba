"""The compiled module; its source is in kernel_c/."""

from typing import Any

def load(
    hidden: int, features: int, first: Any, units: Any, weights: list[Any], biases: list[Any], positions: list[Any], /
) -> object: ...
def walk(
    model: object, budget: int, power: float, offsets: Any, steps: list[Any], /
) -> list[tuple[float, bool, int, float]]: ...
