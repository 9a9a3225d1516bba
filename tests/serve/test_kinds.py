"""Columns of every kind: text, grids, times and a few numbers."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from countless import Estimator, Network, TextNetwork, fit
from countless.serve.api import replies
from countless.serve.models import Served
from countless.serve.service import ServiceOptions
from tests.serve.conftest import Client, running

PAGES = """
SELECT 'a' || (range % 7) || '.org/' || (range % 11) AS url, range % 3 AS few, range / 8 AS many,
    TIMESTAMP '2020-01-01' + INTERVAL (range) HOUR AS seen, range % 2 = 0 AS even
FROM range(400)
"""


@pytest.fixture(scope="module")
def pages() -> Estimator:
    return fit(
        duckdb.sql(PAGES),
        text="url",
        epochs=1,
        max_distinct=100,
        calibrate=False,
        network=Network(hidden=16, blocks=1, embedding=8),
        text_network=TextNetwork(width=16, blocks=1, heads=2, inner=32, buckets=64),
        evidence="none",
    )


@pytest.fixture(scope="module")
def client(pages: Estimator) -> Iterator[Client]:
    with running({"people": Served("people", pages, None)}, ServiceOptions()) as running_client:
        yield running_client


def test_kinds(client: Client) -> None:
    body = client.get("/v1/models/people").json
    replies.Model.model_validate(body)
    assert [(column["name"], column["kind"], column["binned"]) for column in body["columns"]] == [
        ("few", "category", False),
        ("many", "number", True),
        ("seen", "time", True),
        ("even", "category", False),
        ("url", "text", False),
    ]
    assert client.get("/v1/models").json["models"][0]["texts"] == 1


def test_cards(client: Client) -> None:
    body = client.ask("distribution", columns=["few", "many", "seen", "even"], where="url LIKE '%org%'", bins=4).json
    replies.Distributions.model_validate(body)
    few, many, seen, even = body["cards"]
    assert {each["value"] for each in few["values"]} <= {"0", "1", "2"}
    assert {each["value"] for each in even["values"]} <= {"true", "false"}
    assert isinstance(many["values"][0]["from"], float)
    assert seen["values"][0]["from"].startswith("20")
    for card in body["cards"]:
        assert sum(each["share"] for each in card["values"]) == pytest.approx(1.0)


def test_text_has_no_card(client: Client) -> None:
    reply = client.ask("distribution", columns=["url"])
    assert (reply.status, reply.error["kind"]) == (422, "UnsupportedQueryError")
    assert "is text, which has no list of values" in reply.error["message"]


def test_samples_and_patterns(client: Client, pages: Estimator) -> None:
    body = client.ask("sample", count=3, seed=1).json
    replies.Sampled.model_validate(body)
    assert [row[-1] for row in body["rows"]] == [row[-1] for row in pages.sample(3, seed=1)]
    where = "url LIKE '%.org/1%' AND even"
    assert client.ask("estimate", where=where).json["estimates"][0]["rows"] == pages.estimate(where).rows


def test_a_pattern_of_too_many_states(client: Client) -> None:
    reply = client.ask("estimate", where="regexp_matches(url, '(a|b)*a(a|b|.){18}')")
    assert (reply.status, reply.error["kind"]) == (422, "QueryTooLargeError")
    assert "states" in reply.error["message"]
