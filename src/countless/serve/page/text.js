/** The card of a text column: a pattern, which share of the rows matches it, and how the matching strings begin and end. */

import { Card } from "./card.js";
import { debounced, html, set, svg } from "./dom.js";
import { formatRows, formatShare } from "./format.js";
import { PieceLists } from "./pieces.js";

/**
 * @typedef {import("./card.js").Actions} Actions
 * @typedef {import("./card.js").Shown} Shown
 * @typedef {import("./types.js").Column} Column
 * @typedef {import("./types.js").LikeFilter} LikeFilter
 * @typedef {import("./types.js").Mode} Mode
 */

/** @type {[Mode, string][]} */
const MODES = [
  ["contains", "contains"],
  ["starts", "starts with"],
  ["ends", "ends with"],
  ["like", "is like"],
];

export class TextCard extends Card {
  /**
   * @param {Column} column
   * @param {Actions} actions
   */
  constructor(column, actions) {
    super(column, actions, "short");
    const name = column.name;
    this.not = html(
      "button",
      { class: "flag", type: "button", "aria-pressed": "false", "aria-label": `${name} does not match` },
      "not",
    );
    const options = MODES.map(([mode, label]) => html("option", { value: mode }, label));
    this.mode = html("select", { "aria-label": `How ${name} matches` }, ...options);
    this.anyCase = html(
      "button",
      { class: "flag", type: "button", "aria-pressed": "false", "aria-label": `${name} in any case` },
      "a=A",
    );
    this.anyCase.title = "Any case";
    this.input = html("input", {
      type: "text",
      class: "pattern",
      "aria-label": `Pattern of ${name}`,
      autocomplete: "off",
      spellcheck: "false",
    });
    this.ghost = svg("rect", { class: "ghost", x: 0.5, y: 1.5, height: 13, rx: 2 });
    this.bar = svg("rect", { class: "fill", x: 0, y: 2, height: 12, rx: 2 });
    this.said = html("p", { class: "said" });
    this.also = html("p", { class: "also", hidden: true });
    const picture = svg("svg", { class: "hbar", height: 16, "aria-hidden": "true" }, this.bar, this.ghost);
    const how = html("div", { class: "how" }, this.not, this.mode, this.anyCase);
    this.pieces = new PieceLists(
      name,
      (mode, text) => {
        this.typing = false;
        actions.settle();
        actions.narrow({ kind: "like", mode, text, anyCase: false, not: false });
      },
      (text) => this.tell(text),
    );
    this.body.append(how, this.input, picture, this.also, this.said, this.pieces.element);
    this.listen();
  }

  listen() {
    const later = debounced(160, () => this.apply());
    this.input.addEventListener("input", () => {
      this.typing = true;
      later();
    });
    this.input.addEventListener("change", () => {
      this.apply();
      this.actions.settle();
    });
    this.mode.addEventListener("change", () => this.apply());
    for (const flag of [this.not, this.anyCase]) {
      flag.addEventListener("click", () => {
        set(flag, { "aria-pressed": String(flag.getAttribute("aria-pressed") !== "true") });
        this.apply();
      });
    }
  }

  apply() {
    this.typing = false;
    const pressed = (/** @type {Element} */ flag) => flag.getAttribute("aria-pressed") === "true";
    const mode = /** @type {Mode} */ (this.mode.value);
    /** @type {LikeFilter} */
    const filter = {
      kind: "like",
      mode,
      text: this.input.value,
      anyCase: pressed(this.anyCase),
      not: pressed(this.not),
    };
    if (JSON.stringify(filter) === this.applied) return;
    this.applied = JSON.stringify(filter);
    this.actions.filter(filter, { merge: `pattern ${this.column.name}` });
  }

  cleared() {
    this.typing = false;
    this.actions.settle();
    this.actions.clear();
  }

  /** @param {Shown} shown */
  draw(shown) {
    super.draw(shown);
    const filter = shown.filter?.kind === "like" ? shown.filter : null;
    if (!this.typing) this.fill(filter);
    const { total, before, alone, rows } = shown;
    const isKnown = filter && total && (before || !shown.isFiltered) && alone;
    const share = isKnown ? Math.min(total.rows / Math.max(before?.rows ?? rows, 1e-9), 1) : 0;
    set(this.bar, { width: `${share * 100}%` });
    set(this.ghost, {
      width: `${(alone?.selectivity ?? 0) * 100}%`,
      visibility: isKnown && shown.isFiltered ? "visible" : "hidden",
    });
    set(this.also, { hidden: !shown.also, title: shown.also });
    this.also.textContent = `and ${shown.also}`;
    // A card that once had lists keeps their room, so that nothing jumps.
    if (this.pieces.draw(shown.pieces, shown.arePiecesFresh)) this.element.classList.replace("short", "tall");
    if (!filter) this.said.textContent = "Every row, until a pattern is typed.";
    else if (isKnown) {
      const part = shown.isFiltered
        ? `the rows that the other conditions leave; of the whole table ${formatShare(alone.selectivity)}`
        : "the whole table";
      this.said.textContent = `${formatRows(total.rows)} rows, ${formatShare(share)} of ${part}`;
    } else this.said.textContent = "";
  }

  /** @param {LikeFilter | null} filter */
  fill(filter) {
    if (this.input.value !== (filter?.text ?? "")) this.input.value = filter?.text ?? "";
    this.applied = filter ? JSON.stringify({ ...filter }) : undefined;
    if (!filter) return;
    this.mode.value = filter.mode;
    set(this.not, { "aria-pressed": String(filter.not) });
    set(this.anyCase, { "aria-pressed": String(filter.anyCase) });
  }
}
