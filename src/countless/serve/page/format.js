/** Numbers as they are read: rows, shares, times, values of columns. */

/**
 * @typedef {import("./types.js").Edge} Edge
 * @typedef {import("./types.js").Value} Value
 */

const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 3 });

/**
 * A count of rows: 3,384; less than ten of an estimate keep a digit, 2.4.
 * @param {number} rows
 */
export function formatRows(rows) {
  if (rows > 0 && rows < 0.05) return "<0.1";
  if (rows < 9.95 && Math.abs(rows - Math.round(rows)) >= 0.05) return rows.toFixed(1);
  return WHOLE.format(rows);
}

/**
 * A count of rows in little room: 15.8K.
 * @param {number} rows
 */
export function formatShort(rows) {
  return rows < 1000 ? formatRows(rows) : SHORT.format(rows);
}

/**
 * A share in percent, with two significant digits when it is small: 32.3%, 0.69%, 0.0021%.
 * @param {number} share
 */
export function formatShare(share) {
  const percent = share * 100;
  if (percent === 0) return "0%";
  if (percent >= 99.95) return percent > 99.9999 ? "100%" : "99.9%";
  if (percent >= 10) return `${percent.toFixed(1)}%`;
  if (percent < 0.0001) return "<0.0001%";
  return `${Number(percent.toPrecision(2))}%`;
}

/**
 * Milliseconds: 0.84 ms, 4.0 ms, 120 ms, 2.1 s.
 * @param {number} ms
 */
export function formatMs(ms) {
  if (ms >= 1000) return `${(ms / 1000).toFixed(1)} s`;
  return `${ms < 1 ? ms.toFixed(2) : ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

/**
 * A value of a column as a label.
 * @param {Value | undefined} value
 */
export function formatValue(value) {
  if (value === null || value === undefined) return "NULL";
  return value === "" ? "(empty)" : value;
}

/**
 * Whether whole numbers between two ends are likely to be years.
 * @param {Edge | undefined} first
 * @param {Edge | undefined} last
 */
export function areYears(first, last) {
  return [first, last].every((end) => Number.isInteger(end) && Number(end) >= 1000 && Number(end) < 3000);
}

/**
 * A number of a column, never rounded: thousands are grouped.
 * @param {number} value
 */
export function formatNumber(value) {
  const [whole, ...part] = String(value).split(".");
  return /^-?\d{4,15}$/.test(whole) ? [WHOLE.format(Number(whole)), ...part].join(".") : String(value);
}

/**
 * An edge of a bin: a time of midnight is its day, and a year has no thousands.
 * @param {Edge | undefined} value
 * @param {boolean} [isYear]
 */
export function formatEdge(value, isYear = false) {
  if (typeof value === "number") return isYear ? String(value) : formatNumber(value);
  return formatValue(value).replace(/[ T]00:00:00(\.0+)?([+-]00(:?00)?|Z)?$/, "");
}

/**
 * The factor between an estimate and the truth, both at least one row.
 * @param {number} estimate
 * @param {number} truth
 */
export function qError(estimate, truth) {
  const [a, b] = [Math.max(estimate, 1), Math.max(truth, 1)];
  return Math.max(a / b, b / a);
}

/**
 * A factor: 1.01, 2.4, 130.
 * @param {number} factor
 */
export function formatFactor(factor) {
  return factor < 2 ? factor.toFixed(2) : factor < 10 ? factor.toFixed(1) : WHOLE.format(factor);
}
