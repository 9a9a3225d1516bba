"""Pictures as the content of PNG files."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING

from countless_lab.measurement.requirements import require_plotting

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def png(draw: Callable[[Figure], None], width: float, height: float, dpi: int = 100) -> bytes:
    """What ``draw`` draws on a figure of a size in inches."""
    require_plotting()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    draw(figure)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=dpi, metadata={"Software": None})
    return content.getvalue()
