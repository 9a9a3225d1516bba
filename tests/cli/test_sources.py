"""Models of tables in databases: fitted, evaluated and served from where the tables are, without a password kept."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import duckdb
import pytest

from countless.cli.main import main
from countless.data.sources.source import Source
from countless.errors import DataError, SourceError
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.fit import fit
from countless.estimator.fitting.learning import Listener
from countless.evaluation.baselines.postgres.server import PrivatePostgresServer
from countless.options import Network
from countless.serve.models import load_models
from countless.serve.tables import CheckedTable
from countless_lab.measurement.subjects import subjects

FAST = ("--epochs", "1", "--hidden", "16", "--blocks", "1", "--embedding", "8", "--no-summary")


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    return int(caught.value.code or 0)


@pytest.fixture(scope="module")
def shop(people: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shop") / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE people AS FROM '{people}'; CREATE TABLE other AS SELECT 1 AS a")
    return path


def test_fit_from_a_duckdb_file(shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "m.countless"
    assert run("fit", shop, "-o", model, *FAST) == 1
    assert "choose one by --table, or after ::; the tables are main.other, main.people" in capsys.readouterr().err
    assert run("fit", shop, "--query", "SELECT age, city FROM people WHERE age > 60", "-o", model, *FAST) == 0
    with duckdb.connect(str(shop), read_only=True) as connection:
        counted = connection.execute("SELECT count(*) FROM people WHERE age > 60").fetchall()
    assert Estimator.load(model).rows == counted[0][0]
    assert run("evaluate", model, f"{shop}::people", "--queries", 3, "--json") == 0
    assert json.loads(capsys.readouterr().out)["table_bytes"] is None


def test_a_csv_file_with_options(people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, table = tmp_path / "m.countless", tmp_path / "people.csv"
    with duckdb.connect() as connection:
        select = f"SELECT city, replace((age / 2)::VARCHAR, '.', ',') AS half FROM '{people}'"
        connection.execute(f"COPY ({select}) TO '{table}' (DELIMITER '^')")
        total = connection.execute(f"SELECT count(*), count(*) FILTER (age > 60) FROM '{people}'").fetchall()[0]
    delim = ("--csv", "delim=^")
    assert run("check", model, table, *delim) == 1  # no model yet: the options are read first
    capsys.readouterr()
    assert run("fit", table, "-o", model, *delim, *FAST) == 0
    command = f"countless fit {table} -o {model} --csv 'delim=^' {' '.join(map(str, FAST))} --csv decimal_separator=,\n"
    first, meanwhile, _ = capsys.readouterr().err.split(f" run: {command}")  # told before, and at the end
    assert "counting distinct values" not in first
    assert first.endswith("if this is so, press Ctrl-C and")
    assert "counting distinct values" in meanwhile
    fewer = ("--evidence", 100)  # of a table that is kept whole nothing is advised
    assert run("fit", table, "-o", model, *delim, "--csv", "decimal_separator=,", *fewer, *FAST) == 0
    errors = capsys.readouterr().err
    assert "decimal" not in errors.partition("train longer")[0]
    if "train longer" in errors:
        assert f"countless train {model} {table} --budget" in errors  # the model keeps the options of --csv
    estimator = Estimator.load(model)
    assert estimator.rows == total[0]
    assert estimator.estimate("half > 30").rows == pytest.approx(total[1], rel=0.2)
    assert run("check", model, table, *delim, "--csv", "decimal_separator=,", "--json") == 0
    assert run("check", model, table, "--json") == 0  # the model knows how
    capsys.readouterr()
    assert run("check", model, table, "--csv", "delim=,", "--json") == 1
    assert "is the separator \"^\"? Add --csv delim='^'" in capsys.readouterr().err


def test_commands_read_a_csv_file_as_the_fit_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, table, plain = tmp_path / "m.countless", tmp_path / "orders.dat", tmp_path / "orders.csv"
    lines = [f"{number % 7};{number % 50},5" for number in range(400)]
    table.write_text("\n".join(["shop;Order Total", *lines, ""]))
    plain.write_text(table.read_text())
    options = ("--csv", "delim=;", "--csv", "decimal_separator=,")
    assert run("fit", table, "-o", model, *options, *FAST, "--evidence", "none") == 0
    capsys.readouterr()
    assert run("evaluate", model, table, "--kinds", "--queries", 30, "--save", tmp_path / "asked.jsonl") == 0
    questions = [json.loads(line) for line in (tmp_path / "asked.jsonl").read_text().splitlines()]
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW t AS FROM read_csv('{table}', delim = ';', decimal_separator = ',')")
        for question in questions:
            counted = connection.execute(f"SELECT count(*) FROM t WHERE {question['where']}").fetchall()
            assert counted == [(question["rows"],)]
    again = tmp_path / "again.countless"
    for command in ("calibrate", "train", "update"):
        effort = () if command == "calibrate" else ("--epochs", 1)
        assert run(command, model, table, "-o", again, *effort) == 0
    errors = capsys.readouterr().err
    assert "these rows are the table that the model was fitted on" in errors
    assert Estimator.load(again).rows == 800
    assert Estimator.load(again).schema.csv == {"delim": ";", "decimal_separator": ","}
    assert run("evaluate", model, table, "--rules", "--queries", 3) == 0
    assert run("diagnose", model, table, "--queries", 3) == 0
    assert run("anomalies", model, table, "--top", 1) == 0
    capsys.readouterr()
    for command in ("evaluate", "check", "update", "calibrate", "train", "diagnose"):
        assert run(command, model, plain, "--csv", "delim=;") == 1
        errors = capsys.readouterr().err
        assert 'the column "Order Total" is VARCHAR in the table and DOUBLE in the model: say how to read' in errors
        assert errors.rstrip().endswith("add --csv decimal_separator=','")


def test_fit_a_query_on_files(people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, query = tmp_path / "m.countless", f"SELECT age, city FROM '{people}' WHERE age > 60"
    assert run("fit", "-o", model, *FAST) == 2
    assert "Missing argument 'SOURCE'" in capsys.readouterr().err
    assert run("fit", "--query", query, "-o", model, *FAST) == 0
    assert run("check", model, query, "--json") == 0


def test_fit_from_postgresql_keeps_no_password(
    server: PrivatePostgresServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "pass word/1"
    url = server.url.replace("countless@", f"countless:{quote(secret, safe='')}@")
    monkeypatch.setenv("PGPASSWORD", "another secret")
    model = tmp_path / "m.countless"
    assert run("fit", url, "--table", "public.people", "--exclude", "id", "-o", model, *FAST) == 0
    output = capsys.readouterr()
    assert "reading from PostgreSQL" in output.err
    assert "3,000 rows of about 3,000" in output.err
    estimator = Estimator.load(model)
    assert estimator.rows == 3000
    assert run("evaluate", model, f"{url}::people", "--queries", 3) == 0
    told_later = capsys.readouterr()
    everything = output.out + output.err + told_later.out + told_later.err + json.dumps(estimator.report)
    for hidden in (secret, quote(secret, safe=""), "another secret"):
        assert hidden not in everything
        assert hidden.encode() not in model.read_bytes()


def test_a_listener_hears_of_rows(server: PrivatePostgresServer) -> None:
    class Heard(Listener):
        def __init__(self) -> None:
            self.rows: list[int] = []

        def loading(self, done: int, expected: int | None) -> None:
            self.rows.append(done)

    heard = Heard()
    network = Network(hidden=8, blocks=1, embedding=4)
    query = "SELECT age FROM people LIMIT 100"
    estimator = fit(
        server.url, query=query, epochs=1, network=network, summary=False, calibrate=False, evidence=30, listener=heard
    )
    assert heard.rows == [0, 100]
    assert (estimator.rows, estimator.info()["evidence"]["rows"]) == (100, 30)


def test_true_counts_of_a_service(server: PrivatePostgresServer, shop: Path, estimator: Estimator, model: Path) -> None:
    (counted,) = Source.open(f"{shop}::people").counts(["age > 40"])
    for place in (f"{shop}::people", f"{server.url}::people", f"{shop}::SELECT *, 4 // 2 AS two FROM people"):
        assert CheckedTable(place, estimator.schema).count("age > 40") == counted > 0
    with pytest.raises(SourceError, match=r'shop.duckdb::other has no column "age"'):
        CheckedTable(f"{shop}::other", estimator.schema)
    with pytest.raises(Exception, match=r"^postgresql://ann@host/db: a table is given as NAME=TABLE"):
        load_models([str(model)], ["postgresql://ann:secret@host/db?password=a"])


def test_trials_are_made_of_files() -> None:
    with pytest.raises(DataError, match=r"^postgresql://ann@host/db: every trial would read it anew"):
        subjects(["postgresql://ann:secret@host/db"], ())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("people.csv", "--table", "t"), "--table is for databases, and"),
        (("adult", "--query", "SELECT 1"), "it does not name adult"),
    ],
)
def test_files_have_no_tables(
    arguments: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("fit", *arguments, "-o", tmp_path / "m.countless") == 1
    assert message in capsys.readouterr().err
