"""The docs: no link or anchor is dead, no command line is stale, the reference and the site are complete."""

from __future__ import annotations

import importlib.util
import json
import re
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

import countless
from countless.cli.main import COMMANDS, cli
from countless.human_format import factor

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.md")]
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "tools" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.M)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower() for heading in headings]
    return frozenset(re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain)


def test_no_link_and_no_anchor_is_dead() -> None:
    dead = []
    for page in PAGES:
        for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            if link.startswith(("http:", "https:", "mailto:")):
                continue
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
                dead.append(f"{page.relative_to(ROOT)}: {link}")
    assert dead == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_modules_that_a_page_names_exist(page: Path) -> None:
    folders = (page.parent, ROOT, ROOT / "src", ROOT / "src" / "countless", ROOT / "src" / "countless_lab")
    names = set(re.findall(r"`((?:\w+/)+\w+\.(?:py|h|c))`", page.read_text(encoding="utf-8")))
    assert [name for name in sorted(names) if not any((folder / name).exists() for folder in folders)] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_command_lines_are_not_stale(page: Path) -> None:
    for line in re.findall(r"^\$ (?:\w+=\S+ )*countless (.*)$", page.read_text(encoding="utf-8"), re.M):
        name, *words = re.sub(r"\"[^\"]*\"|'[^']*'| # .*", "", line).split()
        command = cli.get_command(click.Context(cli), name)
        if isinstance(command, click.Group):
            command = command.get_command(click.Context(command), words[0])
        assert command is not None, line
        known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
        given = {word.strip("[]").partition("=")[0] for word in words if re.match(r"\[?--[a-z]", word)}
        assert given <= known, line


def test_the_site_has_every_page() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    pages = {page.name for page in (ROOT / "docs").glob("*.md")}
    assert set(re.findall(r"(\S+\.md)$", nav, re.M)) == pages | {"reference/cli.md", "reference/python.md"}


def test_the_reference_has_every_command_and_option(reference: ModuleType) -> None:
    page = reference.cli_page()
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        section = page.partition(f"\n## countless {name}\n")[2].partition("\n## ")[0]
        for option in (each for each in command.params if isinstance(each, click.Option) and not each.hidden):
            assert max(option.opts, key=len) in section, (name, option.opts)


def test_the_reference_has_every_public_name(reference: ModuleType) -> None:
    page = reference.python_page()
    for name in countless.__all__:
        if not name.startswith("_"):
            assert f"\n## {name}\n" in page
    assert "\n### Estimator.estimate_many\n" in page


def test_the_readme_is_short() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = [line for line in FENCE.sub("", text).splitlines() if not line.startswith(("|", "<!--", "!["))]
    assert len(" ".join(lines).split()) <= 1_000
    assert [line for line in lines if len(line) > 130] == []


def test_the_readme_has_the_figures_of_the_large_table() -> None:
    results = json.loads((ROOT / "docs" / "results" / "scaling" / "debian.json").read_text(encoding="utf-8"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    whole = results["parts"][-1]
    methods, seconds = whole["methods"], round(whole["fit"]["seconds"])
    for fact in (
        f"{whole['rows']:,} rows",
        f"{whole['parquet_bytes'] / 1e6:.0f} MB as",
        f"{seconds // 60} min {seconds % 60} s",
        f"its file has {whole['fit']['bytes'] / 1e6:.1f} MB",
    ):
        assert fact in readme

    def of(method: str, kind: str) -> dict[str, Any]:
        measured: dict[str, Any] = methods[method]["classes"][kind]
        return measured

    def errors(method: str, kind: str) -> str:
        return " / ".join(factor(of(method, kind)["q_error"][level]) for level in ("p50", "p95", "p99"))

    def ms(method: str, kind: str) -> str:
        median = of(method, kind)["latency_ms"]["p50"]
        return f"{median:.2g}" if median < 100 else f"{median:.0f}"

    kinds = {"columns": "columns", "LIKE": "`LIKE`", "LIKE and filters": "both together"}
    for kind, name in kinds.items():
        cells = (errors("countless", kind), errors("same bytes", kind), f"{of('countless', kind)['coverage']:.0%}")
        times = ms("countless", kind), ms("DuckDB in memory", kind)
        assert f"| {' | '.join((name, *cells, *times))} |" in readme
    slow = sorted(float(ms("DuckDB in memory", kind)) for kind in kinds)
    fast = sorted(float(ms("countless", kind)) for kind in kinds)
    assert f"take DuckDB {slow[0]:g} to {slow[-1]:g} ms, and Countless {fast[0]:g} to {fast[-1]:g} ms" in readme


def test_every_result_is_told_somewhere() -> None:
    folder = ROOT / "docs" / "results"
    matches = re.findall(r"`([\w/.*-]+)`", (folder / "README.md").read_text(encoding="utf-8"))
    known = {path for name in matches for path in folder.glob(name.replace("/*", "/**/*")) if path.is_file()}
    files = {path for path in folder.rglob("*") if path.is_file()}
    assert files - known == {folder / "README.md"}


def test_every_picture_is_shown_somewhere() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [path.name for path in (ROOT / "docs" / "images").iterdir() if path.name not in text] == []
