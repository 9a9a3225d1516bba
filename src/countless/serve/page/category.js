/** The card of a column of categories: a bar for each value, to be selected by click or key. */

import { Card, tellSlice } from "./card.js";
import { debounced, html, set, svg } from "./dom.js";
import { formatRows, formatShort, formatValue } from "./format.js";
import { isNumeric, position, timeKeyword } from "./literal.js";

/**
 * @typedef {import("./card.js").Actions} Actions
 * @typedef {import("./card.js").Shown} Shown
 * @typedef {import("./types.js").Column} Column
 * @typedef {import("./types.js").Slice} Slice
 * @typedef {import("./types.js").Value} Value
 * @typedef {{element: HTMLLIElement, bar: SVGRectElement, ghost: SVGRectElement, count: HTMLElement, slice: Slice}} Row
 */

export const LISTED = 12; // rows of a card; the rest are folded
const FEW = 6; // so many fit on a short card
const FEWEST = 2; // and so many on a tiny one

/** @param {Column} column */
const valuesOf = (column) => column.distinct + (column.has_null ? 1 : 0);

export class CategoryCard extends Card {
  /**
   * @param {Column} column
   * @param {Actions} actions
   */
  constructor(column, actions) {
    super(column, actions, valuesOf(column) <= FEWEST ? "tiny" : valuesOf(column) <= FEW ? "short" : "tall");
    /** @type {Map<string, Row>} */
    this.rows = new Map();
    /** @type {Value[]} */
    this.selected = [];
    this.longest = 0; // characters of a name that was listed
    this.list = html("ul", {
      class: "list",
      role: "listbox",
      "aria-multiselectable": "true",
      "aria-label": column.name,
    });
    this.list.addEventListener("click", (event) => this.clicked(event));
    this.list.addEventListener("keydown", (event) => this.pressed(event));
    for (const kind of ["pointerover", "focusin"]) this.list.addEventListener(kind, (event) => this.pointed(event));
    for (const kind of ["pointerleave", "focusout"]) this.list.addEventListener(kind, () => this.tell());
    this.others = html("p", { class: "others" });
    if (valuesOf(column) > LISTED) this.body.append(this.searchBox());
    this.body.append(this.list, this.others);
  }

