"""The OpenAPI document: what it promises is what is answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from countless.serve.api.app import REFUSALS
from tests.serve.conftest import Client

OPERATIONS = [
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/{name}"),
    ("POST", "/v1/models/{name}/estimate"),
    ("POST", "/v1/models/{name}/distribution"),
    ("POST", "/v1/models/{name}/pieces"),
    ("POST", "/v1/models/{name}/query"),
    ("POST", "/v1/models/{name}/sample"),
    ("POST", "/v1/models/{name}/check"),
]


@pytest.fixture(scope="module")
def document(client: Client) -> Any:
    return client.get("/openapi.json").json


def test_all_of_it_is_documented(document: Any) -> None:
    assert [(method.upper(), path) for path, item in document["paths"].items() for method in item] == OPERATIONS
    for name, schema in document["components"]["schemas"].items():
        assert name.endswith("Request") <= bool(schema.get("examples")), name


def test_refusals_of_a_body_are_told_where_there_is_one(document: Any) -> None:
    responses = {
        (method, path): set(document["paths"][path][method.lower()]["responses"]) for method, path in OPERATIONS
    }
    assert responses["GET", "/v1/models"] == {"200", "401", "403", "408", "429"}
    assert responses["GET", "/v1/models/{name}"] == {"200", "401", "403", "404", "408", "429"}
    assert responses["POST", "/v1/models/{name}/check"] == {"200", *map(str, REFUSALS)}
    assert not {"HTTPValidationError", "ValidationError"} & set(document["components"]["schemas"])


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_whatever_is_asked_is_answered_as_documented(
    client: Client, document: Any, method: str, path: str, mode: GenerationMode
) -> None:
    """With bodies that are as they should be, most of which are no SQL, and with such that are not."""
    if method == "GET" and mode is GenerationMode.NEGATIVE:
        return
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=f"http://127.0.0.1:{client.port}")

    @settings(
        max_examples=1 if method == "GET" else 25,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=schema[path][method].as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        if method == "POST":
            case.path_parameters["name"] = "people"
        case.call_and_validate(excluded_checks=[positive_data_acceptance])

    ask()


@pytest.mark.parametrize(("method", "path"), [item for item in OPERATIONS if item[0] == "POST"])
def test_examples_are_answered(client: Client, document: Any, method: str, path: str) -> None:
    content = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]
    known = document["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]["examples"]
    assert [each["value"] for each in content["examples"].values()] == known
    for example in known:
        if "columns" in example:
            example = {**example, "columns": ["city", "age"]}
        assert client.post(path.format(name="people"), example).status == 200


def test_a_token_is_documented(start: Callable[..., Client], document: Any) -> None:
    assert "securitySchemes" not in document["components"]
    found = start(token="sesame").get("/openapi.json").json
    ((name, scheme),) = found["components"]["securitySchemes"].items()
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    for path, item in found["paths"].items():
        for operation in item.values():
            assert operation.get("security") == ([{name: []}] if path.startswith("/v1/") else None)
