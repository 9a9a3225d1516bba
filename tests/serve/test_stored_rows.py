"""No endpoint returns a row that the model file holds: they are only counted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from countless import Estimator, Network, TextNetwork, fit
from countless.data.sources.source import connect
from countless.serve.models import Served
from countless.serve.service import ServiceOptions
from tests.serve.conftest import Client, running

# Every name is unique, and none can be drawn by a model that has learned next to nothing.
ROWS = """
SELECT range % 5 AS kind, 'secret ' || printf('%012d', hash(range) % 1000000000000) AS name,
    hash(range, 1) % 100000000 / 7 AS amount, TIMESTAMP '2020-01-01' + INTERVAL (range) HOUR AS seen FROM range(300)
"""
SECRET = re.compile(r"secret \d{12}", re.IGNORECASE)
WHOLE_ROW = "kind || ' ' || name || ' ' || amount"


@pytest.fixture(scope="module")
def model() -> Estimator:
    return fit(
        connect().sql(ROWS),
        text="name",
        max_distinct=20,
        epochs=1,
        network=Network(hidden=8, blocks=0),
        text_network=TextNetwork(width=8, blocks=1, heads=1, inner=8, buckets=16),
        calibrate=False,
    )


@pytest.fixture(scope="module")
def client(model: Estimator) -> Iterator[Client]:
    with running({"people": Served("people", model, None)}, ServiceOptions()) as running_client:
        yield running_client


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT {WHOLE_ROW} AS x, count(*) FROM t GROUP BY x",
        "SELECT lower(name) AS x, count(*) FROM t GROUP BY x",
        "SELECT name || '' AS x, count(*) FROM t WHERE kind = 1 GROUP BY x",
        f"SELECT quantile_disc({WHOLE_ROW}, 0.5) FROM t",
        f"SELECT kind, median({WHOLE_ROW}) FROM t GROUP BY kind",
        "SELECT quantile_disc(amount * 10 + kind, 0.5) FROM t",
    ],
)
def test_no_value_of_an_expression_is_that_of_one_row(client: Client, model: Estimator, sql: str) -> None:
    answer = client.ask("query", sql=sql)
    assert SECRET.search(answer.content.decode()) is None
    if answer.status == 200:
        assert answer.json["rows"] == []
    assert model.query("SELECT lower(name) AS x, count(*) FROM t GROUP BY x").rows  # the library does tell them


def test_values_that_many_rows_share_are_told(client: Client) -> None:
    hours = client.ask("query", sql="SELECT hour(seen) AS h, count(*) FROM t GROUP BY h").json
    assert len(hours["rows"]) == 24
    clause = "SELECT kind, avg(amount * 2) AS a FROM t WHERE hour(seen) = 3 GROUP BY kind"
    few = client.ask("query", sql=clause).json  # 2 or 3 rows each
    assert {row[1] for row in few["rows"]} == {None}


def test_samples_and_descriptions(client: Client) -> None:
    questions: dict[str, dict[str, Any]] = {
        "sample": {"count": 200},
        "distribution": {"columns": ["kind", "amount"]},
        "estimate": {"where": ["name LIKE 'secret%'", "amount > 3"]},
    }
    for path, body in questions.items():
        answer = client.ask(path, **body)
        assert answer.status == 200, answer.content.decode()
        assert SECRET.search(answer.content.decode()) is None
    assert SECRET.search(client.get("/v1/models/people").content.decode()) is None
