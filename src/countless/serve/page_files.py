"""The static files of the web page, read once at start."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
INDEX = "index.html"


class PageFile(NamedTuple):
    """What is sent for a name."""

    content: bytes
    media_type: str


def page_files() -> dict[str, PageFile]:
    """Every file of the page by its name."""
    found = {}
    for item in files("countless.serve").joinpath("page").iterdir():
        ending = item.name[item.name.rfind(".") :]
        if ending in TYPES and item.is_file():
            found[item.name] = PageFile(item.read_bytes(), TYPES[ending])
    return found
