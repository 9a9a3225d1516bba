"""``countless paper report``."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from countless.cli.terminal import display as show
from countless.data.atomic_files import write_bytes
from countless.errors import DataError
from countless_lab.measurement.requirements import require_plotting
from countless_lab.paper import results
from countless_lab.paper.report.page import page


@click.command(
    epilog="\b\nExamples:\n  countless paper report\n  countless paper report results/ urls-results/ -o report.html"
)
@click.argument("folders", metavar="[DIR]...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="The page to write  [default: report.html in the first DIR]"
)
def report(folders: tuple[Path, ...], out: Path | None) -> None:
    """Put all exhibits of one or several folders on one HTML page, beside the paper's figures.

    DIR is what -o was for the exhibits, paper-results if none is given. A table that several have is taken from the
    last. The page needs nothing else: no network, no other file.
    """
    require_plotting()
    folders = folders or (Path("paper-results"),)
    gathered = results.read(folders)
    if not gathered:
        names = ", ".join(map(str, folders))
        raise DataError(
            f"no exhibit in {names}: make one with countless paper all TABLE -o {shlex.quote(str(folders[0]))}"
        )
    written = write_bytes(out or folders[0] / "report.html", page(gathered).encode())
    show.progress().print(f"wrote {written}", soft_wrap=True)
