"""Random tables: every DuckDB type, awkward content, awkward names and shapes. A seed draws the same table again."""

from __future__ import annotations

import random
from dataclasses import dataclass

from countless.cached_property import cached_property
from countless.data.columns.types import quote_identifier, stored_type
from countless_lab.fuzz.values import EQUAL_HASHES, MANY, NAMES, SAME_BUT_FOR_CASE, VALUES

DUCKDB, RELATION, PARQUET, CSV, JSON = "a DuckDB file", "a DuckDB relation", "Parquet", "CSV", "JSON lines"
PANDAS, POLARS, ARROW = "pandas", "polars", "Arrow"
FORMS = (DUCKDB, RELATION, PARQUET, CSV, JSON, PANDAS, POLARS, ARROW)
# Types that a form cannot hold, because its writer refuses them.
REFUSED = {
    JSON: {"DECIMAL(18,18)"},  # DuckDB writes .5, which it cannot read
    PANDAS: {"UHUGEINT", "BIGNUM", "DATE", "TIME WITH TIME ZONE"},
    POLARS: {"INTERVAL", "UNION(n INTEGER, s VARCHAR)"},
}
ROWS = (1, 2, 30, 400, 3_000)
MANY_COLUMNS = 300
FEW_VALUES, MIXED, DISTINCT = "few", "mixed", "distinct"  # how many values a column has

# Kinds of content, which the features of a table name.
ONE_ROW, ALL_NULL, WIDE, CASE = "one row", "a column of NULLs", "300 columns", "names that differ in case"
INVALID_UTF8, EQUAL_HASH, NUL, COMBINING = "invalid UTF-8", "equal hashes", "NUL character", "combining character"
NEGATIVE_ZERO, NAN, HUGE_DECIMAL, TEXT, GRID = "-0", "NaN", "huge decimal", "long strings", "thousands of values"
CONTENT = (
    *(ONE_ROW, ALL_NULL, WIDE, CASE, INVALID_UTF8, EQUAL_HASH, NUL, COMBINING),
    *(NEGATIVE_ZERO, NAN, HUGE_DECIMAL, TEXT, GRID),
)
MARKS = {NUL: "chr(0)", COMBINING: "chr(769)", NEGATIVE_ZERO: "'-0.0'", HUGE_DECIMAL: "'99999999999999999999999999999"}


@dataclass(frozen=True)
class RandomColumn:
    """A column: its name and type, SQL for its value in row number ``range``, and what is special about it."""

    name: str
    type: str
    value: str
    features: frozenset[str]


@dataclass(frozen=True)
class RandomTable:
    """A table, the form that it is given in, and the options that it is fitted with."""

    seed: int
    rows: int
    columns: tuple[RandomColumn, ...]
    form: str
    names: tuple[str, ...]  # of the columns, as the form has them
    invalid_utf8: bool
    max_distinct: int
    text: tuple[str, ...]  # columns of strings that are to be modelled as text

    @property
    def select(self) -> str:
        """SQL for the rows, with column names that differ in more than case."""
        selected = (f"{column.value} AS {quote_identifier(column.name)}" for column in self.columns)
        return f"SELECT {', '.join(selected)} FROM range({self.rows})"

    @cached_property
    def features(self) -> frozenset[str]:
        """Everything special about the table: its types, its form, and kinds of content."""
        names = {self.form, *(column.type for column in self.columns)}
        names |= {feature for column in self.columns for feature in column.features}
        shape = {
            ONE_ROW: self.rows == 1,
            WIDE: len(self.columns) >= MANY_COLUMNS,
            CASE: len({name.casefold() for name in self.names}) < len(self.names),
            INVALID_UTF8: self.invalid_utf8,
        }
        return frozenset(names | {feature for feature, is_so in shape.items() if is_so})

    def __str__(self) -> str:
        rows, columns = f"{self.rows:,} row{'s'[: self.rows != 1]}", f"{len(self.columns)} column"
        return f"{self.form}, {rows}, {columns}{'s'[: len(self.columns) != 1]}"


