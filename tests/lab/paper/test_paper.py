"""The paper's exhibits, made of results that nobody measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from countless.engine.methods import METHODS
from countless.errors import DataError
from countless.sheet import Sheet, Strong
from countless_lab.measurement.highlight import best
from countless_lab.paper import numbers, results
from countless_lab.paper.cells import AnswerSet, Cell, CompletionSet, Data, TrainedModel
from countless_lab.paper.drawing import pictures
from countless_lab.paper.exhibits import EXHIBITS
from countless_lab.paper.exhibits.base import find
from countless_lab.paper.exhibits.summary import needed
from countless_lab.paper.report.counterparts import described
from countless_lab.paper.scale import SCALES
from countless_lab.paper.study import Study
from tests.lab.paper.fabricated import CENSUS, EV, SMALL, URLS, Given, Pretended, answers, facts, study

Facts = dict[str, Any]
NOTHING = Given({})


def tables(name: str) -> tuple[Data, ...]:
    return (URLS,) if EXHIBITS[name].text else (CENSUS, EV)


def gathered(name: str, one: Study, found: dict[str, dict[str, Any]]) -> Facts:
    known = EXHIBITS[name].gather(one, Given(found))
    assert known is not None
    return known


def record(one: Facts, **keys: Any) -> Facts:
    result = find(one, **keys)
    assert result is not None
    return result


class TestEvery:
    @pytest.mark.parametrize("name", EXHIBITS)
    def test_complete(self, name: str) -> None:
        exhibit = EXHIBITS[name]
        records = facts(name, *tables(name))
        assert [one["data"]["name"] for one in records] == [table.name for table in tables(name)]
        assert all(one["missing"] == [] for one in records)
        json.dumps(records, allow_nan=False)
        text = exhibit.markdown(records)
        assert text.startswith("# ")
        assert "**" in text
        assert "articles" in text.lower() or "particles" in text.lower()
        assert all(len(line.split("|")) > 3 for line in text.splitlines() if line.startswith("|"))
        drawn = pictures(lambda figure: exhibit.draw(records, figure))
        assert drawn["png"].startswith(b"\x89PNG")
        assert b"<svg" in drawn["svg"]
        assert drawn == pictures(lambda figure: exhibit.draw(records, figure))
        assert b"<dc:date>" not in drawn["svg"]

    @pytest.mark.parametrize("name", EXHIBITS)
    def test_nothing_is_none_and_can_be_shown(self, name: str) -> None:
        exhibit = EXHIBITS[name]
        assert exhibit.gather(study(tables(name)[0]), NOTHING) is None
        assert "Nothing yet" in exhibit.markdown([])
        assert pictures(lambda figure: exhibit.draw([], figure))["png"].startswith(b"\x89PNG")

    @pytest.mark.parametrize("name", EXHIBITS)
    def test_what_is_missing_is_told(self, name: str) -> None:
        exhibit = EXHIBITS[name]

        def known(cell: Cell) -> bool:
            """One model of its kind, and no questions."""
            if isinstance(cell, AnswerSet):
                return "none" not in cell.model.recipe.masking and cell.samples != 10_000 and "addit" not in cell.name
            if isinstance(cell, CompletionSet):
                return cell.method == "skipping"
            return isinstance(cell, TrainedModel) and cell.recipe.order in (0, None) and cell.recipe.orders == 1

        records = facts(name, *tables(name), known=known)
        assert records
        assert all(one["missing"] for one in records)
        assert "columns" not in records[0]["data"]
        assert "not measured yet" in exhibit.markdown(records)
        pictures(lambda figure: exhibit.draw(records, figure))

    def test_cells_are_what_gather_reads(self) -> None:
        for name, exhibit in EXHIBITS.items():
            one = study(tables(name)[0])
            asked: set[str] = set()

            def seen(cell: Cell, asked: set[str] = asked) -> bool:
                asked.add(cell.name)
                return True

            exhibit.gather(one, Pretended(seen))
            assert {cell.name for cell in exhibit.cells(one)} <= asked


class TestPlugins:
    @pytest.mark.parametrize("name", ["summary", "main", "sizes", "maskings"])
    def test_a_new_method_stands_beside_the_others(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(METHODS, "stratified", METHODS["skipping"])
        records = facts(name, CENSUS)
        assert "Stratified" in EXHIBITS[name].markdown(records)
        assert pictures(lambda figure: EXHIBITS[name].draw(records, figure))

    def test_another_kind_of_model_has_rows_of_its_own(self) -> None:
        exhibit = EXHIBITS["likelihoods"]
        one = exhibit.gather(Study(CENSUS, SMALL, "pairwise"), Pretended())
        assert one is not None
        assert one["data"]["name"] == "census_income (pairwise)"
        assert one["settings"]["kind"] == "pairwise"
        assert described(one["data"]["name"]) == "a stand-in for the paper's Census"


class TestMain:
    one = study(orders=2, samples=(100, 10_000), first_order_above=100)

    def found(self) -> Facts:
        given = {}
        for order, largest in ((0, 10.0), (1, 30.0)):
            contest = self.one.contest(100, order)
            given[contest["skipping"].name] = answers(1.0, 2.0, largest, ms=4.0, forward_rows=500)
            given[contest["progressive"].name] = answers(1.0, 3.0, 10 * largest)
        given[self.one.contest(10_000, 0)["skipping"].name] = answers(1.0, 1.5, 5.0)
        return gathered("main", self.one, given)

    def test_means_and_deviations_over_orders(self) -> None:
        skipping = record(self.found(), samples=100, method="skipping")
        assert skipping["max"] == {"mean": 20.0, "deviation": 14.1421, "values": [10.0, 30.0]}
        assert skipping["p50"] == {"mean": 2.0, "deviation": 0.0, "values": [2.0, 2.0]}
        assert skipping["p99"]["values"] == [9.84, 29.44]  # 2 + 0.98 x 8, 2 + 0.98 x 28
        assert skipping["ms"]["mean"] == 4.0
        assert skipping["forward_rows"]["mean"] == 500.0
        assert skipping["orders"] == [0, 1]

    def test_large_budgets_have_one_order_and_no_deviation(self) -> None:
        results = self.found()
        one = record(results, samples=10_000, method="skipping")
        assert one["max"] == {"mean": 5.0, "deviation": None, "values": [5.0]}
        text = EXHIBITS["main"].markdown([results])
        assert "| 100 | Max | census_income | 200 ± 141 | **20.0 ± 14.1** |" in text
        assert "| 10,000 | Max | census_income | - | **5.00** |" in text
        assert "2 orders at 100 samples, 1 order at 10,000 samples" in text

    def test_what_is_absent_is_absent(self) -> None:
        results = self.found()
        assert find(results, samples=100, method="multi-order") is None
        assert find(results, samples=10_000, method="progressive") is None
        assert len(results["missing"]) > 4

    def test_the_orders_are_sorted_in_the_picture(self) -> None:
        figure = Figure()
        EXHIBITS["main"].draw([self.found()], figure)
        panels = figure.axes
        assert len(panels) == 4  # two metrics, two budgets
        lines = {tuple(np.asarray(line.get_ydata()).tolist()) for line in panels[2].get_lines()}
        assert lines == {(10.0, 30.0), (100.0, 300.0)}
        assert panels[0].get_yscale() == "log"


class TestSummary:
    def test_interpolated_between_budgets(self) -> None:
        one = study(orders=1, samples=(100, 1_000))
        low, high = one.contest(100, 0)["skipping"].name, one.contest(1_000, 0)["skipping"].name
        given = {low: answers(1000.0, forward_rows=1_000), high: answers(1.0, forward_rows=100_000)}
        result = record(gathered("summary", one, given), method="skipping")
        assert result["bound"] == "about"
        assert result["passes"] == pytest.approx(1_000 * 100 ** (2 / 3), rel=1e-5)  # log 1000/10 over log 1000/1

    def test_bounds(self) -> None:
        points = [{"forward_rows": 700.0, "p99": 9.9}, {"forward_rows": 7_000.0, "p99": 2.0}]
        assert needed(points) == {"passes": 700.0, "bound": "at most"}
        assert needed([{**points[0], "p99": 10.0}]) == {"passes": 700.0, "bound": "more than"}

    def test_signs_in_the_table(self) -> None:
        one = study(orders=1, samples=(100,))
        contest = one.contest(100, 0)
        given = {
            contest["progressive"].name: answers(50.0, forward_rows=4_100),
            contest["skipping"].name: answers(2.0, forward_rows=820),
            one.rungs(100, 0)["skipping"][0].name: answers(2.0, forward_rows=615),
        }
        text = EXHIBITS["summary"].markdown([gathered("summary", one, given)])
        assert "| census_income | > 4,100 | ≤ 820 | **≤ 615** |" in text


class TestLikelihoods:
    def test_bits(self) -> None:
        one = study(orders=2)
        first, second = one.likelihoods(0), one.likelihoods(1)
        given = {
            first["baseline"].name: {"unmasked_bits": 28.0, "parameters": 9},
            second["baseline"].name: {"unmasked_bits": 29.0, "parameters": 9},
            first["masking"].name: {"unmasked_bits": 30.25, "parameters": 9},
        }
        records = gathered("likelihoods", one, given)
        assert record(records, model="baseline")["bits"]["mean"] == 28.5
        text = EXHIBITS["likelihoods"].markdown([records])
        assert "| census_income | **28.50 ± 0.71** | 30.25 |" in text
        assert "does not change a likelihood" in text


class TestSizesAndMaskings:
    def test_every_size_and_method(self) -> None:
        found = facts("sizes", CENSUS)[0]
        for method in ("progressive", "skipping", "particles"):  # and what the tests' plugin may have registered
            assert sum(one["method"] == method for one in found["results"]) == 9
        assert found["results"][0]["parameters"] > 0

    def test_the_sizes_are_sorted_and_skipping_is_solid(self) -> None:
        figure = Figure()
        EXHIBITS["sizes"].draw(facts("sizes", CENSUS), figure)
        lines = figure.axes[0].get_lines()
        assert [line.get_linestyle() for line in lines][:3] == ["--", "-", "-"]
        for line in lines:
            errors = np.asarray(line.get_ydata()).tolist()
            assert errors == sorted(errors)

    def test_the_best_scheme_is_bold(self) -> None:
        one = study(maskings=("uniform", "0.5"))
        given = {
            one.maskings()["uniform"]["skipping"].name: answers(1.0, 8.0),
            one.maskings()["0.5"]["skipping"].name: answers(1.0, 9.0),
        }
        text = EXHIBITS["maskings"].markdown([gathered("maskings", one, given)])
        assert "| census_income | Skipping | Max | **8.00** | 9.00 |" in text


class TestCompletion:
    def test_figures(self) -> None:
        one = study()
        masked, few, many = one.completions()
        given = {
            masked.name: {"right": [True, True, False, True], "chances": [0.5, 0.7], "ms": [1.0], "forward_rows": 60.0},
            few.name: {"right": [True, False, False, True], "chances": [0.5, 0.1], "ms": [2.0], "forward_rows": 2e3},
        }
        text = EXHIBITS["completion"].markdown([gathered("completion", one, given)])
        assert "| census_income | Right | **75.0%** | 50.0% |" in text
        assert "| census_income | Forward passes | **60.0** | 2,000 |" in text
        assert f"{many.samples:,} samples" not in text  # nobody has measured them


class TestAdditions:
    def test_every_step_has_the_models_own_weights(self) -> None:
        cells = study(orders=1, samples=(100,)).additions(100, 0)
        assert {cell.model.recipe for cell in cells.values()} == {study().model_for("skipping", 0).recipe}
        assert [cell.method for cell in cells.values()][-1] == "fused"

    def test_the_table(self) -> None:
        one = study(orders=1, samples=(100,))
        cells = one.additions(100, 0)
        given = {cells["skipping"].name: answers(2.0, ms=9.0), cells["evidence"].name: answers(1.0, ms=1.0)}
        text = EXHIBITS["additions"].markdown([gathered("additions", one, given)])
        assert "| 100 | census_income | Max | 2.00 | - | - | - | **1.00** |" in text


class TestText:
    def test_bootstrap_deviations(self) -> None:
        cell = study(URLS).text_contest()["naive"]
        found = gathered("text", study(URLS), {cell.name: answers(*[1.0] * 50, *[3.0] * 50)})
        naive = record(found, method="naive")
        assert naive["p50"]["mean"] == 2.0
        assert 0.9 < naive["p50"]["deviation"] <= 1.0  # the median of a resample is nearly always 1 or 3
        assert naive["max"] == {"mean": 3.0, "deviation": 0.0}
        again = gathered("text", study(URLS), {cell.name: answers(*[1.0] * 50, *[3.0] * 50)})
        assert again == found

    def test_every_method(self) -> None:
        text = EXHIBITS["text"].markdown(facts("text", URLS))
        assert (
            "| Data set | Samples | Metric | Naive sampling | Progressive (baseline) | Skipping | Particles |" in text
        )


class TestFiles:
    def test_files_of_earlier_tables_stay(self, tmp_path: Path) -> None:
        exhibit = EXHIBITS["likelihoods"]
        written = results.write(exhibit, facts("likelihoods", CENSUS), tmp_path)
        assert [path.name for path in written] == [f"likelihoods.{kind}" for kind in ("json", "md", "svg", "png")]
        results.write(exhibit, facts("likelihoods", EV), tmp_path)
        read = results.read([tmp_path])
        assert [one["data"]["name"] for one in read["likelihoods"]] == ["census_income", "ev_registrations"]
        assert "ev_registrations" in (tmp_path / "likelihoods.md").read_text()

    def test_several_folders(self, tmp_path: Path) -> None:
        for place, tables in (("a", (CENSUS, EV)), ("b", (CENSUS,))):
            (tmp_path / place).mkdir()
            results.write(EXHIBITS["likelihoods"], facts("likelihoods", *tables), tmp_path / place)
        content = json.loads((tmp_path / "b" / "likelihoods.json").read_text())
        content["facts"][0]["settings"]["scale"] = "full"
        (tmp_path / "b" / "likelihoods.json").write_text(json.dumps(content))
        likelihoods = results.read([tmp_path / "a", tmp_path / "b"])["likelihoods"]
        assert [one["settings"]["scale"] for one in likelihoods] == ["full", "small"]

    @pytest.mark.parametrize("content", ["{", "[]", '{"exhibit": "main", "facts": []}', '{"exhibit": "likelihoods"}'])
    def test_a_damaged_file(self, tmp_path: Path, content: str) -> None:
        (tmp_path / "likelihoods.json").write_text(content)
        with pytest.raises(DataError, match="is damaged: delete it"):
            results.read([tmp_path])
        results.write(EXHIBITS["likelihoods"], facts("likelihoods", CENSUS), tmp_path)
        assert results.read([tmp_path])

    def test_a_folder_has_one_scale(self, tmp_path: Path) -> None:
        results.claim(tmp_path / "out", SMALL, [])
        results.claim(tmp_path / "out", SMALL, [])
        with pytest.raises(DataError, match="has results at the scale small, not full: choose another -o"):
            results.claim(tmp_path / "out", SCALES["full"], [])
        (tmp_path / "out" / "scale.json").write_text("[]")
        with pytest.raises(DataError, match="is damaged"):
            results.claim(tmp_path / "out", SMALL, [])

    def test_a_folder_has_one_version_of_a_table(self, tmp_path: Path) -> None:
        whole, less = Data("people", "people.parquet", 10), Data("people", "people.parquet", 10, ("id",))
        results.claim(tmp_path, SMALL, [less])
        results.claim(tmp_path, SMALL, [less, Data("other", "other.parquet", 5)])
        with pytest.raises(DataError, match="has results of people without id: give the same --exclude"):
            results.claim(tmp_path, SMALL, [whole])


class TestNumbers:
    def test_best_is_bold_with_those_written_alike(self) -> None:
        texts = best([1.001, None, 1.003, 2.0], ["1.00 ± 0.10", "", "1.00 ± 0.20", "2.00"])
        assert [isinstance(text, Strong) for text in texts] == [True, False, True, False]
        assert best([None], [""]) == [""]

    def test_a_single_value_has_no_deviation(self) -> None:
        assert numbers.mean_and_deviation([2.0])["deviation"] is None
        assert numbers.written(numbers.mean_and_deviation([2.0])) == "2.00"

    def test_a_sheet_keeps_bars_out_of_markdown(self) -> None:
        assert "a\\|b" in Sheet("t", ("x",), (("a|b",),)).markdown()


class TestParticlesWithAsManyPasses:
    """Of the budgets of particles, the largest that takes no more forward passes than the paper's method."""

    def chosen(self, *forward_rows: float) -> int:
        one = study(orders=1, samples=(100, 1_000))
        rungs = one.rungs(100, 0)["skipping"]
        given = {one.contest(100, 0)["skipping"].name: answers(3.0, forward_rows=800)}
        given |= {cell.name: answers(2.0, forward_rows=rows) for cell, rows in zip(rungs, forward_rows, strict=False)}
        (budget,) = record(gathered("main", one, given), samples=100, method="particles on skipping")["budgets"]
        return int(budget)

    def test_the_largest_within(self) -> None:
        assert self.chosen(200, 300, 500, 1_200) == 300
        assert self.chosen(200, 300, 500, 800) == 1_000
        assert self.chosen(900, 1_200, 2_000, 9_000) == 100

    def test_budgets_have_a_bound(self) -> None:
        one = study(orders=1, samples=(100, 20_000))
        assert [cell.samples for cell in one.rungs(100, 0)["skipping"]] == [100, 150, 300, 1_000]
        assert [cell.samples for cell in one.rungs(5_000, 0)["skipping"]] == [5_000, 7_500]
        assert [cell.samples for cell in one.rungs(20_000, 0)["skipping"]] == [20_000]
