/** The count at the top: the estimate, how sure it is, and the truth if there is a table to ask. */

import { byId } from "./dom.js";
import { formatFactor, formatMs, formatRows, formatShare, qError } from "./format.js";

/**
 * @typedef {import("./types.js").Estimate} Estimate
 * @typedef {import("./types.js").Model} Model
 * @typedef {{rows: number, ms: number}} Truth
 */

const NOTHING = "–"; // where no number is shown

export class Summary {
  /** @param {() => void} check */
  constructor(check) {
    this.rows = byId("rows");
    this.line = this.rows.parentElement;
    this.section = this.rows.closest("section");
    this.told = byId("told");
    this.truth = byId("truth");
    this.ask = byId("ask");
    this.ask.addEventListener("click", check);
  }

  /**
   * @param {Model} model
   * @param {string} where
   * @param {Estimate | undefined} estimate
   * @param {Truth | undefined} truth
   */
  draw(model, where, estimate, truth) {
    const isKnown = !where || Boolean(estimate);
    byId("check").hidden = !model.checkable;
    this.line.style.minWidth = `calc(${formatRows(model.rows).length}ch + 2.5rem)`; // what is beside it stays there
    this.ask.disabled = !where || !isKnown || Boolean(truth);
    this.section.classList.toggle("stale", !isKnown);
    if (!where) this.say(formatRows(model.rows), "the whole table", 1);
    else if (estimate) this.say(formatRows(estimate.rows), describe(estimate, model.rows), estimate.selectivity);
    this.truth.textContent = truth && estimate ? compare(estimate, truth) : "";
  }

  /**
   * @param {string} rows
   * @param {string} told
   * @param {number} share
   */
  say(rows, told, share) {
    if (this.rows.textContent !== rows) this.rows.textContent = rows;
    this.told.textContent = told;
    byId("meter").style.width = `${share * 100}%`;
  }

  /**
   * What is shown stays, if the clause has no answer, but says that it is another's.
   * @param {boolean} isRefused
   */
  refuse(isRefused) {
    this.section.classList.toggle("refused", isRefused);
    if (!isRefused) return;
    if (this.rows.textContent !== NOTHING) this.told.textContent = "not of this clause, which has no answer";
    this.truth.textContent = "";
    this.ask.disabled = true;
  }

  /** @param {string} message instead of the truth */
  tell(message) {
    this.truth.textContent = message;
  }

  /** Shows nothing at all. */
  reset() {
    this.say(NOTHING, "", 0);
    this.truth.textContent = "";
    byId("check").hidden = true;
  }
}

/**
 * @param {Estimate} estimate
 * @param {number} rows
 */
function describe(estimate, rows) {
  const { low, high, level } = estimate;
  const between =
    formatRows(low) === formatRows(high)
      ? "exactly"
      : `${formatRows(low)} to ${formatRows(high)} at ${Math.round(level * 100)}%`;
  return `${between} · ${formatShare(estimate.selectivity)} of ${formatRows(rows)} · ${formatMs(estimate.ms)}`;
}

/**
 * @param {Estimate} estimate
 * @param {Truth} truth
 */
function compare(estimate, truth) {
  const factor = formatFactor(qError(estimate.rows, truth.rows));
  return `truth ${formatRows(truth.rows)} · q-error ${factor} · ${formatMs(truth.ms)}`;
}
