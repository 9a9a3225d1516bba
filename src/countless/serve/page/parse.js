/** A WHERE clause back to the filters of cards; what no card can show is kept as it is written. */

import { both, Reader } from "./reader.js";
import { tokens } from "./tokens.js";

/**
 * @typedef {import("./tokens.js").Token} Token
 * @typedef {import("./types.js").Column} Column
 * @typedef {import("./types.js").Filter} Filter
 */

/**
 * What a clause asks for: filters by column, and the other conditions.
 * @param {string} sql
 * @param {Column[]} columns
 * @returns {{filters: Map<string, Filter>, extra: string[]}}
 */
export function parseWhere(sql, columns) {
  /** @type {Map<string, Filter>} */
  const filters = new Map();
  const all = tokens(sql);
  if (!all) return { filters, extra: [sql.trim()] };
  const found = condition(all);
  if (!found.length) return { filters, extra: [] };
  const parts = conjuncts(found);
  if (!parts) return { filters, extra: [sql.trim()] };
  /** @type {string[]} */
  const extra = [];
  for (const part of parts) {
    const read = new Reader(part, columns).condition();
    const before = read && filters.get(read.column.name);
    const joined = read && (before ? both(before, read.filter) : read.filter);
    if (read && joined) filters.set(read.column.name, joined);
    else extra.push(written(sql, part));
  }
  return { filters, extra };
}

/**
 * The condition of a clause with its keyword, or of a SELECT that has nothing else that matters.
 * @param {Token[]} all
 */
function condition(all) {
  if (all[0]?.word === "WHERE") return all.slice(1);
  const where = all.findIndex((token) => token.word === "WHERE");
  if (all[0]?.word !== "SELECT" || where < 0) return all;
  const rest = all.slice(where + 1);
  const end = rest.findIndex((token) => token.word === "ORDER" || token.word === "LIMIT" || token.text === ";");
  return end < 0 ? rest : rest.slice(0, end);
}

/**
 * The parts between the outermost ANDs. With an OR outside there is one part.
 * Null where brackets do not fit.
 * @param {Token[]} all
 * @returns {Token[][] | null}
 */
function conjuncts(all) {
  /** @type {Token[][]} */
  const parts = [[]];
  let depth = 0;
  let between = 0;
  for (const token of all) {
    if (token.kind === "sign" && "([{".includes(token.text)) depth += 1;
    if (token.kind === "sign" && ")]}".includes(token.text)) depth -= 1;
    if (token.word === "CASE") depth += 1;
    if (token.word === "END") depth -= 1;
    if (depth < 0) return null;
    if (!depth && token.word === "OR") return [all];
    if (!depth && token.word === "BETWEEN") between += 1;
    if (!depth && token.word === "AND") {
      if (between) between -= 1;
      else {
        parts.push([]);
        continue;
      }
    }
    parts[parts.length - 1].push(token);
  }
  if (depth || parts.some((part) => !part.length)) return null;
  return parts.flatMap((part) => unwrapped(part));
}

/**
 * The parts of an AND list in brackets of its own, or the part itself.
 * @param {Token[]} part
 * @returns {Token[][]}
 */
function unwrapped(part) {
  if (part[0].text !== "(" || part[0].kind !== "sign" || closing(part) !== part.length - 1 || part.length < 3)
    return [part];
  const inner = part.slice(1, -1);
  return outerOr(inner) ? [part] : (conjuncts(inner) ?? [part]);
}

/**
 * Where the bracket that a part begins with ends.
 * @param {Token[]} part
 */
function closing(part) {
  let depth = 0;
  return part.findIndex((token) => {
    if (token.kind === "sign" && token.text === "(") depth += 1;
    if (token.kind === "sign" && token.text === ")") depth -= 1;
    return depth === 0;
  });
}

/** @param {Token[]} part */
function outerOr(part) {
  let depth = 0;
  return part.some((token) => {
    if (token.kind === "sign" && token.text === "(") depth += 1;
    if (token.kind === "sign" && token.text === ")") depth -= 1;
    return depth === 0 && token.word === "OR";
  });
}

/**
 * A part as it is written, without comments, in brackets if another AND would tear it apart.
 * @param {string} sql
 * @param {Token[]} part
 */
function written(sql, part) {
  const text = part
    .map((token, place) => (place && token.start > part[place - 1].end ? " " : "") + sql.slice(token.start, token.end))
    .join("");
  return outerOr(part) ? `(${text})` : text;
}
