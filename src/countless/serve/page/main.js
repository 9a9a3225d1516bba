/** The page: a model's columns as cards, and what happens when one of them is touched. */

import { Answers, ApiError, describe, hasToken, keepToken, listModels, TokenError } from "./api.js";
import { CategoryCard } from "./category.js";
import { whereOf } from "./clause.js";
import { byId, debounced, html } from "./dom.js";
import { Editor } from "./editor.js";
import { formatRows } from "./format.js";
import { RangeCard } from "./range.js";
import { hashOf, readHash, Store } from "./state.js";
import { Summary } from "./summary.js";
import { TextCard } from "./text.js";
import { tokens } from "./tokens.js";
import { Updates } from "./updates.js";

/**
 * @typedef {import("./types.js").Column} Column
 * @typedef {import("./types.js").Model} Model
 * @typedef {import("./types.js").View} View
 * @typedef {CategoryCard | RangeCard | TextCard} AnyCard
 */

/**
 * Whether a condition names a column.
 * @param {string} sql
 * @param {string} column
 */
const names = (sql, column) =>
  (tokens(sql) ?? []).some(
    (token) => (token.kind === "name" || token.kind === "quoted") && token.text.toLowerCase() === column.toLowerCase(),
  );

/** @param {Column} column */
const isText = (column) => column.kind === "text";

