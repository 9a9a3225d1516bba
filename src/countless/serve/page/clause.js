/** Filters of cards as SQL. */

import { literal, quoteName, quoteText } from "./literal.js";

/**
 * @typedef {import("./types.js").Column} Column
 * @typedef {import("./types.js").Filter} Filter
 * @typedef {import("./types.js").InFilter} InFilter
 * @typedef {import("./types.js").RangeFilter} RangeFilter
 * @typedef {import("./types.js").LikeFilter} LikeFilter
 * @typedef {import("./types.js").Mode} Mode
 * @typedef {import("./types.js").View} View
 */

export const ESCAPE = "\\";

/**
 * Whether a filter lets every row pass, so that it is none.
 * @param {Filter} filter
 */
export function isEmpty(filter) {
  if (filter.kind === "in") return filter.values.length === 0;
  if (filter.kind === "range") return !filter.from && !filter.to && !filter.orNull;
  return filter.text === "";
}

/**
 * A filter as a condition that can stand between ANDs.
 * @param {Column} column
 * @param {Filter} filter
 */
export function filterSql(column, filter) {
  if (filter.kind === "in") return inSql(column, filter);
  return filter.kind === "range" ? rangeSql(column, filter) : likeSql(column, filter);
}

/**
 * @param {Column} column
 * @param {InFilter} filter
 */
function inSql(column, filter) {
  const name = quoteName(column.name);
  const values = filter.values.filter((value) => value !== null).map((value) => literal(column.type, value));
  const listed = values.length === 1 ? `${name} = ${values[0]}` : `${name} IN (${values.join(", ")})`;
  if (values.length === filter.values.length) return listed;
  return values.length ? `(${listed} OR ${name} IS NULL)` : `${name} IS NULL`;
}

/**
 * @param {Column} column
 * @param {RangeFilter} filter
 */
function rangeSql(column, filter) {
  const name = quoteName(column.name);
  const { from, to, orNull } = filter;
  if (!from && !to) return `${name} IS NULL`;
  const low = from && literal(column.type, from.text);
  const high = to && literal(column.type, to.text);
  let sql;
  if (from && to && !from.strict && !to.strict) {
    sql = low === high ? `${name} = ${low}` : `${name} BETWEEN ${low} AND ${high}`;
  } else {
    const parts = [];
    if (from) parts.push(`${name} ${from.strict ? ">" : ">="} ${low}`);
    if (to) parts.push(`${name} ${to.strict ? "<" : "<="} ${high}`);
    sql = parts.join(" AND ");
  }
  return orNull ? `(${sql} OR ${name} IS NULL)` : sql;
}

/**
 * @param {Column} column
 * @param {LikeFilter} filter
 */
function likeSql(column, filter) {
  const pattern = patternOf(filter.mode, filter.text);
  const operator = `${filter.not ? "NOT " : ""}${filter.anyCase ? "ILIKE" : "LIKE"}`;
  const escape = pattern.includes(ESCAPE) ? ` ESCAPE '${ESCAPE}'` : "";
  return `${quoteName(column.name)} ${operator} ${quoteText(pattern)}${escape}`;
}

/**
 * The LIKE pattern of what was typed: only a whole pattern has wildcards, elsewhere % and _ are themselves.
 * @param {Mode} mode
 * @param {string} text
 */
export function patternOf(mode, text) {
  if (mode === "like") return text;
  const escaped = text.replace(/[\\%_]/g, (character) => ESCAPE + character);
  return `${mode === "starts" ? "" : "%"}${escaped}${mode === "ends" ? "" : "%"}`;
}

/**
 * The WHERE clause of a view, in the order of the columns, conditions of no card last; "" for the whole table.
 * @param {Column[]} columns
 * @param {View} view
 * @param {string} [without] a column whose own filter is left out
 */
export function whereOf(columns, view, without) {
  const parts = [];
  for (const column of columns) {
    const filter = view.filters.get(column.name);
    if (filter && column.name !== without) parts.push(filterSql(column, filter));
  }
  return [...parts, ...view.extra].join(" AND ");
}
