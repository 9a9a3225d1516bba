"""A browser for the tests of the page, or a reason to skip them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextmanager
def started() -> Iterator[Browser]:
    """A Chromium that is gone afterwards; where there is none, the test is skipped and says why."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="no Playwright here: pip install playwright")
    browser_path = next(filter(None, map(shutil.which, NAMES)), None)
    if browser_path is None:
        pytest.skip("no browser here: apt-get install chromium brings one")
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # root has none
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=sandbox)
        yield browser
        browser.close()