def every_feature() -> frozenset[str]:
    """All features that a table may have."""
    return frozenset({*VALUES, *FORMS, *CONTENT})


def draw_table(seed: int, form: str | None = None) -> RandomTable:
    """The table of this seed; in ``form``, if one is given.

    >>> table = draw_table(3)
    >>> table == draw_table(3), table.features <= every_feature()
    (True, True)
    """
    rng = random.Random(seed)
    form = form or rng.choice(FORMS)
    wide = rng.random() < 0.04
    rows = rng.choice(ROWS[:3] if wide else ROWS)
    names = [f"c{index}" for index in range(MANY_COLUMNS)] if wide else rng.sample(NAMES, rng.randint(1, 13))
    if form in (CSV, PANDAS, POLARS, ARROW) and not wide and rng.random() < 0.25:
        form_names = rng.sample(SAME_BUT_FOR_CASE, len(SAME_BUT_FOR_CASE))
        names = [f"c{index}" for index in range(len(form_names))]
    else:
        form_names = names
    kinds = [kind for kind in VALUES if kind not in REFUSED.get(form, ())]
    columns = tuple(draw_column(name, rng.choice(kinds), rng, rows) for name in names)
    strings = [name for name, column in zip(form_names, columns, strict=True) if stored_type(column.type) == "VARCHAR"]
    has_text = form not in (CSV, JSON) and form_names == names and not wide and rng.random() < 0.5
    return RandomTable(
        seed,
        rows,
        columns,
        form,
        tuple(form_names),
        invalid_utf8=form == CSV and rng.random() < 0.3,
        max_distinct=rng.choice([2, 5, 100_000, 100_000]),
        text=tuple(rng.sample(strings, rng.randint(0, len(strings)))) if has_text else (),
    )


def draw_column(name: str, kind: str, rng: random.Random, rows: int) -> RandomColumn:
    """A column of this type: a few awkward values, many different ones, or both, and some or only NULLs."""
    values = VALUES[kind]
    sample = rng.sample(values, rng.randint(1, len(values)))
    listed = ", ".join(f"CAST({value} AS {kind})" for value in sample)
    few_sql = f"[{listed}][1 + CAST({_random(rng)} % {len(sample)} AS BIGINT)]"
    amount = rng.choice([FEW_VALUES, MIXED, DISTINCT]) if kind in MANY else FEW_VALUES
    value, features = few_sql, {feature for feature, mark in MARKS.items() if mark in listed}
    if amount != FEW_VALUES:
        many_sql = f"CAST({rng.choice(MANY[kind]).format(h=_random(rng))} AS {kind})"
        value = (
            many_sql if amount == DISTINCT else f"CASE WHEN {_random(rng)} % 3 = 0 THEN {few_sql} ELSE {many_sql} END"
        )
        features = set() if amount == DISTINCT else features
        features |= {feature for feature in (NUL, COMBINING) if MARKS[feature] in many_sql}
        features |= {GRID} if rows > 2_000 else set()
        features |= {TEXT} if rows > 2_000 and "customer" in many_sql else set()
    if amount != DISTINCT:
        features |= {NAN} if kind in ("FLOAT", "DOUBLE") and "'nan'" in sample else set()
        features |= {EQUAL_HASH} if set(EQUAL_HASHES) <= set(sample) and rows >= 30 else set()
    nulls = rng.choice([0, 0, 1, 50, 100])
    if nulls == 100:
        features = {ALL_NULL}
    elif nulls:
        value = f"CASE WHEN {_random(rng)} % 100 >= {nulls} THEN {value} END"
    return RandomColumn(name, kind, f"CAST(NULL AS {kind})" if nulls == 100 else value, frozenset(features))


def _random(rng: random.Random) -> str:
    """SQL for a random 64-bit number that differs in every row."""
    return f"hash(range, {rng.randrange(1 << 30)})"
