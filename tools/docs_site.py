"""A hook of MkDocs: writes the reference pages, and names files outside the docs instead of linking them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+([^)]+)\)")  # a link to a file outside docs/


def on_pre_build(**_: Any) -> None:
    """Write the reference pages."""
    sys.path.insert(0, str(Path(__file__).parent))
    import reference

    reference.main()


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Name files outside the docs instead of linking them.

    >>> on_page_markdown("see [the tests](../tests/plugin.py)")
    'see the tests (`tests/plugin.py`)'
    >>> on_page_markdown("see [`plugin.py`](../tests/plugin.py)")
    'see `tests/plugin.py`'
    """
    return OUTSIDE.sub(lambda link: f"`{link[2]}`" if link[1].startswith("`") else f"{link[1]} (`{link[2]}`)", markdown)