  searchBox() {
    const input = html("input", {
      type: "search",
      placeholder: "Find a value",
      "aria-label": `Find a value of ${this.column.name}`,
    });
    const search = debounced(120, () => this.actions.search(input.value.trim()));
    input.addEventListener("input", search);
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !input.value) return;
      event.stopPropagation();
      input.value = "";
      this.actions.search("");
    });
    return input;
  }

  /** @param {Shown} shown */
  draw(shown) {
    super.draw(shown);
    const { filter, ghost, isFiltered } = shown;
    const spread = shown.found ?? shown.spread ?? ghost;
    this.selected = filter?.kind === "in" ? filter.values : [];
    if (!spread) return;
    const slices = this.slices(spread.values, ghost?.values ?? []);
    const shares = new Map(ghost?.values.map((slice) => [keyOf(slice), slice.share]));
    const most = Math.max(
      ...slices.map((slice) => Math.max(slice.share, isFiltered ? (shares.get(keyOf(slice)) ?? 0) : 0)),
      1e-9,
    );
    for (const slice of slices) {
      this.drawRow(this.row(slice), slice, most, isFiltered ? (shares.get(keyOf(slice)) ?? 0) : 0);
    }
    this.longest = Math.max(this.longest, ...slices.map((slice) => formatValue(slice.value).length));
    this.list.style.setProperty("--longest", String(this.longest));
    this.arrange(slices);
    this.drawOthers(spread, slices, shown.found !== undefined, shown.isFresh);
  }

  /**
   * The slices to show: few values keep their places, of many the most frequent ones come first, selected ones always.
   * @param {Slice[]} given
   * @param {Slice[]} whole
   * @returns {Slice[]}
   */
  slices(given, whole) {
    const missing = { share: 0, rows: 0, low: 0, high: 0 };
    const absent = (/** @type {Value} */ value) => ({ ...missing, value });
    if (valuesOf(this.column) <= LISTED) {
      const found = new Map(given.map((slice) => [keyOf(slice), slice]));
      const { type } = this.column;
      const order = isNumeric(type) || timeKeyword(type) ? [...whole].sort(byValue(type)) : whole;
      return order.map((slice) => found.get(keyOf(slice)) ?? absent(slice.value ?? null));
    }
    const chosen = new Set(this.selected.map(keyFor));
    const top = given.slice(0, LISTED);
    const further = given.slice(LISTED).filter((slice) => chosen.has(keyOf(slice)));
    const listed = new Set([...top, ...further].map(keyOf));
    const unlisted = this.selected.filter((value) => !listed.has(keyFor(value))).map(absent);
    const all = [...top, ...further, ...unlisted];
    const first = new Set([...all.filter((slice) => chosen.has(keyOf(slice))), ...all]);
    const kept = new Set([...first].slice(0, Math.max(LISTED, chosen.size)));
    return all.filter((slice) => kept.has(slice));
  }

  /**
   * @param {Slice} slice
   * @returns {Row}
   */
  row(slice) {
    const key = keyOf(slice);
    const known = this.rows.get(key);
    if (known) return known;
    const label = formatValue(slice.value);
    const ghost = svg("rect", { class: "ghost", x: 0.5, y: 1.5, height: 11, rx: 1.5 });
    const bar = svg("rect", { class: "fill", x: 0, y: 2, height: 10, rx: 1.5 });
    const picture = svg("svg", { class: "hbar", height: 14, "aria-hidden": "true" }, bar, ghost);
    const count = html("span", { class: "value" });
    const name = html("span", { class: slice.value === null ? "label null" : "label", title: label }, label);
    const element = html("li", { role: "option", tabindex: -1, "data-key": key }, name, picture, count);
    const made = { element, bar, ghost, count, slice };
    this.rows.set(key, made);
    return made;
  }

  /**
   * @param {Row} row
   * @param {Slice} slice
   * @param {number} most the greatest share, which has the whole width
   * @param {number} ghost the value's share of the whole table
   */
  drawRow(row, slice, most, ghost) {
    row.slice = slice;
    const selected = this.selected.some((value) => keyFor(value) === keyOf(slice));
    set(row.bar, { width: percent(slice.share / most) });
    set(row.ghost, { width: percent(ghost / most), visibility: ghost ? "visible" : "hidden" });
    row.count.textContent = formatShort(slice.rows);
    set(row.element, {
      "aria-selected": String(selected),
      "aria-label": `${formatValue(slice.value)}: ${tellSlice(slice)}`,
    });
  }

  /** @param {Slice[]} slices */
  arrange(slices) {
    const wanted = slices.map((slice) => /** @type {Row} */ (this.rows.get(keyOf(slice))).element);
    const focused = this.list.contains(document.activeElement) ? document.activeElement : null;
    if (
      wanted.length !== this.list.children.length ||
      wanted.some((element, place) => this.list.children[place] !== element)
    ) {
      this.list.replaceChildren(...wanted);
      if (focused instanceof HTMLElement && wanted.includes(/** @type {HTMLLIElement} */ (focused))) focused.focus();
    }
    if (!wanted.some((element) => element.tabIndex === 0) && wanted.length) wanted[0].tabIndex = 0;
  }

  /**
   * @param {import("./types.js").Spread} spread
   * @param {Slice[]} slices
   * @param {boolean} isFound whether they were searched for
   * @param {boolean} isFresh whether this is the answer
   */
  drawOthers(spread, slices, isFound, isFresh) {
    const listed = new Set(slices.map(keyOf));
    const folded = spread.values.filter((slice) => !listed.has(keyOf(slice)));
    const values = folded.length + (spread.others?.values ?? 0);
    const rows = folded.reduce((sum, slice) => sum + slice.rows, spread.others?.rows ?? 0);
    const share = folded.reduce((sum, slice) => sum + slice.share, spread.others?.share ?? 0);
    const nothing = slices.length || !isFresh ? "" : "No rows.";
    const none = isFound && !spread.values.length ? "No value contains this." : nothing;
    const others = `${formatRows(values)} other${values === 1 ? "" : "s"}: ${tellSlice({ rows, share })}`;
    this.others.textContent = values ? others : none;
  }

  /**
   * @param {Event} event
   * @returns {HTMLLIElement | null}
   */
  optionAt(event) {
    return event.target instanceof Element ? event.target.closest("li") : null;
  }

  /** @param {Event} event */
  pointed(event) {
    const row = this.rows.get(this.optionAt(event)?.dataset.key ?? "");
    if (row) this.tell(tellSlice(row.slice));
  }

  /** @param {Event} event */
  clicked(event) {
    const option = this.optionAt(event);
    if (option) this.toggle(option);
  }

  /** @param {HTMLLIElement} option */
  toggle(option) {
    const row = this.rows.get(option.dataset.key ?? "");
    if (!row) return;
    const value = row.slice.value ?? null;
    const rest = this.selected.filter((other) => keyFor(other) !== keyFor(value));
    const values = rest.length < this.selected.length ? rest : [...this.selected, value];
    this.rove(option);
    this.actions.settle();
    this.actions.filter({ kind: "in", values });
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    const option = this.optionAt(event);
    if (!option) return;
    const all = /** @type {HTMLLIElement[]} */ ([...this.list.children]);
    const at = all.indexOf(option);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to !== undefined) this.rove(all[Math.min(Math.max(to, 0), all.length - 1)]);
    else if (event.key === "Enter" || event.key === " ") this.toggle(option);
    else return;
    event.preventDefault();
  }

  /** @param {HTMLLIElement} option the one that Tab comes to */
  rove(option) {
    for (const other of this.list.querySelectorAll("li")) other.tabIndex = -1;
    option.tabIndex = 0;
    option.focus();
  }
}

/** @param {Value | undefined} value */
const keyFor = (value) => (value === null || value === undefined ? "null" : `=${value}`);

/** @param {Slice} slice */
const keyOf = (slice) => keyFor(slice.value);

/**
 * In the order of the axis, NULL last.
 * @param {string} type
 * @returns {(one: Slice, other: Slice) => number}
 */
const byValue = (type) => (one, other) =>
  Number(one.value === null) - Number(other.value === null) ||
  position(type, one.value) - position(type, other.value) ||
  0;

/** @param {number} share */
const percent = (share) => `${Math.max(share * 100, share > 0 ? 0.8 : 0).toFixed(2)}%`;
