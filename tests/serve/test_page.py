"""The page in a browser: what is touched, and what is then counted and shown, is what the service says."""

from __future__ import annotations

import itertools
import json
import math
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from countless import Network, TextNetwork
from countless.data.sources.source import Source
from countless.estimator.fitting.fit import fit
from countless.serve.models import Served, load_models
from countless.serve.service import ServiceOptions
from tests.estimator.test_mixed import pages
from tests.serve.conftest import Client, running

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

DASH, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"


@dataclass
class Visitor:
    """Someone who looks at the page, and notes what it asks for and complains about."""

    page: Page
    client: Client
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def open(self, where: str | None = None, model: str = "people") -> None:
        page = self.page
        page.goto(f"http://127.0.0.1:{self.client.port}/#model={model}")
        if where is not None:
            page.goto(f"http://127.0.0.1:{self.client.port}/#model={model}&where={where}")
        self.until(f"document.title.startsWith('{model} ')")
        self.settle()

    def settle(self) -> None:
        """Wait until nothing is asked for any more."""
        self.until("!document.body.classList.contains('busy') && document.querySelector('.card li') !== null")

    def until(self, condition: str) -> None:
        """Wait until an expression of JavaScript is true; Playwright's own way is not allowed on the page."""
        deadline = time.monotonic() + 30
        while not self.page.evaluate(condition):
            assert time.monotonic() < deadline, f"waited in vain for {condition}"
            self.page.wait_for_timeout(20)

    def card(self, column: str) -> Locator:
        return self.page.locator(f'[data-column="{column}"]')

    def option(self, column: str, value: str) -> Locator:
        return self.card(column).locator("li").filter(has=self.page.get_by_text(value, exact=True))

    def click(self, column: str, value: str) -> None:
        self.option(column, value).click()
        self.settle()

    def write(self, where: str) -> None:
        self.page.fill("#where", where)
        self.page.press("#where", "Enter")
        self.settle()

    def drag(self, column: str, start: float, end: float) -> None:
        """Brush from one share of a histogram's width to another."""
        self.card(column).scroll_into_view_if_needed()
        box = self.card(column).locator("svg.histogram").bounding_box()
        assert box is not None
        middle, mouse = box["y"] + box["height"] / 2, self.page.mouse
        mouse.move(box["x"] + start * box["width"], middle)
        mouse.down()
        for step in range(1, 9):
            mouse.move(box["x"] + (start + (end - start) * step / 8) * box["width"], middle)
        mouse.up()
        self.settle()

    @property
    def where(self) -> str:
        return self.page.input_value("#where")

    @property
    def in_url(self) -> str:
        named = parse_qs(urlsplit(self.page.url).fragment)
        return named.get("where", [""])[0]

    @property
    def count(self) -> str:
        return self.page.inner_text("#rows")

    @property
    def told(self) -> dict[str, list[str]]:
        """What every card tells a screen reader."""
        evaluation: dict[str, list[str]] = self.page.evaluate(
            """() => Object.fromEntries([...document.querySelectorAll('.card')].map(card => [card.dataset.column,
            [...card.querySelectorAll('li')].map(item => item.ariaLabel ?? item.textContent)]))"""
        )
        return evaluation

    def expect(self, where: str, model: str = "people") -> None:
        """The view is of this clause, and the count is the service's own."""
        assert (self.where, self.in_url) == (where, where)
        estimate = self.client.post(f"/v1/models/{model}/estimate", {"where": where}).json["estimates"][0]
        assert self.count == rows(estimate["rows"])

    def expect_card(self, column: str, where: str | None) -> None:
        """A card shows the column's distribution under this clause."""
        expected = self.client.ask("distribution", columns=[column], where=where, bins=24, top=40).json["cards"][0]
        shown = self.told[column]
        assert shown
        for value in expected["values"]:
            name = value.get("value", value.get("from"))
            if name is None:
                continue
            (line,) = [each for each in shown if re.match(rf"{re.escape(str(name))}(( to |{DASH})[^:]*)?: ", each)]
            assert line.split(": ", 1)[1].startswith(f"{rows(value['rows'])} rows")


