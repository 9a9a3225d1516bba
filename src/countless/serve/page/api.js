/** The service, and what it has answered before. */

import { fitted, folded, zoomOf } from "./zoom.js";

/**
 * @typedef {import("./types.js").Column} Column
 * @typedef {import("./types.js").Estimate} Estimate
 * @typedef {import("./types.js").Model} Model
 * @typedef {import("./types.js").Pieces} Pieces
 * @typedef {import("./types.js").Spread} Spread
 * @typedef {import("./zoom.js").Zoom} Zoom
 */

const BINS = 24;
const TOP = 40;
const PIECES = 5; // beginnings, and endings, that a text card has room for
const KEPT = 4000;

/** An answer that says why there is none; `span` is where in the clause, in characters. */
export class ApiError extends Error {
  /**
   * @param {string} message
   * @param {[number, number] | null} span
   */
  constructor(message, span) {
    super(message);
    this.span = span;
  }
}

/** The service wants a token, or another one. */
export class TokenError extends ApiError {}

const TOKEN = "countless-token";

/**
 * What a service with a token must be brought with every request.
 * @returns {Record<string, string>}
 */
function authorization() {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { authorization: `Bearer ${token}` } : {};
}

/** Whether there is a token to bring. */
export const hasToken = () => sessionStorage.getItem(TOKEN) !== null;

/**
 * Brings this token from now on, until the tab is closed.
 * @param {string} token
 */
export function keepToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

/**
 * @param {string} path
 * @param {unknown} [body] what to POST; without it, GET
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
async function ask(path, body, signal) {
  const posted = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const headers = { "content-type": "application/json", ...authorization() };
  const response = await fetch(`v1/${path}`, { ...posted, headers, signal });
  const told = await response.json().catch(() => null);
  signal?.throwIfAborted(); // what was read of it is not all
  if (response.status === 401) throw new TokenError(told?.error?.message ?? "the service wants a token", null);
  if (response.ok && told) return told;
  throw new ApiError(told?.error?.message ?? `the service answered with ${response.status}`, told?.error?.span ?? null);
}

/** @returns {Promise<{name: string, rows: number, columns: number}[]>} */
export async function listModels() {
  return (await ask("models")).models;
}

/**
 * @param {string} name
 * @returns {Promise<Model>}
 */
export const describe = (name) => ask(`models/${encodeURIComponent(name)}`);

/** Answers of one model, kept by question, the latest few thousand. */
export class Answers {
  /**
   * @param {string} model
   * @param {Column[]} columns
   */
  constructor(model, columns) {
    this.path = `models/${encodeURIComponent(model)}`;
    this.types = new Map(columns.map((column) => [column.name, column.type]));
    /** @type {Map<string, Zoom | null>} */
    this.zooms = new Map();
    /** @type {Map<string, any>} */
    this.kept = new Map();
  }

  /**
   * The kept estimate of a clause.
   * @param {string} where
   * @returns {Estimate | undefined}
   */
  total(where) {
    return this.kept.get(key("total", where));
  }

  /**
   * The kept spread of a column under a clause.
   * @param {string} column
   * @param {string} where
   * @param {string} [search]
   * @returns {Spread | undefined}
   */
  spread(column, where, search = "") {
    return this.kept.get(key("spread", where, column, search));
  }

  /**
   * The kept beginnings and endings of a text column under a clause.
   * @param {string} column
   * @param {string} where
   * @returns {Pieces | undefined}
   */
  pieces(column, where) {
    return this.kept.get(key("pieces", where, column));
  }

  /**
   * @param {string} column
   * @param {string} where
   * @param {AbortSignal} [signal]
   */
  async askPieces(column, where, signal) {
    const body = { column, where: where || null, top: PIECES };
    this.keep(key("pieces", where, column), await ask(`${this.path}/pieces`, body, signal));
  }

  /**
   * @param {string} where
   * @returns {{rows: number, ms: number} | undefined}
   */
  truth(where) {
    return this.kept.get(key("truth", where));
  }

  /**
   * @param {string} where
   * @param {AbortSignal} [signal]
   * @returns {Promise<Estimate>}
   */
  async estimate(where, signal) {
    const found = this.total(where) ?? (await ask(`${this.path}/estimate`, { where: [where] }, signal)).estimates[0];
    if (found.error) throw new ApiError(found.error.message, found.error.span);
    return this.keep(key("total", where), found);
  }

  /**
   * Asks for the spreads of columns that are not kept yet, all under one clause.
   * @param {string[]} columns
   * @param {string} where
   * @param {Map<string, string>} search by column
   * @param {AbortSignal} [signal]
   */
  async spreads(columns, where, search, signal) {
    const wanted = columns.filter((column) => !this.spread(column, where, search.get(column)));
    /** @type {Map<number, string[]>} */
    const groups = new Map();
    for (const column of wanted) {
      const bins = this.zooms.get(column)?.bins ?? BINS;
      groups.set(bins, [...(groups.get(bins) ?? []), column]);
    }
    for (const [bins, names] of groups) {
      const searched = Object.fromEntries([...search].filter(([name, text]) => text && names.includes(name)));
      const body = { columns: names, where: where || null, bins, top: TOP, search: searched };
      const told = await ask(`${this.path}/distribution`, body, signal);
      for (const card of told.cards) await this.take({ ...card, total: told.total }, where, search, signal);
    }
  }

  /**
   * Keeps a spread. One of the whole table tells whether the column is better looked at closely, and is asked again.
   * @param {Spread} card
   * @param {string} where
   * @param {Map<string, string>} search by column
   * @param {AbortSignal} [signal]
   */
  async take(card, where, search, signal) {
    const name = card.column;
    const type = this.types.get(name) ?? "";
    if (!where && card.kind !== "category") {
      const known = this.zooms.get(name);
      if (known) this.zooms.set(name, fitted(type, known, card.values));
      else if (known === undefined) {
        this.zooms.set(name, zoomOf(type, card.values));
        if (this.zooms.get(name)) return this.spreads([name], where, search, signal);
      }
    }
    const zoom = this.zooms.get(name);
    const values = zoom ? folded(type, zoom, card.values) : card.values;
    this.keep(key("spread", where, name, search.get(name) ?? ""), { ...card, values });
  }

  /**
   * The table's own count.
   * @param {string} where
   * @returns {Promise<{rows: number, ms: number}>}
   */
  async check(where) {
    return this.keep(key("truth", where), await ask(`${this.path}/check`, { where }));
  }

  /**
   * @template T
   * @param {string} question
   * @param {T} answer
   * @returns {T}
   */
  keep(question, answer) {
    this.kept.delete(question);
    this.kept.set(question, answer);
    if (this.kept.size > KEPT) this.kept.delete(/** @type {string} */ (this.kept.keys().next().value));
    return answer;
  }
}

/** @param {...string} parts */
const key = (...parts) => JSON.stringify(parts);
