"""Request schemas of the service: the JSON bodies it accepts."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from countless.serve.api import limits

Clause = Annotated[str, Field(max_length=limits.CLAUSE_CHARACTERS, description="A condition in SQL.")]
Name = Annotated[str, Field(max_length=limits.NAME_LENGTH)]
Clauses = Annotated[list[Clause], Field(min_length=1, max_length=limits.CLAUSES)]


def _form(where: Any) -> str:
    return "list" if isinstance(where, list) else "clause"


class RequestBody(BaseModel):
    """A body without unknown fields, in which every field has its exact type."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Valid bodies."""
        extra: Any = cls.model_config["json_schema_extra"]
        examples: list[dict[str, Any]] = extra["examples"]
        return examples

    def clauses(self) -> list[str]:
        """The SQL in the body."""
        where = getattr(self, "sql", None) or getattr(self, "where", None) or []
        return [where] if isinstance(where, str) else list(where)


class EstimateRequest(RequestBody):
    """One clause, or a list of clauses, each of which gets its own answer or error."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"where": "TRUE"}, {"where": ["TRUE", "NOT TRUE"]}]})

    where: Annotated[Annotated[Clause, Tag("clause")] | Annotated[Clauses, Tag("list")], Discriminator(_form)]


class DistributionRequest(RequestBody):
    """Columns, each of which gets a card of its own, all under the same condition."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"columns": ["education", "age"], "where": "age < 30", "bins": 24, "top": 12}],
        }
    )

    columns: Annotated[list[Name], Field(min_length=1, max_length=limits.COLUMNS)]
    where: Clause | None = None
    bins: Annotated[int, Field(ge=1, le=limits.BINS, description="About this many bins of numbers and times.")] = 24
    top: Annotated[
        int, Field(ge=1, le=limits.TOP, description="This many values of a category; the rest is folded.")
    ] = 12
    search: Annotated[
        dict[Name, Name],
        Field(description="For categories, by column: only values that contain this text, whatever its case."),
    ] = {}


class PiecesRequest(RequestBody):
    """A column of strings, to list its most frequent beginnings and endings."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"column": "city", "where": "TRUE", "top": 6}]})

    column: Name
    where: Clause | None = None
    top: Annotated[int, Field(ge=1, le=limits.PIECES, description="This many beginnings, and this many endings.")] = 6


class QueryRequest(RequestBody):
    """A SELECT with aggregates; the table may have any name."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"sql": "SELECT count(*) FROM t", "intervals": False}]})

    sql: Clause
    intervals: Annotated[bool, Field(description="Add columns with the ends of every aggregate's error bar.")] = False


class SampleRequest(RequestBody):
    """How many rows to draw, and among which."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"count": 20, "where": None, "seed": None}]})

    count: Annotated[int, Field(ge=1, le=limits.SAMPLE_ROWS)] = 20
    where: Clause | None = None
    seed: Annotated[int, Field(ge=0, le=limits.SEED, description="Another seed draws other rows.")] | None = None


class CheckRequest(RequestBody):
    """A clause whose rows are counted in the table."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"where": "TRUE"}]})

    where: Clause


QUESTIONS: dict[str, type[RequestBody]] = {
    "estimate": EstimateRequest,
    "distribution": DistributionRequest,
    "pieces": PiecesRequest,
    "query": QueryRequest,
    "sample": SampleRequest,
    "check": CheckRequest,
}
