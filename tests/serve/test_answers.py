"""Every question, and its answer: what the library says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import countless
from countless import Estimator
from countless.data.sources.source import connect
from countless.engine.density import densities
from countless.estimator import prepared
from countless.serve.api import replies
from tests.serve.conftest import Client

WHERE = "age > 30 AND married AND score < 1.3"


def without_times(data: Any) -> Any:
    """The same without how long it took."""
    if isinstance(data, dict):
        return {name: without_times(value) for name, value in data.items() if name != "ms"}
    return [without_times(item) for item in data] if isinstance(data, list) else data


def test_health(client: Client) -> None:
    assert client.get("/healthz").json == {
        "status": "ok",
        "stuck": 0,
        "models": 1,
        "version": countless.__version__,
    }


def test_models(client: Client) -> None:
    line = {"name": "people", "rows": 3000, "columns": 5, "texts": 0, "checkable": True}
    (models,) = client.get("/v1/models").json["models"]
    assert models.pop("version")
    assert models == line


def test_a_model(client: Client, estimator: Estimator) -> None:
    model = client.get("/v1/models/people").json
    replies.Model.model_validate(model)
    assert {column["name"]: column["kind"] for column in model["columns"]} == {
        "age": "number",
        "city": "category",
        "married": "category",
        "since when": "time",
        "score": "category",
    }
    assert [column["name"] for column in model["columns"]] == list(estimator.columns)
    assert model["columns"][1] == {
        "name": "city",
        "type": "VARCHAR",
        "kind": "category",
        "distinct": 4,
        "has_null": True,
        "binned": False,
    }
    assert [column["name"] for column in model["left_out"]] == ["id"]
    assert model["training"]["epochs"] == 25
    assert "history" not in model["training"]
    assert model["interval"]["level"] == 0.9


def test_one_clause(client: Client, estimator: Estimator) -> None:
    (estimates,) = client.ask("estimate", where=WHERE).json["estimates"]
    known = estimator.estimate(WHERE)
    assert set(estimates) == {"where", "rows", "low", "high", "level", "selectivity", "exact", "sampled", "ms"}
    for name in set(estimates) - {"ms"}:
        assert estimates[name] == getattr(known, name)


def test_several_clauses_of_which_one_is_wrong(client: Client, estimator: Estimator) -> None:
    reply = client.ask("estimate", where=[WHERE, "agee > 3", "city = 'Łódź'"])
    assert reply.status == 200
    first, wrong, last = reply.json["estimates"]
    assert (first["rows"], last["rows"]) == (estimator.estimate(WHERE).rows, estimator.estimate("city = 'Łódź'").rows)
    assert wrong == {
        "where": "agee > 3",
        "error": {
            "message": 'unknown column "agee": did you mean "age"?',
            "kind": "UnknownColumnError",
            "span": [0, 4],
        },
    }


def test_cards_are_the_distributions_of_their_columns(client: Client, estimator: Estimator) -> None:
    body = client.ask("distribution", columns=["CITY", "age", "since when"], where=WHERE, bins=5).json
    replies.Distributions.model_validate(body)
    assert body["total"]["rows"] == estimator.estimate(WHERE).rows
    cities, ages, times = body["cards"]
    assert (cities["column"], cities["kind"], cities["others"]) == ("city", "category", None)
    known = estimator.distribution("city", WHERE)
    assert [tuple(each.values()) for each in cities["values"]] == list(zip(*known.columns, strict=True))
    assert cities["disagreement"] == pytest.approx(known.disagreement, abs=1e-9)
    assert cities["counted"] == known.counted
    assert [tuple(each.values()) for each in ages["values"]] == estimator.distribution("age", WHERE, bins=5).rows
    known = estimator.distribution("since when", WHERE, bins=5)
    assert times["kind"] == "time"
    assert [tuple(each.values()) for each in times["values"]] == list(zip(*known.columns, strict=True))


def test_requests_about_one_condition_share_its_count(client: Client) -> None:
    where, counts = "age > 31 AND married AND score < 1", []

    def counted(*arguments: Any) -> Any:
        counts.append(arguments)
        return densities(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepared, "densities", counted)
        total = client.ask("estimate", where=where).json["estimates"][0]
        for column in ("city", "age", "score"):
            assert client.ask("distribution", columns=[column], where=where).json["total"] == total
        client.ask("query", sql=f"SELECT avg(age), avg(score) FROM t WHERE {where}")
        client.ask("sample", count=3, where=where)
    assert len(counts) == 1


def test_the_rest_is_folded_and_values_are_searched(client: Client) -> None:
    (card,) = client.ask("distribution", columns=["city"], top=2).json["cards"]
    assert len(card["values"]) == 2
    assert card["others"]["values"] == 3
    assert sum(each["rows"] for each in card["values"]) + card["others"]["rows"] == 3000
    (card,) = client.ask("distribution", columns=["city"], search={"city": "O"}).json["cards"]
    assert {each["value"] for each in card["values"]} == {"Oslo", "Rome", "New York"}
    assert card["others"] is None
    (card,) = client.ask("distribution", columns=["city"], top=1, search={"City": "łód"}).json["cards"]
    assert [each["value"] for each in card["values"]] == ["Łódź"]


def test_a_query(client: Client, estimator: Estimator) -> None:
    sql = "SELECT city, count(*), avg(age) AS a FROM t WHERE married GROUP BY 1 ORDER BY 2 DESC"
    body = client.ask("query", sql=sql).json
    replies.Result.model_validate(body)
    known = estimator.query(sql)
    assert [(column["name"], column["type"]) for column in body["columns"]] == [
        *zip(known.names, known.types, strict=True)
    ]
    assert [tuple(row) for row in body["rows"]] == known.rows
    assert body["count"]["rows"] == known.count.rows
    assert body["disagreement"] == pytest.approx(known.disagreement, abs=1e-9)
    assert body["left_out_rows"] == pytest.approx(known.left_out_rows, abs=1e-9)
    with_bars = client.ask("query", sql=sql, intervals=True).json
    assert {"a_low", "a_high"} <= {column["name"] for column in with_bars["columns"]}


def test_a_sample(client: Client, estimator: Estimator) -> None:
    body = client.ask("sample", count=7, where="age > 60", seed=3).json
    replies.Sampled.model_validate(body)
    known = estimator.sample(7, where="age > 60", seed=3)
    assert body["rows"] == [[value if isinstance(value, int | None) else str(value) for value in row] for row in known]
    assert (body["effective_size"], body["enumerated"]) == (known.effective_size, known.enumerated)
    assert body["requested"] == len(body["rows"]) == 7


@pytest.mark.parametrize("where", [WHERE, "p.age < 20 OR \"since when\" > DATE '2020-02-01'", "city LIKE 'O%'"])
def test_a_check_counts_in_the_table(client: Client, people: Path, where: str) -> None:
    (truth,) = connect().sql(f"SELECT count(*) FROM '{people}' p WHERE {where}").fetchall()[0]
    assert client.ask("check", where=where).json["rows"] == truth


def test_what_rounding_leaves_is_nothing(client: Client) -> None:
    for where in ("age > 30 AND age < 20", WHERE):
        body = client.ask("distribution", columns=["city", "age"], where=where).json
        counts = [body["total"], *(each for card in body["cards"] for each in card["values"])]
        numbers = [each[name] for each in counts for name in ("rows", "low", "high")]
        numbers += [card["disagreement"] for card in body["cards"]]
        assert all(number == 0 or abs(number) >= 1e-9 for number in numbers)


def test_the_page(client: Client) -> None:
    reply = client.get("/")
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert b"Countless" in reply.content
    assert client.get("/static/index.html").content == reply.content
