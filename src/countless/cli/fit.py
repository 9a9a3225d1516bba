"""The ``countless fit`` command: fit a model of a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from countless.cli.model_files.files_beside import checkpoint_of, codes_of
from countless.cli.model_files.fit_record import REPORT_FIELD, Run
from countless.cli.model_files.locking import hold
from countless.cli.model_files.longer_training import longer_training, table_words
from countless.cli.model_files.rewriting import require_whole
from countless.cli.parameters.config_file import config_option
from countless.cli.parameters.settings import GroupedCommand, GroupedOption, options_from, options_of
from countless.cli.terminal import display as show
from countless.cli.terminal.fit_progress import fit_and_save, require_writable
from countless.options import (
    TEXT_PRESETS,
    FitOptions,
    Network,
    ReadingOptions,
    ResourceOptions,
    StorageOptions,
    TextNetwork,
    TrainingOptions,
)
from countless.store import is_model, read


@click.command(
    cls=GroupedCommand,
    epilog="\b\nExamples:\n"
    "  countless fit people.parquet -o people.countless\n"
    "  countless fit 'logs/*.csv' -o logs.countless --exclude id --budget 5m\n"
    "  countless fit orders.csv -o orders.countless --csv delim=';' --csv decimal_separator=','\n"
    "  countless fit people.parquet -o people.countless --derive 'lower(city) AS city_lower'\n"
    "  countless fit --query \"SELECT * FROM 'orders.csv' JOIN 'shops.parquet' USING (shop)\" -o orders.countless\n"
    "  countless fit people.parquet -o people.countless --workload queries.sql\n"
    "  countless fit shop.duckdb --table orders -o orders.countless\n"
    "  countless fit postgresql://ann@db/shop --table sales.orders -o orders.countless\n"
    "  countless fit postgresql://ann@db/shop --query 'SELECT * FROM orders WHERE year > 2020' -o recent.countless\n"
    "  countless fit urls.txt -o urls.countless --max-length 100\n"
    "  countless fit 'events/*.parquet' -o events.countless --memory 2GB\n"
    "  countless fit people.parquet -o people.countless --config fit.toml --json --quiet\n"
    "  COUNTLESS_DATA=~/downloads countless fit census -o census.countless\n"
    "  countless fit 'logs/*.parquet' -o logs.countless --ray auto --workers 8 --shared /mnt/shared\n"
    "  countless fit people.parquet -o people.countless --resume\n"
    "  countless train people.countless people.parquet --budget 5m",
)
@click.argument("source", required=False)
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The model file to write.")
@config_option
@click.option("--quiet", "-q", is_flag=True, help="Print warnings and errors only.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object, on standard output.")
@click.option(
    "--progress",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to show progress on standard error; json is one object per line.",
)
@options_from(ReadingOptions, Network)
@click.option(
    "--text-preset",
    cls=GroupedOption,
    group=TextNetwork.heading,
    type=click.Choice([*TEXT_PRESETS]),
    help="Train this Transformer on text: the default trains in minutes; the paper's is deeper.",
)
@options_from(TextNetwork, TrainingOptions, ResourceOptions, StorageOptions)
@click.option(
    "--keep-training/--no-keep-training",
    cls=GroupedOption,
    group=StorageOptions.heading,
    default=None,
    help="Keep what countless train needs in MODEL.training, three times the weights in full precision  "
    "[default: unless it takes more than 250 MB]",
)
def fit(
    source: str | None,
    output: Path,
    text_preset: str | None,
    keep_training: bool | None,
    quiet: bool,
    as_json: bool,
    progress: str,
    **values: Any,
) -> int:
    """Learn a table and write a model file.

    SOURCE is a CSV, Parquet or JSON file, or a text file with one string per line (all but Parquet also as .gz or
    .zst); a glob in quotes; a DuckDB database file or a postgresql:// URL, with --table or --query; or the name of a
    data set. The data sets adult and npm_urls come with Countless. The paper's data sets census, kdd, dmv-full and
    dryad-urls are read from files that you have downloaded to the folder COUNTLESS_DATA, or to the current folder.

    Ctrl-C during training stops after the current step, measures error bars and writes the best model so far; --resume
    continues. A second Ctrl-C, or SIGTERM, ends the fit without a model, but what was trained is kept for --resume.
    Ctrl-C before training ends the fit; the same command then starts again, or continues if a message names what is
    kept (a table larger than memory).

    --budget is the time that you wait, from the start of the command to its end: reading, counting, training and error
    bars together. Error bars may take 5% more. If less than a third of the budget is left after reading and counting,
    training and error bars get a third anyway. The fit then takes longer than the budget, and a warning says so. A fit
    that continues with --resume has the whole budget again; a network that was already started keeps the time it was
    given.

    --query alone reads the files that it names. --csv says how to read a CSV file if DuckDB guesses wrong. Its names
    are those of DuckDB's read_csv (docs/data.md lists them).

    --derive adds a column that DuckDB computes from one row, with the functions that a WHERE clause may call. Other
    commands take the table without it.

    A database is only read. Keep the password for PostgreSQL in PGPASSWORD or in ~/.pgpass.

    The file of --workload has one clause or one SELECT per line, or statements that end with a semicolon, or the JSON
    lines of countless evaluate --save. Countless looks at which columns are asked together.

    With --ray a cluster encodes and trains, and the checkpoint is in the folder --shared. A lost worker is replaced
    (docs/scaling.md).
    """
    if source is None:
        source, values["query"] = values["query"], None
        if source is None:
            raise click.UsageError(
                "Missing argument 'SOURCE': give a file, a database, or --query \"FROM 'orders.csv'\""
            )
    options = _options(output, text_preset, values)
    resume = options.resources.resume
    words = table_words(source, options.reading.table, options.reading.query)  # the model keeps the options of --csv
    console = show.progress(only_warnings=quiet, as_json=progress == "json")
    beside = _beside(output, options.resources.shared)
    require_writable(output)
    hold("fit", output, beside)
    run = Run.of(beside, source, options, text_preset or "default")
    longer = f"to train it longer: {longer_training(output, words, options.training.workload)}"
    message = _how_it_starts(run, output, resume, longer)
    if message is None:
        require_whole(read(output).report, output, words)
        message = f"nothing to resume: {output} is finished, of this table and with these options"
        console.print(f"{message}; {longer}; to fit it anew leave --resume out", soft_wrap=True)
        return 0
    click.get_current_context().with_resource(run.recorded(resume))
    estimator = fit_and_save(
        console,
        source,
        output,
        how_it_starts=message,
        beside=beside,
        on_training=(lambda: None) if resume else run.replace_earlier,
        report_fields={REPORT_FIELD: run.to_json()},
        options=options,
        keep=keep_training,
        began=click.get_current_context().obj,
    )
    if as_json:
        file = {"file": str(output), "file_bytes": output.stat().st_size, "warnings": console.warnings}
        click.echo(json.dumps(file | estimator.info(), ensure_ascii=False))
    if estimator.report["interrupted"]:
        console.print("stopped early: the file holds the best model so far; add --resume to continue", style="yellow")
        return 130
    require_whole(estimator.report, output, words)
    return 0


def _beside(output: Path, shared: Path | None) -> Path:
    """The path beside which a fit writes its checkpoint and codes."""
    return output if shared is None else shared / output.name


def _options(output: Path, text_preset: str | None, values: Mapping[str, Any]) -> FitOptions:
    """The options that the command was given."""
    beside = _beside(output, values["shared"])
    has_text_model = values["text_model"] or text_preset is not None or values["text_masking"] != TextNetwork().masking
    return FitOptions(
        options_of(ReadingOptions, values),
        replace(options_of(Network, values), text_model=has_text_model),
        replace(TEXT_PRESETS[text_preset or "default"], masking=values["text_masking"]),
        options_of(TrainingOptions, values),
        options_of(ResourceOptions, values, checkpoint=checkpoint_of(beside), codes=codes_of(beside)),
        options_of(StorageOptions, values),
    )


def _how_it_starts(run: Run, output: Path, resume: bool, longer: str) -> str | None:
    """A message about an earlier fit, empty if there was none; None if its model is finished."""
    leftovers = run.leftovers
    names = " and ".join(map(str, leftovers))
    if leftovers and resume:
        run.require_same_options(longer if is_model(output) else "")
        return f"continuing from {names}"
    if leftovers:
        return f"starting again and replacing {names} of an earlier run (--resume continues it)"
    if not resume:
        return ""
    if run.was_killed():
        message = f"the last fit of {output} was killed before its first checkpoint"
        return f"nothing to resume: {message}; starting again"
    if is_model(output):
        difference = run.differs_from(output)
        return None if difference is None else f"nothing to resume: {difference}; starting again"
    return f"nothing to resume: there is no {checkpoint_of(run.output)}; starting again"
