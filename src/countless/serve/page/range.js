/** The card of a column of numbers or times: a histogram with a brush, and the range to be typed. */

import { Brush } from "./brush.js";
import { Card, tellSlice } from "./card.js";
import { Histogram } from "./histogram.js";
import { html, set } from "./dom.js";
import { formatShort } from "./format.js";
import { isBound, isDiscrete, neighbour, position } from "./literal.js";
import { isBin } from "./zoom.js";

/**
 * @typedef {import("./brush.js").Range} Range
 * @typedef {import("./card.js").Actions} Actions
 * @typedef {import("./card.js").Shown} Shown
 * @typedef {import("./types.js").Bound} Bound
 * @typedef {import("./types.js").Column} Column
 * @typedef {import("./types.js").RangeFilter} RangeFilter
 * @typedef {import("./types.js").Slice} Slice
 */

/**
 * What a bound of a column's range is.
 * @param {Column} column
 */
const wantedOf = ({ kind, type }) => (kind === "number" ? "a number" : type === "DATE" ? "a date" : "a time");

/** @type {RangeFilter} */
const NOTHING = { kind: "range", from: null, to: null, orNull: false };

export class RangeCard extends Card {
  /**
   * @param {Column} column
   * @param {Actions} actions
   */
  constructor(column, actions) {
    super(column, actions, "short");
    /** @type {RangeFilter} */
    this.filter = NOTHING;
    /** @type {Map<number, string>} */
    this.edges = new Map();
    this.complaint = "";
    /** @type {Shown | null} */
    this.shown = null;
    this.histogram = new Histogram(column);
    this.brush = new Brush(this.histogram.surface, column.name, (range, live) => this.brushed(range, live));
    this.histogram.surface.addEventListener("pointermove", (event) => this.pointed(event));
    this.histogram.surface.addEventListener("pointerleave", () => this.tell());
    this.first = html("span");
    this.last = html("span");
    this.from = this.input("from");
    this.to = this.input("to");
    this.until = html("span", { class: "until" }, "to");
    this.nulls = html(
      "button",
      { class: "nulls", type: "button", "aria-pressed": "false", hidden: !column.has_null },
      "NULL",
    );
    this.nulls.addEventListener("click", () => this.toggleNull());
    const axis = html("div", { class: "axis", "aria-hidden": "true" }, this.first, this.last);
    const typed = html("div", { class: "typed" }, this.from, this.until, this.to, this.nulls);
    this.body.append(this.histogram.element, axis, typed);
  }

  /** @param {"from" | "to"} end */
  input(end) {
    const label = `${this.column.name} ${end}`;
    const mode = this.column.kind === "number" ? "decimal" : "text";
    const input = html("input", {
      type: "text",
      inputmode: mode,
      "aria-label": label,
      autocomplete: "off",
      spellcheck: "false",
    });
    input.placeholder = end === "from" ? "min" : "max";
    input.addEventListener("change", () => this.typed());
    return input;
  }

  /** @param {Shown} shown */
  draw(shown) {
    super.draw(shown);
    this.shown = shown;
    this.filter = shown.filter?.kind === "range" ? shown.filter : NOTHING;
    this.drawInputs();
    const spread = shown.spread ?? shown.ghost;
    if (!spread || !shown.ghost) return;
    const whole = shown.ghost.values.filter(isBin);
    this.edges = new Map(
      whole.flatMap(({ from, to }) => [from, to].map((edge) => [position(this.column.type, edge), String(edge)])),
    );
    const range = this.rangeOf(this.filter);
    this.histogram.zoom = shown.zoom;
    this.histogram.draw(spread.values.filter(isBin), shown.isFiltered ? whole : [], [...this.edges.keys()], range);
    const only = this.filter.orNull && !this.filter.from && !this.filter.to;
    this.element.classList.toggle("nullonly", only);
    this.brush.draw(
      this.histogram.axis((place) => this.histogram.edge(this.edges.get(place) ?? place)),
      range,
    );
    this.drawEnds(whole, shown.zoom);
    this.drawNull(spread.values.find((slice) => !isBin(slice)));
  }

  resize() {
    if (this.shown) this.draw(this.shown);
  }

  /**
   * @param {Slice[]} whole
   * @param {import("./zoom.js").Zoom | null} zoom
   */
  drawEnds(whole, zoom) {
    if (!whole.length) return;
    const edge = (/** @type {import("./types.js").Edge | undefined} */ value) => this.histogram.edge(value);
    const [first, last] = [whole[0].from, whole[whole.length - 1].to].map(edge);
    const [from, to] = zoom ? [zoom.from, zoom.to].map(edge) : [first, last];
    const end = this.histogram.end(whole[whole.length - 1]);
    this.first.textContent = from === first ? first : `${first} … ${from}`;
    this.last.textContent = to === last ? end : `${to} … ${end}`;
  }

