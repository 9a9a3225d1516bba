/**
 * Keeps the cards at the view: one request at a time, what is in sight first, and the newest view wins.
 *
 * While something is dragged the request that is under way may finish, so that there is something to see, and the
 * newest view is next; otherwise it is dropped. What was answered before is shown at once.
 */

import { ApiError, TokenError } from "./api.js";
import { whereOf } from "./clause.js";

/**
 * @typedef {import("./api.js").Answers} Answers
 * @typedef {import("./types.js").Column} Column
 * @typedef {import("./types.js").View} View
 * @typedef {{view: View, live: boolean}} Job
 * @typedef {() => Promise<void>} Step
 */

const CHUNK = 6;

/**
 * What the updates need of a page.
 * @typedef {object} Page
 * @property {Column[]} columns
 * @property {Answers} answers
 * @property {(column: Column) => boolean} isSpread whether a column's card shows a distribution
 * @property {() => Set<string>} seen the columns whose cards are in sight
 * @property {() => Set<string>} shown the columns whose cards are not filtered away
 * @property {() => Map<string, string>} searches by column
 * @property {(view: View) => void} draw shows what is kept
 * @property {(error: ApiError | null) => void} refused
 * @property {(column: string, where: string, message: string) => void} failed a card's answer under a clause
 * @property {(busy: boolean) => void} busy
 */

export class Updates {
  /** @param {Page} page */
  constructor(page) {
    this.page = page;
    /** @type {Job | null} */
    this.next = null;
    /** @type {Job | null} */
    this.current = null;
    this.controller = new AbortController();
  }

  /**
   * @param {View} view
   * @param {boolean} live
   */
  request(view, live) {
    this.next = { view, live };
    if (!this.current) void this.run();
    else if (!this.current.live || !live) this.controller.abort();
  }

  /** Drops everything: the page is about another model now. */
  stop() {
    this.next = null;
    this.controller.abort();
    this.page.draw = this.page.refused = this.page.failed = this.page.busy = () => {};
  }

  async run() {
    while (this.next) {
      this.current = this.next;
      this.next = null;
      this.controller = new AbortController();
      this.page.draw(this.current.view);
      try {
        await this.job(this.current);
      } catch (error) {
        if (!this.controller.signal.aborted) this.tell(error);
      }
    }
    this.current = null;
    this.page.busy(false);
  }

  /** @param {Job} job */
  async job(job) {
    for (const step of this.steps(job)) {
      if (this.next) return;
      this.page.busy(true);
      await step();
      this.page.refused(null);
      this.page.draw(job.view);
    }
    if (!this.next) this.page.refused(null);
  }

  /**
   * What there is to ask, in this order: shapes of the whole table in sight, the count, cards in sight, pieces of
   * their text, then the rest.
   * @param {Job} job
   * @returns {Generator<Step>}
   */
  *steps({ view, live }) {
    const { columns, answers } = this.page;
    const signal = this.controller.signal;
    const where = whereOf(columns, view);
    const shown = columns.filter((column) => this.page.shown().has(column.name));
    const seen = shown.filter((column) => this.page.seen().has(column.name));
    const rest = shown.filter((column) => !seen.includes(column));
    yield* this.cards(seen, () => "");
    if (where && !answers.total(where)) yield async () => void (await answers.estimate(where, signal));
    yield* this.view(seen, view);
    if (live) return;
    yield* this.pieces(seen, where);
    yield* this.cards(rest, () => "");
    yield* this.view(rest, view);
    yield* this.pieces(rest, where);
  }

  /**
   * Beginnings and endings of text columns under the whole clause. A card does without those that are refused.
   * @param {Column[]} columns
   * @param {string} where
   * @returns {Generator<Step>}
   */
  *pieces(columns, where) {
    const { answers, isSpread } = this.page;
    for (const { name } of columns.filter((column) => !isSpread(column) && !answers.pieces(column.name, where))) {
      yield () =>
        answers.askPieces(name, where, this.controller.signal).catch((error) => {
          if (!(error instanceof ApiError) || error instanceof TokenError) throw error;
        });
    }
  }

  /**
   * @param {Column[]} columns
   * @param {View} view
   * @returns {Generator<Step>}
   */
  *view(columns, view) {
    yield* this.cards(columns, (column) => whereOf(this.page.columns, view, column.name));
    for (const column of columns) if (!this.page.isSpread(column)) yield* this.matches(column, view);
  }

  /**
   * Spreads that are not kept, some columns of the same condition at a time.
   * @param {Column[]} columns
   * @param {(column: Column) => string} whereFor
   * @returns {Generator<Step>}
   */
  *cards(columns, whereFor) {
    const searches = this.page.searches();
    /** @type {Map<string, string[]>} */
    const wanted = new Map();
    for (const column of columns.filter(this.page.isSpread)) {
      const where = whereFor(column);
      for (const search of new Set(["", searches.get(column.name) ?? ""])) {
        if (this.page.answers.spread(column.name, where, search)) continue;
        const group = JSON.stringify([where, search && [column.name, search]]);
        wanted.set(group, [...(wanted.get(group) ?? []), column.name]);
      }
    }
    for (const [group, names] of wanted) {
      const [where, search] = JSON.parse(group);
      const searched = new Map(search ? [search] : []);
      for (let at = 0; at < names.length; at += CHUNK) {
        yield () => this.chunk(names.slice(at, at + CHUNK), where, searched);
      }
    }
  }

  /**
   * A chunk in one request; if the service refuses one of its columns, each for itself.
   * @param {string[]} names
   * @param {string} where
   * @param {Map<string, string>} searched
   */
  async chunk(names, where, searched) {
    const { answers } = this.page;
    try {
      await answers.spreads(names, where, searched, this.controller.signal);
    } catch (error) {
      if (!(error instanceof ApiError) || error instanceof TokenError) throw error;
      if (names.length === 1) this.page.failed(names[0], where, error.message);
      else for (const name of names) await this.chunk([name], where, searched);
    }
  }

  /**
   * For a card without a distribution: how many rows its pattern leaves of the others' rows, and of all.
   * @param {Column} column
   * @param {View} view
   * @returns {Generator<Step>}
   */
  *matches(column, view) {
    const { columns, answers } = this.page;
    const filter = view.filters.get(column.name);
    if (!filter) return;
    const alone = whereOf(columns, { model: view.model, filters: new Map([[column.name, filter]]), extra: [] });
    for (const where of [whereOf(columns, view, column.name), alone]) {
      if (where && !answers.total(where)) yield () => this.match(column, whereOf(columns, view), where);
    }
  }

  /**
   * @param {Column} column
   * @param {string} shown the clause of the view
   * @param {string} where what is asked for the card
   */
  async match(column, shown, where) {
    try {
      await this.page.answers.estimate(where, this.controller.signal);
    } catch (error) {
      if (!(error instanceof ApiError) || error instanceof TokenError) throw error;
      this.page.failed(column.name, shown, error.message);
    }
  }

  /** @param {unknown} error */
  tell(error) {
    const lost = "the service does not answer: is it still running?";
    this.page.refused(error instanceof ApiError ? error : new ApiError(lost, null));
  }
}
