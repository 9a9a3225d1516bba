/** What all cards have: a frame with the column's name, a note on what is pointed at, and a way to clear. */

import { html, set } from "./dom.js";
import { formatRows, formatShare } from "./format.js";

const OFF = 0.05; // a disagreement of values and count that may be worth a mark

/**
 * @typedef {import("./types.js").Column} Column
 * @typedef {import("./types.js").Estimate} Estimate
 * @typedef {import("./types.js").Filter} Filter
 * @typedef {import("./types.js").Slice} Slice
 * @typedef {import("./types.js").Spread} Spread
 *
 * @typedef {object} Actions
 * @property {(filter: Filter | null, options?: {live?: boolean, merge?: string}) => void} filter
 * @property {() => void} settle
 * @property {(text: string) => void} search
 * @property {(filter: import("./types.js").LikeFilter) => void} narrow adds a pattern to those of a text column
 * @property {() => void} clear removes all conditions on a text column
 *
 * @typedef {object} Shown what a card draws
 * @property {Filter | undefined} filter the column's own
 * @property {Spread | undefined} spread under the filters of all other columns
 * @property {boolean} isFresh whether it is, and not what was known before
 * @property {string | undefined} failure why there is none
 * @property {string} also conditions that no card can show, and that name the column
 * @property {Spread | undefined} ghost of the whole table
 * @property {Spread | undefined} found what the card's search has found
 * @property {boolean} isFiltered whether the spread is of fewer rows than the table's
 * @property {Estimate | undefined} total of the whole view; this and the next two are for text
 * @property {Estimate | undefined} before the view without the column's own filter
 * @property {Estimate | undefined} alone the column's own filter and nothing else
 * @property {import("./types.js").Pieces | undefined} pieces the latest known of a text column
 * @property {boolean} arePiecesFresh whether they are of the view
 * @property {number} rows of the table
 * @property {import("./zoom.js").Zoom | null} zoom
 */

export class Card {
  /**
   * @param {Column} column
   * @param {Actions} actions
   * @param {"tiny" | "short" | "tall"} size
   */
  constructor(column, actions, size) {
    this.column = column;
    this.actions = actions;
    /** @type {Shown | undefined} */
    this.before = undefined;
    this.about = describe(column);
    this.clear = html(
      "button",
      { class: "clear", type: "button", hidden: true, "aria-label": `Clear the filter on ${column.name}` },
      "×",
    );
    this.clear.addEventListener("click", () => this.cleared());
    this.note = html("span", { class: "note" }, this.about);
    this.off = html("span", { class: "off", hidden: true });
    this.problem = html("p", { class: "problem", role: "status", hidden: true });
    this.body = html("div", { class: "body" });
    const title = html("h2", { title: column.name }, column.name);
    const head = html("div", { class: "head" }, title, this.note, this.off, this.clear);
    this.element = html(
      "article",
      { class: `card ${size}`, "data-column": column.name, "aria-label": column.name },
      head,
      this.body,
      this.problem,
    );
    this.element.addEventListener("keydown", (event) => this.escaped(event));
  }

  /**
   * Draws, if there is anything new.
   * @param {Shown} shown
   */
  update(shown) {
    const before = this.before;
    this.before = shown;
    if (before && Object.entries(shown).every(([name, value]) => before[/** @type {keyof Shown} */ (name)] === value))
      return;
    this.draw(shown);
  }

  /** @param {Shown} shown */
  draw(shown) {
    this.clear.hidden = !shown.filter;
    this.element.classList.toggle("filtering", Boolean(shown.filter));
    this.element.classList.toggle("stale", !shown.isFresh);
    this.element.classList.toggle("failed", Boolean(shown.failure));
    this.problem.textContent = shown.failure ?? "";
    this.problem.hidden = !shown.failure;
    this.drawOff(shown.isFresh ? shown.spread : undefined);
  }

  /**
   * Marks a card whose values, before they were made to add up to the count, had a sum beyond its error bar.
   * @param {Spread | undefined} spread
   */
  drawOff(spread) {
    const { disagreement = 0, total } = spread ?? {};
    const sum = (total?.rows ?? 0) * (1 + disagreement);
    const isOff = Boolean(total && Math.abs(disagreement) >= OFF && (sum < total.low || sum > total.high));
    const part = formatShare(Math.abs(disagreement));
    const told =
      `The model's rows of these values sum up to ${part} ${disagreement > 0 ? "more" : "less"} than its count ` +
      "of all of them; they were scaled to fit.";
    this.off.textContent = disagreement > 0 ? `+${part}` : `−${part}`;
    set(this.off, { hidden: !isOff, title: told, role: "note", "aria-label": told });
  }

  /** The width of the card may have changed. */
  resize() {}

  cleared() {
    this.actions.settle();
    this.actions.filter(null);
  }

  /** @param {KeyboardEvent} event */
  escaped(event) {
    if (event.key !== "Escape" || this.clear.hidden) return;
    event.preventDefault();
    this.cleared();
  }

  /** @param {string} [text] about what is pointed at; without it, about the column */
  tell(text) {
    this.note.textContent = text || this.about;
    this.element.classList.toggle("telling", Boolean(text));
  }
}

/** @param {Column} column */
function describe(column) {
  const type = column.type.toLowerCase().replace(" with time zone", "tz");
  return column.kind === "text"
    ? "text"
    : `${type} · ${formatRows(column.distinct)}\u00a0value${column.distinct === 1 ? "" : "s"}`;
}

/**
 * A slice in words: 1,727 rows, 12%, 1,603 to 1,876.
 * @param {Pick<Slice, "rows" | "share"> & Partial<Slice>} slice
 */
export function tellSlice(slice) {
  const { rows, share, low, high } = slice;
  const bar = low !== undefined && high !== undefined && formatRows(low) !== formatRows(high);
  return `${formatRows(rows)} rows, ${formatShare(share)}${bar ? `, ${formatRows(low)} to ${formatRows(high)}` : ""}`;
}
