"""A prepared question: how often its condition is compiled, counted and walked, and parameters bound without SQL."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from sqlglot.dialects.duckdb import DuckDB

from countless.automata.language import Automaton
from countless.cancellation import ComputationCancelledError, cancellable
from countless.data.sources.connection import connect
from countless.engine import density
from countless.engine.columns import trace as traced
from countless.engine.columns.kernel import Kernel
from countless.engine.distributions import joint as spread
from countless.engine.distributions import marginals as later
from countless.engine.fusion import text_in_context as mixed
from countless.engine.memo import Memo
from countless.errors import QueryError, QueryTypeError, UnknownColumnError, UnsupportedQueryError
from countless.estimator import prepared
from countless.estimator.answers import fused
from countless.estimator.answers.evidence import Evidence
from countless.estimator.estimator import Estimator
from countless.query.compile import Compiler
from countless.query.filter_cache import CachedCompiler
from countless.query.predicate import col
from countless.query.select.aggregate_names import AGGREGATES
from countless.query.select.statement import read_select
from tests.pinned.models import evidence as evidence_model
from tests.pinned.models import mixed as mixed_model

WHERE = "age > 30 AND married AND score < 1"
COUNTED = ("compile", "count", "trace")


def tallied(calls: dict[str, int], name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, whose calls are added to ``calls[name]``."""

    def called(*arguments: Any, **named: Any) -> Any:
        calls[name] += 1
        return function(*arguments, **named)

    return called


@contextmanager
def counting() -> Iterator[dict[str, int]]:
    """How often a condition is compiled, its region counted, and particles traced."""
    calls = dict.fromkeys(COUNTED, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CachedCompiler, "by_pieces", tallied(calls, "compile", CachedCompiler.by_pieces))
        patch.setattr(prepared, "densities", tallied(calls, "count", density.densities))
        patch.setattr(fused, "densities", tallied(calls, "count", density.densities))
        trace = tallied(calls, "trace", traced.traced)
        for module in (spread, mixed, later):
            patch.setattr(module, "traced", trace)
        yield calls


@pytest.fixture(scope="module")
def trips() -> Estimator:
    """Columns with a tenth of their rows as evidence, by a network that nobody trained."""
    return evidence_model()


@pytest.fixture(scope="module")
def pages() -> Estimator:
    """Columns and text, by networks that nobody trained."""
    return mixed_model()


