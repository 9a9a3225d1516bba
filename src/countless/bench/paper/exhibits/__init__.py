"""The paper's tables and figures, one module each. A new one is a class and a line here."""

from __future__ import annotations

from countless.bench.paper.exhibits.base import Exhibit
from countless.bench.paper.exhibits.likelihoods import Likelihoods
from countless.bench.paper.exhibits.main import Main
from countless.bench.paper.exhibits.maskings import Maskings
from countless.bench.paper.exhibits.sizes import Sizes
from countless.bench.paper.exhibits.summary import Summary
from countless.bench.paper.exhibits.text import Text

_ALL: tuple[Exhibit, ...] = (Summary(), Main(), Likelihoods(), Sizes(), Maskings(), Text())
EXHIBITS = {exhibit.name: exhibit for exhibit in _ALL}

__all__ = ["EXHIBITS", "Exhibit"]
