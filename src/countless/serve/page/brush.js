/** A range on a horizontal axis, to be dragged, moved and stretched by pointer or by key. It snaps to given places. */

import { set, svg } from "./dom.js";

/**
 * @typedef {object} Axis
 * @property {number[]} places where a range may begin and end, in order
 * @property {(place: number) => number} x where a place is, in pixels
 * @property {(place: number) => string} tell a place in words
 *
 * @typedef {[number, number]} Range two places
 * @typedef {{kind: "new" | "move" | "from" | "to", start: number, range: Range, moved: boolean}} Drag
 */

const STILL = 3; // pixels that a click may move

export class Brush {
  /**
   * @param {SVGSVGElement} surface
   * @param {string} name of what is brushed
   * @param {(range: Range | null, live: boolean) => void} changed
   */
  constructor(surface, name, changed) {
    this.surface = surface;
    this.changed = changed;
    /** @type {Axis} */
    this.axis = { places: [], x: () => 0, tell: String };
    /** @type {Range | null} */
    this.range = null;
    /** @type {Drag | null} */
    this.drag = null;
    this.window = svg("rect", { class: "window", y: 0, height: "100%" });
    this.handles = /** @type {const} */ (["from", "to"]).map((end) => this.handle(end, name));
    this.element = svg("g", { class: "brush" }, this.window, ...this.handles);
    surface.append(this.element);
    surface.addEventListener("pointerdown", (event) => this.down(event));
    surface.addEventListener("pointermove", (event) => this.move(event));
    surface.addEventListener("pointerup", (event) => this.up(event));
    surface.addEventListener("pointercancel", () => (this.drag = null));
  }

  /**
   * @param {"from" | "to"} end
   * @param {string} name
   */
  handle(end, name) {
    const label = `${name}: ${end === "from" ? "lower" : "upper"} end of the range`;
    const handle = svg("g", { class: "handle", role: "slider", tabindex: 0, "aria-label": label, "data-end": end });
    handle.append(
      svg("rect", { class: "grip", x: -7, width: 14, y: 0, height: "100%" }),
      svg("line", { y1: 0, y2: "100%" }),
    );
    handle.addEventListener("keydown", (event) => this.pressed(event, end));
    return handle;
  }

  /**
   * @param {Axis} axis
   * @param {Range | null} range
   */
  draw(axis, range) {
    this.axis = axis;
    this.range = range;
    const { places, x } = axis;
    const whole = /** @type {Range} */ ([places[0], places[places.length - 1]]);
    const ends = range ?? whole;
    this.element.classList.toggle("idle", !range);
    const [left, right] = [x(ends[0]), x(ends[1])];
    set(this.window, { x: left, width: Math.max(right - left, 1), visibility: range ? "visible" : "hidden" });
    this.handles.forEach((handle, end) => {
      set(handle, {
        transform: `translate(${end ? right : left} 0)`,
        "aria-valuemin": whole[0],
        "aria-valuemax": whole[1],
        "aria-valuenow": ends[end],
        "aria-valuetext": axis.tell(ends[end]),
      });
    });
  }

  /** @param {PointerEvent} event */
  placeAt(event) {
    const left = event.clientX - this.surface.getBoundingClientRect().left;
    return nearest(this.axis, left);
  }

  /** @param {PointerEvent} event */
  down(event) {
    if (event.button || this.axis.places.length < 2) return;
    const start = this.placeAt(event);
    const end = event.target instanceof Element ? event.target.closest("g.handle")?.getAttribute("data-end") : null;
    const range = this.range ?? [start, start];
    /** @type {Drag["kind"]} */
    let kind = "new";
    if (this.range && (end === "from" || end === "to")) kind = end;
    else if (this.range && event.target === this.window) kind = "move";
    this.drag = { kind, start, range, moved: false };
    this.from = event.clientX;
    this.surface.setPointerCapture(event.pointerId);
  }

  /** @param {PointerEvent} event */
  move(event) {
    const drag = this.drag;
    if (!drag || (!drag.moved && Math.abs(event.clientX - (this.from ?? 0)) < STILL)) return;
    drag.moved = true;
    const range = this.dragged(drag, this.placeAt(event));
    if (range && !same(range, this.range)) this.changed((this.range = range), true);
  }

