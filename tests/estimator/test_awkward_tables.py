"""Tables that random ones found answers or fits to be wrong of."""

from __future__ import annotations

import pandas as pd
import pytest

import countless
from countless.data.sources.source import connect
from countless.errors import ColumnLeftOutError
from countless.estimator.fitting.salvage import missing_parts

TINY = countless.Network(hidden=8, blocks=0, embedding=4)


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP"])
def test_infinite_dates_in_a_grid(kind: str) -> None:
    connection = connect()
    values = ", ".join(f"CAST('{value}' AS {kind})" for value in ("infinity", "-infinity", "2020-01-31", "5000-07-10"))
    connection.execute(f"CREATE TABLE made AS SELECT [{values}][1 + range % 4] AS d FROM range(40)")
    model = countless.fit(connection.table("made"), max_distinct=2, epochs=1, network=TINY, calibrate=False)
    for clause in ("d = 'infinity'", "d = '-infinity'", "d > '-infinity'", "d < 'infinity'", "d IN ('infinity')"):
        ((count,),) = connection.execute(f"SELECT count(*) FROM made WHERE {clause}").fetchall()
        assert (model.estimate(clause).rows, model.estimate(clause).exact) == (count, True)


def test_strings_of_more_than_ten_thousand_characters() -> None:
    frame = pd.DataFrame({"t": [letter * 12_000 for letter in "abc"]})
    model = countless.fit(frame, text=["t"], epochs=1, budget=1, network=TINY)
    assert missing_parts(model.report) == {}
    assert 0 <= model.estimate(f"t < '{'b' * 5_000}'").rows <= 3


def test_names_that_differ_in_case_between_kinds_of_columns() -> None:
    frame = pd.DataFrame(
        {"ß": ["a", "b", "a"], "ss": ["long text one", "long text two", None], "É": [[1], [2], [3]], "é": [1, 2, 3]}
    )
    model = countless.fit(frame, text=["ss"], epochs=1, budget=1, network=TINY)
    assert model.estimate('"ss" IS NULL').rows == 1
    assert model.estimate("\"ß\" = 'a'").rows == 2
    assert model.estimate('"é" = 1').rows == 1
    with pytest.raises(ColumnLeftOutError):
        model.estimate('"É" = 1')


def test_a_text_column_of_empty_strings() -> None:
    frame = pd.DataFrame({"t": ["", "", None]})
    model = countless.fit(frame, text=["t"], epochs=1, budget=1, network=TINY, calibrate=False)
    counts = [model.estimate(clause).rows for clause in ("t = ''", "t < 'a'", "t IS NULL", "t LIKE '%a%'", "t > ''")]
    assert counts == [2, 2, 1, 0, 0]
