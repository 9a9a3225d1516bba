"""From a table to an estimate, end to end."""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock, call

import pandas as pd
import pytest

import countless
from countless import Estimator, Network, QueryTypeError, col
from countless.data.encoding.table import Table
from countless.data.sources.source import Source, connect
from countless.errors import ColumnLeftOutError, CountlessError, MissingExtraError, OptionError, UnknownColumnError
from countless.estimator.answers.estimate import q_error
from countless.estimator.fitting.fit import fit
from countless.estimator.fitting.learning import Listener
from countless.estimator.fitting.stage_times import StageTimer
from countless.evaluation.baselines.independence import Independence
from countless.evaluation.evaluate import evaluate, or_refused, random_workload
from countless.query.compile import Compiler
from countless.workload import Query, count_codes, mixed_clauses

CLAUSES = [
    "age > 50 AND married",
    "age <= 30 AND NOT married",
    "city = 'Oslo'",
    "city IS NULL",
    "city IN ('Rome', 'New York') AND \"since when\" < DATE '2020-01-20'",
    "upper(city) LIKE 'NEW %' OR age % 10 = 0",
    "married AND (age BETWEEN 20 AND 30 OR age > 60)",
    "score >= 1.25",
]


@pytest.mark.parametrize("where", CLAUSES)
def test_estimates_are_near_the_truth(estimator: Estimator, people: Path, where: str) -> None:
    (truth,) = Source.open(people).counts([where])
    assert q_error(estimator.estimate(where).rows, truth) < 1.5


def test_an_estimate_tells_all(estimator: Estimator) -> None:
    answer = estimator.estimate("age > 50 AND married")
    assert answer.where == "age > 50 AND married"
    assert answer.selectivity == pytest.approx(answer.rows / 3000)
    assert 0 <= answer.low <= answer.rows <= answer.high <= 3000
    assert answer.level == 0.9
    assert answer.method == "particles"
    assert not answer.sampled
    assert answer.ms > 0
    assert str(answer).startswith(f"{answer.rows:,.0f} rows (")


def test_the_whole_table_and_nothing(estimator: Estimator) -> None:
    everything = estimator.estimate("TRUE")
    assert (everything.rows, everything.low, everything.high) == (3000, 3000, 3000)
    for where in ("FALSE", "city = 'Paris'", "age > 1000", "age = 20 AND age = 21"):
        nothing = estimator.estimate(where)
        assert (nothing.rows, nothing.low, nothing.high) == (0, 0, 0)


def test_a_range_with_unseen_bounds_uses_the_order(estimator: Estimator) -> None:
    assert estimator.estimate("age > 40.5").rows == estimator.estimate("age >= 41").rows
    assert estimator.estimate("city < 'Oz'").rows == estimator.estimate("city <= 'Oslo'").rows


def test_the_same_question_gets_the_same_answer(estimator: Estimator, model: Path) -> None:
    where = "age > 20 AND \"since when\" > DATE '2020-01-03' AND score > 0.25 AND city > 'A'"
    answers = {estimator.estimate(where, particles=5).rows for _ in range(3)}
    answers.add(countless.load(model).estimate(where, particles=5).rows)
    assert len(answers) == 1


@pytest.mark.parametrize("method", ["particles", "skipping", "progressive", "exact"])
def test_methods_agree(estimator: Estimator, method: str) -> None:
    where = "age > 50 AND married AND score > 1"
    estimate = estimator.estimate(where, method=method)
    assert estimate.method == method
    assert q_error(estimate.rows, estimator.estimate(where, method="exact").rows) < 1.25


def test_python_and_sql_are_one(estimator: Estimator) -> None:
    sql = estimator.estimate("age > 50 AND NOT (city = 'Oslo' OR city IS NULL)")
    python = estimator.estimate((col("age") > 50) & ~((col("city") == "Oslo") | col("city").is_null()))
    assert python.rows == sql.rows


