"""The paper's published figures, its findings, and the report."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from countless_lab.paper.exhibits import EXHIBITS
from countless_lab.paper.report.counterparts import beside_the_paper, described
from countless_lab.paper.report.differences import differences
from countless_lab.paper.report.findings import FAILS, FINDINGS, HOLDS, UNKNOWN, PaperFinding
from countless_lab.paper.report.page import page
from countless_lab.paper.report.published import figures_in_words, published, table_figures
from countless_lab.paper.study import Study
from tests.lab.paper.fabricated import CENSUS, COVTYPE, EV, URLS, Given, answers, facts, study

Facts = dict[str, Any]
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class TestPublished:
    @pytest.mark.parametrize(
        ("wanted", "value", "deviation", "source"),
        [
            (("Census", "p99", "progressive", 100), 1150, 550, "Table 5"),
            (("DMV-Full", "max", "multi-order+skipping", 10_000), 10.5, 2.6, "Table 5"),
            (("KDD", "max", "multi-order", 1_000), 9.42, 3.8, "Table 5"),
            (("Census", "max", "multi-order", 10_000), 6.31, 1.6, "Table 5"),
            (("KDD", "bits", "multi-order(15)", None), 128.4, 0.5, "Table 3"),
            (("Census", "bits", "baseline", None), 52.04, 0.009, "Table 3"),
            (("Dryad-URLs", "p99", "skipping", 1_000), 89.5, 30.6, "Table 4"),
            (("Dryad-URLs", "p50", "naive", 1_000), 1.23, 0.06, "Table 4"),
        ],
    )
    def test_spots(self, wanted: tuple[Any, ...], value: float, deviation: float, source: str) -> None:
        figure = published(*wanted)
        assert figure is not None
        assert (figure.value, figure.deviation, figure.source, figure.comparable) == (value, deviation, source, True)

    def test_all_are_there_and_one_is_a_misprint(self) -> None:
        every = table_figures()
        assert len(every) == 3 * 3 * 3 * 4 + 3 * 5 + 3 * 3
        assert [(one.data, one.samples, one.metric, one.method) for one in every if not one.comparable] == [
            ("Census", 10_000, "p50", "multi-order")
        ]
        assert published("Census", "p99", "particles", 100) is None

    def test_the_best_of_each_row_is_the_papers(self) -> None:
        """A row that was copied wrongly would rarely have its least value where the paper has its bold one."""
        bold = {(100, "p99", "DMV-Full"): "multi-order+skipping", (1_000, "p50", "KDD"): "progressive"}
        for (samples, metric, data), method in bold.items():
            row = [one for one in table_figures() if (one.samples, one.metric, one.data) == (samples, metric, data)]
            assert min(row, key=lambda one: one.value).method == method

    def test_figures_in_words_are_near_those_of_the_table(self) -> None:
        for one in figures_in_words():
            table = published(one.data, one.metric, one.method, one.samples)
            assert table is not None
            assert 0.2 < one.value / table.value < 1.3


def finding(part: str) -> PaperFinding:
    return next(one for one in FINDINGS if part in one.claim)


def verdict(part: str, *gathered: Facts) -> str:
    one = finding(part)
    return one.verdicts({one.exhibit: list(gathered)})[0].verdict


def main_facts(one: Study, **errors: float) -> Facts:
    """The facts of the main exhibit, with these errors at every budget; names have _ for other signs."""
    names = {
        "progressive": "progressive",
        "multi": "multi-order",
        "skipping": "skipping",
        "both": "multi-order+skipping",
        "ours": "particles on skipping",
        "ours_both": "particles on multi-order+skipping",
    }
    given: dict[str, Facts] = {one.questions.name: {"domains": [2, 30_000]}}
    for samples in one.scale.samples:
        contest = one.contest(samples, 0)
        contest |= {f"particles on {base}": rungs[0] for base, rungs in one.rungs(samples, 0).items()}
        for name, error in errors.items():
            quick = name.startswith("ours")
            given[contest[names[name]].name] = answers(
                1.0, 1.0, 1.0, error, ms=1.0 if quick else 20.0, forward_rows=90 if quick else 100
            )
    gathered = EXHIBITS["main"].gather(one, Given(given))
    assert gathered is not None
    return gathered


class TestFindings:
    one = study(orders=1, samples=(100, 10_000))
    like_the_paper = main_facts(one, progressive=2_000, multi=300, skipping=90, both=9, ours=80, ours_both=8)
    unlike = main_facts(one, progressive=10, multi=20, skipping=30, both=40, ours=50, ours_both=60)
    partial = main_facts(one, progressive=2_000)

    @pytest.mark.parametrize(
        "part",
        [
            "At few samples, skipping",
            "up to 10 times better than multi-order",
            "combining multi-order and skipping",
            "even at many samples",
            "On the same model and at no more",
            "At equal samples, particles",
        ],
    )
    def test_both_ways(self, part: str) -> None:
        assert verdict(part, self.like_the_paper) == HOLDS
        assert verdict(part, self.unlike) == FAILS
        assert verdict(part, self.partial) == UNKNOWN

    def test_the_figures_have_the_ratio(self) -> None:
        verdict = finding("At few samples").verdicts({"main": [self.like_the_paper]})[0]
        assert verdict.figures == "max at 100 samples: progressive 2,000, skipping 90.0, 22.2x"

    def test_medians(self) -> None:
        assert verdict("The median error", self.like_the_paper) == HOLDS
        given = {cell.name: answers(5.0) for s in (100, 10_000) for cell in self.one.contest(s, 0).values()}
        gathered = EXHIBITS["main"].gather(self.one, Given(given))
        assert gathered is not None
        assert verdict("The median error", gathered) == FAILS
        assert verdict("The median error", self.partial) == UNKNOWN

    def test_time(self) -> None:
        assert verdict("a tenth of the time", self.like_the_paper) == HOLDS

    def test_large_domains_only(self) -> None:
        small = {**self.like_the_paper, "data": {"name": "t", "domains": [2, 18]}}
        assert finding("even at many samples").verdicts({"main": [small]}) == []

    @pytest.mark.parametrize(
        ("progressive", "skipping", "expected", "words"),
        [
            ((50_000, "about"), (1_000, "at most"), HOLDS, "at least 50.0x"),
            ((50_000, "more than"), (1_000, "about"), HOLDS, "at least 50.0x"),
            ((5_000, "about"), (1_000, "about"), FAILS, "ratio 5.00x"),
            ((5_000, "at most"), (1_000, "about"), FAILS, "at most 5.00x"),
            ((5_000, "at most"), (1_000, "at most"), UNKNOWN, "cannot tell"),
            ((5_000, "more than"), (1_000, "at most"), UNKNOWN, "cannot tell"),
        ],
    )
    def test_passes(self, progressive: Any, skipping: Any, expected: str, words: str) -> None:
        results = [
            {"method": method, "passes": passes, "bound": bound}
            for method, (passes, bound) in (("progressive", progressive), ("skipping", skipping))
        ]
        verdicts = finding("fewer forward passes").verdicts({"summary": [{"data": {"name": "t"}, "results": results}]})
        assert verdicts[0].verdict == expected
        assert words in verdicts[0].figures

    def test_likelihoods(self) -> None:
        names = ["baseline", "masking", "multi-order(5)", "multi-order(10)", "multi-order(15)"]
        for bits, expected in (((1, 2, 3, 4, 5), HOLDS), ((1, 2, 4, 3, 5), FAILS), ((1, 2), UNKNOWN)):
            rows = [{"model": name, "bits": {"mean": value}} for name, value in zip(names, bits, strict=False)]
            assert verdict("Masking costs", {"data": {"name": "t"}, "missing": [], "results": rows}) == expected

    def test_sizes(self) -> None:
        def sized(skipping: float, missing: tuple[str, ...] = ()) -> Facts:
            rows = [
                {"hidden": hidden, "embedding": 2, "method": method, "max": error}
                for hidden, better in ((16, 2.0), (32, skipping))
                for method, error in (("progressive", 9.0), ("skipping", better), ("particles", 2.0))
            ]
            return {"data": {"name": "t"}, "missing": list(missing), "results": rows}

        assert verdict("across model sizes", sized(8.0)) == HOLDS
        assert verdict("across model sizes", sized(10.0)) == FAILS
        assert verdict("across model sizes", sized(8.0, ("t-uniform-skipping-100",))) == UNKNOWN
        assert verdict("across model sizes", sized(8.0, ("t-uniform-other-100",))) == HOLDS  # it is not about that
        assert verdict("Particles is at least as good as skipping at every", sized(8.0)) == HOLDS
        assert verdict("Particles is at least as good as skipping at every", sized(1.0)) == FAILS

    def test_maskings(self) -> None:
        for uniform, expected in ((3.0, HOLDS), (5.0, HOLDS), (7.0, FAILS)):
            rows = [
                {"masking": scheme, "method": "skipping", "max": error}
                for scheme, error in (("uniform", uniform), ("0.5", 3.0))
            ]
            record = {"data": {"name": "t"}, "missing": [], "results": rows}
            assert verdict("Drawing the masking probability", record) == expected

    def test_text(self) -> None:
        def errors(median: float, tail: float) -> Facts:
            return {"p50": {"mean": median}, "p99": {"mean": tail}, "max": {"mean": tail}}

        rows = [
            {"method": "naive", **errors(1.2, 4_000)},
            {"method": "progressive", **errors(1.6, 1_700)},
            {"method": "skipping", **errors(1.4, 90)},
        ]
        record = {"data": {"name": "t"}, "results": [*rows, {"method": "particles", **errors(1.1, 50)}]}
        assert verdict("On text, skipping's", record) == HOLDS
        assert verdict("On text, naive", record) == HOLDS
        assert verdict("On text, particles", record) == HOLDS
        worse = {**record, "results": [*rows[:2], {"method": "skipping", **errors(1.1, 900)}]}
        assert verdict("On text, skipping's", worse) == FAILS
        assert verdict("On text, naive", worse) == FAILS
        assert verdict("On text, particles", worse) == UNKNOWN

    def test_every_finding_says_what_it_is(self) -> None:
        assert all(one.exhibit in EXHIBITS and one.criterion and one.source for one in FINDINGS)
        assert all(one.verdicts({}) == [] for one in FINDINGS)


class TestBesideThePaper:
    def test_rows_alternate(self) -> None:
        table, words = beside_the_paper("main", facts("main", CENSUS, EV))
        assert [row[2] for row in table.rows[:4]] == [
            "census_income (ours)",
            "Census (the paper)",
            "ev_registrations (ours)",
            "DMV-Full (the paper)",
        ]
        assert table.rows[1][3:] == ("1.19 ± 0.01", "1.53 ± 0.32", "1.09 ± 0.01", "1.21 ± 0.03")
        assert words.rows[1] == ("100", "P99", "Census (the paper)", "1,000", "2.50")

    def test_the_misprint_is_marked(self) -> None:
        one = study(orders=1, samples=(10_000,))
        gathered = EXHIBITS["main"].gather(
            one, Given({cell.name: answers(2.0) for cell in one.contest(10_000, 0).values()})
        )
        assert gathered is not None
        table, *_ = beside_the_paper("main", [gathered])
        misprint = [row for row in table.rows if row[:3] == ("10,000", "P50", "Census (the paper)")]
        assert misprint[0][4] == "6.31 ± 1.60 *"

    def test_a_table_of_no_counterpart_has_none(self) -> None:
        assert described("adult") == "none of the paper's"
        adult = [{**one, "data": {**one["data"], "name": "adult"}} for one in facts("main", CENSUS)]
        assert beside_the_paper("main", adult) == []
        assert beside_the_paper("sizes", facts("sizes", CENSUS)) == []

    def test_what_differs_has_both(self) -> None:
        columns, texts = differences({"main": facts("main", CENSUS, COVTYPE), "text": facts("text", URLS)})
        assert [row[0] for row in columns.rows] == ["census_income", "covtype", "Census", "KDD"]
        assert columns.rows[0][1] == "a stand-in for the paper's Census; without instance_weight"
        assert [row[6] for row in columns.rows[2:]] == ["20", "200"]
        assert [row[0] for row in texts.rows] == ["news_urls", "Dryad-URLs"]
        assert all(len(row) == len(sheet.headings) for sheet in (columns, texts) for row in sheet.rows)


class Balance(HTMLParser):
    """Reads a page; what is not closed, or closed twice, is an error. Addresses and identifiers are collected."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.ids: list[str] = []
        self.loads: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name == "src" or (name in ("href", "xlink:href") and tag != "a"):
                self.loads.append(value or "")
            elif name == "href":
                self.links.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parsed(text: str) -> Balance:
    reader = Balance()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


