"""The report page of all exhibits: pictures, tables, the paper's figures, differences, and which findings hold.

The page needs no other file and no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from countless.sheet import ABSENT, Sheet, Strong
from countless_lab.paper.drawing import pictures
from countless_lab.paper.exhibits import EXHIBITS, Exhibit
from countless_lab.paper.exhibits.base import missing_note
from countless_lab.paper.numbers import Record
from countless_lab.paper.report.counterparts import beside_the_paper, counterpart, described
from countless_lab.paper.report.differences import NOTES, differences
from countless_lab.paper.report.findings import FAILS, FINDINGS, HOLDS, UNKNOWN, PaperFinding, Verdict
from countless_lab.paper.report.pagestyle import CSS

Gathered = Mapping[str, Sequence[Record]]

TITLE = "Variable skipping, measured again"
PAPER_LINK = "https://var-skip.github.io"
CLASSES = {HOLDS: "holds", FAILS: "fails", UNKNOWN: "open"}
LONG = 40  # characters from which a field may be broken into lines
PROLOG = re.compile(r"^.*?(?=<svg)|<metadata>.*?</metadata>", re.DOTALL)
IDENTIFIER = re.compile(r'(\bid="|href="#|url\(#)')
SIZE = re.compile(r' (width|height)="[^"]*"')
WIDTH = re.compile(r' width="([0-9.]+)pt"')
LARGEST = 1.3  # times its own width: a small drawing is not stretched to the width of the page


def page(gathered: Gathered) -> str:
    """The report on the facts of the exhibits, by their names."""
    body = "\n".join(
        [
            _head(gathered),
            _findings(gathered),
            *(_exhibit(EXHIBITS[name], tables) for name, tables in gathered.items()),
            _differences(gathered),
            _commands(gathered),
        ]
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(TITLE)}</title>\n<style>{CSS}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _head(gathered: Gathered) -> str:
    every_table = [table for exhibit_tables in gathered.values() for table in exhibit_tables]
    names = dict.fromkeys(table["data"]["name"] for table in every_table)
    tables = "; ".join(f"{name} ({described(name)})" for name in names)
    links = [("findings", "Findings"), *((name, EXHIBITS[name].title) for name in gathered)]
    links += [("differences", "What differs"), ("commands", "Commands")]
    items = "".join(f'<li><a href="#{escape(anchor)}">{escape(text)}</a></li>' for anchor, text in links)
    scales = ", ".join(dict.fromkeys(table["settings"]["scale"] for table in every_table))
    return (
        f"<h1>{escape(TITLE)}</h1>\n<p>The experiments of "
        f'<a href="{PAPER_LINK}">Variable Skipping for Autoregressive Range Density Estimation</a> (ICML 2020), run '
        "with Countless, and our own method beside the paper's. An error is the factor between an estimate and the "
        f'truth.</p>\n<p class="soft">Tables: {escape(tables)}. Scale: {escape(scales)}. {escape(_theirs(names))}</p>\n'
        f"<nav><ul>{items}</ul></nav>"
    )


def _theirs(names: Iterable[str]) -> str:
    if any(counterpart(name) for name in names):
        return "Where a table is one of the paper's, or stands in for it, the paper's figures are below ours."
    return "None of them is, or stands in for, one of the paper's tables, so the paper's figures are not shown."


def _findings(gathered: Gathered) -> str:
    judged = [(finding, finding.verdicts(gathered)) for finding in FINDINGS]
    verdicts = [verdict.verdict for _, table_verdicts in judged for verdict in table_verdicts]
    verdicts += [UNKNOWN for _, table_verdicts in judged if not table_verdicts]
    counts = ", ".join(f"{verdicts.count(kind)} {_plural(kind, verdicts.count(kind))}" for kind in CLASSES)
    cards = "\n".join(_finding(finding, table_verdicts) for finding, table_verdicts in judged)
    return (
        '<h2 id="findings">Findings</h2>\n<p>Each claim of the paper, and each of ours. '
        f"Verdicts, one per claim and table: {escape(counts)}. The figures and the criteria are below the table.</p>\n"
        f"{_overview(judged)}\n{cards}"
    )


def _overview(judged: Sequence[tuple[PaperFinding, Sequence[Verdict]]]) -> str:
    """Every claim and its verdict on each table, at a glance."""
    tables = list(dict.fromkeys(verdict.data for _, verdicts in judged for verdict in verdicts))
    rows = []
    for finding, verdicts in judged:
        by_table = {verdict.data: verdict.verdict for verdict in verdicts}
        cells = "".join(f"<td>{_pill(by_table[name]) if name in by_table else ABSENT}</td>" for name in tables)
        rows.append(f'<tr><td class="label claim">{escape(finding.claim)}</td>{cells}</tr>')
    heads = '<th class="label">Claim</th>' + "".join(f"<th>{escape(name)}</th>" for name in tables)
    return (
        f'<div class="box overview"><table><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _pill(verdict: str) -> str:
    return f'<span class="verdict {CLASSES[verdict]}">{escape(verdict)}</span>'


def _plural(verdict: str, count: int) -> str:
    singular = {HOLDS: "hold", FAILS: "do not hold"}
    return verdict if count == 1 else singular.get(verdict, verdict)


def _finding(finding: PaperFinding, verdicts: Sequence[Verdict]) -> str:
    lines = [
        f"<li>{_pill(verdict.verdict)} <b>{escape(verdict.data)}</b>: {escape(verdict.figures)}</li>"
        for verdict in verdicts
    ] or [f"<li>{_pill(UNKNOWN)} on no table that it is about: run countless paper {escape(finding.exhibit)}</li>"]
    return (
        f'<section class="finding"><h3>{escape(finding.claim)} '
        f'<span class="soft">({escape(finding.source)})</span></h3>'
        f'<p class="note">Criterion: {escape(finding.criterion)}</p><ul>{"".join(lines)}</ul></section>'
    )


def _exhibit(exhibit: Exhibit, tables: Sequence[Record]) -> str:
    drawn = pictures(lambda figure: exhibit.draw(tables, figure), ("svg",))["svg"]
    sheets = [*exhibit.sheets(tables), *beside_the_paper(exhibit.name, tables)]
    gaps = [note for facts in tables if (note := missing_note(facts)) is not None]
    return "\n".join(
        [
            f'<h2 id="{escape(exhibit.name)}">{escape(exhibit.title)}</h2>',
            f'<p class="soft">{escape(exhibit.in_paper)} of the paper.</p>',
            f'<div class="box plot">{inline(drawn.decode(), exhibit.name, exhibit.title)}</div>',
            *map(table, sheets),
            *(f'<p class="note">{escape(note)}</p>' for note in gaps),
        ]
    )


def _differences(gathered: Gathered) -> str:
    notes = "".join(f"<li>{escape(note)}</li>" for note in NOTES)
    sheets = "\n".join(map(table, differences(gathered)))
    return f'<h2 id="differences">What differs from the paper</h2>\n{sheets}\n<ul>{notes}</ul>'


def _commands(gathered: Gathered) -> str:
    all_tables = [table for tables in gathered.values() for table in tables]
    commands = list(dict.fromkeys(table["command"] for table in all_tables if "command" in table))
    lines = escape("\n".join([*commands, "countless paper report DIR"]))
    machines = dict.fromkeys(_machine(table["machine"]) for table in all_tables if "machine" in table)
    measured_on = "".join(f'<p class="note">Measured on {escape(machine)}.</p>' for machine in machines)
    return f'<h2 id="commands">Commands</h2>\n<div class="box"><pre>{lines}</pre></div>\n{measured_on}'


def _machine(table: Record) -> str:
    memory = f"{table['memory_bytes'] / 1e9:.0f} GB"
    versions = ", ".join(f"{name} {table[name]}" for name in ("python", "numpy", "torch") if table.get(name))
    return f"{table['cores']} cores, {memory}, {table['processor']}, {versions}"


def table(sheet: Sheet) -> str:
    """A sheet as an HTML table, in a box of its own."""
    heads = "".join(_cell("th", heading, index < sheet.labels) for index, heading in enumerate(sheet.headings))
    rows = "".join(
        "<tr>"
        + "".join(_cell("td", field or ABSENT, index < sheet.labels) for index, field in enumerate(row))
        + "</tr>"
        for row in sheet.rows
    )
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in sheet.notes)
    return (
        f'<h3>{escape(sheet.title)}</h3>\n<div class="box"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{notes}"
    )


def _cell(tag: str, text: str, label: bool) -> str:
    kinds = [kind for kind, applies in (("label", label), ("long", tag == "td" and len(text) > LONG)) if applies]
    classes = f' class="{" ".join(kinds)}"' if kinds else ""
    inner = f"<b>{escape(text)}</b>" if isinstance(text, Strong) else escape(text)
    return f"<{tag}{classes}>{inner}</{tag}>"


def inline(svg: str, name: str, title: str) -> str:
    """A drawing for a page: without its prolog, with unique identifiers, and at most :data:`LARGEST` times as wide."""
    bare = IDENTIFIER.sub(rf"\g<1>{name}-", PROLOG.sub("", svg))
    tag, content = bare.strip().split(">", 1)
    width = WIDTH.search(tag)
    max_width = f' style="max-width: {LARGEST * float(width[1]):.0f}pt"' if width else ""
    return f'{SIZE.sub("", tag)}{max_width} role="img" aria-label="{escape(title)}">{content}'
