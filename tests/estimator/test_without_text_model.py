"""A model whose text has no network: patterns are answered from counts and evidence rows, and what needs it says so."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

from countless import Network, fit, load
from countless.cli.strip import strip
from countless.data.sources.source import Source
from countless.errors import NoTextModelError, TrainingError
from countless.estimator.calibration.posterior import SampleCount, posterior
from countless.estimator.estimator import Estimator
from countless.estimator.fitting import calibrating
from countless.estimator.fitting.calibrating import TrueCounts

ROWS = """
SELECT
    CASE WHEN range % 3 = 0 THEN 'doc' ELSE 'lib' END AS section,
    (range * 7) % 11 AS size,
    '/usr/' || CASE WHEN range % 3 = 0 THEN 'share/doc/' ELSE 'lib/' END || md5(range::VARCHAR)[1:6]
        || CASE WHEN range % 5 = 0 THEN '.html' ELSE '.so' END AS path
FROM range(6000)
"""
PATTERNS = (
    "path LIKE '/usr/share/%' AND path LIKE '%.html'",
    "section = 'doc' AND path LIKE '%.html'",
    "section = 'doc' AND path LIKE '/usr/lib/%'",
    "path NOT LIKE '/usr/lib/%'",
    "path LIKE '%.html' AND path NOT LIKE '%/doc/%'",
    "regexp_matches(path, '^/usr/lib/.*html$')",
    "length(path) > 20",
    "path LIKE '%.so' AND size = 3 AND section = 'lib'",
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("paths") / "paths.parquet"
    duckdb.connect().execute(f"COPY ({ROWS}) TO '{path}'")
    return path


@pytest.fixture(scope="module")
def model(table: Path) -> Estimator:
    return fit(table, epochs=1, network=Network(hidden=16, blocks=1), evidence=1500, text_counts=200_000)


@pytest.mark.parametrize("where", PATTERNS)
def test_patterns_are_answered_without_a_network(model: Estimator, table: Path, where: str) -> None:
    assert model.info()["text_model"] is None
    answer = model.estimate(where)
    (truth,) = Source.open(table).counts([where])
    assert answer.rows == pytest.approx(truth, rel=0.15, abs=3)
    assert answer.low <= truth * 1.02
    assert answer.high >= truth * 0.98
    assert model.estimate_many([where])[0].rows == answer.rows


@pytest.mark.parametrize(
    "ask",
    [
        lambda model: model.sample(3, where="path LIKE '%.html'", stored=False),
        lambda model: model.sample(3, where="path LIKE '%html.so%'"),
        lambda model: model.estimate("path LIKE '%.html'", method="skipping"),
        lambda model: model.estimate("path LIKE '______%'", method="particles"),
        lambda model: model.complete([{"size": 3}], columns="path", draws=True),
    ],
)
def test_what_needs_the_network_names_the_option(model: Estimator, ask: Callable[[Estimator], Any]) -> None:
    with pytest.raises(NoTextModelError, match="--text-model"):
        ask(model)


def test_other_columns_are_drawn_and_judged_without_text(model: Estimator, table: Path) -> None:
    assert model.sample(4).names == ("section", "size")
    rows = [{"section": "doc", "size": 3, "path": "/usr/share/doc/x"}]
    assert model.log_prob(rows)[0] == model.log_prob([{"section": "doc", "size": 3}])[0]
    (odd,) = model.anomalies(rows, 1).rows
    assert odd[2] in ("section", "size")
    result = model.query("SELECT section, count(*) AS n FROM t WHERE path LIKE '%.html' GROUP BY section ORDER BY n")
    assert [row[0] for row in result.rows] == ["doc", "lib"]
    more = model.update(table, epochs=1)
    assert more.rows == 2 * model.rows
    assert more.info()["text_model"] is None


def test_a_table_of_text_alone_has_no_network_at_all(table: Path, tmp_path: Path) -> None:
    estimator = fit(table, columns="path", evidence=1500, epochs=1)
    again = load(estimator.save(tmp_path / "m.countless"))
    assert again.estimate("path LIKE '%.html'").rows == 1200
    with pytest.raises(TrainingError, match="--text-model"):
        again.train(table)
    with pytest.raises(NoTextModelError, match="--text-model"):
        again.sample(2)
    with pytest.raises(NoTextModelError, match="--text-model"):
        again.log_prob([{"path": "x"}])


def test_hits_among_a_counted_part_tell_more() -> None:
    plain = posterior(SampleCount(20, 1_000, 100_000), None, None, 0.0, 100_000.0)
    part = posterior(SampleCount(20, 21, 2_100), None, None, 0.0, 2_100.0)
    ends = [weighed.quantiles((0.05, 0.95)) for weighed in (plain, part)]
    assert ends[1][1] / ends[1][0] < 0.6 * ends[0][1] / ends[0][0]
    nothing = posterior(SampleCount(0, 0, 500), None, None, 0.0, 500.0)
    assert 1.0 < nothing.quantile(0.5) < 500.0


def test_common_questions_about_text_are_counted_in_a_sample(
    model: Estimator, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibrating, "SAMPLED_ROWS", (2_000, 2_000))
    source = Source.open(table)
    clauses = ["path LIKE '%.html'", "path LIKE '%/a%' AND size = 3", "section = 'doc'", "path IS NULL"]
    with ExitStack() as stack:
        counts = TrueCounts(source, model, 1, stack).counts(clauses)
    truths = source.counts(clauses)
    assert counts[0] == pytest.approx(truths[0], rel=0.1)
    assert counts[0] % 3 == 0  # three times those of the sample
    assert counts[1:] == truths[1:]


def test_strip_warns_that_text_is_multiplied_with_columns(model: Estimator, tmp_path: Path) -> None:
    done = CliRunner().invoke(strip, [str(model.save(tmp_path / "m.countless")), "-o", str(tmp_path / "p.countless")])
    assert done.exit_code == 0, done.output
    assert "as if they were independent" in done.output