def test_many_at_once_from_many_threads(estimator: Estimator) -> None:
    expected = [answer.rows for answer in estimator.estimate_many(CLAUSES)]
    with ThreadPoolExecutor(4) as pool:
        for rows in pool.map(lambda _: [answer.rows for answer in estimator.estimate_many(CLAUSES)], range(8)):
            assert rows == expected


def test_a_file_gives_the_same_estimator(estimator: Estimator, model: Path) -> None:
    loaded = countless.load(model)
    assert loaded.schema == estimator.schema
    assert loaded.calibration == estimator.calibration
    assert [answer.rows for answer in loaded.estimate_many(CLAUSES)] == [
        answer.rows for answer in estimator.estimate_many(CLAUSES)
    ]
    assert loaded.info() == estimator.info()
    assert repr(loaded) == "<Estimator of 3,000 rows, 5 columns>"
    assert loaded.columns == ("age", "city", "married", "since when", "score")


def test_the_key_was_left_out_aloud(estimator: Estimator) -> None:
    (left_out,) = estimator.info()["left_out"]
    assert left_out["name"] == "id"
    with pytest.raises(ColumnLeftOutError, match="excluded"):
        estimator.estimate("id = 7")


def test_explain(estimator: Estimator) -> None:
    explanation = estimator.explain("age > 50 AND (married OR city = 'Paris')")
    assert explanation.visited == ("age", "married")
    assert explanation.skipped == ("city", "since when", "score")
    assert [item.unseen for item in explanation.comparisons] == [(), (), ("'Paris'",)]
    assert explanation.estimate.rows == estimator.estimate("age > 50 AND married").rows
    assert set(explanation.stages_ms) == {"parse", "answer"}
    assert explanation.boxes[0].visited == ("age", "married")


def test_evaluation(estimator: Estimator, people: Path) -> None:
    queries = random_workload(estimator.schema, people, 200, seed=9)
    evaluation = evaluate(estimator.estimate, queries, "particles")
    data = evaluation.to_json()
    assert list(data) == [
        "q_error",
        "q_error_10_rows",
        "latency_ms",
        "coverage",
        "width",
        "exact",
        "coverage_not_exact",
        "width_not_exact",
        "queries",
        "refused",
        "queries_10_rows",
        "method",
        "by_class",
    ]
    assert data["by_class"] == {}  # the questions have none
    assert list(data["q_error"]) == ["p50", "p90", "p95", "p99", "p99.9", "max"]
    assert data["queries"] == 200
    assert data["q_error"]["p50"] < 2
    assert data["q_error"]["max"] == evaluation.worst(1)[0][0]
    inside = [e.low <= q.rows <= e.high for q, e in zip(queries, evaluation.estimates, strict=True)]
    assert data["coverage"] == sum(inside) / 200
    some = [error for error, query in zip(evaluation.q_errors, queries, strict=True) if query.rows >= 10]
    assert 0 < len(some) == data["queries_10_rows"] < 200
    assert data["q_error_10_rows"]["max"] == max(some)


def test_evaluation_by_groups(estimator: Estimator, people: Path) -> None:
    queries = random_workload(estimator.schema, people, 200, seed=9, kinds=True)
    evaluation = evaluate(or_refused(estimator.estimate), queries, "particles")
    by_kind = evaluation.to_json()["by_class"]
    assert {"equality", "range", "IN", "OR", "NOT and NULL", "function", "calendar"} <= set(by_kind)
    assert by_kind["equality"]["queries"] == 10
    assert evaluation.refused == 0
    groups = evaluation.groups()
    assert list(groups) == ["by_filters", "by_estimate"]
    assert list(groups["by_filters"]) == ["1-2", "3-4", "5-8", "9-12", "13-16", "17+"]
    assert list(groups["by_estimate"]) == ["0-1", "1-10", "10-100", "100-1000", "1000+"]
    for group in groups.values():
        assert sum(summary["queries"] for summary in group.values()) == len(queries)
    empty = dict.fromkeys(groups["by_filters"]["1-2"], None) | {"queries": 0, "refused": 0, "exact": 0}
    assert groups["by_filters"]["9-12"] == empty
    few = [place for place, estimate in enumerate(evaluation.estimates) if 10 <= estimate.rows < 100]
    held = [evaluation.estimates[place].low <= queries[place].rows <= evaluation.estimates[place].high for place in few]
    assert groups["by_estimate"]["10-100"]["coverage"] == sum(held) / len(few)


