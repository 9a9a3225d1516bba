"""The ``countless`` command and its subcommands."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any

import click

from countless._version import __version__
from countless.cli.lazy import Commands
from countless.errors import CountlessError, OptionError
from countless.estimator.plugins import load_plugins
from countless.extensions import COMMANDS as EXTENSIONS

DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # of a full or broken disk

# Each command's module is imported when it runs, so that estimating does not import what fitting needs.
COMMANDS = {
    "fit": "Learn a table and write a model file.",
    "train": "Train a finished model longer.",
    "update": "Add new rows to what a model knows.",
    "calibrate": "Give a model new error bars.",
    "strip": "Write a model file without rows of the table.",
    "check": "Does a model still match its table?",
    "estimate": "How many rows match a WHERE clause?",
    "query": "Answer a SELECT with aggregates from a model.",
    "explain": "How is a WHERE clause answered?",
    "distribution": "Which values does a column have, and how many rows each?",
    "sample": "Draw synthetic rows from a model.",
    "anomalies": "Which rows of a table are the least likely, and why?",
    "complete": "Fill in what is missing in a table.",
    "evaluate": "Measure a model against true counts.",
    "diagnose": "Where is a model wrong, and why?",
    "advise": "Where is PostgreSQL's planner wrong, and which statistics would help?",
    "serve": "Answer questions over HTTP, with a page to ask them.",
    "info": "What does a model file hold?",
    "demo": "Fit the embedded table and compare estimates with the truth.",
}


@click.group(
    cls=Commands,
    modules="countless.cli",
    summaries=COMMANDS,
    extensions=EXTENSIONS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExample:\n"
    "  countless fit people.parquet -o people.countless\n"
    '  countless estimate people.countless "age > 35"\n\n'
    "\b\nExit codes:\n"
    "  0 done, 1 after an error, 2 for wrong usage, 130 after Ctrl-C\n"
    "  3 from check: the model is no longer true",
)
@click.version_option(__version__, prog_name="countless")
def cli() -> None:
    """Count rows without counting them.

    Learn a table once; then ask a small model file how many rows match any WHERE clause, without the table.
    """


def main(arguments: list[str] | None = None, began: float | None = None) -> None:
    """Run the command line. An error is a message and an exit code, never a traceback.

    ``began`` is when the process began, by ``time.monotonic``; the budget of a fit counts from then.
    """
    try:
        load_plugins()
        result: Any = cli.main(arguments, standalone_mode=False, obj=began)
        code = result if isinstance(result, int) else 0
        flush_output()
    except OptionError as error:
        from countless.cli.parameters.settings import with_flags

        tell(f"error: {with_flags(error)}")
        code = 1
    except CountlessError as error:
        from countless.cli.parameters.settings import with_csv_flags

        tell(f"error: {with_csv_flags(str(error))}")
        code = 1
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        tell("\ninterrupted" if sys.stderr.isatty() else "interrupted")  # on a terminal after ^C
        code = 130
    except MemoryError:
        tell("error: not enough memory: fit with a limit (--memory 2GB), or fewer columns (--exclude)")
        code = 1
    except BrokenPipeError:  # the reader has closed the pipe
        discard_output(sys.stdout)
        code = 0
    except OSError as error:
        tell(f"error: {_system_error(error)}")
        code = 1
    sys.exit(code)


def flush_output() -> None:
    """Flush standard output while an error can still be reported."""
    if sys.stdout is not None:
        sys.stdout.flush()


def tell(message: str) -> None:
    """Print a message on standard error, if that can be written."""
    discard_output(sys.stdout)
    try:
        click.echo(message, err=True)
    except OSError:
        discard_output(sys.stderr)


def discard_output(stream: Any) -> None:
    """Flush a stream; if that fails, redirect it to nothing, since the interpreter flushes it again at exit."""
    try:
        if stream is not None:
            stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except ValueError:  # it is closed
        return


def _system_error(error: OSError) -> str:
    """A message for an error of the operating system, with a remedy."""
    file = f" {error.filename}" if error.filename else ""
    reason = error.strerror or str(error)
    if error.errno in DISK_ERRORS:
        return f"cannot write{file or ' the output'}: {reason}; free some space, or write to another place"
    return f"the system refuses to use{file or ' something'}: {reason}; check that it is there, and your permissions"


if __name__ == "__main__":
    main()