class Explorer {
  constructor() {
    this.store = new Store((view, live) => this.changed(view, live));
    this.editor = new Editor({ edit: (where) => this.store.edit(where) });
    this.summary = new Summary(() => void this.check());
    /** @type {Model | null} */
    this.model = null;
    this.answers = new Answers("", []);
    /** @type {Updates | null} */
    this.updates = null;
    /** @type {Map<string, AnyCard>} */
    this.cards = new Map();
    /** @type {Set<string>} */
    this.seen = new Set();
    /** @type {Map<string, string>} */
    this.searches = new Map();
    /** @type {Map<string, import("./types.js").Spread>} */
    this.drawn = new Map(); // stays until the next is known
    /** @type {Map<string, import("./types.js").Pieces>} */
    this.pieces = new Map(); // likewise
    /** @type {Map<string, {where: string, message: string}>} */
    this.failures = new Map(); // what the service said instead of a card's answer
    this.isGuarded = false; // whether there is nothing to see without a token
    this.sight = new IntersectionObserver((entries) => this.sighted(entries), { rootMargin: "80px" });
    this.sizes = new ResizeObserver(debounced(60, () => this.cards.forEach((card) => card.resize())));
    byId("find").addEventListener("input", () => this.find());
    byId("model").addEventListener("change", () => (location.hash = hashOf(byId("model").value, "")));
    byId("bring").addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      keepToken(byId("token").value.trim());
      this.isGuarded = false;
      byId("guard").close();
      void this.start();
    });
    byId("guard").addEventListener("cancel", (/** @type {Event} */ event) => event.preventDefault());
    byId("guard").addEventListener("close", () => this.isGuarded && byId("guard").showModal());
    addEventListener("hashchange", () => void this.open());
  }

  async start() {
    try {
      const models = await listModels();
      const options = models.map(({ name, rows }) =>
        html("option", { value: name }, `${name} · ${formatRows(rows)} rows`),
      );
      byId("model").replaceChildren(...options);
      this.names = models.map(({ name }) => name);
      if (this.model) this.changed(this.store.view, false);
      await this.open();
    } catch (error) {
      this.lost(error);
    }
  }

  /** Shows what the URL says. */
  async open() {
    const named = readHash(location.hash);
    const name = named.model || this.names?.[0] || "";
    try {
      if (this.names && !this.names.includes(name)) this.nowhere(name);
      else if (this.model?.name !== name) await this.load(name, location.hash);
      else if (named.where !== this.store.where) this.store.show(name, this.model.columns, named.where);
    } catch (error) {
      this.lost(error);
    }
  }

  /**
   * @param {string} name
   * @param {string} hash
   */
  async load(name, hash) {
    const model = await describe(name);
    if (hash !== location.hash) return; // another one was opened meanwhile
    this.updates?.stop();
    this.model = model;
    this.answers = new Answers(name, model.columns);
    this.searches = new Map();
    this.drawn = new Map();
    this.pieces = new Map();
    this.failures = new Map();
    byId("model").value = name;
    document.title = `${name} · Countless`;
    this.lay(model);
    this.updates = new Updates({
      columns: model.columns,
      answers: this.answers,
      isSpread: (column) => !isText(column),
      seen: () => this.seen,
      shown: () => new Set([...this.cards].filter(([, card]) => !card.element.hidden).map(([column]) => column)),
      searches: () => this.searches,
      draw: (view) => this.draw(view),
      refused: (error) => this.refused(error),
      failed: (column, where, message) => this.failures.set(column, { where, message }),
      busy: (busy) => document.body.classList.toggle("busy", busy),
    });
    byId("none").hidden = true;
    document.body.classList.remove("nowhere");
    this.hide();
    this.store.show(name, model.columns, readHash(hash).where);
  }

  /**
   * Shows which models there are, as the URL names none of them.
   * @param {string} name
   */
  nowhere(name) {
    this.updates?.stop();
    this.updates = null;
    this.model = null;
    this.store.show("", [], "");
    this.lay({ name, rows: 0, checkable: false, columns: [] });
    this.summary.reset();
    this.refused(null);
    byId("model").value = "";
    document.body.classList.add("nowhere");
    document.title = "Countless";
    const links = (this.names ?? []).flatMap((other, place) => [
      place ? ", " : "",
      html("a", { href: hashOf(other, "") }, other),
    ]);
    byId("none").replaceChildren(`No model is called “${name}”. There are: `, ...links);
    byId("none").hidden = false;
  }

  /** @param {Model} model */
  lay(model) {
    this.sight.disconnect();
    this.sizes.disconnect();
    this.seen.clear();
    this.cards = new Map(model.columns.map((column) => [column.name, this.card(column)]));
    const elements = [...this.cards.values()].map((card) => card.element);
    byId("cards").replaceChildren(...elements);
    for (const element of elements) {
      const box = element.getBoundingClientRect();
      if (box.top < innerHeight) this.seen.add(element.dataset.column ?? "");
      this.sight.observe(element);
    }
    if (elements.length) this.sizes.observe(byId("cards"));
  }

  /**
   * @param {Column} column
   * @returns {AnyCard}
   */
  card(column) {
    const actions = {
      filter: (/** @type {any} */ filter, /** @type {any} */ options) =>
        this.store.filter(column.name, filter, options),
      settle: () => this.store.settle(),
      search: (/** @type {string} */ text) => {
        this.searches.set(column.name, text);
        this.changed(this.store.view, false);
      },
      narrow: (/** @type {import("./types.js").LikeFilter} */ filter) => this.store.narrow(column, filter),
      clear: () => this.store.clear(column.name, (sql) => this.isAboutOnly(sql, column)),
    };
    if (isText(column)) return new TextCard(column, actions);
    return column.kind === "category" ? new CategoryCard(column, actions) : new RangeCard(column, actions);
  }

  /**
   * Whether a condition names this column and no other.
   * @param {string} sql
   * @param {Column} column
   */
  isAboutOnly(sql, column) {
    const others = this.model?.columns.filter((other) => other !== column) ?? [];
    return names(sql, column.name) && !others.some((other) => names(sql, other.name));
  }

  /**
   * @param {View} view
   * @param {boolean} live
   */
  changed(view, live) {
    this.editor.show(this.store.where);
    this.updates?.request(view, live);
  }

  /**
   * Shows what is known of a view.
   * @param {View} view
   */
  draw(view) {
    const { model, answers } = this;
    if (!model) return;
    const where = whereOf(model.columns, view);
    this.summary.draw(model, where, answers.total(where), answers.truth(where));
    for (const column of model.columns) {
      const filter = view.filters.get(column.name);
      const others = whereOf(model.columns, view, column.name);
      const alone = filter && whereOf(model.columns, { ...view, filters: new Map([[column.name, filter]]), extra: [] });
      const search = this.searches.get(column.name);
      const found = search ? answers.spread(column.name, others, search) : undefined;
      const spread = answers.spread(column.name, others);
      if (spread) this.drawn.set(column.name, spread);
      const pieces = answers.pieces(column.name, where);
      if (pieces) this.pieces.set(column.name, pieces);
      const failure = this.failures.get(column.name);
      const isAnswered = isText(column)
        ? [others, alone].every((sql) => !sql || answers.total(sql))
        : Boolean(spread && (found || !search));
      this.cards.get(column.name)?.update({
        filter,
        spread: spread ?? this.drawn.get(column.name),
        isFresh: Boolean(spread) || isText(column),
        failure: !isAnswered && failure?.where === (isText(column) ? where : others) ? failure.message : undefined,
        also: view.extra.filter((sql) => names(sql, column.name)).join(" AND "),
        ghost: answers.spread(column.name, ""),
        found,
        isFiltered: others !== "",
        total: isText(column) ? answers.total(where) : undefined,
        before: isText(column) ? answers.total(others) : undefined,
        alone: isText(column) && alone ? answers.total(alone) : undefined,
        pieces: this.pieces.get(column.name),
        arePiecesFresh: Boolean(pieces),
        rows: model.rows,
        zoom: answers.zooms.get(column.name) ?? null,
      });
    }
  }

  /** @param {ApiError | null} error */
  refused(error) {
    const isGuarded = error instanceof TokenError;
    this.editor.refuse(isGuarded ? null : error);
    this.summary.refuse(Boolean(error));
    document.body.classList.toggle("refused", Boolean(error));
    if (!isGuarded) return;
    this.isGuarded = true;
    byId("denied").hidden = !hasToken();
    if (!byId("guard").open) byId("guard").showModal();
    byId("token").select();
  }

  async check() {
    const where = this.store.where;
    try {
      await this.answers.check(where);
      if (where === this.store.where) this.draw(this.store.view);
    } catch (error) {
      if (error instanceof TokenError) this.refused(error);
      else this.summary.tell(error instanceof Error ? error.message : String(error));
    }
  }

  find() {
    this.hide();
    if (this.updates) this.changed(this.store.view, false);
  }

  /** Hides the cards of columns that are not looked for. */
  hide() {
    const text = byId("find").value.trim().toLowerCase();
    for (const [column, card] of this.cards) card.element.hidden = !column.toLowerCase().includes(text);
    if (!this.cards.size) return;
    byId("none").hidden = [...this.cards.values()].some((card) => !card.element.hidden);
    byId("none").textContent = `No column has “${text}” in its name.`;
  }

  /** @param {IntersectionObserverEntry[]} entries */
  sighted(entries) {
    for (const { target, isIntersecting } of entries) {
      const column = /** @type {HTMLElement} */ (target).dataset.column ?? "";
      if (isIntersecting) this.seen.add(column);
      else this.seen.delete(column);
    }
  }

  /** @param {unknown} error */
  lost(error) {
    this.refused(
      error instanceof ApiError ? error : new ApiError("the service does not answer: is it still running?", null),
    );
  }
}

void new Explorer().start();