CALLS: dict[str, tuple[Callable[[Estimator], Any], tuple[int, int, int]]] = {
    "estimate": (lambda est: est.estimate(WHERE), (1, 1, 0)),
    "explain": (lambda est: est.explain(WHERE), (1, 1, 0)),
    "joint": (lambda est: est.joint(["city", "age"], WHERE), (1, 1, 1)),
    "distribution": (lambda est: est.distribution("city", WHERE), (1, 1, 1)),
    "distributions": (lambda est: est.distributions(["city", "score", "age"], WHERE), (1, 1, 3)),
    "every row": (lambda est: est.distribution("city"), (0, 1, 0)),
    "sample": (lambda est: est.sample(5, where=WHERE), (1, 1, 0)),
    "query of three columns": (
        lambda est: est.query(f"SELECT avg(age), sum(score), count(city) FROM t WHERE {WHERE}", intervals=True),
        (1, 1, 3),
    ),
    "query by groups": (
        lambda est: est.query(f"SELECT city, avg(age), sum(score), avg(score) FROM t WHERE {WHERE} GROUP BY city"),
        (1, 1, 3),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_compiles_and_counts_its_condition_once(estimator: Estimator, name: str) -> None:
    call, expected = CALLS[name]
    call(estimator)  # what is found about the model itself, at the first question that needs it
    with counting() as calls:
        call(estimator)
    assert tuple(calls.values()) == expected


def test_all_that_is_asked_of_a_question_shares_its_count(estimator: Estimator) -> None:
    with counting() as calls:
        question = estimator.prepare(WHERE)
        total = question.estimate()
        assert question.distribution("city").total is total
        assert question.joint(["age", "city"]).total is total
        question.explain()
        question.sample(3)
        question.estimate(table_rows=10_000)
        assert calls == {"compile": 1, "count": 1, "trace": 2}
        question.distribution("city", sort="value")
        question.joint(["age", "city"])
        assert calls == {"compile": 1, "count": 1, "trace": 2}
        question.estimate(method="skipping")
        question.estimate(summary=False)
        assert calls == {"compile": 1, "count": 3, "trace": 2}


def test_evidence_is_counted_once_and_the_model_walked_once(trips: Estimator, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = {"hits": 0, "count": 0}
    monkeypatch.setattr(Evidence, "hits", tallied(calls, "hits", Evidence.hits))
    monkeypatch.setattr(fused, "densities", tallied(calls, "count", density.densities))
    question = trips.prepare("number > 2300 AND weight < 500 AND paid AND city = 'Rome'")
    total = question.estimate()
    assert total.hits is not None
    assert calls == {"hits": 1, "count": 1}
    assert question.explain().estimate is total
    assert question.estimate(table_rows=60_000).hits == total.hits
    assert question.distribution("day").total is total
    assert calls == {"hits": 1, "count": 1}


def test_a_clause_of_simple_filters_is_compiled_whole_at_most_once(
    trips: Estimator, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = {"whole": 0}
    monkeypatch.setattr(Compiler, "compile", tallied(calls, "whole", Compiler.compile))
    question = trips.prepare("number > 700 AND weight < 900 AND paid").question
    compiled = calls["whole"]  # of single filters, by way of the same compiler
    assert [comparison.column for comparison in question.comparisons] == ["number", "weight", "paid"]
    assert question.condition is not None
    assert calls["whole"] == compiled + 1


def test_the_rows_in_which_text_is_read_are_walked_once(pages: Estimator) -> None:
    where = "country = 'IS' AND size > 10 AND url LIKE '%s%'"
    with counting() as calls:
        question = pages.prepare(where)
        estimate = question.estimate()
        assert calls == {"compile": 1, "count": 1, "trace": 1}
        assert question.estimate(method="skipping", particles=None).rows != estimate.rows
        assert calls == {"compile": 1, "count": 2, "trace": 1}
    assert estimate.rows == pages.estimate(where).rows


def test_answers_are_those_of_the_estimator(estimator: Estimator) -> None:
    question = estimator.prepare(WHERE)
    for _ in range(2):  # the second time from what is kept
        assert question.estimate().rows == estimator.estimate(WHERE).rows
        assert question.estimate(method="skipping").rows == estimator.estimate(WHERE, method="skipping").rows
        assert question.distribution("city").rows == estimator.distribution("city", WHERE).rows
        many = zip(
            question.distributions(["age", "score"]), estimator.distributions(["age", "score"], WHERE), strict=True
        )
        assert all(one.rows == other.rows for one, other in many)
        assert question.sample(4, seed=1).rows == estimator.sample(4, where=WHERE, seed=1).rows
        assert question.explain().boxes == estimator.explain(WHERE).boxes
    assert repr(question) == f"<PreparedQuestion {WHERE}>"
    predicate = (col("age") > 30) & col("married")
    assert estimator.prepare(predicate).estimate().rows == estimator.estimate("age > 30 AND married").rows


def test_threads_share_one_count(estimator: Estimator) -> None:
    with counting() as calls, ThreadPoolExecutor(8) as pool:
        question = estimator.prepare(WHERE)
        distributions = list(pool.map(lambda _: question.distribution("city").rows, range(16)))
    assert calls == {"compile": 1, "count": 1, "trace": 1}
    assert all(rows == distributions[0] for rows in distributions)


def test_an_estimator_may_keep_its_latest_questions(estimator: Estimator) -> None:
    keeping = estimator.calibrated(estimator.calibration)
    keeping.keep_questions(2)
    with counting() as calls:
        assert keeping.prepare(WHERE) is keeping.prepare(f" {WHERE} ")
        keeping.estimate(WHERE)
        keeping.distributions(["city", "score"], WHERE)
        keeping.query(f"SELECT avg(age) FROM t WHERE {WHERE}")
        assert (calls["compile"], calls["count"]) == (1, 1)
        for where in ("age > 20", "age > 21", WHERE):
            keeping.estimate(where)
        assert (calls["compile"], calls["count"]) == (4, 4)
    with pytest.raises(UnknownColumnError, match="did you mean"):
        keeping.estimate("agee > 3")
    with pytest.raises(UnknownColumnError) as caught:  # an error is not kept: it points into the statement
        keeping.query("SELECT count(*) FROM t WHERE agee > 3")
    assert caught.value.clause is not None
    assert caught.value.clause.startswith("SELECT")


def test_what_raises_is_not_kept() -> None:
    memo, began, ready = Memo(), threading.Event(), threading.Event()

    def given_up() -> int:
        began.set()
        ready.wait(5)
        raise ComputationCancelledError

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(memo.once, "a", given_up)
        began.wait(5)
        second = pool.submit(memo.once, "a", lambda: 7)  # waits, and then tries for itself
        ready.set()
        assert second.result(5) == 7
        with pytest.raises(ComputationCancelledError):
            first.result(5)


BOUND: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("age > ? AND city = ?", (35, "Rome"), {}, "age > 35 AND city = 'Rome'"),
    ("age > $1 OR age = $2 OR score > $1", (40, 20), {}, "age > 40 OR age = 20 OR score > 40"),
    ("age BETWEEN $low AND $high", (), {"low": 20, "high": 30}, "age BETWEEN 20 AND 30"),
    ("city IN (?, 'Oslo', ?) AND NOT married", ("Rome", "x"), {}, "city IN ('Rome', 'Oslo', 'x') AND NOT married"),
    ("city LIKE ? OR city ILIKE ?", ("%o%", "R%"), {}, "city LIKE '%o%' OR city ILIKE 'R%'"),
    ("regexp_matches(city, ?) AND score < ?", ("^O", 1), {}, "regexp_matches(city, '^O') AND score < 1"),
    ("married = ?", (True,), {}, "married = TRUE"),
    ("? < age AND lower(city) = ?", (30, "it's"), {}, "30 < age AND lower(city) = 'it''s'"),
    ("age > -? AND age + ? < 60", (-20, 5), {}, "age > - -20 AND age + 5 < 60"),
    ("SELECT * FROM t WHERE t.age > ? LIMIT 3", (50,), {}, "SELECT * FROM t WHERE t.age > 50 LIMIT 3"),
    ("city = ? OR city IS NULL", (None,), {}, "city = NULL OR city IS NULL"),
    ("city = '?' OR age = ?", (30,), {}, "city = '?' OR age = 30"),
]


@pytest.mark.parametrize(("where", "values", "named", "written"), BOUND)
def test_parameters_are_bound_without_parsing(
    estimator: Estimator, where: str, values: tuple[Any, ...], named: dict[str, Any], written: str
) -> None:
    question = estimator.prepare(where)
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((sqlglot, "parse"), (sqlglot, "parse_one"), (sqlglot, "tokenize")):
            patch.setattr(module, name, _unwanted)
        for name in ("parse", "parse_into", "tokenize", "parser", "tokenizer"):
            patch.setattr(DuckDB, name, _unwanted)
        estimate = question(*values, **named).estimate()
    expected = estimator.estimate(written)
    assert estimate.where == written
    assert (estimate.rows, estimate.low, estimate.high, estimate.exact) == (
        expected.rows,
        expected.low,
        expected.high,
        expected.exact,
    )


def _unwanted(*arguments: Any, **named: Any) -> Any:
    raise AssertionError("SQL was parsed")


def test_values_of_other_types(estimator: Estimator) -> None:
    day = estimator.prepare('"since when" > ?')
    assert day(datetime.date(2020, 1, 20)).estimate().rows == estimator.estimate("\"since when\" > '2020-01-20'").rows
    assert estimator.prepare("score > ?")(0.5).estimate().rows == estimator.estimate("score > 0.5").rows


def test_a_bound_question_has_all_methods(estimator: Estimator) -> None:
    question = estimator.prepare("age > ? AND married = ?")
    assert question.where == "age > ? AND married = ?"
    bound, where = question(30, True), "age > 30 AND married = TRUE"
    assert bound() is bound
    assert bound.distribution("city").rows == estimator.distribution("city", where).rows
    assert bound.sample(3, seed=1).rows == estimator.sample(3, where=where, seed=1).rows
    assert [item.sql for item in bound.explain().comparisons] == ["age > 30", "married = TRUE"]
    assert question(31, True).estimate().rows != bound.estimate().rows


@pytest.mark.parametrize(
    ("call", "kind", "phrase", "spot"),
    [
        (lambda est: est.estimate("age > ?"), UnsupportedQueryError, "call prepare", "?"),
        (lambda est: est.prepare("age > $low").distribution("city"), UnsupportedQueryError, "call prepare", "$low"),
        (lambda est: est.answer_many(["age > ?"])[0], UnsupportedQueryError, "call prepare", "?"),
        (lambda est: est.query("SELECT count(*) FROM t WHERE age > ?"), UnsupportedQueryError, "call prepare", "?"),
        (lambda est: est.prepare("age > ? AND age < ?")(3), QueryTypeError, "2 parameters, and this one", "?"),
        (lambda est: est.prepare("age > ?")(3, 4), QueryTypeError, "1 parameter, and 2 values were given", "?"),
        (lambda est: est.prepare("age > $low")(high=3), QueryTypeError, "this one (low) has no value", "$low"),
        (lambda est: est.prepare("age > $low")(low=1, hi=3), QueryTypeError, "$hi is none of them", "$low"),
        (lambda est: est.prepare("age > ?")([3]), QueryTypeError, "cannot use a list", "?"),
        (lambda est: est.prepare("age > ?")("x"), QueryTypeError, '"age" is INTEGER', "age > ?"),
        (lambda est: est.prepare("age > 3")(4), QueryTypeError, "has no parameters", None),
        (lambda est: est.prepare("agee > ?"), UnknownColumnError, 'did you mean "age"', "agee"),
        (lambda est: est.prepare("city IN ?"), UnsupportedQueryError, "cannot stand here", "?"),
        (lambda est: est.prepare("substr(city, ?, 2) = 'Os'"), UnsupportedQueryError, "cannot stand here", "?"),
        (lambda est: est.prepare("age > ? AND age < $x"), UnsupportedQueryError, "two kinds", None),
        (lambda est: est.prepare("age > :x"), UnsupportedQueryError, "cannot stand here", None),
        (lambda est: est.prepare("SELECT 1 FROM t WHERE age > 3 LIMIT ?"), UnsupportedQueryError, "cannot stand", "?"),
    ],
)
def test_errors_of_parameters_point_at_the_spot(
    estimator: Estimator, call: Callable[[Estimator], Any], kind: type[QueryError], phrase: str, spot: str | None
) -> None:
    try:
        error = call(estimator)
    except QueryError as raised:
        error = raised
    assert type(error) is kind
    assert phrase in error.message
    if spot is None:
        assert error.span is None
    else:
        assert error.clause is not None
        assert error.span is not None
        assert error.clause[slice(*error.span)] == spot


def test_many_clauses_are_given_up_in_every_thread(estimator: Estimator) -> None:
    """The walks of ``estimate_many`` are in threads of a pool, which stop when nobody waits for them."""
    checks: list[str] = []

    def wanted() -> bool:
        checks.append(threading.current_thread().name)
        return True

    clauses = [f"age > {number} AND married AND score < 1" for number in range(20, 60)]
    with cancellable(wanted):
        estimator.estimate_many(clauses, threads=2, summary=False)
    assert any("ThreadPool" in name for name in checks)
    with (
        cancellable(lambda: threading.current_thread() is threading.main_thread()),
        pytest.raises(ComputationCancelledError),
    ):
        estimator.estimate_many(clauses, threads=2, summary=False)


@pytest.mark.parametrize("name", sorted(set(AGGREGATES) - {"count_star"}))
def test_every_aggregate_is_answered_as_duckdb_does(estimator: Estimator, people: Path, name: str) -> None:
    share = ", 0.5" if "quantile" in name else ""
    sql = f"SELECT {name}(age{share}) FROM t WHERE married"
    (aggregate,) = read_select(sql, estimator.schema).aggregates
    assert aggregate.kind == AGGREGATES[name]
    assert len(estimator.query(sql)) == 1
    everything = f"SELECT {name}(age{share}) FROM t"  # of all rows the counts of values are exact
    ((truth,),) = connect().execute(everything.replace("FROM t", f"FROM '{people}'")).fetchall()
    assert float(str(estimator.query(everything).columns[0][0])) == pytest.approx(float(truth), rel=0.01)


def test_a_pattern_is_judged_once(pages: Estimator) -> None:
    """Whether a match may begin anywhere is asked of an automaton in several places, in each context."""
    asked: list[int] = []
    known = vars(Automaton)["is_left_ideal"]
    own = known._compute

    def judged(strings: Automaton) -> bool:
        asked.append(1)
        return bool(own(strings))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known, "_compute", judged)
        pages.estimate("country = 'IS' AND url LIKE '%ma%il%'")
        assert len(asked) == 1
        pages.estimate("country = 'IS' AND url NOT LIKE '%ma%il%'")
        assert len(asked) == 3  # and of its complement


def test_a_count_is_not_walked_again(estimator: Estimator) -> None:
    walks = []
    own = Kernel.ask

    def ask(*arguments: Any) -> Any:
        walks.append(arguments)
        return own(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernel, "ask", ask)
        question = estimator.prepare(WHERE)
        question.estimate()
        first = len(walks)
        question.estimate()
        question.explain()
        question.joint(["city"])
    assert len(walks) == first > 0
