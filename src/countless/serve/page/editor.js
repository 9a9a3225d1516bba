/** The WHERE clause: shown with its tokens in colour, edited, copied, and underlined where the service refuses it. */

import { byId, html } from "./dom.js";
import { KEYWORDS, tokens } from "./tokens.js";

/** @typedef {import("./api.js").ApiError} ApiError */

export class Editor {
  /**
   * @param {object} actions
   * @param {(where: string) => void} actions.edit
   */
  constructor({ edit }) {
    /** @type {HTMLTextAreaElement} */
    this.input = byId("where");
    this.painted = byId("painted");
    this.error = byId("error");
    this.where = "";
    /** @type {[number, number] | null} */
    this.span = null;
    this.edit = edit;
    this.input.addEventListener("input", () => this.paint(null));
    this.input.addEventListener("change", () => this.apply());
    this.input.addEventListener("keydown", (event) => this.pressed(event));
    byId("clear").addEventListener("click", () => edit(""));
    byId("copy").addEventListener("click", () => void this.copy());
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    if (event.key === "Enter" && !event.shiftKey) this.apply();
    else if (event.key === "Escape") this.show(this.where);
    else return;
    event.preventDefault();
  }

  apply() {
    if (this.input.value.trim() !== this.where) this.edit(this.input.value.trim());
    else this.show(this.where);
  }

  /** @param {string} where */
  show(where) {
    const isNew = where !== this.where;
    this.where = where;
    if (this.input.value !== where) this.input.value = where;
    if (isNew) this.refuse(null);
    else this.paint(this.span);
    byId("clear").disabled = byId("copy").disabled = !where;
  }

  /** @param {ApiError | null} error */
  refuse(error) {
    this.span = error?.span ?? null;
    this.error.textContent = error?.message ?? "";
    this.input.setAttribute("aria-invalid", String(Boolean(error)));
    if (this.input.value === this.where) this.paint(this.span);
  }

  /**
   * The text under the text area, token by token; a span of characters is underlined.
   * @param {[number, number] | null} span
   */
  paint(span) {
    const text = this.input.value;
    const [start, end] = span ? span.map((at) => [...text].slice(0, at).join("").length) : [0, 0];
    const parts = [];
    let at = 0;
    for (const token of tokens(text) ?? []) {
      parts.push(...underlined(text.slice(at, token.start), at, start, end, ""));
      const kind = token.kind === "name" && KEYWORDS.has(token.word) ? "keyword" : token.kind;
      parts.push(...underlined(text.slice(token.start, token.end), token.start, start, end, kind));
      at = token.end;
    }
    parts.push(...underlined(text.slice(at), at, start, end, ""));
    this.painted.replaceChildren(...parts, "\n");
  }

  async copy() {
    const button = byId("copy");
    try {
      await navigator.clipboard.writeText(this.where);
      button.textContent = "Copied";
    } catch {
      this.input.select(); // no clipboard without HTTPS: the text is ready for Ctrl-C
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = "Copy"), 1200);
  }
}

/**
 * A piece of the clause, cut where the underline begins and ends.
 * @param {string} piece
 * @param {number} at
 * @param {number} start
 * @param {number} end
 * @param {string} kind
 */
function underlined(piece, at, start, end, kind) {
  const cuts = [0, start - at, end - at, piece.length].map((cut) => Math.min(Math.max(cut, 0), piece.length));
  return [0, 1, 2]
    .filter((part) => cuts[part + 1] > cuts[part])
    .map((part) =>
      html("span", { class: part === 1 ? `${kind} wrong` : kind }, piece.slice(cuts[part], cuts[part + 1])),
    );
}
