"""``countless fit``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from countless.cli import show
from countless.cli.calibrate import named, require_whole
from countless.cli.fitting import checkpoint_of, checkpoints_left, codes_of, fit_and_save, require_writable
from countless.cli.locking import hold
from countless.cli.options import Amount, Duration, Names
from countless.cli.runs import REPORTED, Run
from countless.data.codes import is_codes
from countless.data.structs import DEFAULT_DEPTH
from countless.data.table import MAX_DISTINCT, MOST_LENGTH
from countless.estimator.learning import BY_ENTROPY, EVEN, TEXT_PRESETS, Network
from countless.spec import RESMADE, TEXT_MASKINGS
from countless.store import DTYPES, is_model, read


@click.command(
    epilog="\b\nExamples:\n"
    "  countless fit people.parquet -o people.countless\n"
    "  countless fit 'logs/*.csv' -o logs.countless --exclude id --budget 5m\n"
    "  countless fit people.parquet -o people.countless --workload queries.sql\n"
    "  countless fit shop.duckdb --table orders -o orders.countless\n"
    "  countless fit postgresql://ann@db/shop --table sales.orders -o orders.countless\n"
    "  countless fit postgresql://ann@db/shop --query 'SELECT * FROM orders WHERE year > 2020' -o recent.countless\n"
    "  countless fit urls.txt -o urls.countless --max-length 100\n"
    "  countless fit 'events/*.parquet' -o events.countless --memory 2GB\n"
    "  COUNTLESS_DATA=~/downloads countless fit census -o census.countless\n"
    "  countless fit 'logs/*.parquet' -o logs.countless --ray auto --workers 8 --shared /mnt/shared\n"
    "  countless fit people.parquet -o people.countless --resume"
)
@click.argument("source")
@click.option("--table", help="The table of a database: orders, or sales.orders; not needed if there is only one.")
@click.option("--query", help="A SELECT, whose rows are learned instead of a table of the database.")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The model file to write.")
@click.option("--columns", type=Names(), help="Fit only these columns; a struct's name stands for all its fields.")
@click.option("--exclude", type=Names(), default=(), help="Leave these columns out; likewise.")
@click.option(
    "--flatten",
    type=click.IntRange(min=0),
    default=DEFAULT_DEPTH,
    show_default=True,
    help="Make columns such as address.city of so many levels of structs; 0 leaves structs out.",
)
@click.option(
    "--epochs",
    type=click.IntRange(min=1),
    help="Passes over the table, however long they take  [default: by its size, 20 to 100, within the budget]",
)
@click.option(
    "--budget",
    type=Duration(),
    help="Time for the whole fit, such as 90s, 5m or 1h  [default: at most 5m, or no limit with --epochs]",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="Seed of everything random."
)
@click.option("--resume", is_flag=True, help="Go on from what a stopped fit left beside the model file.")
@click.option("--masking", default="uniform", show_default=True, help="Input masking: uniform, none, or a probability.")
@click.option("--learning-rate", type=float, help="Adam's peak learning rate  [default: 0.002; of text 0.003]")
@click.option("--batch", type=click.IntRange(min=1), help="Rows per step  [default: by the table's size, 128 to 512]")
@click.option(
    "--hidden", type=click.IntRange(min=1), help="Units of a hidden layer  [default: 256 or 512, by rows and passes]"
)
@click.option(
    "--blocks", type=click.IntRange(min=0), help="Residual blocks of two layers  [default: 3, or 2 of 512 units]"
)
@click.option(
    "--units",
    type=click.Choice([BY_ENTROPY, EVEN]),
    default=BY_ENTROPY,
    show_default=True,
    help="Share units out over the columns by what each tells, or evenly.",
)
@click.option(
    "--embedding",
    type=click.IntRange(min=1),
    default=Network.embedding,
    show_default=True,
    help="Size of an embedding.",
)
@click.option(
    "--kind", default=RESMADE, show_default=True, help="Kind of model for the columns; plugins may bring others."
)
@click.option(
    "--order",
    help="How to read the columns: natural, random, random:SEED, by entropy (falling, rising), or these first: a,b.  "
    "[default: natural; random if there are several]",
)
@click.option(
    "--orders",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Learn so many random orders at once, and answer by their mean.",
)
@click.option(
    "--max-distinct",
    type=click.IntRange(min=1),
    default=MAX_DISTINCT,
    show_default=True,
    help="Store columns with more values as a quantile grid.",
)
@click.option("--text", type=Names(), default=(), help="Model these columns of strings character by character.")
@click.option("--no-text", type=Names(), default=(), help="Do not model these as text, however long and many.")
@click.option(
    "--max-length",
    type=click.IntRange(1, MOST_LENGTH),
    help="Characters of a string to model  [default: as many as 99% of the strings have, up to 256]",
)
@click.option(
    "--text-preset",
    type=click.Choice([*TEXT_PRESETS]),
    default="default",
    show_default=True,
    help="The Transformer for text: the default trains in minutes; the paper's is deeper.",
)
@click.option(
    "--text-masking",
    type=click.Choice(TEXT_MASKINGS),
    default="prefix",
    show_default=True,
    help="What text is trained to skip: prefixes; gaps inside strings too (spans); nothing.",
)
@click.option(
    "--summary/--no-summary",
    default=True,
    show_default=True,
    help="Store exact counts with the model: of values and of pairs of values, some 300 kB, and of frequent n-grams of "
    "text, some 600 kB. Short questions become exact, and others better.",
)
@click.option(
    "--workload",
    type=click.Path(path_type=Path),
    help="A file of WHERE clauses that will likely be asked, one a line or each ended by a semicolon: the last part "
    "of training is about their columns.",
)
@click.option(
    "--memory",
    type=Amount(),
    help="Take no more memory than this, such as 2GB  [default: what the machine has left]. A table that would take "
    "more than half of it goes to a folder beside the model file, and training reads it from there.",
)
@click.option(
    "--sample-rows",
    type=click.IntRange(min=1),
    help="Train on so many random rows; exact counts and error bars are still those of all.",
)
@click.option(
    "--keep-rows",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Keep so many random rows in the file, whole, for countless update to learn along with new ones.",
)
@click.option(
    "--dtype",
    type=click.Choice(DTYPES),
    default=DTYPES[0],
    show_default=True,
    help="How numbers are stored; float32 doubles the file.",
)
@click.option("--ray", metavar="ADDRESS", help="Fit on a Ray cluster: HOST:PORT, or auto for the one that runs here.")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Processes of the cluster that train together  [default: one per GPU, or else per machine]",
)
@click.option("--threads", type=click.IntRange(min=1), help="CPUs of each worker  [default: 1]")
@click.option(
    "--shared",
    type=click.Path(path_type=Path),
    help="A folder that all machines of the cluster see  [default: that of the model file]",
)
def fit(
    source: str,
    table: str | None,
    query: str | None,
    output: Path,
    columns: tuple[str, ...] | None,
    exclude: tuple[str, ...],
    flatten: int,
    epochs: int | None,
    budget: float | None,
    seed: int,
    resume: bool,
    masking: str,
    learning_rate: float | None,
    batch: int | None,
    hidden: int | None,
    blocks: int | None,
    units: str,
    embedding: int,
    kind: str,
    order: str | None,
    orders: int,
    max_distinct: int,
    text: tuple[str, ...],
    no_text: tuple[str, ...],
    max_length: int | None,
    text_preset: str,
    text_masking: str,
    summary: bool,
    workload: Path | None,
    memory: int | None,
    sample_rows: int | None,
    keep_rows: int,
    dtype: str,
    ray: str | None,
    workers: int | None,
    threads: int | None,
    shared: Path | None,
) -> int:
    """Learn a table and write a model file.

    SOURCE is a CSV, Parquet or JSON file, a text file with a string per line (each also as .gz or .zst, but Parquet),
    or a glob in quotes; a DuckDB database file or a postgresql:// URL, with --table or --query; or the name of a data
    set: adult and npm_urls come with Countless, and census, kdd, dmv-full and dryad-urls are the paper's, whose
    downloaded files are looked for in the folder that COUNTLESS_DATA names, or in the current one. A column of long,
    mostly unique strings is learned as text, character by character. Ctrl-C stops training after the current step and
    keeps the best model so far; --resume goes on from there. Before and after training Ctrl-C ends the fit without a
    model, and --resume goes on with what is kept.

    --budget is what you wait: reading the table, counting, training and error bars together. Networks that have more
    to learn get more of it. If reading leaves less than a third of it, the fit takes a third more. A fit that goes on
    with --resume has the whole budget again, and a network that was begun goes on for the time it was given then.

    A database is only read. The password for PostgreSQL is best kept in PGPASSWORD or in ~/.pgpass.

    The file of --workload holds a clause or a whole SELECT on each line; or statements of several lines, each with a
    semicolon after it; or the JSON lines of countless evaluate --save. What counts is which columns are asked together.

    With --ray a cluster encodes and trains, and the checkpoint is kept in the folder of --shared. A worker that is lost
    is replaced (docs/scaling.md).
    """
    console = show.progress()
    place = output if shared is None else shared / output.name
    require_writable(output)
    hold("fit", output, place)
    left = checkpoints_left(place)
    kept = codes_of(place)
    if is_codes(kept):
        left.append(kept)
    names = " and ".join(map(str, left))
    run = Run.of_command(place)
    if left and resume:
        run.require_same_options()
        console.print(f"going on from {names}")
    elif left:
        console.print(f"starting anew and replacing {names} of an earlier run (--resume goes on from it)")
    elif resume and run.was_killed():
        told = f"the last fit of {output} was killed before its first checkpoint"
        console.print(f"nothing to resume: {told}; starting anew", soft_wrap=True)
    elif resume and is_model(output):
        difference = run.differs_from(output)
        if difference is None:
            require_whole(read(output).report, output, named(source, table, query))
            told = f"nothing to resume: {output} is finished, of this table and with these options"
            console.print(f"{told}; to fit it anew leave --resume out", soft_wrap=True)
            return 0
        console.print(f"nothing to resume: {difference}; starting anew", soft_wrap=True)
    elif resume:
        console.print(f"nothing to resume: there is no {checkpoint_of(place)}; starting anew")
    click.get_current_context().with_resource(run.recorded(resume))
    estimator = fit_and_save(
        console,
        source,
        output,
        beside=place,
        resume=resume,
        on_training=(lambda: None) if resume else run.replace_earlier,
        facts={REPORTED: run.to_json()},
        table=table,
        query=query,
        columns=columns,
        exclude=exclude,
        flatten=flatten,
        epochs=epochs,
        budget=budget,
        seed=seed,
        masking=masking,
        learning_rate=learning_rate,
        batch=batch,
        network=Network(hidden, blocks, embedding, kind, units),
        order=order,
        orders=orders,
        max_distinct=max_distinct,
        text=text,
        no_text=no_text,
        max_length=max_length,
        text_network=replace(TEXT_PRESETS[text_preset], masking=text_masking),
        summary=summary,
        workload=workload,
        memory=memory,
        sample_rows=sample_rows,
        keep_rows=keep_rows,
        dtype=dtype,
        ray=ray,
        workers=workers,
        threads=threads,
        shared=shared,
    )
    if estimator.report["interrupted"]:
        console.print("stopped early: the file holds the best model so far; add --resume to go on", style="yellow")
        return 130
    require_whole(estimator.report, output, named(source, table, query))
    return 0
