"""What several tests need: a small table, and an estimator fitted to it once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from countless.data.sources.source import connect
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.fit import fit
from countless.estimator.plugins import load_plugins
from countless.evaluation.baselines.postgres.server import PrivatePostgresServer
from countless.options import Network
from tests import plugin  # noqa: F401 - the contracts of models and of methods try what it brings
from tests.evaluation.baselines.servers import need_postgres

load_plugins()  # and what plugins bring that the environment names

# Columns that depend on each other, NULLs, odd names, and a key.
PEOPLE = """
SELECT
    range AS id,
    18 + (hash(range) % 50)::INTEGER AS age,
    CASE WHEN hash(range, 1) % 9 > 0
        THEN ['Oslo', 'Rome', 'New York', 'Łódź'][1 + ((hash(range, 2) % 10) ** 2 // 30)::INTEGER] END AS city,
    CASE WHEN 18 + hash(range) % 50 > 40 THEN hash(range, 3) % 4 > 0 ELSE hash(range, 3) % 8 = 0 END AS married,
    DATE '2020-01-01' + (hash(range, 4) % 40)::INTEGER AS "since when",
    round((hash(range, 5) % 7) / 4, 2)::DECIMAL(4, 2) AS score
FROM range(3000)
"""


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Parquet file of 3,000 people."""
    path = tmp_path_factory.mktemp("people") / "people.parquet"
    connect().execute(f"COPY ({PEOPLE}) TO '{path}'")
    return path


@pytest.fixture(scope="session")
def estimator(people: Path) -> Estimator:
    """A small model of the people, without their key and without evidence rows: what is tested is the model."""
    return fit(
        people,
        exclude="id",
        epochs=25,
        batch=100,
        evidence="none",
        network=Network(hidden=48, blocks=1, embedding=16),
    )


@pytest.fixture(scope="session")
def model(estimator: Estimator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its file."""
    return estimator.save(tmp_path_factory.mktemp("model") / "people.countless")


@pytest.fixture(scope="session")
def server(people: Path) -> Iterator[PrivatePostgresServer]:
    """A PostgreSQL that holds the people; each test that makes tables there makes a schema for them."""
    need_postgres()
    with PrivatePostgresServer() as started:
        load_people(started, people)
        yield started


def load_people(started: PrivatePostgresServer, people: Path) -> None:
    """The people as a table of PostgreSQL's, in the same order."""
    rows = connect().execute(f"SELECT * FROM '{people}'").fetchall()
    with started.connect() as connection:
        connection.execute(
            'CREATE TABLE people (id int8, age int4, city text, married bool, "since when" date, score numeric(4, 2))'
        )
        with connection.cursor().copy("COPY people FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        connection.execute("ANALYZE people")