def rows(count: float) -> str:
    """Rows as the page writes them."""
    if 0 < count < 0.05:
        return "<0.1"
    if count < 9.95 and abs(count - round(count)) >= 0.05:
        return f"{count:.1f}"
    return f"{int(count + 0.5):,}"


@pytest.fixture(scope="module")
def service(model: Path, people: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Two models: people, with their table, and pages, with text, many hosts and a few enormous sizes."""
    text = TextNetwork(width=16, blocks=1, heads=2, inner=32, buckets=64)
    table = Network(hidden=16, blocks=1, embedding=8)
    frame = pages(600)
    frame["host"] = [f"host {math.isqrt(row)}" for row in range(600)]
    frame["bytes"] = [row**3 // 2000 if row < 595 else 1_000_000 for row in range(600)]
    made = fit(Source.open(frame), text="url", epochs=2, network=table, text_network=text, evidence="none")
    path = made.save(tmp_path_factory.mktemp("pages") / "pages.countless")
    models: dict[str, Served] = load_models([str(model), str(path)], [f"people={people}"])
    with running(models, ServiceOptions()) as running_service:
        yield running_service


@pytest.fixture
def visit(browser: Browser, service: Client) -> Iterator[Callable[..., Visitor]]:
    """Opens windows; in the end none may have complained or asked anyone but the service."""
    visitors: list[Visitor] = []
    contexts = []

    def opened(client: Client = service, **options: Any) -> Visitor:
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        visitor = Visitor(context.new_page(), client)
        visitor.page.on("request", lambda request: visitor.asked.append(request.url))
        visitor.page.on("pageerror", lambda error: visitor.complaints.append(str(error)))
        visitor.page.on(
            "console", lambda message: visitor.complaints.append(message.text) if message.type == "error" else None
        )
        contexts.append(context)
        visitors.append(visitor)
        return visitor

    yield opened
    for visitor in visitors:
        assert visitor.complaints == []
        assert {urlsplit(url).netloc for url in visitor.asked} <= {f"127.0.0.1:{visitor.client.port}"}
    for context in contexts:
        context.close()


@pytest.fixture
def visitor(visit: Callable[..., Visitor]) -> Visitor:
    """A window that shows the people."""
    first_visitor = visit()
    first_visitor.open()
    return first_visitor


def test_a_card_for_every_column_of_the_whole_table(visitor: Visitor) -> None:
    assert visitor.count == "3,000"
    assert list(visitor.told) == ["age", "city", "married", "since when", "score"]
    for column in visitor.told:
        visitor.expect_card(column, None)
    assert visitor.where == visitor.in_url == ""


def test_clicked_categories_filter_every_other_card(visitor: Visitor) -> None:
    visitor.click("city", "Rome")
    visitor.expect("city = 'Rome'")
    visitor.click("city", "New York")
    visitor.expect("city IN ('Rome', 'New York')")
    visitor.click("city", "NULL")
    where = "(city IN ('Rome', 'New York') OR city IS NULL)"
    visitor.expect(where)
    for column in ("age", "married", "since when", "score"):
        visitor.expect_card(column, where)
    visitor.expect_card("city", None)
    assert visitor.option("city", "Rome").get_attribute("aria-selected") == "true"
    assert visitor.option("city", "Oslo").get_attribute("aria-selected") == "false"
    visitor.click("married", "true")
    visitor.expect(f"{where} AND married = TRUE")
    visitor.expect_card("city", "married = TRUE")
    for value in ("Rome", "New York", "NULL"):
        visitor.click("city", value)
    visitor.expect("married = TRUE")


def test_the_whole_table_stays_behind_as_an_outline(visitor: Visitor) -> None:
    outline = visitor.card("age").locator("path.ghost")
    assert not outline.get_attribute("d")
    visitor.click("married", "true")
    assert outline.get_attribute("d")
    assert visitor.card("city").locator("rect.ghost").first.get_attribute("visibility") == "visible"
    assert visitor.card("married").locator("rect.ghost").first.get_attribute("visibility") == "hidden"


def test_a_brushed_range_is_one_step_of_history(visitor: Visitor) -> None:
    before = visitor.page.evaluate("history.length")
    visitor.drag("age", 0.3, 0.7)
    match = re.fullmatch(r"age BETWEEN (\d+) AND (\d+)", visitor.where)
    assert match, visitor.where
    visitor.expect(visitor.where)
    visitor.expect_card("married", visitor.where)
    visitor.expect_card("age", None)
    assert visitor.page.evaluate("history.length") == before + 1
    typed = [visitor.card("age").get_by_label(f"age {end}", exact=True).input_value() for end in ("from", "to")]
    assert typed == list(match.groups())
    visitor.card("age").get_by_role("button", name="Clear").click()
    visitor.settle()
    assert (visitor.where, visitor.count) == ("", "3,000")


def test_a_brushed_range_of_days_has_dates_of_both_ends(visitor: Visitor) -> None:
    visitor.drag("since when", 0.25, 0.75)
    assert re.fullmatch(r"\"since when\" BETWEEN DATE '2020-0\d-\d\d' AND DATE '2020-0\d-\d\d'", visitor.where), (
        visitor.where
    )
    visitor.expect(visitor.where)


def test_a_typed_range(visitor: Visitor) -> None:
    for label, text in (("age from", "20"), ("age to", "33")):
        visitor.page.get_by_label(label, exact=True).fill(text)
        visitor.page.keyboard.press("Enter")
        visitor.settle()
    visitor.expect("age BETWEEN 20 AND 33")
    day = visitor.page.get_by_label("since when from", exact=True)
    day.fill("soon")
    visitor.page.keyboard.press("Enter")
    assert day.get_attribute("aria-invalid") == "true"
    assert visitor.where == "age BETWEEN 20 AND 33"
    day.fill("2020-01-20")
    visitor.page.keyboard.press("Enter")
    visitor.settle()
    visitor.expect("age BETWEEN 20 AND 33 AND \"since when\" >= DATE '2020-01-20'")


def test_a_typed_pattern(visitor: Visitor) -> None:
    visitor.open(model="pages")
    before = visitor.told["country"]
    visitor.page.get_by_label("Pattern of url").type("shop", delay=5)
    visitor.until("document.getElementById('where').value.includes('shop')")
    visitor.settle()
    visitor.expect("url LIKE '%shop%'", "pages")
    assert visitor.told["country"] != before
    assert re.search(r"rows, [\d.]+% of the whole table", visitor.card("url").inner_text())
    visitor.page.get_by_label("How url matches").select_option("starts")
    visitor.page.get_by_label("Pattern of url").fill("a_")
    visitor.page.keyboard.press("Enter")
    visitor.page.get_by_label("url does not match").click()
    visitor.settle()
    visitor.expect("url NOT LIKE 'a\\_%' ESCAPE '\\'", "pages")
    visitor.page.reload()
    visitor.settle()
    assert visitor.page.get_by_label("Pattern of url").input_value() == "a_"
    assert visitor.page.get_by_label("How url matches").input_value() == "starts"
    assert visitor.page.get_by_label("url does not match").get_attribute("aria-pressed") == "true"


def test_a_second_pattern_is_shown_beside_the_first(visitor: Visitor) -> None:
    visitor.open(model="pages")
    visitor.write("url LIKE '%shop%' AND url LIKE '%a%'")
    assert visitor.page.get_by_label("Pattern of url").input_value() == "shop"
    assert visitor.card("url").locator(".also").inner_text() == "and url LIKE '%a%'"
    said = r"rows, [\d.]+% of the rows that the other conditions leave; of the whole table [\d.]+%"
    assert re.search(said, visitor.card("url").inner_text())
    assert visitor.card("country").locator(".also:visible").count() == 0
    visitor.write("url LIKE '%shop%'")
    assert not visitor.card("url").locator(".also").is_visible()


def test_a_value_of_many_is_found_and_stays_listed(visitor: Visitor) -> None:
    visitor.open(model="pages")
    assert "others: " in visitor.card("host").inner_text()
    listed = visitor.told["host"]
    visitor.page.get_by_label("Find a value of host").fill("T 1")
    visitor.until("document.querySelectorAll('[data-column=host] li').length < 12")
    visitor.settle()
    values = [each.split(":")[0] for each in visitor.told["host"]]
    assert values
    assert all(value.startswith("host 1") for value in values)
    hidden = next(value for value in values if not any(each.startswith(f"{value}:") for each in listed))
    visitor.click("host", hidden)
    visitor.expect(f"host = '{hidden}'", "pages")
    visitor.page.get_by_label("Find a value of host").fill("")
    visitor.until("document.querySelectorAll('[data-column=host] li').length >= 12")
    assert visitor.option("host", hidden).get_attribute("aria-selected") == "true"
    assert len(visitor.told["host"]) == 12
    visitor.page.get_by_label("Find a value of host").fill("nowhere")
    visitor.page.wait_for_selector("[data-column=host] >> text=No value contains this.")


def test_no_rows_is_not_said_of_the_next_clause(visitor: Visitor) -> None:
    visitor.open(model="pages")
    visitor.write("bytes = -1")
    assert visitor.card("host").locator(".others").inner_text() == "No rows."
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    visitor.page.route("**/distribution", hold)
    visitor.page.fill("#where", "bytes > 1")
    visitor.page.press("#where", "Enter")
    while not held or visitor.count == "0":
        visitor.page.wait_for_timeout(20)
    assert "No rows." not in visitor.card("host").inner_text()
    visitor.page.unroute("**/distribution")  # which lets those go that are held
    visitor.settle()


def test_a_few_enormous_values_do_not_hide_the_others(visitor: Visitor) -> None:
    visitor.open(model="pages")
    bins = visitor.told["bytes"]
    assert len(bins) > 12
    assert bins[-1].split(":")[0].endswith(f"{DASH}1,000,000")
    visitor.drag("bytes", 0.5, 1.0)
    match = re.fullmatch(r"bytes >= (\d+)", visitor.where)
    assert match, visitor.where
    assert 0 < int(match[1]) < 110_000
    visitor.expect(visitor.where, "pages")


def test_a_view_is_shared_by_its_url(visitor: Visitor, visit: Callable[..., Visitor]) -> None:
    visitor.click("city", "Rome")
    visitor.drag("age", 0.2, 0.8)
    visitor.write(f"{visitor.where} AND (age % 2 = 0 OR score > 1)")
    other = visit()
    other.page.goto(visitor.page.url)
    other.page.wait_for_selector(".card.filtering")
    other.settle()
    assert (other.where, other.count, other.told) == (visitor.where, visitor.count, visitor.told)
    visitor.page.reload()
    visitor.page.wait_for_selector(".card.filtering")
    visitor.settle()
    assert (visitor.where, visitor.count, visitor.told) == (other.where, other.count, other.told)


def test_back_and_forward_ask_for_nothing_that_was_seen(visitor: Visitor) -> None:
    views = [(visitor.where, visitor.count, visitor.told)]
    for column, value in (("city", "Rome"), ("married", "true")):
        visitor.click(column, value)
        views.append((visitor.where, visitor.count, visitor.told))
    number = len(visitor.asked)
    for step in (visitor.page.go_back, visitor.page.go_back, visitor.page.go_forward, visitor.page.go_forward):
        step()
        place = next(place for place, view in enumerate(views) if view[0] == visitor.in_url)
        visitor.settle()
        assert (visitor.where, visitor.count, visitor.told) == views[place]
    assert [url for url in visitor.asked[number:] if "/v1/" in url] == []


def test_an_edited_clause_fills_the_cards_and_keeps_what_they_cannot_show(visitor: Visitor) -> None:
    visitor.write("married = true and AGE>=30 and age<40 and upper(city) like 'R%' or 1 = 2")
    visitor.expect("(married = true and AGE>=30 and age<40 and upper(city) like 'R%' or 1 = 2)")
    visitor.write("married = true and AGE>=30 and age<40 and upper(city) like 'R%'")
    visitor.expect("age >= 30 AND age < 40 AND married = TRUE AND upper(city) like 'R%'")
    assert visitor.option("married", "true").get_attribute("aria-selected") == "true"
    assert visitor.page.get_by_label("age to", exact=True).input_value() == "40"
    visitor.click("married", "true")
    visitor.expect("age >= 30 AND age < 40 AND upper(city) like 'R%'")
    visitor.expect_card("married", "age >= 30 AND age < 40 AND upper(city) like 'R%'")


def test_a_refused_clause_is_underlined_where_it_is_wrong(visitor: Visitor) -> None:
    visitor.write("city = 'Łódź' AND agee > 35")
    assert "did you mean" in visitor.page.inner_text("#error")
    assert visitor.page.inner_text("#painted .wrong") == "agee"
    assert visitor.page.get_attribute("#where", "aria-invalid") == "true"
    visitor.write("city = 'Łódź' AND age > 35")
    assert visitor.page.inner_text("#error") == ""
    assert visitor.page.locator("#painted .wrong").count() == 0
    visitor.expect("age > 35 AND city = 'Łódź'")


def test_the_count_before_a_refused_clause_is_not_taken_for_its_own(visitor: Visitor) -> None:
    visitor.write("city = 'Rome'")
    assert visitor.page.is_enabled("#ask")
    before = visitor.count
    visitor.write("agee > 35")
    assert visitor.count == before
    assert "not of this clause" in visitor.page.inner_text("#told")
    visitor.until("Number(getComputedStyle(document.querySelector('.rows')).opacity) < 0.5")
    assert visitor.page.is_disabled("#ask")
    visitor.write("city = 'Rome'")
    assert "not of this clause" not in visitor.page.inner_text("#told")
    visitor.until("Number(getComputedStyle(document.querySelector('.rows')).opacity) === 1")
    assert visitor.page.is_enabled("#ask")


def test_a_card_without_an_answer_says_why(visitor: Visitor) -> None:
    """Its neighbours are asked one by one, and have theirs."""

    def failing(route: Any) -> None:
        if "score" in json.loads(route.request.post_data)["columns"]:
            route.fulfill(status=408, json={"error": {"message": "takes too long", "kind": "", "span": None}})
        else:
            route.continue_()

    visitor.page.route("**/distribution", failing)
    visitor.click("city", "Rome")
    assert visitor.card("score").locator(".problem").inner_text() == "takes too long"
    visitor.expect_card("married", "city = 'Rome'")
    assert visitor.page.locator(".problem:visible").count() == 1
    assert visitor.page.inner_text("#error") == ""
    visitor.complaints.clear()  # the browser's own about 408
    visitor.page.unroute("**/distribution")
    visitor.click("city", "Oslo")
    assert visitor.page.locator(".problem:visible").count() == 0
    visitor.expect_card("score", "city IN ('Rome', 'Oslo')")


def test_a_text_card_without_an_answer_says_why(visitor: Visitor) -> None:
    visitor.open(model="pages")
    where = "country = 'DE' AND url LIKE '%shop%'"

    def failing(route: Any) -> None:
        if json.loads(route.request.post_data)["where"] == ["url LIKE '%shop%'"]:
            route.fulfill(status=408, json={"error": {"message": "takes too long", "kind": "", "span": None}})
        else:
            route.continue_()

    visitor.page.route("**/estimate", failing)
    visitor.write(where)
    assert visitor.card("url").locator(".problem").inner_text() == "takes too long"
    visitor.expect(where, "pages")
    visitor.complaints.clear()


def test_values_that_do_not_add_up_to_the_count_are_marked(visitor: Visitor) -> None:
    def differing(route: Any) -> None:
        reply = route.fetch()
        body = reply.json()
        body["total"] |= {"rows": 100.0, "low": 90.0, "high": 105.0}
        for card in body["cards"]:
            off = {"age": 0.123, "married": -0.2, "score": 0.04, "since when": -0.09}
            card["disagreement"] = off.get(card["column"], 0.0)
        route.fulfill(response=reply, json=body)

    visitor.page.route("**/distribution", differing)
    visitor.click("city", "Rome")
    marks = {column: visitor.card(column).locator(".off:visible").all_inner_texts() for column in visitor.told}
    assert marks == {"age": ["+12.3%"], "city": [], "married": [f"{MINUS}20.0%"], "since when": [], "score": []}
    assert "20.0% less than its count" in str(visitor.card("married").locator(".off").get_attribute("title"))


def test_a_bin_is_called_by_the_values_that_it_holds(visitor: Visitor) -> None:
    ages = [line.split(":")[0] for line in visitor.told["age"]]
    assert all(re.fullmatch(rf"\d+({DASH}\d+)?", age) for age in ages)
    ends = [tuple(map(int, age.split(DASH))) for age in ages]
    assert all(before[-1] + 1 == after[0] for before, after in itertools.pairwise(ends))
    visitor.write(f"age BETWEEN {ends[3][0]} AND {ends[3][-1]}")
    (line,) = [line for line in visitor.told["age"] if line.startswith(f"{ages[3]}:")]
    assert line.split(": ")[1].startswith(f"{visitor.count} rows")


def test_a_reversed_range_is_not_asked(visitor: Visitor) -> None:
    for label, text in (("age from", "40"), ("age to", "20")):
        visitor.page.get_by_label(label, exact=True).fill(text)
        visitor.page.keyboard.press("Enter")
        visitor.settle()
    visitor.expect("age >= 40")
    assert visitor.page.get_by_label("age to", exact=True).get_attribute("aria-invalid") == "true"
    assert "ends before it begins" in visitor.card("age").inner_text()
    visitor.page.get_by_label("age from", exact=True).fill("abc")
    visitor.page.keyboard.press("Enter")
    assert visitor.card("age").locator(".note").inner_text() == "“abc” is not a number"
    visitor.card("age").hover()
    visitor.card("city").hover()
    assert visitor.card("age").locator(".note").inner_text() == "“abc” is not a number"
    visitor.page.get_by_label("age from", exact=True).fill("12.5")
    visitor.page.keyboard.press("Enter")
    visitor.settle()
    visitor.expect("age BETWEEN 12.5 AND 20")
    assert "not a number" not in visitor.card("age").inner_text()
    assert visitor.page.get_by_label("age to", exact=True).get_attribute("aria-invalid") is None


def test_a_model_that_is_not_there(visitor: Visitor) -> None:
    visitor.click("city", "Rome")
    visitor.page.evaluate("location.hash = '#model=nope&where=x'")
    visitor.page.wait_for_selector("#none:visible")
    assert visitor.page.inner_text("#none") == "No model is called “nope”. There are: people, pages"
    assert visitor.page.locator(".card").count() == 0
    assert not any(visitor.page.is_visible(each) for each in ("#ask", "#where", "#rows"))
    visitor.page.click("#none >> text=pages")
    visitor.page.wait_for_selector('[data-column="url"]')
    visitor.settle()
    assert visitor.count == "600"
    assert not visitor.page.is_visible("#none")
    assert visitor.page.is_visible("#where")


def test_keys_select_stretch_and_clear(visitor: Visitor) -> None:
    keyboard = visitor.page.keyboard
    visitor.card("city").locator("li[tabindex='0']").focus()
    first, second = (visitor.card("city").locator("li .label").nth(place).inner_text() for place in (0, 1))
    keyboard.press("Space")
    keyboard.press("ArrowDown")
    keyboard.press("Enter")
    visitor.settle()
    visitor.expect(f"city IN ('{first}', '{second}')")
    keyboard.press("Escape")
    visitor.settle()
    assert visitor.where == ""
    lower = visitor.page.get_by_role("slider", name="age: lower end")
    lower.focus()
    keyboard.press("ArrowRight")
    keyboard.press("ArrowRight")
    visitor.settle()
    match = re.fullmatch(r"age >= (\d+)", visitor.where)
    assert match
    assert lower.get_attribute("aria-valuetext") == match[1]
    visitor.expect(visitor.where)
    visitor.page.go_back()
    visitor.settle()
    assert visitor.where == ""


def test_a_range_is_moved_and_stretched(visitor: Visitor) -> None:
    visitor.drag("age", 0.3, 0.6)
    low, high = map(int, re.findall(r"\d+", visitor.where))
    visitor.drag("age", 0.45, 0.65)
    moved = [int(text) for text in re.findall(r"\d+", visitor.where)]
    assert moved[1] - moved[0] == high - low
    assert moved[0] > low
    upper = visitor.page.get_by_role("slider", name="age: upper end")
    upper.focus()
    visitor.page.keyboard.press("ArrowLeft")
    visitor.settle()
    stretched = [int(text) for text in re.findall(r"\d+", visitor.where)]
    assert stretched[0] == moved[0]
    assert stretched[1] < moved[1]
    visitor.page.keyboard.press("Shift+ArrowLeft")
    visitor.settle()
    shifted = [int(text) for text in re.findall(r"\d+", visitor.where)]
    assert shifted[1] - shifted[0] == stretched[1] - stretched[0]
    assert shifted[0] < stretched[0]
    visitor.expect(visitor.where)


def test_tab_comes_to_everything(visitor: Visitor) -> None:
    stops = set()
    visitor.page.focus("#model")
    for _ in range(40):
        visitor.page.keyboard.press("Tab")
        stops.add(
            visitor.page.evaluate(
                "document.activeElement.closest('.card')?.dataset.column ?? document.activeElement.id"
            )
        )
    assert {"find", "theme", "where", "age", "city", "married", "since when", "score"} <= stops


def test_the_truth_beside_the_estimate(visitor: Visitor, people: Path) -> None:
    visitor.click("city", "Rome")
    visitor.page.get_by_role("button", name="Check").click()
    visitor.until("document.getElementById('truth').textContent !== ''")
    (truth,) = Source.open(people).counts(["city = 'Rome'"])
    assert re.match(rf"truth {truth:,} · q-error 1\.\d\d · ", visitor.page.inner_text("#truth"))
    visitor.click("married", "true")
    assert visitor.page.inner_text("#truth") == ""


def test_only_a_model_with_its_table_can_be_checked(visitor: Visitor) -> None:
    visitor.page.select_option("#model", "pages")
    visitor.page.wait_for_selector('[data-column="url"]')
    visitor.settle()
    assert visitor.count == "600"
    assert not visitor.page.is_visible("#ask")
    visitor.page.go_back()
    visitor.page.wait_for_selector('[data-column="age"]')
    visitor.settle()
    assert visitor.count == "3,000"
    assert visitor.page.is_visible("#ask")


def test_columns_are_found_by_name(visitor: Visitor) -> None:
    visitor.page.fill("#find", "E")
    shown = [card.get_attribute("data-column") for card in visitor.page.locator(".card:visible").all()]
    assert shown == ["age", "married", "since when", "score"]
    visitor.page.fill("#find", "nothing")
    assert visitor.page.inner_text("#none") == "No column has “nothing” in its name."
    visitor.page.fill("#find", "")
    assert not visitor.page.is_visible("#none")


@pytest.mark.parametrize("width", [380, 900, 1400])
def test_no_card_moves_when_the_view_changes(visit: Callable[..., Visitor], width: int) -> None:
    visitor = visit(viewport={"width": width, "height": 800})
    visitor.open()
    measure = """() => [...document.querySelectorAll('.card')].map(card => card.getBoundingClientRect().y + scrollY)"""
    before = visitor.page.evaluate(measure)
    visitor.click("city", "Rome")
    visitor.drag("age", 0.2, 0.4)
    visitor.page.get_by_role("button", name="Check").click()
    visitor.until("document.getElementById('truth').textContent !== ''")
    visitor.write(f"{visitor.where} AND score IN (0, 0.25, 0.5, 0.75, 1, 1.25, 1.5) AND (age % 2 = 0 OR married)")
    assert visitor.page.evaluate(measure) == before
    visitor.write("agee > 3")
    assert visitor.page.evaluate(measure) == before


def test_dark_as_the_system_or_as_chosen(visit: Callable[..., Visitor]) -> None:
    visitor = visit(color_scheme="dark")
    visitor.open()
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = visitor.page.evaluate(colour)
    visitor.page.emulate_media(color_scheme="light")
    visitor.until(f"{colour} !== '{dark}'")
    visitor.page.click("#theme")
    assert visitor.page.evaluate(colour) == dark
    visitor.page.reload()
    assert visitor.page.evaluate(colour) == dark


def test_one_column_of_cards_on_a_phone(visit: Callable[..., Visitor]) -> None:
    visitor = visit(viewport={"width": 380, "height": 800}, has_touch=True)
    visitor.open()
    visitor.option("city", "Rome").tap()
    visitor.settle()
    visitor.expect("city = 'Rome'")
    boxes = [card.bounding_box() for card in visitor.page.locator(".card").all()]
    assert len({box["x"] for box in boxes if box}) == 1
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 380


def test_the_clause_is_copied(visit: Callable[..., Visitor]) -> None:
    visitor = visit(permissions=["clipboard-read", "clipboard-write"])
    visitor.open()
    visitor.click("city", "Rome")
    visitor.page.click("#copy")
    visitor.until("document.getElementById('copy').textContent === 'Copied'")
    assert visitor.page.evaluate("navigator.clipboard.readText()") == "city = 'Rome'"


def test_a_service_with_a_token_is_asked_with_it(
    browser: Browser, served: dict[str, Served], start: Callable[..., Client]
) -> None:
    client = start(token="open sesame")
    page = browser.new_page()
    page.goto(f"http://127.0.0.1:{client.port}/")
    page.wait_for_selector("#guard:visible")
    assert not page.is_visible("#denied")
    for _ in range(3):
        page.keyboard.press("Escape")
    page.wait_for_timeout(50)
    assert page.is_visible("#guard")
    assert page.inner_text("#error") == ""
    page.fill("#token", "close sesame")
    page.keyboard.press("Enter")
    page.wait_for_selector("#denied:visible")
    assert page.inner_text("#denied") == "The service refused this token."
    assert page.inner_text("#told") == page.inner_text("#error") == ""
    page.fill("#token", "open sesame")
    page.keyboard.press("Enter")
    page.wait_for_selector(".card li")
    assert page.inner_text("#rows") == "3,000"
    page.evaluate("sessionStorage.clear()")
    page.click("[data-column=city] li >> nth=0")
    page.wait_for_selector("#guard:visible")
    assert not page.is_visible("#denied")
    page.fill("#token", "open sesame")
    page.keyboard.press("Enter")
    page.wait_for_selector("#told:has-text('of 3,000')")
    assert page.inner_text("#error") == ""
    page.context.close()


@pytest.mark.parametrize("width", [380, 1200])
def test_there_is_room_to_write_a_token(browser: Browser, start: Callable[..., Client], width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(f"http://127.0.0.1:{start(token='sesame').port}/")
    page.wait_for_selector("#guard:visible")
    heading, field, button = (page.locator(f"#guard {what}").bounding_box() for what in ("h2", "input", "button"))
    assert heading
    assert field
    assert button
    assert field["width"] > 200
    assert heading["y"] + heading["height"] <= field["y"]
    assert abs(field["y"] - button["y"]) < 1
    assert field["x"] + field["width"] <= button["x"]
    page.context.close()


def test_a_service_that_is_gone_is_told(browser: Browser, start: Callable[..., Client]) -> None:
    visitor = Visitor(browser.new_page(), start())
    visitor.open()
    visitor.page.context.set_offline(True)
    visitor.click("city", "Rome")
    assert "does not answer" in visitor.page.inner_text("#error")
    visitor.page.context.set_offline(False)
    visitor.click("city", "New York")
    assert visitor.page.inner_text("#error") == ""
    visitor.expect("city IN ('Rome', 'New York')")
    visitor.page.context.close()


def test_dragging_asks_one_thing_at_a_time_and_ends_at_the_newest(visitor: Visitor) -> None:
    visitor.page.evaluate(
        """() => {
            window.open = 0; window.most = 0;
            const real = window.fetch;
            window.fetch = async (...given) => {
                window.most = Math.max(window.most, window.open += 1);
                try { return await real(...given); } finally { window.open -= 1; }
            };
        }"""
    )
    visitor.drag("age", 0.1, 0.9)
    assert visitor.page.evaluate("window.most") == 1
    visitor.expect(visitor.where)
    visitor.expect_card("score", visitor.where)