  drawInputs() {
    const { from, to } = this.filter;
    for (const [input, bound] of /** @type {const} */ ([
      [this.from, from],
      [this.to, to],
    ])) {
      if (document.activeElement === input && input.value !== "" && input.dataset.kept === (bound?.text ?? ""))
        continue;
      input.value = bound?.text ?? "";
      input.dataset.kept = input.value;
      input.classList.remove("wrong");
      set(input, { "aria-invalid": null });
    }
    const isWrong = [this.from, this.to].some((input) => input.classList.contains("wrong"));
    if (this.complaint && !isWrong) this.complain("");
    this.until.textContent = to?.strict ? "below" : "to";
  }

  /** @param {Slice | undefined} slice */
  drawNull(slice) {
    const told = slice ? tellSlice(slice) : "0 rows";
    this.nulls.textContent = `NULL ${formatShort(slice?.rows ?? 0)}`;
    set(this.nulls, {
      "aria-pressed": String(this.filter.orNull),
      "aria-label": `${this.column.name} NULL: ${told}`,
      title: told,
    });
  }

  /**
   * The places between which a filter lies. A discrete value takes the room up to the next.
   * @param {RangeFilter} filter
   * @returns {Range | null}
   */
  rangeOf({ from, to }) {
    const places = [...this.edges.keys()].sort((one, other) => one - other);
    if ((!from && !to) || !places.length) return null;
    const { type } = this.column;
    const after = (/** @type {Bound} */ bound, /** @type {boolean} */ next) =>
      position(
        type,
        next && isDiscrete(type) && isBound(this.column, bound.text) ? neighbour(type, bound.text, 1) : bound.text,
      );
    const low = from ? after(from, from.strict) : places[0];
    const high = to ? after(to, !to.strict) : places[places.length - 1];
    return Number.isNaN(low) || Number.isNaN(high) ? null : [low, high];
  }

  /**
   * @param {Range | null} range
   * @param {boolean} live
   */
  brushed(range, live) {
    if (!live) this.dragging = false;
    else if (!this.dragging) {
      this.dragging = true;
      this.actions.settle();
    }
    const merge = `brush ${this.column.name}`;
    const bounds = range ? this.boundsOf(range) : { from: null, to: null };
    this.actions.filter({ ...NOTHING, ...bounds, orNull: this.filter.orNull }, { live, merge });
  }

  /**
   * @param {Range} range
   * @returns {{from: Bound | null, to: Bound | null}}
   */
  boundsOf([low, high]) {
    const places = [...this.edges.keys()];
    const { type } = this.column;
    const text = (/** @type {number} */ place) => this.edges.get(place);
    const [first, last] = [Math.min(...places), Math.max(...places)];
    const [below, above] = [text(low), text(high)];
    const from = low <= first ? null : below === undefined ? this.filter.from : { text: below, strict: false };
    if (high >= last) return { from, to: null };
    if (above === undefined) return { from, to: this.filter.to };
    const to = isDiscrete(type) ? { text: neighbour(type, above, -1), strict: false } : { text: above, strict: true };
    return { from, to };
  }

  typed() {
    const bounds = [this.from, this.to].map((input) => input.value.trim());
    const wrong = [this.from, this.to].filter((input, end) => {
      const isWrong = bounds[end] !== "" && !isBound(this.column, bounds[end]);
      input.classList.toggle("wrong", isWrong);
      set(input, { "aria-invalid": isWrong ? "true" : null });
      return isWrong;
    });
    this.complain(wrong.length ? `“${wrong[0].value.trim()}” is not ${wantedOf(this.column)}` : "");
    if (wrong.length || this.isReversed(bounds)) return;
    const [from, to] = bounds.map((text, end) => {
      const before = end ? this.filter.to : this.filter.from;
      return text === "" ? null : before?.text === text ? before : { text, strict: false };
    });
    this.actions.settle();
    this.actions.filter({ ...NOTHING, from, to, orNull: this.filter.orNull });
  }

  /**
   * Whether a range ends before it begins, and says so.
   * @param {string[]} bounds
   */
  isReversed(bounds) {
    const [from, to] = bounds.map((text) => position(this.column.type, text));
    const isWrong = from > to;
    for (const input of [this.from, this.to]) {
      input.classList.toggle("wrong", isWrong);
      set(input, { "aria-invalid": isWrong ? "true" : null });
    }
    this.complain(isWrong ? "the range ends before it begins" : "");
    return isWrong;
  }

  /** @param {string} complaint about what is typed, said until that is mended; none if it is empty */
  complain(complaint) {
    this.complaint = complaint;
    this.tell();
  }

  /** @param {string} [text] */
  tell(text) {
    super.tell(text || this.complaint);
  }

  toggleNull() {
    this.actions.settle();
    this.actions.filter({ ...this.filter, orNull: !this.filter.orNull });
  }

  /** @param {PointerEvent} event */
  pointed(event) {
    const slice = this.histogram.sliceAt(event);
    this.tell(slice && `${this.histogram.label(slice)}: ${tellSlice(slice)}`);
  }
}
