"""The CSS of the report: one column, boxes that scroll if they are wide, light or dark as the reader's system."""

CSS = """
:root {
  --ink: #1c2430; --soft: #5b6675; --line: #d9dee6; --back: #ffffff; --card: #f6f8fa; --link: #1a56c4;
  --good: #116b37; --good-back: #dff3e6; --bad: #9a2323; --bad-back: #fbe3e3; --open: #5b6675; --open-back: #e9edf2;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e4e8ee; --soft: #9aa6b5; --line: #343d4a; --back: #12161c; --card: #1a2029; --link: #8ab4ff;
    --good: #8fe0ae; --good-back: #173a26; --bad: #ffb0b0; --bad-back: #472020; --open: #b3bdca; --open-back: #2a323d;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--back); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
main { max-width: 70rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .5rem 0; }
h2 { font-size: 1.3rem; margin: 2.5rem 0 .5rem; padding-top: .75rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.5rem 0 .25rem; }
p, li { max-width: 46rem; }
a { color: var(--link); }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1rem; padding: 0; list-style: none; }
.soft, .note { color: var(--soft); }
.note { font-size: .875rem; margin: .4rem 0; }
.box { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; }
.plot { background: #ffffff; padding: .5rem; }
.plot svg { display: block; width: 100%; height: auto; min-width: 34rem; margin: 0 auto; }
@media (prefers-color-scheme: dark) {
  .plot { background: #191919; }
  .plot svg { filter: invert(.9) hue-rotate(180deg); }
}
table { border-collapse: collapse; width: 100%; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .6rem; text-align: right; vertical-align: top; border-bottom: 1px solid var(--line); }
thead th { background: var(--card); vertical-align: bottom; min-width: 5rem; }
tbody tr:last-child td, tbody tr:last-child th { border-bottom: 0; }
th.label, td.label, tbody th { text-align: left; font-weight: normal; }
thead th.label { font-weight: bold; }
td { white-space: nowrap; }
td.long { white-space: normal; min-width: 11rem; text-align: left; }
.overview td.claim { white-space: normal; min-width: 16rem; }
.overview td, .overview thead th { text-align: center; }
.overview .label { text-align: left; }
.finding {
  background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .6rem .9rem; margin: .75rem 0;
}
.finding h3 { margin: 0; }
.finding ul { margin: .4rem 0 0; padding: 0; list-style: none; }
.finding li { margin: .25rem 0; overflow-wrap: anywhere; max-width: none; }
.verdict {
  display: inline-block; border-radius: 999px; padding: 0 .6rem; font-size: .8rem; font-weight: 600;
  white-space: nowrap;
}
.holds { color: var(--good); background: var(--good-back); }
.fails { color: var(--bad); background: var(--bad-back); }
.open { color: var(--open); background: var(--open-back); }
pre { margin: 0; padding: .75rem; font-size: .85rem; background: var(--card); overflow-x: auto; }
@media print { .box { overflow: visible; } }
"""
