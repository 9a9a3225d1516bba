"""Beginnings and endings of a text column: the service tells them, and the page narrows by them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from countless import Network, TextNetwork
from countless.data.sources.source import Source
from countless.estimator.fitting.fit import fit
from countless.serve.api import replies
from countless.serve.models import load_models
from countless.serve.service import ServiceOptions
from tests.serve.conftest import Client, running
from tests.serve.test_page import Visitor

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TREES = ("/usr/share/doc", "/usr/share/doc", "/usr/lib/python3", "/etc")
ENDINGS = ("html", "gz", "py", "conf")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A model of 800 paths, which it keeps whole, and the same without its rows."""
    frame = {
        "suite": ["old" if row % 5 else "new" for row in range(800)],
        "path": [f"{TREES[row % 4]}/package-{row % 7}/file{row}.{ENDINGS[row % 4]}" for row in range(800)],
    }
    text = TextNetwork(width=16, blocks=1, heads=2, inner=32, buckets=64)
    table = Network(hidden=16, blocks=1, embedding=8)
    made = fit(Source.open(pd.DataFrame(frame)), text="path", epochs=1, network=table, text_network=text)
    path = made.save(tmp_path_factory.mktemp("files") / "files.countless")
    bare = made.stripped().save(path.with_name("bare.countless"))
    with running(load_models([str(path), str(bare)], []), ServiceOptions()) as running_client:
        yield running_client


def told(client: Client, **body: object) -> dict[str, dict[str, float]]:
    found = client.post("/v1/models/files/pieces", {"column": "path", **body}).json
    replies.PiecesReply.model_validate(found)
    return {side: {piece["text"]: piece["rows"] for piece in found[side]} for side in ("starts", "ends")}


def test_pieces_are_counted_under_the_condition(files: Client) -> None:
    body = told(files)
    # Three quarters are below /usr/ and half below /usr/share/doc/: no more than half, so that is not split.
    assert body["starts"] == {"/usr/share/": 400, "/etc/": 200, "/usr/lib/": 200}
    assert body["ends"] == {".html": 200, ".gz": 200, ".py": 200, ".conf": 200}
    assert told(files, where="path LIKE '/etc/%' AND suite = 'new'")["ends"] == {".conf": 40}


def test_a_piece_that_few_rows_share_is_not_told(files: Client) -> None:
    assert told(files, where="path LIKE '/etc/package-3/%'") == {
        "starts": {"/etc/package-3/": 29},
        "ends": {".conf": 29},
    }
    few = ", ".join(f"'/etc/package-3/file{row}.conf'" for row in (3, 31, 59, 87))
    assert told(files, where=f"path IN ({few})") == {"starts": {}, "ends": {}}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"column": "paht"}, 'did you mean "path"?'),
        ({"column": "path", "where": "paht = 'x'"}, 'did you mean "path"?'),
        ({"column": "path", "top": 101}, '"top" must be at most 100'),
    ],
)
def test_what_cannot_be_told(files: Client, body: dict[str, object], message: str) -> None:
    answer = files.post("/v1/models/files/pieces", body)
    assert answer.status == 422
    assert message in answer.json["error"]["message"]


@pytest.fixture
def visitor(browser: Browser, files: Client) -> Iterator[Visitor]:
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    first_visitor = Visitor(context.new_page(), files)
    first_visitor.page.on("pageerror", lambda error: first_visitor.complaints.append(str(error)))
    first_visitor.open(model="files")
    yield first_visitor
    assert first_visitor.complaints == []
    context.close()


def lines(visitor: Visitor) -> list[str]:
    return [line.split(" rows")[0] for line in visitor.told["path"]]


def choose(visitor: Visitor, text: str) -> None:
    visitor.card("path").locator(f'li[data-text="{text}"]').click()
    visitor.settle()


def test_a_click_narrows_and_all_other_cards_follow(visitor: Visitor) -> None:
    assert lines(visitor)[:3] == ["/usr/share/: 400", "/etc/: 200", "/usr/lib/: 200"]
    choose(visitor, "/usr/share/")
    visitor.expect("path LIKE '/usr/share/%'", "files")
    assert visitor.page.input_value("[data-column=path] .pattern") == "/usr/share/"
    assert lines(visitor)[0].startswith("/usr/share/doc/package-")
    assert set(lines(visitor)[-2:]) == {".html: 200", ".gz: 200"}
    assert visitor.told["suite"][0].startswith("old: 320 rows")
    choose(visitor, ".gz")
    visitor.expect("path LIKE '/usr/share/%' AND path LIKE '%.gz'", "files")
    assert visitor.card("path").locator(".also").inner_text() == "and path LIKE '%.gz'"
    visitor.click("suite", "new")
    visitor.expect("suite = 'new' AND path LIKE '/usr/share/%' AND path LIKE '%.gz'", "files")
    assert lines(visitor)[-1] == ".gz: 40"


def test_a_longer_beginning_takes_the_place_of_a_shorter_one(visitor: Visitor) -> None:
    choose(visitor, "/usr/share/")
    piece = visitor.card("path").locator("li").first.get_attribute("data-text")
    assert piece is not None
    choose(visitor, piece)
    visitor.expect(f"path LIKE '{piece}%'", "files")


def test_clearing_the_card_removes_all_its_patterns(visitor: Visitor) -> None:
    choose(visitor, "/usr/share/")
    choose(visitor, ".gz")
    visitor.page.get_by_label("Clear the filter on path").click()
    visitor.settle()
    assert visitor.where == visitor.in_url == ""
    assert lines(visitor)[0] == "/usr/share/: 400"


def test_pieces_follow_a_typed_pattern_and_are_chosen_by_key(visitor: Visitor) -> None:
    visitor.page.fill("[data-column=path] .pattern", "python")
    visitor.until("location.hash.includes('python')")
    visitor.settle()
    assert {line.split(": ")[0] for line in lines(visitor) if line.startswith(".")} == {".py"}
    item = visitor.card("path").locator('li[data-text=".py"]')
    item.focus()
    assert "200 rows, 100%" in visitor.card("path").inner_text()
    item.press("Enter")
    visitor.settle()
    visitor.expect("path LIKE '%python%' AND path LIKE '%.py'", "files")


def test_a_model_without_evidence_shows_no_lists(visitor: Visitor) -> None:
    visitor.open(model="bare")
    assert visitor.card("path").locator("li").count() == 0
    assert "short" in (visitor.card("path").get_attribute("class") or "")
    body = visitor.client.post("/v1/models/bare/pieces", {"column": "path"}).json
    assert (body["starts"], body["ends"]) == ([], [])