def test_a_refused_question_is_an_answer_of_no_rows(estimator: Estimator) -> None:
    queries = [Query("age > 30", 2_000), Query("age > score", 1_000)]  # two columns cannot be compared
    evaluation = evaluate(or_refused(estimator.estimate), queries, "particles")
    assert evaluation.refused == evaluation.to_json()["refused"] == 1
    assert evaluation.q_errors[1] == 1_000


def test_calibration_asks_what_it_will_be_asked(estimator: Estimator) -> None:
    """The same answers as one by one; what is known for certain tells nothing about the rest."""
    guessed = ["age > 50 AND married AND score > 1", "married AND (city = 'Oslo' OR age < 30 AND score >= 0.5)"]
    clauses = ["TRUE", guessed[0], "city = 'Paris'", "age > 50", guessed[1]]
    queries = estimator.calibration_queries(clauses, range(len(clauses)))
    assert [(query.where, query.rows) for query in queries] == [(guessed[0], 1), (guessed[1], 4)]
    alone = [estimator.estimate(where).rows for where in guessed]
    assert [query.estimate for query in queries] == pytest.approx(alone, rel=1e-5)
    with pytest.raises(UnknownColumnError):
        estimator.calibration_queries(["aged > 3"], [0])


def test_evaluation_needs_the_models_columns(estimator: Estimator) -> None:
    with pytest.raises(CountlessError, match="the table lacks the model's columns city, married"):
        random_workload(estimator.schema, pd.DataFrame({"age": [1], "since when": [1], "score": [1]}), 10, seed=0)


def test_error_bars_hold_on_fresh_queries(estimator: Estimator, people: Path) -> None:
    source = Source.open(people)
    clauses = mixed_clauses(estimator.schema, source, 400, seed=12345)
    truths = source.counts(clauses)
    inside = [
        answer.low <= truth <= answer.high
        for answer, truth in zip(estimator.estimate_many(clauses), truths, strict=True)
    ]
    assert sum(inside) / len(inside) > 0.85


def test_a_frame_with_one_column_and_few_rows() -> None:
    estimator = countless.fit(pd.DataFrame({"x": [1, 1, 2]}), epochs=50)
    assert estimator.estimate("x = 1").rows == pytest.approx(2, abs=0.3)
    assert estimator.estimate("x IS NULL").rows == 0


def test_unknown_column_in_a_list_of_clauses(estimator: Estimator) -> None:
    with pytest.raises(UnknownColumnError, match='did you mean "age"'):
        estimator.estimate_many(["age > 3", "aged > 3"])


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


