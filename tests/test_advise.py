"""Advice for a real PostgreSQL: columns that depend on each other are found, and statistics on them help."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from countless.advise.combinations import expected_combinations, expected_kinds
from countless.advise.findings import Advised, Finding, Suggestion, quantiles
from countless.advise.planner import Planner
from countless.advise.questions import ColumnFilter, PlannerQuestion, question, random_questions, read_questions
from countless.advise.ranking import COUNTABLE, EstimatedQuestion, Ranking
from countless.advise.statements import Statistics, statistics_name, target_for
from countless.advise.trial import tried as put_to_the_test
from countless.cli.main import main
from countless.errors import CountlessError, QueryError, SourceError
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.fit import fit
from countless.evaluation.baselines.postgres.server import PrivatePostgresServer
from countless.options import Network

ROWS = """
CREATE SCHEMA "Far away";
CREATE TABLE "Far away"."My addresses" AS
SELECT 'city ' || i * i % 997 % 40 AS city, i * i % 997 % 40 / 2 AS "Zip", i % 7 AS weekday, i % 11 AS age
FROM generate_series(1, 8000) i;
ANALYZE "Far away"."My addresses"
"""
TABLE = '"Far away"."My addresses"'
DEPENDENT = ("city", "Zip")


@pytest.fixture(scope="module")
def url(server: PrivatePostgresServer) -> Iterator[str]:
    with server.connect() as connection:
        connection.execute(ROWS)
        yield f"{server.url}::{TABLE}"
        connection.execute('DROP SCHEMA "Far away" CASCADE')


@pytest.fixture(scope="module")
def addresses(url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    network = Network(hidden=32, blocks=1, embedding=8)
    model = fit(url, epochs=3, batch=256, network=network, calibrate=False, evidence="none")
    return model.save(tmp_path_factory.mktemp("advise") / "addresses.countless")


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    return int(caught.value.code or 0)


def statistics(server: PrivatePostgresServer) -> list[tuple[Any, ...]]:
    with server.connect() as connection:
        return connection.execute("SELECT stxname, stxkind::text[] FROM pg_statistic_ext ORDER BY 1").fetchall()


def test_dependent_columns_come_first_and_nothing_is_changed(
    server: PrivatePostgresServer, url: str, addresses: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("advise", url, "--model", addresses, "--queries", 60, "--count", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    first = record["statistics"][0]
    assert set(first["columns"]) == set(DEPENDENT)
    assert first["share"] > 0.5
    assert first["statements"][0] == (
        'CREATE STATISTICS IF NOT EXISTS "Far away"."countless_My addresses_Zip_city" (ndistinct, dependencies, mcv) '
        f'ON "Zip", "city" FROM {TABLE}'
    )
    with server.connect() as connection:
        for finding in record["findings"]:
            assert "city" in finding["where"]
            row = connection.execute(f"SELECT count(*) FROM {TABLE} WHERE {finding['where']}".encode()).fetchone()
            assert row == (finding["rows"],)
    assert statistics(server) == []


def test_what_is_told_is_postgresqls_sql_and_a_prediction(
    url: str, addresses: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hasty = Estimator.load(addresses)
    hasty.report["epochs"] = 2
    model = hasty.save(tmp_path / "hasty.countless")
    workload = tmp_path / "asked.sql"
    workload.write_text("zip = CAST('3.0' AS DOUBLE) AND city = 'city 7'\n")
    assert run("advise", url, "--model", model, "--workload", workload) == 0
    done = capsys.readouterr()
    assert "AS DOUBLE PRECISION)" in " ".join(done.out.split())
    assert "these are predictions: --try measures each of them" in done.out
    assert "depend on each other; do not trust its advice" in done.err


def test_a_trial_is_undone_and_what_is_applied_stays(
    server: PrivatePostgresServer, url: str, addresses: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workload = tmp_path / "asked.sql"
    workload.write_text(
        "zip = 3 AND city = 'city 7' AND age < 5\nZIP = 10 AND city = 'city 20'\nage = 3\nnothing > 3\n"
    )
    arguments = ("advise", url, "--model", addresses, "--workload", workload, "--count")
    assert run(*arguments, "--try", "--json") == 0
    done = capsys.readouterr()
    assert "skipped 1 question of the workload; " in done.err
    assert 'asked.sql, line 4: unknown column "nothing"' in done.err
    tried = json.loads(done.out)
    assert tried["passed_over"] == 1
    assert tried["statistics"][0]["effect"]["helped"]
    errors = [finding["q_error"] for finding in tried["findings"]]
    assert errors == sorted(errors, reverse=True)
    assert statistics(server) == []
    assert run(*arguments, "--apply") == 0
    output = capsys.readouterr().out
    assert "1. Zip, city: " in output
    assert "they were created, and ANALYZE was run" in output
    assert [name for name, _ in statistics(server)] == ["countless_My addresses_Zip_city"]
    for finding in tried["findings"][:2]:
        truth = finding["rows"]
        assert truth > 50
        assert finding["planner"] < truth / 5
        assert truth / 1.5 < finding["after"] < truth * 1.5
    assert tried["applied"] == "undone"
    assert tried["after"]["max"] < tried["before"]["max"] / 5
    assert run(*arguments) == 0
    assert "1. Zip, city: " not in capsys.readouterr().out
    with server.connect() as connection:
        connection.execute('DROP STATISTICS "Far away"."countless_My addresses_Zip_city"')


def test_a_model_is_fitted_if_there_is_none(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("advise", url, "--budget", "1s", "--queries", 5, "--worst", 2) == 0
    done = capsys.readouterr()
    assert "reading from PostgreSQL" in done.err
    assert f"{TABLE}: 5 questions" in done.out


def test_the_session_can_only_read(url: str) -> None:
    with Planner(url, None) as planner, pytest.raises(SourceError, match="read-only transaction"):
        planner.run(f"ANALYZE {planner.table}; CREATE TABLE mine (a int)")


def test_what_is_wrong_is_told_in_one_line(
    server: PrivatePostgresServer, url: str, addresses: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with server.connect() as connection:
        connection.execute('CREATE VIEW "Far away".seen AS SELECT 1 AS a; CREATE ROLE reader LOGIN')
        connection.execute(f'GRANT USAGE ON SCHEMA "Far away" TO reader; GRANT SELECT ON {TABLE} TO reader')
    wrong = tmp_path / "wrong.sql"
    wrong.write_text("nothing = 3\nage >\n")
    reader = url.replace("countless@", "reader:s3cret@")
    for arguments, message in (
        (("people.csv",), "is not a PostgreSQL database"),
        ((f"{server.url}::SELECT 1",), "is not a PostgreSQL database"),
        (("postgresql://ann:s3cret@127.0.0.1:1/shop",), "Connection refused; is the server running"),
        (("postgresql://ann:s3cret@127.0.0.1:x/shop",), "cannot understand the URL"),
        ((f"{server.url}::nowhere",), 'has no table "nowhere"'),
        ((f'{server.url}::"Far away".seen',), "is a view, of which PostgreSQL does not keep extended statistics"),
        ((url, "--model", addresses, "--workload", wrong), "wrong.sql, line 1: unknown column"),
        ((reader, "--model", addresses, "--apply"), "must be owner of table My addresses"),
        ((f"{server.url}::people", "--model", addresses, "--queries", 3), 'has no column "Zip": give a model'),
    ):
        assert run("advise", *arguments) == 1
        errors = capsys.readouterr().err
        assert message in errors
        assert "s3cret" not in errors
        assert "Traceback" not in errors
    assert run("advise", url, "--try", "--apply") == 2
    with server.connect() as connection:
        connection.execute('DROP VIEW "Far away".seen; DROP OWNED BY reader; DROP ROLE reader')


def test_filters_of_a_question(addresses: Path) -> None:
    estimator = Estimator.load(addresses)
    where = "AGE > 3 AND (city IN ('city 3') AND zip IS NULL) AND age < 5 AND (age = 3 OR weekday > 1)"
    planner_question = question(where, estimator.schema)
    assert planner_question.filters == {
        "age": ColumnFilter("AGE > 3 AND age < 5", False),
        "city": ColumnFilter("city IN ('city 3')", True),
        "Zip": ColumnFilter("zip IS NULL", True),
    }
    assert planner_question.clause_on(["city", "age"]) == "(AGE > 3 AND age < 5) AND (city IN ('city 3'))"
    drawn = random_questions(estimator, 30, 1)
    assert {len(query.filters) for query in drawn} == {2, 3, 4}
    assert drawn == random_questions(estimator, 30, 1)
    questions, wrong = read_questions(["age > 3", "nothing"], estimator.schema)
    assert [query.where for query in questions] == ["age > 3"]
    assert [str(error).split(":")[0] for error in wrong] == ["clause 2 of the workload"]
    with pytest.raises(QueryError, match="clause 1 of the workload"):
        read_questions(["nothing"], estimator.schema)


def test_the_best_set_is_chosen_first_and_each_column_served_once() -> None:
    equalities = {name: ColumnFilter(f"{name} = 1", True) for name in "abc"}
    ranges = {name: ColumnFilter(f"{name} > 1", False) for name in "cd"}
    estimated_questions = [
        EstimatedQuestion(PlannerQuestion("abc", equalities), 1.0, 100.0),
        EstimatedQuestion(PlannerQuestion("cd", ranges), 10.0, 500.0),
    ]
    joint = {"(a = 1) AND (b = 1)": 90.0, "(c > 1) AND (d > 1)": 500.0}

    def chosen(combinations: int) -> list[tuple[str, ...]]:
        fresh = [
            EstimatedQuestion(estimated.question, estimated.planner, estimated.model)
            for estimated in estimated_questions
        ]
        ranking = Ranking(fresh, lambda columns: combinations, lambda where: 10.0, lambda where: joint.get(where, 10.0))
        return [statistic.columns for statistic in ranking.choose(5)]

    assert chosen(100) == [("c", "d"), ("a", "b")]
    assert chosen(100_000) == [("a", "b")]  # ranges over too many combinations: no list holds them


def test_combinations_are_rather_too_many_than_too_few() -> None:
    rng = np.random.default_rng(3)
    weights = 1 / np.arange(1, 301)
    first, second = (rng.choice(300, 5_000, p=weights / weights.sum()).tolist() for _ in range(2))
    rare = expected_combinations([first, second], [300, 300], 10**6, rng)
    assert rare > COUNTABLE  # of 90,000, many of which are rare
    assert expected_kinds(Counter(zip(first, second, strict=True))) < COUNTABLE
    dependent = expected_combinations([first, [value // 3 for value in first]], [300, 100], 10**6, rng)
    assert 300 <= dependent < 600
    assert expected_combinations([[1, 1], [1, 1]], [20_000, 2], 10**6, rng) >= 20_000


def test_statistics_that_do_not_help_are_left_out(server: PrivatePostgresServer, url: str) -> None:
    with Planner(url, None, writing=True) as planner:
        clauses = ["\"Zip\" = 3 AND city = 'city 7'", "weekday = 2 AND age = 3"]
        findings = tuple(
            Finding(planner.sql(clause), clause, frozenset(columns), 1.0, float(planner.count(clause)))
            for clause, columns in zip(clauses, [DEPENDENT, ("weekday", "age")], strict=True)
        )
        suggestions = tuple(
            Suggestion(Statistics(planner.schema, planner.name, columns, ("ndistinct", "mcv")), 0.5, 1)
            for columns in [("weekday", "age"), DEPENDENT]
        )
        advised = Advised(planner.table, 2, 0, True, quantiles(findings), findings, suggestions)
        tested = put_to_the_test(planner, advised, keep=True)
        none = put_to_the_test(planner, replace(advised, suggestions=suggestions[:1]), keep=True)
    assert [one.effect is not None and one.effect.helped for one in tested.suggestions] == [False, True]
    assert tested.applied == "kept"
    assert none.applied == "undone"
    assert [name for name, _ in statistics(server)] == ["countless_My addresses_city_Zip"]
    with server.connect() as connection:
        connection.execute('DROP STATISTICS "Far away"."countless_My addresses_city_Zip"')


def test_names_and_statements_are_safe() -> None:
    odd = Statistics("s", 'o"x', ("a b", "c;--"), ("mcv",), 1000)
    assert odd.statements == (
        'CREATE STATISTICS IF NOT EXISTS "s"."countless_o""x_a b_c;--" (mcv) ON "a b", "c;--" FROM "s"."o""x"',
        'ALTER STATISTICS "s"."countless_o""x_a b_c;--" SET STATISTICS 1000',
    )
    long = [statistics_name("ä" * 40, [name, "b"]) for name in ("a", "c")]
    assert len(set(long)) == 2
    assert all(len(name.encode()) <= 63 for name in long)
    assert [target_for(many) for many in (40, 400, 10**6)] == [None, 400, 1000]


def test_a_planner_needs_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(CountlessError, match=r"pip install 'countless\[postgres\]'"):
        Planner("postgresql://host/shop", "t")