class TestReport:
    def gathered(self) -> dict[str, list[Facts]]:
        tables = {name: (URLS,) if exhibit.text else (CENSUS, COVTYPE, EV) for name, exhibit in EXHIBITS.items()}
        return {name: facts(name, *tables[name]) for name in EXHIBITS}

    def test_a_whole_page(self) -> None:
        text = page(self.gathered())
        reader = parsed(text)
        assert reader.seen.count("svg") == len(EXHIBITS)
        assert "script" not in reader.seen
        assert "img" not in reader.seen
        assert all(address.startswith("#") for address in reader.loads)
        assert len(set(reader.ids)) == len(reader.ids)
        assert {address[1:] for address in reader.links if address.startswith("#")} <= set(reader.ids)
        assert not re.search(r"@import|url\((?!#)", text)
        assert {address[1:] for address in reader.loads} <= set(reader.ids)
        assert "prefers-color-scheme: dark" in text
        assert 'name="viewport"' in text
        for exhibit in EXHIBITS.values():
            assert exhibit.title in text
        for phrase in ("Census (the paper)", "a stand-in for the paper&#x27;s DMV-Full", "one softmax", "not hold"):
            assert phrase in text
        assert all(one.claim.split("'")[0] in text for one in FINDINGS)

    def test_some_exhibits_and_some_results(self) -> None:
        text = page({"likelihoods": facts("likelihoods", CENSUS, known=lambda cell: "none" in cell.name)})
        reader = parsed(text)
        assert reader.seen.count("svg") == 1
        assert "not measured" in text

    def test_names_are_escaped(self) -> None:
        records = facts("likelihoods", CENSUS)
        records[0]["data"]["name"] = '<script>alert("x")</script>'
        records[0]["command"] = "countless paper <b> & 'all'"
        text = page({"likelihoods": records})
        assert "<script" not in text
        assert "&lt;script&gt;" in text
        assert "countless paper &lt;b&gt; &amp; &#x27;all&#x27;" in text
        parsed(text)
