"""A model with text, end to end: fitted, asked, explained, saved, stopped and resumed; and files that do not fit."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from countless import Estimator, Network, col, store
from countless.data.sources.source import Source
from countless.errors import CountlessError, DataError, ModelFileError, OptionError
from countless.estimator.answers.estimate import q_error
from countless.estimator.fitting.fit import fit
from countless.estimator.fitting.learning import Listener
from countless.evaluation.evaluate import evaluate, random_workload
from countless.options import TEXT_PRESETS, TextNetwork
from countless.store import Contents, StoredTensors
from countless.train.loop import Progress

WORDS = ("cat", "dove", "eel", "unicorn")
SMALL = TextNetwork(width=16, blocks=1, heads=2, inner=32, buckets=64)
SMALL_TABLE = Network(hidden=32, blocks=1, embedding=8)
CLAUSES = (
    "t LIKE '%cat%'",
    "t LIKE '%uni%'",
    "t LIKE '%e%'",
    "t LIKE 'cat%'",
    "t LIKE '%eel'",
    "t LIKE '%v_ %'",
    "t LIKE '% %' AND t NOT LIKE '%unicorn%'",
    "t IS NULL",
    "t IS NOT NULL",
    "t NOT LIKE '%cat%'",
    "t LIKE '%cat%' OR t LIKE '%eel%'",
    "NOT (t LIKE '%cat%' OR t IS NULL)",
    "t = 'dove'",
    "t IN ('cat', 'eel', 'dog')",
    "t < 'd'",
    "length(t) < 8",
    "regexp_matches(t, '^(cat|eel) ')",
    "upper(t) LIKE '%DOVE%'",
    "contains(t, 'n')",
)


def table(rows: int = 600) -> pd.DataFrame:
    """Sentences of one word or two, some of them NULL; and columns that have nothing to do with them."""
    rng = np.random.default_rng(0)
    words = [" ".join(rng.choice(WORDS, size=rng.integers(1, 3))) for _ in range(rows)]
    texts = [None if index % 10 == 0 else text for index, text in enumerate(words)]
    return pd.DataFrame({"kind": rng.integers(3, size=rows), "t": pd.Series(texts, dtype=object)})


def quick(source: Any, **options: Any) -> Estimator:
    """A fit that takes no time, for what does not depend on how good it is."""
    chosen: dict[str, Any] = {
        "text": "t",
        "epochs": 1,
        "network": SMALL_TABLE,
        "text_network": SMALL,
        "evidence": "none",
    }
    chosen |= options
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("countless.estimator.fitting.calibrating.CALIBRATION_QUERIES", (22, 22))
        return fit(source, **chosen)


@pytest.fixture(scope="module")
def source() -> Source:
    return Source.open(table())


@pytest.fixture(scope="module")
def sentences() -> Estimator:
    return fit(table()[["t"]], text="t", epochs=25, batch=50, learning_rate=0.01, text_network=SMALL, evidence="none")


@pytest.fixture(scope="module")
def both() -> Estimator:
    return quick(table(), epochs=15, batch=50, learning_rate=0.01)


@pytest.fixture
def file(both: Estimator, tmp_path: Path) -> Path:
    return both.save(tmp_path / "both.countless")


class TestEstimates:
    @pytest.mark.parametrize("where", CLAUSES)
    def test_they_are_near_the_truth(self, sentences: Estimator, source: Source, where: str) -> None:
        (truth,) = source.counts([where])
        assert q_error(sentences.estimate(where).rows, truth) < 1.6
        assert q_error(sentences.estimate(where, summary=False).rows, truth) < 2.0

    @pytest.mark.parametrize(
        "where",
        ["t LIKE '%cat%'", "t LIKE '%corn%'", "t NOT LIKE '%cat%'", "t IS NULL", "t IS NOT NULL", "contains(t, ' ')"],
    )
    def test_short_patterns_are_counted(self, sentences: Estimator, source: Source, where: str) -> None:
        (truth,) = source.counts([where])
        counted = sentences.estimate(where)
        assert counted.rows == counted.low == counted.high == pytest.approx(truth)
        assert counted.exact
        modelled = sentences.estimate(where, summary=False)
        assert modelled.rows != truth
        assert modelled.low <= modelled.rows <= modelled.high
        assert modelled.low < modelled.high

    def test_what_is_not_counted_has_error_bars(self, sentences: Estimator) -> None:
        for where in ("t LIKE '%cat%dove%'", "t LIKE '%cat%' OR t LIKE '%eel%'", "t LIKE '%cat%' AND t LIKE '%eel%'"):
            estimate = sentences.estimate(where)
            assert estimate.low <= estimate.rows <= estimate.high
            assert estimate.low < estimate.high

    def test_nothing_and_everything(self, sentences: Estimator) -> None:
        for where in ("t LIKE '%Z%'", "t = 'a' AND t = 'b'", "length(t) > 99"):
            assert sentences.estimate(where).rows == 0
        assert sentences.estimate("t LIKE '%' OR t IS NULL").rows == 600

    @pytest.mark.parametrize("method", ["particles", "skipping", "progressive", "naive", "exact"])
    def test_methods_agree(self, sentences: Estimator, method: str) -> None:
        for where in ("t LIKE 'cat%'", "t LIKE '%cat%'")[: 1 if method == "exact" else 2]:
            estimate = sentences.estimate(where, method=method, summary=False)
            assert estimate.method == method
            assert q_error(estimate.rows, sentences.estimate(where, summary=False).rows) < 1.3

    def test_many_at_once_are_the_same_as_one_by_one(self, sentences: Estimator, both: Estimator) -> None:
        assert len(CLAUSES) > 16  # so many are handed to threads
        for estimator in (sentences, both):
            one_by_one = [estimator.estimate(where) for where in CLAUSES]
            many = estimator.estimate_many(CLAUSES, threads=2)
            assert [(e.rows, e.low, e.high) for e in many] == [(e.rows, e.low, e.high) for e in one_by_one]
            assert [e.rows for e in estimator.estimate_many(CLAUSES[:3])] == [e.rows for e in one_by_one[:3]]

    def test_python_and_sql_are_one(self, sentences: Estimator) -> None:
        sql = sentences.estimate("t LIKE '%cat%' AND NOT t LIKE '%eel'")
        assert sentences.estimate(col("t").like("%cat%") & ~col("t").like("%eel")).rows == sql.rows

    def test_the_same_question_gets_the_same_answer(self, sentences: Estimator) -> None:
        assert len({sentences.estimate("t LIKE '%a%e%'", particles=3).rows for _ in range(3)}) == 1


class TestColumnsAndText:
    def test_what_has_nothing_to_do_with_each_other_is_about_a_product(self, both: Estimator) -> None:
        kind, text = (both.estimate(where).selectivity for where in ("kind = 1", "t LIKE '%cat%'"))
        together = both.estimate("kind = 1 AND t LIKE '%cat%'").selectivity
        assert together == pytest.approx(kind * text, rel=0.25)
        either = both.estimate("kind = 1 OR t LIKE '%cat%'").selectivity
        assert either == pytest.approx(kind + text - kind * text, rel=0.15)
        assert both.estimate("kind = 1 AND t LIKE '%cat%'").low < both.estimate("kind = 1 AND t LIKE '%cat%'").high

    def test_they_are_near_the_truth(self, both: Estimator, source: Source) -> None:
        clauses = ("kind < 2 AND t LIKE '%cat%'", "kind = 0 AND t IS NULL", "kind = 2 OR t LIKE '%dove'", "kind = 1")
        for where, truth in zip(clauses, source.counts(clauses), strict=True):
            assert q_error(both.estimate(where).rows, truth) < 1.6, where

    def test_the_explanation_lists_both(self, both: Estimator) -> None:
        explanation = both.explain("kind = 1 AND t LIKE '%cat%'")
        assert (explanation.visited, explanation.skipped) == (("kind", "t"), ())
        assert explanation.boxes[0].visited == ("kind", "t")
        assert "t LIKE '%cat%': strings of t (by an automaton of 4 states)" in str(explanation)
        assert "1 of 3 values of kind (by search)" in str(explanation)
        assert both.explain("kind = 1").skipped == ("t",)

    def test_a_method_for_text_only(self, both: Estimator) -> None:
        assert both.estimate("t LIKE '%cat%'", method="naive").rows > 0
        for where in ("kind = 1", "kind = 1 AND t LIKE '%cat%'"):
            with pytest.raises(CountlessError, match="the method 'naive' is for text columns only: choose one of"):
                both.estimate(where, method="naive")
        with pytest.raises(CountlessError, match=r"unknown method 'magic': choose one of .*naive"):
            both.estimate("t LIKE '%cat%'", method="magic")

    def test_info(self, both: Estimator) -> None:
        info = both.info()
        assert [column["name"] for column in info["columns"]] == ["kind"]
        (text,) = info["texts"]
        assert {key: text[key] for key in ("name", "type", "has_null", "characters", "rare_characters", "cut")} == {
            "name": "t",
            "type": "VARCHAR",
            "has_null": True,
            "characters": 13,
            "rare_characters": 0,
            "cut": 0,
        }
        assert text["length"] == len("unicorn unicorn")
        assert info["text_model"]["kind"] == "transformer"
        assert text["summary"]["threshold"] == 2
        assert text["summary"]["substrings"] > 50
        assert info["model"]["kind"] == "resmade"
        assert "history" not in info["training"]["text"]
        assert both.columns == ("kind", "t")

    def test_the_report_counts_bits_per_character(self, both: Estimator) -> None:
        report = both.report
        assert report["unit"] == "row"
        assert report["text"]["unit"] == "character"
        assert 0 < report["text"]["train_bits"] < 2
        assert not report["interrupted"]

    def test_a_file_gives_the_same_answers(self, both: Estimator, file: Path) -> None:
        loaded = Estimator.load(file)
        assert loaded.schema == both.schema
        assert loaded.info() == both.info()
        clauses = [*CLAUSES, "kind = 1 AND t LIKE '%cat%'"]
        answers = [(e.rows, e.low, e.high) for e in both.estimate_many(clauses)]
        assert [(e.rows, e.low, e.high) for e in loaded.estimate_many(clauses)] == answers

    def test_evaluation(self, both: Estimator) -> None:
        columns = random_workload(both.schema, table(), 20, seed=1)
        assert all("kind" in query.where and query.kind == "" for query in columns)
        mix = random_workload(both.schema, table(), 33, seed=1, patterns="mix")
        data = evaluate(both.estimate, mix, "particles").to_json()
        assert sum(entry["queries"] for entry in data["by_class"].values()) == 33
        assert data["by_class"]["contains"]["p50"] < 3
        pieces = random_workload(both.schema, table(), 20, seed=1, patterns="contains")
        assert {query.kind for query in pieces} <= {"3 characters", "4 characters", "5 characters"}

    def test_patterns_need_text(self, estimator: Estimator, people: Path) -> None:
        with pytest.raises(DataError, match="the model has no text column to draw patterns from"):
            random_workload(estimator.schema, people, 5, seed=1, patterns="mix")


def test_without_a_summary() -> None:
    estimator = quick(table(), summary=False)
    assert estimator.info()["texts"][0]["summary"] is None
    estimate = estimator.estimate("t LIKE '%cat%'")
    assert estimate.low < estimate.high
    assert estimate.rows == estimator.estimate("t LIKE '%cat%'", summary=False).rows


def test_smaller_types_shrink_the_model_and_hardly_move_the_answers(tmp_path: Path) -> None:
    full, half, byte = (
        quick(table()[["t"]], epochs=3, summary=False, dtype=dtype) for dtype in ("float32", "float16", "int8")
    )
    for one, two, three in zip(*(each.estimate_many(CLAUSES) for each in (full, half, byte)), strict=True):
        assert q_error(one.rows, two.rows) < 1.05
        assert q_error(one.rows, three.rows) < 1.1
    loaded = Estimator.load(byte.save(tmp_path / "byte"))
    assert [e.rows for e in loaded.estimate_many(CLAUSES)] == [e.rows for e in byte.estimate_many(CLAUSES)]
    sizes = [each.save(tmp_path / "model").stat().st_size for each in (full, half, byte)]
    assert sizes[1] < 0.75 * sizes[0]
    assert sizes[2] < 0.85 * sizes[1]


class TestNetworks:
    def test_the_papers(self) -> None:
        estimator = quick(table(60)[["t"]], text_network="paper")
        spec = estimator.info()["text_model"]
        sizes = {"blocks": 8, "width": 32, "inner": 256, "heads": 4, "grams": []}
        assert {name: spec[name] for name in sizes} == sizes
        assert estimator.estimate("t LIKE '%cat%'", summary=False).rows > 0

    def test_a_small_table_has_a_small_network(self, tmp_path: Path) -> None:
        small = quick(table(), text_network="default")
        given = quick(table(), text_network=TextNetwork(width=64, inner=256, buckets=1 << 14))
        sizes = [estimator.save(tmp_path / "m").stat().st_size for estimator in (small, given)]
        assert small.info()["text_model"]["buckets"] == 512
        assert sizes[0] < 150_000 < 2_000_000 < sizes[1]

    def test_what_is_only_looked_up_is_stored_in_bytes(self, both: Estimator) -> None:
        stored = both._sections.networks["text"].weights.stored
        assert stored["grams"].dtype == stored["context.embedding"].dtype == np.int8
        whole = quick(table(60), dtype="float32")._sections.networks["text"].weights.stored
        assert {array.dtype for array in whole.values()} == {np.dtype(np.float32)}

    def test_the_default_is_not_the_papers(self) -> None:
        assert TEXT_PRESETS["default"] == TextNetwork()
        assert TextNetwork().blocks < TEXT_PRESETS["paper"].blocks

    def test_what_cannot_be(self) -> None:
        with pytest.raises(OptionError, match="text_network must be default or paper or a TextNetwork, not 'huge'"):
            quick(table(60), text_network="huge")
        with pytest.raises(OptionError, match=r"text_network\.masking must be prefix, spans or none, not 'half'"):
            replace(SMALL, masking="half")
        with pytest.raises(OptionError, match=r"text_network\.heads must divide the width 16 evenly, and 3 does not"):
            replace(SMALL, heads=3)

    @pytest.mark.parametrize("masking", ["spans", "none"])
    def test_other_maskings(self, masking: str) -> None:
        estimator = quick(table(60)[["t"]], text_network=replace(SMALL, masking=masking))
        assert 0 <= estimator.estimate("t LIKE '%cat%'", summary=False).rows <= 60

    def test_the_budget_is_shared(self) -> None:
        report = quick(table(60), epochs=None, budget=9.0).report
        options = report["options"], report["text"]["options"]
        assert [each["budget"] for each in options] == [9.0, 9.0]
        assert 0 < options[0]["share"] + options[1]["share"] < 9.0


class TestSmallTexts:
    @pytest.mark.parametrize(
        "texts", [["abc"], ["abc", "defgh"], ["a", "b", "a", None], ["", "aa", ""], ["日本日本", "日本"]]
    )
    def test_few_rows(self, texts: list[str | None]) -> None:
        estimator = quick(pd.DataFrame({"t": pd.Series(texts, dtype=object)}))
        assert estimator.estimate("t LIKE '%' OR t IS NULL").rows == pytest.approx(len(texts))
        assert 0 <= estimator.estimate("t LIKE '%a%'", summary=False).rows <= len(texts)

    def test_only_empty_strings(self) -> None:
        with pytest.raises(DataError, match='the text column "t" has no string to draw patterns from'):
            quick(pd.DataFrame({"t": ["", ""]}))

    def test_strings_that_are_cut(self) -> None:
        estimator = quick(table(), max_length=5)
        assert estimator.schema.texts[0].cut > 100
        assert estimator.info()["texts"][0]["cut"] == estimator.schema.texts[0].cut
        for where in ("t LIKE '%cat%'", "t LIKE '%corn%'", "t NOT LIKE '%corn%'"):  # no r comes before the cut
            estimate = estimator.estimate(where)
            assert estimate.exact  # substrings are counted in whole strings
            assert estimate.rows == Source.open(table()).counts([where])[0]
        assert estimator.estimate("t IS NULL").rows == pytest.approx(60)

    def test_two_text_columns(self, tmp_path: Path) -> None:
        frame = pd.DataFrame({"t": table(100)["t"], "u": [f"{n:05}" for n in range(100)]})
        estimator = quick(frame, text=("t", "u"))
        assert list(estimator._sections.networks) == ["text"]
        loaded = Estimator.load(estimator.save(tmp_path / "two.countless"))
        for where in ("t LIKE '%cat%'", "u LIKE '%7%' AND t LIKE 'd%'"):
            assert loaded.estimate(where, summary=False).rows == estimator.estimate(where, summary=False).rows
        assert estimator.columns == ("t", "u")
        assert estimator.report["text"]["columns"] == ["t", "u"]
        (t, u, together) = (
            estimator.estimate(where).selectivity
            for where in ("t LIKE '%cat%'", "u LIKE '%7%'", "t LIKE '%cat%' AND u LIKE '%7%'")
        )
        assert together == pytest.approx(t * u)


class Stop(Listener):
    """Presses Ctrl-C after some steps of training on text, or on columns."""

    def __init__(self, after: int, unit: str = "character") -> None:
        self.steps = 0
        self.after = after
        self.unit = unit

    def training(self, progress: Progress) -> None:
        self.steps += progress.unit == self.unit
        if self.steps == self.after:
            self.steps += 1
            os.kill(os.getpid(), signal.SIGINT)


def test_a_stopped_fit_goes_on_to_the_same_model(tmp_path: Path) -> None:
    options: dict[str, Any] = {"epochs": 3, "batch": 50}
    whole = quick(table(), **options)
    place = tmp_path / "c"
    stopped = quick(table(), **options, checkpoint=place, listener=Stop(17))
    assert stopped.report["interrupted"]
    assert not whole.report["interrupted"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "c-text"]
    resumed = quick(table(), **options, checkpoint=place, resume=True)
    assert not resumed.report["interrupted"]
    answers = [[e.rows for e in estimator.estimate_many(CLAUSES)] for estimator in (whole, resumed)]
    assert answers[0] == answers[1]
    counts = [each.estimate("t = 'cat'", summary=False).rows for each in (stopped, whole)]
    assert counts[0] != counts[1]


def test_wrong_options_are_told_before_the_table_is_read(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"^epochs must be at least 1"):
        fit(tmp_path / "nothing.parquet", epochs=0)


def test_who_stops_one_model_stops_them_all(tmp_path: Path) -> None:
    options: dict[str, Any] = {"epochs": 3, "batch": 50}
    stopped = quick(table(), **options, checkpoint=tmp_path / "c", listener=Stop(5, "row"))
    assert stopped.report["interrupted"]
    assert stopped.report["text"]["epochs"] == 0
    resumed = quick(table(), **options, checkpoint=tmp_path / "c", resume=True)
    assert not resumed.report["interrupted"]
    whole = quick(table(), **options)
    assert [e.rows for e in resumed.estimate_many(CLAUSES)] == [e.rows for e in whole.estimate_many(CLAUSES)]


def with_section(kind: str, name: str, change: Callable[[Any], Any]) -> Callable[[Contents], Contents]:
    """The contents of a file in which one network or summary is another, or is missing."""

    def changed(contents: Contents) -> Contents:
        sections = dict(getattr(contents.sections, kind))
        if (section := change(sections.pop(name))) is not None:
            sections[name] = section
        return replace(contents, sections=replace(contents.sections, **{kind: sections}))

    return changed


def with_network(name: str, change: Callable[[Any], Any]) -> Callable[[Contents], Contents]:
    return with_section("networks", name, change)


def with_counts(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Contents], Contents]:
    return with_section(
        "summaries", "substrings-0", lambda summary: replace(summary, arrays=change(dict(summary.arrays)))
    )


def with_weights(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Contents], Contents]:
    return with_network(
        "text", lambda network: replace(network, weights=StoredTensors(change(dict(network.weights.stored))))
    )


def with_array(name: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda arrays: {**arrays, name: change(arrays[name])}


def without_array(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda arrays: {key: value for key, value in arrays.items() if key != name}


def with_spec(**changes: Any) -> Callable[[Contents], Contents]:
    return with_network("text", lambda network: replace(network, spec=network.spec | changes))


def numbered(place: int, value: int) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        array = array.copy()
        array[place] = value
        return array

    return change


DAMAGE: dict[str, tuple[Callable[[Contents], Contents], str]] = {
    "no model of columns": (with_network("columns", lambda network: None), "it lacks the network 'columns'"),
    "another kind": (with_spec(kind="resmade"), "unknown kind of model 'resmade'"),
    "another alphabet": (with_spec(alphabets=[list(range(14))]), "do not belong together"),
    "another length": (with_spec(lengths=[3]), "do not belong together"),
    "another width": (with_spec(width=8), "has shape"),
    "another row": (with_spec(context=[4]), "do not belong together"),
    "more of the row": (with_spec(context=[3, 3]), "do not belong together"),
    "no embedding of the row": (with_weights(without_array("context.embedding")), "is missing"),
    "no heads": (with_spec(heads=0), "heads is 0, not a whole number from 1"),
    "no weights": (with_weights(without_array("embedding")), "array 'embedding' is missing"),
    "cut weights": (with_weights(with_array("bias", lambda array: array[1:])), "has shape"),
    "no numbers": (with_weights(with_array("bias", lambda array: array * np.nan)), "not finite"),
    "no counts": (with_counts(without_array("substrings.counts")), "its counts of substrings do not fit together"),
    "cut counts": (with_counts(with_array("substrings.counts", lambda array: array[:-5])), "substrings do not fit"),
    "other characters": (with_counts(with_array("substrings.head", numbered(0, 12))), "substrings do not fit"),
    "other rows": (with_counts(with_array("substrings.head", numbered(1, 601))), "fit"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_file_that_does_not_fit_together(file: Path, damage: str) -> None:
    change, phrase = DAMAGE[damage]
    store.write(file, change(store.read(file)))
    with pytest.raises(ModelFileError, match=phrase):
        Estimator.load(file)


def test_text_is_learned_in_the_context_of_its_row(file: Path) -> None:
    estimator = Estimator.load(file)
    assert estimator.info()["text_model"]["context"] == list(estimator.schema.sizes) == [3]


def test_a_file_whose_text_has_no_context(file: Path) -> None:
    def without_context(arrays: dict[str, Any]) -> dict[str, Any]:
        return {name: array for name, array in arrays.items() if not name.startswith("context")}

    store.write(file, with_spec(context=[])(with_weights(without_context)(store.read(file))))
    estimator = Estimator.load(file)
    assert 0 < estimator.estimate("t LIKE '%cat%' AND kind = 1").rows < estimator.rows


def test_a_summary_of_another_table(file: Path) -> None:
    other = quick(pd.concat([table(), table()]))
    change = with_section("summaries", "substrings-0", lambda _: other._sections.summaries["substrings-0"])
    store.write(file, change(store.read(file)))
    with pytest.raises(ModelFileError, match="do not belong together"):
        Estimator.load(file)


def test_a_file_without_its_summary_is_whole(file: Path) -> None:
    store.write(file, with_section("summaries", "substrings-0", lambda _: None)(store.read(file)))
    assert Estimator.load(file).info()["texts"][0]["summary"] is None
