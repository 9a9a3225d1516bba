/** Bins as bars, the whole table's as an outline, and the same in words for those who cannot see it. */

import { tellSlice } from "./card.js";
import { html, set, svg } from "./dom.js";
import { areYears, formatEdge } from "./format.js";
import { isDiscrete, neighbour, position } from "./literal.js";

/**
 * @typedef {import("./brush.js").Axis} Axis
 * @typedef {import("./brush.js").Range} Range
 * @typedef {import("./types.js").Column} Column
 * @typedef {import("./types.js").Slice} Slice
 */

const HEIGHT = 84;
const TAIL = 14; // the width of all that lies below, and above, of what is looked at closely
let made = 0;

export class Histogram {
  /** @param {Column} column */
  constructor(column) {
    this.column = column;
    const clip = `clip-${(made += 1)}`;
    this.cut = svg("rect", { y: 0, height: HEIGHT });
    this.bars = svg("g", { class: "bars" });
    this.chosen = svg("g", { class: "bars chosen", "clip-path": `url(#${clip})` });
    this.outline = svg("path", { class: "ghost" });
    const defs = svg("defs", {}, svg("clipPath", { id: clip }, this.cut));
    const drawn = svg("g", { "aria-hidden": "true" }, defs, this.bars, this.chosen, this.outline);
    this.surface = svg(
      "svg",
      { class: "histogram", height: HEIGHT, role: "group", "aria-label": `${column.name}, distribution` },
      drawn,
    );
    this.words = html("ul", { class: "sr", "aria-label": `${column.name}, rows by range` });
    this.element = html("div", { class: "plot" }, this.surface, this.words);
    /** @type {Slice[]} */
    this.slices = [];
    /** @type {number[]} */
    this.places = [];
    /** @type {import("./zoom.js").Zoom | null} */
    this.zoom = null;
    this.areYears = false;
    this.drawnWidth = 0;
    /** @type {[number, number][]} */
    this.stops = [];
  }

  get width() {
    return Math.max(Math.round(this.surface.clientWidth), 40);
  }

  /**
   * Where a place is, in pixels: between stops evenly.
   * @param {number} place
   */
  x(place) {
    const after = this.stops.findIndex(([stop]) => place < stop);
    if (after === 0) return 0;
    if (after < 0) return this.drawnWidth;
    const [[low, left], [high, right]] = [this.stops[after - 1], this.stops[after]];
    return Math.round(left + ((place - low) / (high - low)) * (right - left));
  }

  /**
   * Places whose pixels are given: the ends, and those of what is looked at closely.
   * @returns {[number, number][]}
   */
  stopsOf() {
    const width = this.drawnWidth;
    const [first, last] = [this.places[0], this.places[this.places.length - 1]];
    const [from, to] = this.zoom
      ? [this.zoom.from, this.zoom.to].map((edge) => position(this.column.type, edge))
      : [first, last];
    /** @type {[number, number][]} */
    const stops = [[first, 0]];
    if (from > first) stops.push([from, TAIL]);
    if (to < last) stops.push([to, width - TAIL]);
    return [...stops, [last, width]];
  }

  /**
   * @param {(place: number) => string} tell
   * @returns {Axis}
   */
  axis(tell) {
    return { places: this.places, x: (place) => this.x(place), tell };
  }

