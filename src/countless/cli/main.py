"""The ``countless`` command."""

from __future__ import annotations

import sys
from typing import Any

import click

from countless._version import __version__
from countless.cli.lazy import Commands
from countless.errors import CountlessError
from countless.estimator.plugins import load_plugins

# Loaded when they are run, so that estimating does not pay for what fitting imports.
COMMANDS = {
    "fit": "Learn a table and write a model file.",
    "update": "Add new rows to what a model knows.",
    "check": "Is a model still true of its table?",
    "estimate": "How many rows match a WHERE clause?",
    "query": "Answer a SELECT with aggregates from a model.",
    "explain": "How is a WHERE clause answered?",
    "distribution": "Which values does a column have, and how many rows each?",
    "sample": "Which rows would a model write?",
    "anomalies": "Which rows of a table are the least likely, and why?",
    "complete": "Fill in what is missing in a table.",
    "evaluate": "Measure a model against true counts.",
    "diagnose": "Where does a model err, and whose error is it?",
    "advise": "Where does PostgreSQL's planner err, and which statistics would help?",
    "serve": "Answer questions over HTTP, with a page to ask them.",
    "info": "What does a model file hold?",
    "bench": "Measure accuracy, speed and size.",
    "paper": "Run the paper's experiments on your tables.",
    "demo": "Fit the embedded table and compare estimates with the truth.",
}


@click.group(
    cls=Commands,
    modules="countless.cli",
    summaries=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExample:\n"
    "  countless fit people.parquet -o people.countless\n"
    '  countless estimate people.countless "age > 35"',
)
@click.version_option(__version__, prog_name="countless")
def cli() -> None:
    """Count rows without counting them.

    Learn a table once; then ask a small model file how many rows match any WHERE clause, without the table.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; what goes wrong is a message and an exit code, never a traceback."""
    try:
        load_plugins()
        result: Any = cli.main(arguments, standalone_mode=False)
        code = result if isinstance(result, int) else 0
    except CountlessError as error:
        click.echo(f"error: {error}", err=True)
        code = 1
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("\ninterrupted" if sys.stderr.isatty() else "interrupted", err=True)  # on a terminal after ^C
        code = 130
    except MemoryError:
        click.echo("error: not enough memory: fit with a limit (--memory 2GB), or fewer columns (--exclude)", err=True)
        code = 1
    sys.exit(code)


if __name__ == "__main__":
    main()
