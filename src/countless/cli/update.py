"""The ``countless update`` command: train a model on new rows of its table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from countless.cli.model_files.rewriting import output_option, require_whole, rewritten, summarize_written
from countless.cli.parameters.options import model_argument, table_argument
from countless.cli.parameters.settings import GroupedCommand, options_from
from countless.cli.terminal import display as show
from countless.data.sources.csv_files import CsvFile
from countless.options import UpdateOptions


@click.command(
    cls=GroupedCommand,
    epilog="\b\nExamples:\n"
    "  countless update people.countless today.parquet\n"
    "  countless update people.countless 'logs/2024-*.csv' -o newer.countless --budget 2m\n"
    "  countless update people.countless today.parquet --replay people.parquet",
)
@model_argument
@table_argument("rows")
@output_option
@click.option(
    "--replay",
    default=None,
    help="Where old rows come from, to be learned along with the new ones: evidence (the file's own rows), "
    "model, or the old table.  [default: evidence, if the file has any; else model]",
)
@options_from(UpdateOptions)
def update(model: Path, rows: str | CsvFile, output: Path | None, replay: str | None, **options: Any) -> int:
    """Add ROWS to what MODEL knows, without fitting it again.

    ROWS is a table of only the new rows, as countless fit takes one, with every column of the model. They are learned
    together with old rows, so that these are not forgotten. Exact counts are added up. New values are added to the
    model. The old file is replaced only when the new one is complete. Ctrl-C stops training after the current step and
    keeps the best weights so far; at any other time it leaves the old file unchanged.
    """
    output = output or model
    updated = rewritten(
        "update", model, output, rows, lambda old, view: old.update(rows, replay=replay, listener=view, **options)
    )
    lines = _summary(updated.report["updates"][-1])
    summarize_written(updated, output, lines, f", of {show.plural(updated.rows, 'row')}")
    if updated.report["interrupted"]:
        show.progress().print("stopped early: the file holds the best model so far", style="yellow")
        return 130
    require_whole(updated.report, output, ["TABLE"])
    return 0


def _summary(entry: dict[str, Any]) -> list[str]:
    """Lines that say what an update did."""
    lines = [f"{show.plural(entry['rows'], 'new row')} beside {entry['rows_before']:,} old ones"]
    if entry["new_codes"]:
        added = ", ".join(f"{name} {count:,}" for name, count in entry["new_codes"].items())
        lines.append(f"new values or cells: {added}")
    trained = [("rows", entry)] if "bits_after" in entry else []
    if "text" in entry:
        trained.append((", ".join(entry["text"]["columns"]), entry["text"]))
    for name, part in trained:
        bits = "; ".join(
            f"{kind} {part['bits_before'][kind]:.2f}, now {part['bits_after'][kind]:.2f}" for kind in part["bits_after"]
        )
        lines.append(
            f"{name}: {show.plural(part['epochs'], 'epoch')} in {show.duration(part['training_seconds'])}; "
            f"bits a {part['unit']}: {bits}"
        )
    return lines
