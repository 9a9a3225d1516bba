/** Where nearly all values of a column lie: bins of it are made fine, and what lies below and above is folded. */

import { position } from "./literal.js";

/**
 * @typedef {import("./types.js").Edge} Edge
 * @typedef {import("./types.js").Slice} Slice
 * @typedef {{bins: number, first: Edge, from: Edge, to: Edge, last: Edge}} Zoom
 *   So many bins of the whole column make `from` to `to` worth looking at; it begins at `first` and ends at `last`.
 */

const MOST = 0.98; // of the rows are looked at closely
const WORTH = 3; // times as wide the whole must be
const FINE = 32; // bins, or so, of what is looked at
const LIMIT = 1000; // bins in all

/** @param {Slice} slice */
export const isBin = (slice) => slice.from !== null && slice.from !== undefined;

/**
 * What to look at closely, or null if the bins show enough as they are.
 * @param {string} type
 * @param {Slice[]} values of the whole table
 * @returns {Zoom | null}
 */
export function zoomOf(type, values) {
  const bins = values.filter(isBin);
  if (bins.length < 2) return null;
  const at = (/** @type {Edge | undefined} */ edge) => position(type, edge);
  const wanted = MOST * bins.reduce((sum, bin) => sum + bin.share, 0);
  let best = { start: 0, end: bins.length - 1, width: at(bins[bins.length - 1].to) - at(bins[0].from) };
  const whole = best.width;
  let share = 0;
  for (let start = 0, end = 0; end < bins.length; end += 1) {
    share += bins[end].share;
    while (share - bins[start].share >= wanted) share -= bins[start++].share;
    const width = at(bins[end].to) - at(bins[start].from);
    if (share >= wanted && width < best.width) best = { start, end, width };
  }
  if (!(whole / best.width >= WORTH)) return null;
  const [first, last] = [bins[0].from ?? null, bins[bins.length - 1].to ?? null];
  const [from, to] = [bins[best.start].from ?? null, bins[best.end].to ?? null];
  return { bins: Math.min(Math.ceil((FINE * whole) / best.width), LIMIT), first, from, to, last };
}

/**
 * The zoom with its ends where fine bins begin and end.
 * @param {string} type
 * @param {Zoom} zoom
 * @param {Slice[]} fine bins of the whole table
 * @returns {Zoom}
 */
export function fitted(type, zoom, fine) {
  const bins = fine.filter(isBin);
  const inside = bins.filter((bin) => part(type, zoom, bin) === "inside");
  if (!inside.length) return zoom;
  const [first, last] = [bins[0].from ?? null, bins[bins.length - 1].to ?? null];
  return { ...zoom, first, last, from: inside[0].from ?? null, to: inside[inside.length - 1].to ?? null };
}

/**
 * Bins with what lies below and above in one each, which have no error bar.
 * @param {string} type
 * @param {Zoom} zoom
 * @param {Slice[]} values
 * @returns {Slice[]}
 */
export function folded(type, zoom, values) {
  const bins = values.filter(isBin);
  const tail = (/** @type {string} */ side, /** @type {Edge} */ from, /** @type {Edge} */ to) => {
    const out = bins.filter((bin) => part(type, zoom, bin) === side);
    const sum = (/** @type {"share" | "rows"} */ what) => out.reduce((total, bin) => total + bin[what], 0);
    return from === to ? [] : [{ from, to, share: sum("share"), rows: sum("rows") }];
  };
  return [
    ...tail("below", zoom.first, zoom.from),
    ...bins.filter((bin) => part(type, zoom, bin) === "inside"),
    ...tail("above", zoom.to, zoom.last),
    ...values.filter((slice) => !isBin(slice)),
  ];
}

/**
 * @param {string} type
 * @param {Zoom} zoom
 * @param {Slice} bin
 */
function part(type, zoom, bin) {
  if (position(type, bin.to) <= position(type, zoom.from)) return "below";
  return position(type, bin.from) >= position(type, zoom.to) ? "above" : "inside";
}
