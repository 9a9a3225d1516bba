"""The paper's tables and figures, one module each. A new one is a class and a line here."""

from __future__ import annotations

from countless_lab.paper.exhibits.additions import Additions
from countless_lab.paper.exhibits.base import Exhibit
from countless_lab.paper.exhibits.completion import Completion, TextCompletion
from countless_lab.paper.exhibits.likelihoods import LikelihoodExhibit
from countless_lab.paper.exhibits.main import Main
from countless_lab.paper.exhibits.maskings import Maskings
from countless_lab.paper.exhibits.sizes import Sizes
from countless_lab.paper.exhibits.summary import Summary
from countless_lab.paper.exhibits.text import TextExhibit

_ALL: tuple[Exhibit, ...] = (
    Summary(),
    Main(),
    Additions(),
    LikelihoodExhibit(),
    Sizes(),
    Maskings(),
    Completion(),
    TextExhibit(),
    TextCompletion(),
)
EXHIBITS = {exhibit.name: exhibit for exhibit in _ALL}

__all__ = ["EXHIBITS", "Exhibit"]