def test_importing_and_estimating_do_not_import_torch(model: Path) -> None:
    code = (
        "import sys, countless\n"
        "countless.load(sys.argv[1]).estimate('age > 3 OR married')\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert python(code, str(model)).returncode == 0


@pytest.mark.parametrize(
    "code",
    [
        "countless.load(sys.argv[1]).estimate(sys.argv[2])",
        "from countless.cli.main import cli; cli.main(['estimate', *sys.argv[1:]], standalone_mode=False)",
    ],
)
def test_a_plain_question_loads_little(model: Path, code: str) -> None:
    heavy = ("sqlglot", "duckdb", "rich", "torch", "pyarrow", "countless.estimator.fitting.fit", "countless.workload")
    code = f"import sys, countless\n{code}\nprint('loaded', [name for name in {heavy} if name in sys.modules])"
    done = python(code, str(model), "age > 3 AND city IN ('Oslo', 'Rome') AND married IS NOT NULL")
    assert done.stdout.splitlines()[-1:] == ["loaded []"], done.stderr


def test_without_torch_estimating_works_and_fitting_says_what_to_install(model: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import countless\n"
        "assert countless.load(sys.argv[1]).estimate('age > 3').rows > 0\n"
        "try: countless.fit(sys.argv[2])\n"
        "except countless.MissingExtraError as error: print(error)\n"
    )
    done = python(code, str(model), str(model))
    assert done.stdout.strip() == "fitting needs PyTorch: pip install 'countless[train]'", done.stderr
    assert issubclass(MissingExtraError, CountlessError)


def test_a_single_column_name_and_a_network_of_nothing() -> None:
    frame = pd.DataFrame({"age": [1, 2], "city": ["x", "y"]})
    assert countless.fit(frame, columns="age", epochs=1).columns == ("age",)
    assert countless.fit(frame, exclude="age", epochs=1).columns == ("city",)
    with pytest.raises(OptionError, match="hidden must be at least 1, not 0"):
        Network(hidden=0)


def test_a_string_is_not_a_list_of_clauses(estimator: Estimator) -> None:
    with pytest.raises(QueryTypeError, match="takes a list of clauses"):
        estimator.estimate_many("age > 3")


def test_without_a_listener_left_out_columns_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [1, 2], "many": [[1], [2]]})
    countless.fit(frame, exclude="b", epochs=1)
    (record,) = caplog.records
    assert re.fullmatch(r"left out many: columns of type \w+\[\] are not supported", record.message)


def test_an_explanation_reads_well(estimator: Estimator) -> None:
    text = str(estimator.explain("age > 50 AND city = 'Paris'"))
    assert "unseen    'Paris' does not occur in city" in text


def test_columns_called_like_our_own_names() -> None:
    names = ["value", "code", "rows", "place", "c0", "d0", "truth", "text", "domain_0", "a b", 'say "when"', "select"]
    frame = pd.DataFrame({name: [index, 5, 5, index] for index, name in enumerate(names)})
    estimator = countless.fit(frame, epochs=1, evidence="none")
    for name in names:
        quoted = '"' + name.replace('"', '""') + '"'
        assert estimator.estimate(f"{quoted} = 99").rows == 0
        assert estimator.estimate(f"{quoted} % 2 < 5").rows == pytest.approx(4)
    assert len(random_workload(estimator.schema, frame, 20, seed=0)) == 20


@pytest.fixture(scope="module")
def source() -> Source:
    rows = "SELECT (hash(range) % 3000)::INTEGER AS n, (hash(range) % 3000 < 1500) = (hash(range, 1) % 9 > 0) AS low"
    return Source.open(connect().sql(f"{rows} FROM range(20000)"))


@pytest.fixture(scope="module")
def digits(source: Source) -> Estimator:
    return fit(source, epochs=15, batch=200, network=Network(hidden=64, blocks=1, embedding=16), evidence="none")


