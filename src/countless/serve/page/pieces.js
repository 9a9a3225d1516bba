/** The most frequent beginnings and endings of a text column, to narrow its rows by click or key. */

import { tellSlice } from "./card.js";
import { html, set, svg } from "./dom.js";
import { formatShort } from "./format.js";

/**
 * @typedef {import("./types.js").Mode} Mode
 * @typedef {import("./types.js").Piece} Piece
 * @typedef {import("./types.js").Pieces} Pieces
 */

/** @type {["starts" | "ends", string][]} */
const SIDES = [
  ["starts", "Starts with"],
  ["ends", "Ends with"],
];

export class PieceLists {
  /**
   * @param {string} column
   * @param {(mode: Mode, text: string) => void} choose
   * @param {(text?: string) => void} tell about what is pointed at
   */
  constructor(column, choose, tell) {
    this.choose = choose;
    this.tell = tell;
    this.sides = SIDES.map(([side, label]) => {
      const list = html("ul", { class: "list", "aria-label": `${label}, ${column}` });
      const title = html("h3", {}, label);
      return { side, list, element: html("div", { class: "side", hidden: true }, title, list) };
    });
    this.element = html("div", { class: "pieces" }, ...this.sides.map(({ element }) => element));
  }

  /**
   * Draws them. Lists without a piece are hidden.
   * @param {Pieces | undefined} pieces
   * @param {boolean} isFresh whether they are of what is looked at now
   * @returns {boolean} whether there is any
   */
  draw(pieces, isFresh) {
    this.element.classList.toggle("old", !isFresh);
    for (const { side, list, element } of this.sides) {
      const found = pieces?.[side] ?? [];
      const most = Math.max(...found.map((piece) => piece.share), 1e-9);
      element.hidden = !found.length;
      const focused = [...list.children].findIndex((item) => item === document.activeElement);
      list.replaceChildren(...found.map((piece) => this.item(side, piece, most)));
      if (focused >= 0) /** @type {HTMLElement | undefined} */ (list.children[focused] ?? list.children[0])?.focus();
    }
    return Boolean(pieces && (pieces.starts.length || pieces.ends.length));
  }

  /**
   * @param {"starts" | "ends"} side
   * @param {Piece} piece
   * @param {number} most the greatest share, which has the whole width
   */
  item(side, piece, most) {
    const bar = svg("rect", { class: "fill", x: 0, y: 2, height: 10, rx: 1.5 });
    set(bar, { width: `${Math.max((piece.share / most) * 100, 0.8).toFixed(2)}%` });
    const picture = svg("svg", { class: "hbar", height: 14, "aria-hidden": "true" }, bar);
    const name = html("span", { class: "label", title: piece.text }, html("bdi", {}, piece.text));
    const count = html("span", { class: "value" }, formatShort(piece.rows));
    const told = tellSlice(piece);
    const choose = () => this.choose(side, piece.text);
    return html(
      "li",
      {
        role: "button",
        tabindex: 0,
        "data-text": piece.text,
        "aria-label": `${piece.text}: ${told}`,
        onclick: choose,
        onkeydown: (/** @type {KeyboardEvent} */ event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          choose();
        },
        onpointerenter: () => this.tell(told),
        onfocus: () => this.tell(told),
        onpointerleave: () => this.tell(),
        onblur: () => this.tell(),
      },
      name,
      picture,
      count,
    );
  }
}
