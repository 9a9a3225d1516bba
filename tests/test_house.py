"""The house keeps its shape: what is public, what is documented, what is drawn."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections import Counter
from pathlib import Path

import click
import pytest

import countless
import countless_lab
from countless import errors
from countless.cli.main import cli

PUBLIC = {
    "Check",
    "ColumnLeftOutError",
    "Completed",
    "CountlessError",
    "CsvFile",
    "DataError",
    "Distribution",
    "EmptyTableError",
    "Estimate",
    "Estimator",
    "Listener",
    "MissingExtraError",
    "ModelFileError",
    "Network",
    "NoRowsError",
    "OptionError",
    "Predicate",
    "PreparedQuestion",
    "QueryError",
    "QueryResult",
    "QuerySyntaxError",
    "QueryTooLargeError",
    "QueryTypeError",
    "ReadingOptions",
    "ResourceOptions",
    "Sample",
    "SourceError",
    "StorageOptions",
    "TextNetwork",
    "TrainingError",
    "TrainingOptions",
    "UnknownColumnError",
    "UnsupportedQueryError",
    "__version__",
    "col",
    "fit",
    "load",
}
MODULES = [
    module.name
    for package in (countless, countless_lab)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.rpartition(".")[2].startswith("_")
]
ROOT = Path(__file__).parents[1]


def test_the_public_names() -> None:
    assert set(countless.__all__) == PUBLIC
    assert all(hasattr(countless, name) for name in PUBLIC)


@pytest.mark.parametrize("name", MODULES)
def test_everything_public_is_documented(name: str) -> None:
    module = importlib.import_module(name)
    if name != "countless.cli.main":
        assert module.__doc__, f"{name} has no docstring"
    for attribute, value in vars(module).items():
        if attribute.startswith("_") or getattr(value, "__module__", None) != name:
            continue
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, f"{name}.{attribute} has no docstring"


def test_every_error_is_drawn_in_the_tree() -> None:
    kinds = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.CountlessError)
    }
    assert kinds == set(re.findall(r"\w+Error", errors.__doc__ or ""))


def test_the_readme_names_the_commands_that_exist() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in readme
    assert "make test" in readme
    assert "every distinct value" in readme


@pytest.mark.parametrize("page", ["README.md", "docs/commands.md"])
def test_command_lines_in_the_docs_are_not_stale(page: str) -> None:
    lines = re.findall(r"^\$ countless (\w+) (.*)$", (ROOT / page).read_text(encoding="utf-8"), re.M)
    assert {command for command, _ in lines} >= {"fit", "estimate", "explain", "evaluate", "info"}
    for name, rest in lines:
        command = cli.get_command(click.Context(cli), name)
        if isinstance(command, click.Group):
            command = command.get_command(click.Context(command), rest.split()[0])
        assert command is not None
        known = {option for parameter in command.params for option in parameter.opts}
        assert set(re.findall(r"(?<!\S)\[?(--?[a-z][a-z-]*)", rest.split("#")[0])) <= known


def test_the_changelog_and_the_citation_know_this_version() -> None:
    assert f"## {countless.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\nversion: {countless.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_no_source_file_is_about_everything() -> None:
    large = [path.name for path in (ROOT / "src").rglob("*.py") if path.stat().st_size > 20_000]
    assert large == []


def test_every_public_class_name_occurs_once() -> None:
    names = Counter(
        node.name
        for path in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []
