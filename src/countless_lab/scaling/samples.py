"""Uniform samples of a large table as Parquet files, and their answers."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from countless.data.atomic_files import write_whole
from countless.data.sources.file_formats import quote_path
from countless.data.sources.source import Source
from countless.estimator.answers.estimate import Estimate
from countless_lab.scaling.answers import ScaleAnswers, ask_method
from countless_lab.scaling.questions import ScaleQuestions, ScaleTruth
from countless_lab.scoreboard.opponents import SAMPLE_SEED, DuckDBTable, without_interval

ROUNDS = 3  # of adjusting the number of rows to the number of bytes
NEAR = 0.03  # the sample's bytes may differ from the model's by this share


def draw_sample(table: Path, rows: int, out: Path) -> None:
    """Write a uniform sample, sorted by the last column first, which makes the file small."""
    source = Source.open(table)
    names = [name for name, _ in source.columns()]
    with source.sample_table(rows, SAMPLE_SEED, names, source.count()) as sample:
        order = ", ".join(str(column) for column in range(len(names), 0, -1))
        options = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 6"
        select = f"SELECT * FROM {sample.table} ORDER BY {order}"
        write_whole(out, lambda path: source.run(f"COPY ({select}) TO {quote_path(path)} ({options})"))


def draw_sample_of_bytes(table: Path, size: int, first: Path, out: Path) -> None:
    """Write a uniform sample of about ``size`` bytes. ``first`` is another sample, from which bytes a row are known."""
    total, measured = pq.read_metadata(table).num_rows, first
    for _ in range(ROUNDS):
        rows = round(pq.read_metadata(measured).num_rows * size / measured.stat().st_size)
        draw_sample(table, max(1, min(rows, total)), out)
        if rows >= total or abs(out.stat().st_size / size - 1) < NEAR:
            return
        measured = out


def ask_sample(
    name: str, sample: Path, table: Path, questions: ScaleQuestions, truth: ScaleTruth
) -> tuple[ScaleAnswers, int]:
    """The scaled counts of a sample in DuckDB's memory, and how many rows it has."""
    memory = DuckDBTable(sample)
    scale = pq.read_metadata(table).num_rows / memory.rows

    def estimate(hits: float) -> Estimate:
        return without_interval(scale * hits, name, exact=False)

    def groups(column: str, where: str) -> dict[str | None, Estimate]:
        return {value: estimate(hits) for value, hits in memory.groups(column, where).items()}

    answers = ask_method(name, lambda where: estimate(memory.exact(where).rows), groups, questions, truth)
    return answers, memory.rows
