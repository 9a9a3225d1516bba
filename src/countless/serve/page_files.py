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
    """The content of a file, and its media type."""

    content: bytes
    media_type: str


def page_files() -> dict[str, PageFile]:
    """Every file of the page by its name."""
    pages = {}
    for file in files("countless.serve").joinpath("page").iterdir():
        ending = file.name[file.name.rfind(".") :]
        if ending in TYPES and file.is_file():
            pages[file.name] = PageFile(file.read_bytes(), TYPES[ending])
    return pages