class TestDigits:
    """A column with thousands of values: in the model it is two digits, and nobody sees them."""

    def test_the_column_is_stored_in_digits(self, digits: Estimator) -> None:
        assert digits.schema.coded[0].radices == (55, 55)
        assert digits.schema.sizes == (55, 55, 2)
        assert digits.columns == ("n", "low")

    CLAUSES = (
        "n < 700",
        "n >= 1234 AND n <= 1789",
        "n BETWEEN 10 AND 2990 AND low",
        "n >= 1500 AND low",
        "n < 1500 AND NOT low",
        "n % 2 = 0 AND low",
        "n <> 5",
        "n IN (1, 2, 3, 1000, 2000, 2999) OR n > 2500",
    )

    def test_clauses_become_the_right_codes(self, source: Source) -> None:
        table = Table.encode(source)
        compiler = Compiler(table.schema)
        counted = [count_codes(table, compiler.compile(where).region) for where in self.CLAUSES]
        assert counted == source.counts(self.CLAUSES)
        independent = Independence(table)
        assert independent.estimate("n < 700").rows == pytest.approx(counted[0])

    @pytest.mark.parametrize("method", ["particles", "skipping"])
    def test_estimates_are_near_the_truth(self, digits: Estimator, source: Source, method: str) -> None:
        for where, truth in zip(self.CLAUSES, source.counts(self.CLAUSES), strict=True):
            assert q_error(digits.estimate(where, method=method).rows, truth) < 1.2, where

    def test_a_range_skips_the_digits_it_leaves_free(self, digits: Estimator) -> None:
        explanation = digits.explain("n < 550")  # whole leading digits: the second digit is never asked for
        assert explanation.boxes[0].forward_rows <= 1 + 10
        assert explanation.visited == ("n",)

    def test_the_file_keeps_them(self, digits: Estimator, tmp_path: Path) -> None:
        loaded = Estimator.load(digits.save(tmp_path / "digits.countless"))
        assert loaded.schema == digits.schema
        assert [e.rows for e in loaded.estimate_many(self.CLAUSES)] == [
            e.rows for e in digits.estimate_many(self.CLAUSES)
        ]


def test_smaller_types_shrink_the_file_and_hardly_move_the_answers(people: Path, tmp_path: Path) -> None:
    network = Network(hidden=128, blocks=1, embedding=16)
    full, half, byte = (
        fit(people, exclude="id", epochs=3, network=network, dtype=dtype, evidence="none")
        for dtype in ("float32", "float16", "int8")
    )
    for one, two, three in zip(*(each.estimate_many(CLAUSES) for each in (full, half, byte)), strict=True):
        assert q_error(one.rows, two.rows) < 1.02
        assert q_error(one.rows, three.rows) < 1.05
    loaded = Estimator.load(byte.save(tmp_path / "byte"))
    assert [e.rows for e in loaded.estimate_many(CLAUSES)] == [e.rows for e in byte.estimate_many(CLAUSES)]
    sizes = [each.save(tmp_path / "model").stat().st_size for each in (full, half, byte)]
    assert sizes[1] < 0.7 * sizes[0]
    assert sizes[2] < 0.7 * sizes[1]
    with pytest.raises(OptionError, match="dtype must be int8, float16 or float32, not 'int4'"):
        fit(people, dtype="int4")


def test_answers_for_the_rows_of_today(estimator: Estimator) -> None:
    for where in ("age > 40 AND city = 'Oslo' AND married", "age > 40", "age > 400"):
        was, now = estimator.estimate(where), estimator.estimate(where, table_rows=6_000)
        assert now.rows == pytest.approx(2 * was.rows)
        assert now.selectivity == was.selectivity
        assert not now.exact
        assert now.low <= now.rows <= now.high <= 6_000
        (many,) = estimator.estimate_many([where], table_rows=6_000)
        assert (many.rows, many.low, many.high) == (now.rows, now.low, now.high)
    certain = estimator.estimate("age > 40", table_rows=6_000)
    assert certain.low < certain.high
    assert estimator.estimate("age > 40", table_rows=3_000).exact
    with pytest.raises(QueryTypeError, match="at least 1"):
        estimator.estimate("age > 40", table_rows=0)


def test_a_fit_reports_how_long_its_stages_took(estimator: Estimator) -> None:
    stages = estimator.report["stages"]
    names = [stage["name"] for stage in stages]
    assert names[0] == "opening the table"
    assert names.index("encoding rows") < names.index("training") < names.index("calibrating")
    assert all(stage["seconds"] >= 0 and stage["cpu_seconds"] >= 0 for stage in stages)


def test_a_stage_timer_passes_everything_on() -> None:
    listener = Mock(spec=Listener)
    timer = StageTimer(listener)
    methods = [name for name in dir(Listener) if not name.startswith("_")]
    assert {"stage", "table", "training"} < set(methods)
    for name in methods:
        getattr(timer, name)(name)
    assert listener.mock_calls == [getattr(call, name)(name) for name in methods]
