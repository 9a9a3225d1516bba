/** One condition of a clause, read as the filter of a card. */

import { ESCAPE } from "./clause.js";
import { isNumeric, timeKeyword } from "./literal.js";

/**
 * @typedef {import("./tokens.js").Token} Token
 * @typedef {import("./types.js").Column} Column
 * @typedef {import("./types.js").Filter} Filter
 * @typedef {import("./types.js").Mode} Mode
 * @typedef {import("./types.js").Value} Value
 * @typedef {{column: Column, filter: Filter}} Found
 */

const BOUNDS = new Map([
  [">", "from"],
  [">=", "from"],
  ["<", "to"],
  ["<=", "to"],
]);
const TURNED = new Map([
  [">", "<"],
  [">=", "<="],
  ["<", ">"],
  ["<=", ">="],
  ["=", "="],
]);

/**
 * Two filters on one column as one: a lower and an upper bound are a range. Null where they are not.
 * @param {Filter} one
 * @param {Filter} other
 * @returns {Filter | null}
 */
export function both(one, other) {
  if (one.kind !== "range" || other.kind !== "range" || one.orNull || other.orNull) return null;
  if ((one.from && other.from) || (one.to && other.to)) return null;
  return { kind: "range", from: one.from ?? other.from, to: one.to ?? other.to, orNull: false };
}

/** Reads one condition on one column; every method gives null where the tokens are something else. */
export class Reader {
  /**
   * @param {Token[]} part
   * @param {Column[]} columns
   */
  constructor(part, columns) {
    this.part = part;
    this.columns = columns;
    this.at = 0;
  }

  /** @returns {Found | null} */
  condition() {
    const found = this.alternatives();
    return found && this.at === this.part.length ? found : null;
  }

  /**
   * A condition, or one "OR the column IS NULL", in brackets or not.
   * @returns {Found | null}
   */
  alternatives() {
    const bracket = this.sign("(");
    let found = this.comparison();
    if (found && this.range(found) && this.word("AND")) {
      const next = this.comparison();
      const joined = next && next.column === found.column ? both(found.filter, next.filter) : null;
      found = joined ? { column: found.column, filter: joined } : null;
    }
    if (found && this.word("OR")) {
      const other = this.comparison();
      found = other && other.column === found.column && isNull(other.filter) ? orNull(found) : null;
    }
    return bracket && !this.sign(")") ? null : found;
  }

  /** @param {Found} found */
  range(found) {
    return found.filter.kind === "range" && this.part[this.at]?.word === "AND";
  }

  /** @returns {Found | null} */
  comparison() {
    const start = this.at;
    const column = this.column();
    if (column) {
      const filter =
        this.isNull(column) ?? this.between(column) ?? this.in(column) ?? this.like(column) ?? this.compared(column);
      return filter && { column, filter };
    }
    this.at = start;
    return this.turned();
  }

  /**
   * A literal before its column: 35 < age.
   * @returns {Found | null}
   */
  turned() {
    const start = this.at;
    while (this.at < this.part.length && !this.operator()) this.at += 1;
    const operator = TURNED.get(this.operator());
    const middle = this.at;
    this.at += 1;
    const column = operator ? this.column() : null;
    if (!column || !operator) return null;
    const end = this.at;
    this.at = start;
    const text = this.literal(column);
    if (text === null || this.at !== middle) return null;
    this.at = end;
    const filter = compare(column, operator, text);
    return filter && { column, filter };
  }

  /** @returns {Column | null} */
  column() {
    const token = this.part[this.at];
    if (!token || (token.kind !== "name" && token.kind !== "quoted")) return null;
    const named =
      this.columns.find((column) => column.name === token.text) ??
      this.columns.find((column) => column.name.toLowerCase() === token.text.toLowerCase());
    if (!named || this.part[this.at + 1]?.text === "." || this.part[this.at + 1]?.text === "(") return null;
    this.at += 1;
    return named;
  }

  /**
   * @param {Column} column
   * @returns {Filter | null}
   */
  isNull(column) {
    if (!this.words("IS", "NULL")) return null;
    if (column.kind === "text") return null;
    return column.kind === "category"
      ? { kind: "in", values: [null] }
      : { kind: "range", from: null, to: null, orNull: true };
  }

  /**
   * @param {Column} column
   * @returns {Filter | null}
   */
  between(column) {
    if (!onAxis(column) || !this.word("BETWEEN")) return null;
    const low = this.literal(column);
    const high = low !== null && this.word("AND") ? this.literal(column) : null;
    if (low === null || high === null) return null;
    return { kind: "range", from: { text: low, strict: false }, to: { text: high, strict: false }, orNull: false };
  }

