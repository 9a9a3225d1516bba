/** Names and literals of SQL, by the types of columns, and where a value lies on its axis. */

/**
 * @typedef {import("./types.js").Column} Column
 * @typedef {import("./types.js").Edge} Edge
 * @typedef {import("./types.js").Value} Value
 */

const PLAIN = /^[a-z_][a-z0-9_]*$/i;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const INTEGERS = /^(U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER)$/;
const NUMBERS = /^(U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|REAL|DOUBLE|DECIMAL.*)$/;

/** Words that are not names unless they stand in double quotes, for DuckDB or for the model's parser. */
const WORDS = new Set(
  (
    "all alter analyse analyze and anti any array as asc asof asymmetric at authorization between binary both by call " +
    "case cast check collate collation column columns concurrently constraint create cross current_date current_time " +
    "current_timestamp default deferrable desc describe distinct do drop else end except execute explain false fetch " +
    "for force foreign freeze from full generated glob grant group having if ilike in initially inner insert install " +
    "intersect interval into is isnull join lambda lateral leading left like limit map natural not notnull null object " +
    "offset on only or order outer overlaps pivot pivot_longer pivot_wider placing positional prepare primary qualify " +
    "range references rename reset returning revoke right rollback row select semi show similar some struct summarize " +
    "symmetric table tablesample then to trailing true try_cast tuple union unique unpack unpivot using vacuum values " +
    "variadic verbose when where window with"
  ).split(" "),
);

/**
 * A column's name as it stands in a clause.
 * @param {string} name
 */
export function quoteName(name) {
  return PLAIN.test(name) && !WORDS.has(name.toLowerCase()) ? name : `"${name.replaceAll('"', '""')}"`;
}

/**
 * Text as a literal.
 * @param {string} text
 */
export function quoteText(text) {
  return `'${text.replaceAll("'", "''")}'`;
}

/** @param {string} type */
export const isNumeric = (type) => NUMBERS.test(type);

/**
 * Whether values of this type have neighbours, so that a range may end at the last value that is in it.
 * @param {string} type
 */
export const isDiscrete = (type) => INTEGERS.test(type) || type === "DATE";

/**
 * The keyword before literals of a time, or "" for other types.
 * @param {string} type
 */
export function timeKeyword(type) {
  if (type === "TIMESTAMP WITH TIME ZONE") return "TIMESTAMPTZ";
  if (type.startsWith("TIMESTAMP")) return "TIMESTAMP";
  if (type === "DATE" || type === "TIME") return type;
  return "";
}

/**
 * A value as a literal of its column's type.
 * @param {string} type
 * @param {Value} value
 */
export function literal(type, value) {
  if (value === null) return "NULL";
  const text = String(value);
  if (isNumeric(type)) return NUMBER.test(text) ? text : quoteText(text); // 'nan' and 'inf' are quoted
  if (type === "BOOLEAN") return text.toUpperCase();
  const keyword = timeKeyword(type);
  return keyword ? `${keyword} ${quoteText(text)}` : quoteText(text);
}

/**
 * Where a value lies on its axis: a number as such, days and times in milliseconds. NaN if it cannot be told.
 * @param {string} type
 * @param {Edge | undefined} value
 * @returns {number}
 */
export function position(type, value) {
  if (value === null || value === undefined) return NaN;
  const text = String(value).trim();
  if (isNumeric(type)) return NUMBER.test(text) ? Number(text) : NaN;
  if (type === "TIME") return Date.parse(`1970-01-01T${text.padEnd(8, ":00")}Z`);
  const parts = /^(-?\d{4,6}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)\d*([+-]\d\d(?::?\d\d)?|Z)?)?$/.exec(
    text,
  );
  if (!parts) return NaN;
  const zone = (parts[3] ?? "Z").replace(/^([+-]\d\d)$/, "$1:00");
  return Date.parse(`${parts[1]}T${parts[2] ?? "00:00"}${zone}`);
}

/**
 * The next value, or the one before, of a discrete type.
 * @param {string} type
 * @param {string} text
 * @param {1 | -1} by
 */
export function neighbour(type, text, by) {
  if (type === "DATE") return new Date(position(type, text) + by * 86400000).toISOString().slice(0, 10);
  const number = Number(text);
  if (!Number.isInteger(number)) return String(by > 0 ? Math.ceil(number) : Math.floor(number));
  if (Number.isSafeInteger(number)) return String(number + by);
  return String(BigInt(/^[+-]?\d+$/.test(text) ? text : number) + BigInt(by));
}

/**
 * Whether text that was typed can be a bound of a column: numbers and days are checked, times left to the service.
 * @param {Column} column
 * @param {string} text
 */
export function isBound(column, text) {
  if (isNumeric(column.type)) return NUMBER.test(text);
  return column.type === "DATE" ? !Number.isNaN(position("DATE", text)) : text !== "";
}