  /**
   * @param {Slice[]} slices
   * @param {Slice[]} ghost of the whole table; none if it is the same
   * @param {number[]} places the edges of bins
   * @param {Range | null} range what is selected
   */
  draw(slices, ghost, places, range) {
    this.slices = slices;
    this.places = [...places].sort((one, other) => one - other);
    this.drawnWidth = this.width;
    this.stops = this.stopsOf();
    const { from, to } = this.zoom ?? { from: this.places[0], to: this.places[this.places.length - 1] };
    this.areYears = areYears(from, to);
    const most = Math.max(...slices.map((slice) => slice.share), ...ghost.map((slice) => slice.share), 1e-9);
    const height = (/** @type {number} */ share) => (share > 0 ? Math.max((share / most) * (HEIGHT - 2), 1) : 0);
    for (const bars of [this.bars, this.chosen]) this.drawBars(bars, slices, height);
    set(this.outline, { d: this.stairs(ghost, height) });
    const [left, right] = range ? range.map((place) => this.x(place)) : [0, 0];
    set(this.cut, { x: left, width: Math.max(right - left, 0) });
    this.words.replaceChildren(...slices.map((slice) => html("li", {}, `${this.label(slice)}: ${tellSlice(slice)}`)));
  }

  /**
   * Which values a bin holds: whole numbers and days from the first to the last, others up to an edge.
   * @param {Slice} slice
   */
  label(slice) {
    const [from, end] = [this.edge(slice.from), this.end(slice)];
    if (!isDiscrete(this.column.type)) return `${from} to ${end}`;
    return from === end ? from : `${from}–${end}`;
  }

  /**
   * Where a bin ends. The last one holds both its edges, unless it is of one value.
   * @param {Slice} slice
   */
  end(slice) {
    const { type } = this.column;
    if (!isDiscrete(type)) return this.edge(slice.to);
    const before = neighbour(type, String(slice.to), -1);
    const isSingle = position(type, before) === position(type, slice.from);
    const isLast = position(type, slice.to) === this.places[this.places.length - 1];
    return this.edge(isLast && !isSingle ? slice.to : type === "DATE" ? before : Number(before));
  }

  /**
   * An edge of a bin as all of the axis are written.
   * @param {import("./types.js").Edge | undefined} value
   */
  edge(value) {
    return formatEdge(value, isDiscrete(this.column.type) && this.areYears);
  }

  /** @param {Slice} slice */
  ends(slice) {
    return [slice.from, slice.to].map((edge) => this.x(position(this.column.type, edge)));
  }

  /**
   * Bars that stay where they are only change their height.
   * @param {SVGGElement} group
   * @param {Slice[]} slices
   * @param {(share: number) => number} height
   */
  drawBars(group, slices, height) {
    const known = new Map([...group.children].map((bar) => [bar.getAttribute("data-from"), bar]));
    for (const slice of slices) {
      const bar = known.get(String(slice.from)) ?? group.appendChild(svg("rect", { "data-from": String(slice.from) }));
      known.delete(String(slice.from));
      const [left, right] = this.ends(slice);
      const tall = height(slice.share);
      set(bar, {
        class: slice.low === undefined ? "tail" : null,
        x: left,
        width: Math.max(right - left - 1, 1),
        y: HEIGHT - tall,
        height: tall,
      });
    }
    for (const bar of known.values()) set(bar, { y: HEIGHT, height: 0 });
  }

  /**
   * The outline of bars; where there is no bin it goes along the ground.
   * @param {Slice[]} slices
   * @param {(share: number) => number} height
   */
  stairs(slices, height) {
    if (!slices.length) return "";
    const level = (/** @type {number} */ tall) => Math.round(HEIGHT - tall) + 0.5;
    let path = "";
    let end = NaN;
    for (const slice of slices) {
      const [left, right] = this.ends(slice);
      const top = Math.min(level(height(slice.share)), HEIGHT - 0.5);
      const gap = Number.isNaN(end) ? `M${left} ${HEIGHT}` : left > end ? `V${HEIGHT - 0.5}H${left}` : "";
      path += `${gap}V${top}H${right}`;
      end = right;
    }
    return `${path}V${HEIGHT}`;
  }

  /**
   * @param {PointerEvent} event
   * @returns {Slice | undefined}
   */
  sliceAt(event) {
    const at = event.clientX - this.surface.getBoundingClientRect().left;
    return this.slices.find((slice) => {
      const [left, right] = this.ends(slice);
      return left <= at && at < right;
    });
  }
}