  /** @param {PointerEvent} event */
  up(event) {
    const drag = this.drag;
    this.drag = null;
    if (!drag) return;
    if (drag.moved) this.changed(this.range, false);
    else if (drag.kind === "new" || drag.kind === "move") this.changed(this.binAt(event), false);
  }

  /**
   * @param {Drag} drag
   * @param {number} place
   * @returns {Range | null}
   */
  dragged({ kind, start, range }, place) {
    const { places } = this.axis;
    if (kind === "from") return ordered(place, range[1]);
    if (kind === "to") return ordered(range[0], place);
    if (kind === "new") return ordered(start, place);
    const by = places.indexOf(place) - places.indexOf(start);
    return this.shifted(range, by);
  }

  /**
   * A range moved by some places, as far as there are any.
   * @param {Range} range
   * @param {number} by
   * @returns {Range}
   */
  shifted(range, by) {
    const { places } = this.axis;
    const [low, high] = range.map((end) => places.indexOf(closest(places, end)));
    const step = Math.min(Math.max(by, -low), places.length - 1 - high);
    return [places[low + step], places[high + step]];
  }

  /**
   * The bin that was clicked.
   * @param {PointerEvent} event
   * @returns {Range | null}
   */
  binAt(event) {
    const { places, x } = this.axis;
    const left = event.clientX - this.surface.getBoundingClientRect().left;
    const at = places.findIndex(
      (place, index) => index + 1 < places.length && x(place) <= left && left < x(places[index + 1]),
    );
    return at < 0 ? null : [places[at], places[at + 1]];
  }

  /**
   * @param {KeyboardEvent} event
   * @param {"from" | "to"} end
   */
  pressed(event, end) {
    const { places } = this.axis;
    const last = places.length - 1;
    if (last < 1) return;
    const range = this.range ?? /** @type {Range} */ ([places[0], places[last]]);
    const by = {
      ArrowLeft: -1,
      ArrowDown: -1,
      ArrowRight: 1,
      ArrowUp: 1,
      PageDown: -5,
      PageUp: 5,
      Home: -last,
      End: last,
    }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const moved = event.shiftKey ? this.shifted(range, by) : this.stretched(range, end, by);
    if (!same(moved, this.range)) this.changed(moved, false);
  }

  /**
   * A range with one end moved; at least one bin is left.
   * @param {Range} range
   * @param {"from" | "to"} end
   * @param {number} by
   * @returns {Range}
   */
  stretched(range, end, by) {
    const { places } = this.axis;
    const now = range[end === "from" ? 0 : 1];
    const exact = places.indexOf(now);
    const beyond = places.findIndex((place) => place > now);
    const start = exact >= 0 ? exact : by > 0 ? beyond - 1 : beyond;
    const to = Math.min(Math.max(start + by, 0), places.length - 1);
    if (end === "from") return [Math.min(places[to], places[places.length - 2], below(places, range[1])), range[1]];
    return [range[0], Math.max(places[to], places[1], above(places, range[0]))];
  }
}

/**
 * @param {number[]} places
 * @param {number} end
 */
const below = (places, end) => places.filter((place) => place < end).pop() ?? places[0];

/**
 * @param {number[]} places
 * @param {number} start
 */
const above = (places, start) => places.find((place) => place > start) ?? places[places.length - 1];

/**
 * @param {Axis} axis
 * @param {number} left
 */
function nearest({ places, x }, left) {
  return places.reduce((best, place) => (Math.abs(x(place) - left) < Math.abs(x(best) - left) ? place : best));
}

/**
 * @param {number[]} places
 * @param {number} value
 */
const closest = (places, value) => nearest({ places, x: (place) => place, tell: String }, value);

/**
 * @param {number} one
 * @param {number} other
 * @returns {Range | null}
 */
const ordered = (one, other) => (one === other ? null : one < other ? [one, other] : [other, one]);

/**
 * @param {Range} one
 * @param {Range | null} other
 */
const same = (one, other) => other !== null && one[0] === other[0] && one[1] === other[1];
