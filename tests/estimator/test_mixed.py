"""Tables that mix columns and text: one model file, one WHERE clause, and what they have to do with each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from countless import Estimator, Network, TextNetwork
from countless.data.sources.source import Source
from countless.errors import QueryTooLargeError
from countless.estimator.answers.estimate import q_error
from countless.estimator.fitting.fit import fit

COUNTRIES = {"DE": 0.6, "FR": 0.3, "IS": 0.06, "MT": 0.04}
ENDINGS = {"DE": ".de/", "FR": ".fr/", "IS": ".is/", "MT": ".mt/"}
WORDS = ("shop", "news", "blog", "mail")


def pages(rows: int = 2500) -> pd.DataFrame:
    """Pages whose country decides their domain, and whose size the word after it; some have no URL."""
    rng = np.random.default_rng(0)
    countries = rng.choice(list(COUNTRIES), size=rows, p=list(COUNTRIES.values()))
    words = rng.integers(len(WORDS), size=rows)
    urls = [
        None if rng.random() < 0.05 else f"{rng.choice(['a', 'b', 'cd'])}{ENDINGS[country]}{WORDS[word]}"
        for country, word in zip(countries, words, strict=True)
    ]
    sizes = words * 10 + rng.integers(10, size=rows)
    return pd.DataFrame({"country": countries, "size": sizes, "url": pd.Series(urls, dtype=object)})


@pytest.fixture(scope="module")
def source() -> Source:
    return Source.open(pages())


@pytest.fixture(scope="module")
def mixed(source: Source) -> Estimator:
    network = TextNetwork(width=32, blocks=1, heads=2, inner=64, buckets=256)
    table = Network(hidden=48, blocks=1, embedding=16)
    return fit(
        source, text="url", epochs=20, batch=128, network=table, text_network=network, calibrate=False, evidence="none"
    )


DEPENDENT = (
    "country = 'IS' AND url LIKE '%.is/%'",
    "country = 'MT' AND url LIKE '%.mt/%'",
    "country = 'IS' AND url LIKE '%.is/shop' AND size < 10",
    "country IN ('IS', 'MT') AND url LIKE '%.mt/mail' AND size >= 30",
)


@pytest.mark.parametrize("where", DEPENDENT)
def test_the_estimate_follows_where_independence_is_far_off(mixed: Estimator, source: Source, where: str) -> None:
    (truth,) = source.counts([where])
    parts = where.split(" AND ")
    alone = [count / mixed.rows for count in source.counts(parts)]
    assert q_error(float(np.prod(alone)) * mixed.rows, truth) >= 10
    assert q_error(mixed.estimate(where).rows, truth) < 3


@pytest.mark.parametrize(
    "where",
    [
        "country = 'DE' AND url LIKE '%.fr/%'",
        "country = 'DE' AND url IS NULL",
        "country = 'DE' AND NOT (url LIKE '%.de/%')",
        "country = 'FR' OR url LIKE '%.de/%'",
        "NOT (country = 'FR' OR url LIKE '%.de/%')",
        "size BETWEEN 10 AND 19 AND url LIKE '%news'",
        "size > 25 AND (url LIKE '%blog%' OR url LIKE '%mail%')",
        "(country = 'DE' AND url LIKE '%shop') OR (country = 'IS' AND url LIKE '%mail' AND size > 30)",
        "url LIKE '%news%'",
        "size < 15",
        "country = 'DE' AND length(url) > 9",
    ],
)
def test_any_and_or_not_of_both_kinds(mixed: Estimator, source: Source, where: str) -> None:
    (truth,) = source.counts([where])
    rows = mixed.estimate(where).rows
    assert q_error(max(rows, 60), max(truth, 60)) < 1.6


def test_all_particles_agree_with_enumeration(mixed: Estimator) -> None:
    for where in ("country = 'IS' AND url LIKE 'a.is/%'", "country IN ('DE', 'MT') AND url LIKE 'a.mt%'"):
        exact = mixed.estimate(where, method="exact", summary=False)
        assert mixed.estimate(where, summary=False).rows == pytest.approx(exact.rows, rel=1e-3)
    with pytest.raises(QueryTooLargeError, match="use the method particles"):
        mixed.estimate("country <> 'DE' AND url NOT LIKE '%ww%'", method="exact", summary=False)


def test_text_that_nobody_asks_about_costs_nothing(mixed: Estimator) -> None:
    alone = fit(Source.open(pages()[["country", "size"]]), epochs=1, calibrate=False, evidence="none")
    clause = "country = 'IS' AND size > 10"
    assert mixed.explain(clause).skipped == ("url",)
    assert mixed.estimate(clause).rows == alone.estimate(clause).rows  # two columns are counted


def test_a_distribution_under_text(mixed: Estimator, source: Source) -> None:
    rows = {row[0]: row[1] for row in mixed.distribution("country", "url LIKE '%.is/%'")}
    assert rows["IS"] > 0.7
    rows = {row[0]: row[1] for row in mixed.distribution("country", "url LIKE '%news' AND size > 12")}
    for country, share in COUNTRIES.items():
        assert rows[country] == pytest.approx(share, abs=0.12)
    bins = mixed.distribution("size", "country = 'DE' AND url LIKE '%blog'", bins=4)
    assert [row[0] for row in bins] == [0, 10, 20, 30]
    assert max(bins.rows, key=lambda row: row[2])[0] == 20


def test_a_file_holds_both(mixed: Estimator, tmp_path: Path) -> None:
    again = Estimator.load(mixed.save(tmp_path / "mixed.countless"))
    for where in DEPENDENT:
        assert again.estimate(where).rows == pytest.approx(mixed.estimate(where).rows, rel=1e-2)


def test_error_bars_come_from_questions_of_both_kinds(source: Source) -> None:
    small: dict[str, Any] = {"network": Network(hidden=16, blocks=0), "text_network": TextNetwork(width=16, blocks=1)}
    model = fit(source, text="url", epochs=1, **small, evidence="none")
    clauses = [query.where for query in model.calibration.queries]
    both = [where for where in clauses if "url" in where and ("country" in where or "size" in where)]
    assert len(both) > 20


def test_groups_under_text_are_those_of_the_evidence(source: Source) -> None:
    """The model has hardly learned anything: groups that are near the truth come from the hits."""
    small: dict[str, Any] = {"network": Network(hidden=16, blocks=0), "text_network": TextNetwork(width=16, blocks=1)}
    model = fit(source, text="url", epochs=1, **small, calibrate=False, evidence="1000")
    where = "url LIKE '%.is/%' OR url LIKE '%.fr/news'"
    result = pages().query("url.str.contains('.is/|.fr/news', na=False)")
    truth = result.country.value_counts().to_dict()
    distribution = model.distribution("country", where)
    assert {row[0] for row in distribution} == set(truth)
    assert all(row[3] <= truth[row[0]] <= row[4] for row in distribution)
    assert sum(row[2] for row in distribution) == pytest.approx(distribution.total.rows)
    (several,) = model.distributions(["country"], where)
    assert several.rows == distribution.rows
    groups = model.query(f"SELECT country, count(*), avg(size) FROM t WHERE {where} GROUP BY 1 ORDER BY 1")
    assert [row[:2] for row in groups] == [(row[0], round(row[2])) for row in sorted(distribution.rows)]
    sizes = result.groupby("country")["size"].mean()
    assert [row[2] for row in groups] == pytest.approx(sizes.tolist(), rel=0.15)
    bins = model.distribution("size", "url LIKE '%blog'", bins=[0, 20, 30, 40])
    assert max(bins.rows, key=lambda row: row[2])[0] == 20
