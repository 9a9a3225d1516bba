"""The page asks about every column, also about those that are called like what every JavaScript object has."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from countless.serve.page_files import page_files

NAMES = ["constructor", "toString", "valueOf", "__proto__", "hasOwnProperty", "age"]
SCRIPT = """
import { Answers } from "./api.js";
import { Updates } from "./updates.js";

const names = JSON.parse(process.argv[2]);
globalThis.sessionStorage = { getItem: () => null };
const asked = [];
globalThis.fetch = async (path, { body }) => {
  const { columns, search } = JSON.parse(body);
  asked.push({ columns, search: Object.entries(search) });
  const cards = columns.map((column) => ({ column, kind: "category", values: [], others: null }));
  return { ok: true, status: 200, headers: new Headers(), json: async () => ({ cards, total: {} }) };
};
const columns = names.map((name) => ({ name, type: "VARCHAR", kind: "category", distinct: 3, has_null: false }));
const answers = new Answers("m", columns);
const searches = new Map();
const page = {
  columns, answers, isSpread: () => true, seen: () => new Set(names), shown: () => new Set(names),
  searches: () => searches, draw() {}, refused() {}, failed() {}, busy() {},
};
const view = { model: "m", filters: new Map(), extra: [] };
await new Promise((done) => {
  page.busy = (busy) => busy || done();
  new Updates(page).request(view, false);
});
const unanswered = names.filter((name) => !answers.spread(name, ""));
for (const name of names) searches.set(name, `${name}?`);
await new Promise((done) => {
  page.busy = (busy) => busy || done();
  new Updates(page).request(view, false);
});
const unsearched = names.filter((name) => !answers.spread(name, "", `${name}?`));
console.log(JSON.stringify({ asked, unanswered, unsearched }));
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the page's modules ask of a service that answers everything, and what they know afterwards."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node here: apt-get install nodejs brings it")
    folder: Path = tmp_path_factory.mktemp("page")
    for name, file in page_files().items():
        (folder / name).write_bytes(file.content)
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    (folder / "ask.js").write_text(SCRIPT, encoding="utf-8")
    result = subprocess.run(
        [node, "ask.js", json.dumps(NAMES)], cwd=folder, capture_output=True, text=True, timeout=120, check=True
    )
    return json.loads(result.stdout)


def test_every_column_is_answered(told: Any) -> None:
    assert told["unanswered"] == []
    assert told["asked"][0] == {"columns": NAMES, "search": []}


def test_every_column_can_be_searched(told: Any) -> None:
    assert told["unsearched"] == []
    assert told["asked"][1:] == [{"columns": [name], "search": [[name, f"{name}?"]]} for name in NAMES]
