"""Every public function documents its arguments, its result and an example that is a doctest."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from types import FunctionType, MethodType
from typing import Any

import pytest

import countless
from countless.settings import Options, setting_of

# The estimator calls these, users do not.
INTERNAL = {"PreparedQuestion.joint_of"}
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises):\n((?:(?: {4}.*)?\n?)+)", re.M)


def _documented(name: str) -> Iterator[tuple[str, Any]]:
    """A public name, and if it is a class its public methods and properties."""
    value = getattr(countless, name)
    yield name, value
    if inspect.isclass(value) and not issubclass(value, Exception | Options):
        for attribute, member in inspect.getmembers(value):
            public = not attribute.startswith("_") and f"{name}.{attribute}" not in INTERNAL
            if public and isinstance(member, property | cached_property | FunctionType | MethodType):
                yield f"{name}.{attribute}", member


PUBLIC = dict(item for name in countless.__all__ if name != "__version__" for item in _documented(name))
FUNCTIONS = {name: value for name, value in PUBLIC.items() if isinstance(value, FunctionType | MethodType)}
CLASSES = {name: value for name, value in PUBLIC.items() if inspect.isclass(value)}


def sections(value: Any) -> dict[str, str]:
    """The sections of a docstring, by their headings."""
    return dict(SECTION.findall(inspect.cleandoc(value.__doc__ or "") + "\n"))


def described(text: str) -> set[str]:
    """The names that a section describes, each as ``name: words``."""
    return set(re.findall(r"^ {4}(\w+): \S", text, re.M))


def test_sections_are_found() -> None:
    def example() -> None:
        """A sentence.

        Args:
            first: One line.
            second: Two
                lines: with a colon.

        Returns:
            A number.
        """

    assert described(sections(example)["Args"]) == {"first", "second"}
    assert set(sections(example)) == {"Args", "Returns"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_describes_its_arguments_and_its_result(name: str) -> None:
    function = FUNCTIONS[name]
    found, signature = sections(function), inspect.signature(function)
    arguments = set(signature.parameters) - {"self", "cls"}
    assert described(found.get("Args", "")) == arguments
    assert ("Returns" in found) == (signature.return_annotation not in (None, "None"))


@pytest.mark.parametrize("name", [name for name in PUBLIC if not name.startswith("Listener.")])
def test_everything_public_has_an_example(name: str) -> None:
    value = PUBLIC[name]
    if not (inspect.isclass(value) and issubclass(value, Exception)):
        assert "\n>>> " in inspect.cleandoc(value.__doc__ or "")


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_describes_its_fields(name: str) -> None:
    kind = CLASSES[name]
    text = kind.__doc__ or ""
    if issubclass(kind, Options):
        unknown = [
            field.name
            for field in dataclasses.fields(kind)
            if not setting_of(field).help and f"``{field.name}``" not in text
        ]
        assert unknown == []
    elif dataclasses.is_dataclass(kind):
        found = sections(kind)
        own = [name for name in kind.__annotations__ if not name.startswith("_")]
        assert described(found.get("Attributes", "") + found.get("Args", "")) == set(own)
    elif not issubclass(kind, Exception) and kind is not countless.Listener:
        arguments = set(inspect.signature(kind).parameters)
        assert described(sections(kind).get("Args", "")) == arguments


@pytest.mark.parametrize("name", [name for name, kind in CLASSES.items() if issubclass(kind, Exception)])
def test_an_error_says_in_a_sentence_when_it_is_raised(name: str) -> None:
    first = inspect.cleandoc(CLASSES[name].__doc__ or "").partition("\n")[0]
    assert re.fullmatch(r"[A-Z].{20,}\.", first)
