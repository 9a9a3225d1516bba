"""Response schemas of the service for its OpenAPI document; tests validate the answers with them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Kind = Literal["category", "number", "time", "text"]


class Reply(BaseModel):
    """An answer: the document lists all its fields."""

    model_config = ConfigDict(extra="forbid")


class Problem(Reply):
    """Why there is no answer: the text of the command line, and the half-open range of characters at fault."""

    message: str
    kind: str = Field(description="The name of the error in Python.")
    span: tuple[int, int] | None


class Refused(Reply):
    """The body of every answer whose status is 400 or more."""

    error: Problem


class Health(Reply):
    """The service is running."""

    status: Literal["ok", "degraded"] = Field(description="Degraded: some threads do not stop, others answer.")
    stuck: int = Field(description="Threads that still work on questions that were given up.")
    models: int
    version: str


class ModelLine(Reply):
    """A model in short."""

    name: str
    rows: int
    columns: int = Field(description="Columns that can be asked about, text included.")
    texts: int
    checkable: bool = Field(description="Whether the service was started with the model's table.")
    version: str = Field(description="A digest of the model file: another one means that the model was replaced.")


class Models(Reply):
    """Every model that is served."""

    models: list[ModelLine]


class ColumnLine(Reply):
    """A column, and how it is shown."""

    name: str
    type: str
    kind: Kind
    distinct: int
    has_null: bool
    binned: bool = Field(description="Whether it has too many values to be listed one by one.")


class LeftOutLine(Reply):
    """A column of the table that the model does not hold."""

    name: str
    type: str
    reason: str


class Model(Reply):
    """A model in full."""

    name: str
    rows: int
    checkable: bool
    version: str
    columns: list[ColumnLine]
    left_out: list[LeftOutLine]
    training: dict[str, Any]
    interval: dict[str, Any]


class Estimated(Reply):
    """An estimated number of rows and its error bar."""

    where: str
    rows: float
    low: float
    high: float
    level: float
    selectivity: float
    exact: bool = Field(description="Whether this is the table's own count, which has no error bar.")
    sampled: bool = Field(description="Whether the model was sampled; if not, it was asked in full.")
    ms: float


class Unanswered(Reply):
    """A clause of several that cannot be answered."""

    where: str
    error: Problem


class Estimates(Reply):
    """One for each clause, in their order."""

    estimates: list[Estimated | Unanswered]
    ms: float


class Share(Reply):
    """A group of the condition's rows."""

    share: float
    rows: float
    low: float
    high: float


class ValueShare(Share):
    """The rows that have a value, as DuckDB prints it; null is NULL."""

    value: str | None


class BinShare(Share):
    """The rows from one edge up to the next, which only the last bin includes.

    Edges are numbers, or times as DuckDB prints them; null is NULL.
    """

    from_: float | str | None = Field(alias="from")
    to: float | str | None


class Others(Reply):
    """The values that are not listed."""

    values: int
    share: float
    rows: float


class Card(Reply):
    """A column's values among the rows of the condition."""

    column: str
    kind: Literal["category", "number", "time"]
    values: list[ValueShare] | list[BinShare]
    others: Others | None
    disagreement: float = Field(
        description="By how much the values' sum was off from the count before they were made to fit: 0.1 is 10% more."
    )
    counted: bool = Field(description="Whether the rows are the table's own counts, not estimates.")
    sampled: bool = Field(description="Whether the model was sampled; if not, it was asked in full.")


class Distributions(Reply):
    """How many rows the condition keeps, and a card for each column."""

    total: Estimated
    cards: list[Card]
    ms: float


class PieceShare(Share):
    """The rows whose string begins, or ends, with a text."""

    text: str


class PiecesReply(Reply):
    """How many rows the condition keeps, and the most frequent beginnings and endings of a column among them."""

    total: Estimated
    column: str
    starts: list[PieceShare]
    ends: list[PieceShare]
    ms: float


class NamedType(Reply):
    """A column of a result."""

    name: str
    type: str


class Result(Reply):
    """The rows of a query, with the names and types that DuckDB gives them."""

    columns: list[NamedType]
    rows: list[list[Any]]
    count: Estimated
    disagreement: float
    left_out_rows: float
    ms: float


class Sampled(Reply):
    """Rows that the model would write."""

    columns: list[NamedType]
    rows: list[list[Any]]
    requested: int = Field(
        description="How many rows were asked for. It is more than the rows sent if the rest failed the condition."
    )
    effective_size: float = Field(description="How many independently drawn rows they are worth.")
    enumerated: bool = Field(description="Whether they were drawn from all rows that the model says can match.")
    ms: float


class Checked(Reply):
    """How many rows of the table match, exactly."""

    rows: int
    ms: float
