/** What is looked at, kept in the URL's hash: #model=adult&where=age+%3E+35 */

import { filterSql, isEmpty, whereOf } from "./clause.js";
import { parseWhere } from "./parse.js";

/**
 * @typedef {import("./types.js").Column} Column
 * @typedef {import("./types.js").Filter} Filter
 * @typedef {import("./types.js").LikeFilter} LikeFilter
 * @typedef {import("./types.js").View} View
 */

/**
 * What a hash names.
 * @param {string} hash
 */
export function readHash(hash) {
  const named = new URLSearchParams(hash.replace(/^#/, ""));
  return { model: named.get("model") ?? "", where: named.get("where") ?? "" };
}

/**
 * @param {string} model
 * @param {string} where
 */
export function hashOf(model, where) {
  return `#${new URLSearchParams(where ? { model, where } : { model })}`;
}

/**
 * Whether every string that the second filter keeps is kept by the first.
 * @param {Filter} own
 * @param {LikeFilter} next
 */
function isWider(own, next) {
  if (own.kind !== "like" || own.not || own.mode !== next.mode) return false;
  return own.mode === "starts" ? next.text.startsWith(own.text) : next.text.endsWith(own.text);
}

/** The view, its history, and who wants to know of its changes. */
export class Store {
  /** @param {(view: View, live: boolean) => void} changed */
  constructor(changed) {
    this.changed = changed;
    /** @type {Column[]} */
    this.columns = [];
    /** @type {View} */
    this.view = { model: "", filters: new Map(), extra: [] };
    this.merge = "";
  }

  /** The WHERE clause of the view. */
  get where() {
    return whereOf(this.columns, this.view);
  }

  /**
   * Looks at a model under a clause, and nothing else changes: how a view of the URL is shown.
   * @param {string} model
   * @param {Column[]} columns
   * @param {string} where
   */
  show(model, columns, where) {
    this.columns = columns;
    this.view = { model, ...parseWhere(where, columns) };
    this.merge = "";
    this.changed(this.view, false);
  }

  /**
   * Sets or clears a column's filter. A live change, such as while a brush is dragged, is not yet history.
   * @param {string} column
   * @param {Filter | null} filter
   * @param {{live?: boolean, merge?: string}} [options] changes of one `merge` are one step of history
   */
  filter(column, filter, options = {}) {
    const filters = new Map(this.view.filters);
    if (filter && !isEmpty(filter)) filters.set(column, filter);
    else filters.delete(column);
    this.change({ ...this.view, filters }, options);
  }

  /**
   * Adds a pattern to a text column: as its filter, if it has none or a wider one, and else as a further condition.
   * @param {Column} column
   * @param {LikeFilter} filter
   */
  narrow(column, filter) {
    const own = this.view.filters.get(column.name);
    if (!own || isWider(own, filter)) this.filter(column.name, filter);
    else this.change({ ...this.view, extra: [...this.view.extra, filterSql(column, filter)] }, {});
  }

  /**
   * Removes a column's filter, and the further conditions that `isAbout` picks.
   * @param {string} column
   * @param {(sql: string) => boolean} isAbout
   */
  clear(column, isAbout) {
    const filters = new Map(this.view.filters);
    filters.delete(column);
    this.change({ ...this.view, filters, extra: this.view.extra.filter((sql) => !isAbout(sql)) }, {});
  }

  /**
   * Looks at what a clause says.
   * @param {string} where
   */
  edit(where) {
    this.change({ model: this.view.model, ...parseWhere(where, this.columns) }, {});
  }

  /**
   * @param {View} view
   * @param {{live?: boolean, merge?: string}} options
   */
  change(view, { live = false, merge = "" }) {
    this.view = view;
    if (!live) this.record(merge);
    this.changed(view, live);
  }

  /** The next change is a step of history of its own. */
  settle() {
    this.merge = "";
  }

  /** @param {string} merge */
  record(merge) {
    const hash = hashOf(this.view.model, this.where);
    if (hash === location.hash) return;
    if (merge && merge === this.merge) history.replaceState(null, "", hash);
    else history.pushState(null, "", hash);
    this.merge = merge;
  }
}
