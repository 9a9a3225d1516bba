"""The page when the model that it shows is replaced."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from countless import Estimator
from countless.serve.model_file import ModelFile
from countless.serve.models import Served, load_models
from tests.serve.conftest import Client

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_the_page_shows_the_new_model_under_the_same_clause(
    browser: Browser, start: Callable[..., Client], model: Path, people: Path, estimator: Estimator, tmp_path: Path
) -> None:
    new = estimator.update(people).save(tmp_path / "people.countless")
    client = start(load_models([str(model)]))
    page = browser.new_page()
    page.goto(f"http://127.0.0.1:{client.port}/#model=people&where=age%20%3E%2040")

    def wait_for(words: str) -> None:
        end = time.monotonic() + 30
        while words not in page.inner_text("body"):
            assert time.monotonic() < end, page.inner_text("body")[:500]
            page.wait_for_timeout(20)

    wait_for("3,000")
    client.service.replace(Served.load(ModelFile("people", new)))
    page.goto(f"http://127.0.0.1:{client.port}/#model=people&where=age%20%3E%2041")  # a question that is not kept
    wait_for("6,000")
    assert "age > 41" in page.input_value("#where")
    page.wait_for_function("document.querySelector('#model').innerText === 'people · 6,000 rows'")
    assert not page.evaluate("document.body.classList.contains('refused')")
    page.close()