  /**
   * @param {Column} column
   * @returns {Filter | null}
   */
  in(column) {
    if (!isListed(column) || !this.words("IN", "(")) return null;
    /** @type {Value[]} */
    const values = [];
    do {
      const text = this.literal(column);
      if (text === null) return null;
      if (!values.includes(text)) values.push(text);
    } while (this.sign(","));
    return this.sign(")") ? { kind: "in", values } : null;
  }

  /**
   * @param {Column} column
   * @returns {Filter | null}
   */
  like(column) {
    if (onAxis(column) || isListed(column)) return null;
    const not = this.word("NOT");
    const anyCase = this.word("ILIKE");
    if (!anyCase && !this.word("LIKE")) return null;
    const pattern = this.text();
    if (pattern === null) return null;
    const escape = this.word("ESCAPE") ? this.text() : null;
    if (escape === null ? pattern.includes(ESCAPE) : escape !== ESCAPE) return null;
    return pattern === "" ? null : { kind: "like", ...typed(pattern), anyCase, not };
  }

  /**
   * @param {Column} column
   * @returns {Filter | null}
   */
  compared(column) {
    const operator = this.operator();
    if (!operator) return null;
    this.at += 1;
    const text = this.literal(column);
    return text === null ? null : compare(column, operator, text);
  }

  /** The comparison that stands here, or "". */
  operator() {
    const token = this.part[this.at];
    return token?.kind === "sign" && TURNED.has(token.text) ? token.text : "";
  }

  /**
   * A literal of the column's type, as the text in it.
   * @param {Column} column
   * @returns {string | null}
   */
  literal(column) {
    const keyword = timeKeyword(column.type);
    if (keyword) {
      this.word(keyword);
      return this.text();
    }
    if (isNumeric(column.type)) {
      const minus = this.sign("-") ? "-" : "";
      const token = this.part[this.at];
      if (token?.kind !== "number") return minus ? null : this.text();
      this.at += 1;
      return minus + token.text;
    }
    if (column.type !== "BOOLEAN") return this.text();
    return this.word("TRUE") ? "true" : this.word("FALSE") ? "false" : null;
  }

  /** @returns {string | null} */
  text() {
    const token = this.part[this.at];
    if (token?.kind !== "text") return null;
    this.at += 1;
    return token.text;
  }

  /** @param {string} word */
  word(word) {
    if (this.part[this.at]?.word !== word) return false;
    this.at += 1;
    return true;
  }

  /** @param {string} sign */
  sign(sign) {
    const token = this.part[this.at];
    if (token?.kind !== "sign" || token.text !== sign) return false;
    this.at += 1;
    return true;
  }

  /** @param {...string} wanted */
  words(...wanted) {
    const here = wanted.every((text, place) => {
      const token = this.part[this.at + place];
      return token && (token.word === text || (token.kind === "sign" && token.text === text));
    });
    if (here) this.at += wanted.length;
    return here;
  }
}

/** @param {Column} column */
const onAxis = (column) => column.kind === "number" || column.kind === "time";

/** @param {Column} column */
const isListed = (column) => column.kind === "category";

/**
 * @param {Column} column
 * @param {string} operator
 * @param {string} text
 * @returns {Filter | null}
 */
function compare(column, operator, text) {
  if (isListed(column)) return operator === "=" ? { kind: "in", values: [text] } : null;
  if (!onAxis(column)) return null;
  const bound = { text, strict: operator === "<" || operator === ">" };
  if (operator === "=") return { kind: "range", from: bound, to: bound, orNull: false };
  const from = BOUNDS.get(operator) === "from";
  return { kind: "range", from: from ? bound : null, to: from ? null : bound, orNull: false };
}

/** @param {Filter} filter */
const isNull = (filter) =>
  (filter.kind === "in" && filter.values.length === 1 && filter.values[0] === null) ||
  (filter.kind === "range" && filter.orNull && !filter.from && !filter.to);

/**
 * @param {Found} found
 * @returns {Found | null}
 */
function orNull({ column, filter }) {
  if (filter.kind === "in") return { column, filter: { kind: "in", values: [...filter.values, null] } };
  return filter.kind === "range" ? { column, filter: { ...filter, orNull: true } } : null;
}

/**
 * How a pattern would be typed: %abc% is "contains abc".
 * @param {string} pattern
 * @returns {{mode: Mode, text: string}}
 */
function typed(pattern) {
  const parts = /^(%?)((?:[^%_\\]|\\[^])*)(%?)$/.exec(pattern);
  const mode = parts && { "%%": "contains", "%": parts[1] ? "ends" : "starts", "": null }[parts[1] + parts[3]];
  if (!parts || !mode || !parts[2]) return { mode: "like", text: pattern };
  return { mode: /** @type {Mode} */ (mode), text: parts[2].replace(/\\([^])/g, "$1") };
}
