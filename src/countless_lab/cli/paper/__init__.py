"""``countless paper``: the paper's experiments, one exhibit at a time or all."""

from __future__ import annotations

import click

from countless.cli.lazy import Commands
from countless.cli.terminal.display import plural
from countless_lab.paper.exhibits import EXHIBITS
from countless_lab.paper.scale import SCALES, PaperScale

SUMMARIES = {name: f"{exhibit.in_paper}: {exhibit.title.lower()}." for name, exhibit in EXHIBITS.items()} | {
    "all": "All of them, and each table gets those that fit it."
}
COMMANDS = {**SUMMARIES, "report": "One HTML page of all exhibits, beside the paper's figures."}


class Exhibits(Commands):
    """The group of commands: those of exhibits are made from the exhibit, the others have modules of their own."""

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in SUMMARIES:
            from countless_lab.cli.paper.run import exhibit_command

            return exhibit_command(name, SUMMARIES[name])
        return super().get_command(ctx, name)


def described(scale: PaperScale) -> str:
    """A scale in a sentence."""
    rows = "all rows" if scale.rows is None else f"{scale.rows:,} rows"
    longer = "".join(f" ({epochs} for {name})" for name, epochs in scale.longer)
    rows_seen = f" at least, and {scale.rows_seen:,} rows seen in training" if scale.rows_seen else ""
    strings = "all strings" if scale.strings is None else f"{scale.strings:,} strings"
    samples = "/".join(f"{count:,}" for count in scale.samples)
    first = scale.first_order_above
    above = f", above {first:,} samples only the first" if max(scale.samples) > first else ""
    return (
        f"{scale.name}: {rows}, {plural(scale.epochs, 'epoch')}{longer}{rows_seen}, {plural(scale.orders, 'order')}"
        f"{above}, {scale.queries:,} queries, {samples} samples; text: {strings}, "
        f"{plural(scale.text_epochs, 'epoch')}, {scale.text_queries} queries"
    )


@click.group(
    cls=Exhibits,
    modules="countless_lab.cli.paper",
    summaries=COMMANDS,
    short_help="Run the paper's experiments on your tables.",
    help="\n\n".join(
        [
            "Run the paper's experiments on your tables, and ours beside them.",
            "The paper is Variable Skipping for Autoregressive Range Density Estimation (ICML 2020). Every exhibit gets"
            " its figures (JSON), a table (Markdown) and a picture (SVG, PNG) in a folder. Models and answers are kept"
            " there as they are made: exhibits share them, and after Ctrl-C the same command goes on.",
            "Scales, of which full is the paper's own protocol:",
            *(f"{described(scale)}." for scale in SCALES.values()),
        ]
    ),
    epilog="\b\nExamples:\n"
    "  countless paper all adult --exclude fnlwgt --scale smoke\n"
    "  countless paper main census.parquet flights.parquet -o results/\n"
    "  countless paper report results/",
)
def paper() -> None:
    """The group; its help is made of the scales."""
