/** SQL text cut into tokens, as far as a condition needs it. */

/**
 * @typedef {"name" | "quoted" | "text" | "number" | "sign"} TokenKind
 * @typedef {{kind: TokenKind, text: string, word: string, start: number, end: number}} Token
 *   `text` is a name or literal without its quotes, `word` a name in capitals, to be compared with keywords.
 */

/** @type {[TokenKind | "space", RegExp][]} */
const RULES = [
  ["space", /\s+|--[^\n]*|\/\*[^]*?\*\//y],
  ["text", /'(?:[^']|'')*'/y],
  ["quoted", /"(?:[^"]|"")*"/y],
  ["number", /(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?/iy],
  ["name", /[\p{L}_][\p{L}\p{N}_$]*/uy],
  ["sign", /<=|>=|<>|!=|::|\|\||[^]/y],
];

/**
 * The tokens of a clause; null where a quote or a comment does not end.
 * @param {string} sql
 * @returns {Token[] | null}
 */
export function tokens(sql) {
  /** @type {Token[]} */
  const found = [];
  for (let at = 0; at < sql.length;) {
    for (const [kind, rule] of RULES) {
      rule.lastIndex = at;
      const match = rule.exec(sql);
      if (!match) continue;
      const raw = match[0];
      at += raw.length;
      if (kind === "space") break;
      if (kind === "sign" && (raw === "'" || raw === '"')) return null;
      if (kind === "sign" && raw === "/" && sql[at] === "*") return null;
      found.push({
        kind,
        text: plain(kind, raw),
        word: kind === "name" ? raw.toUpperCase() : "",
        start: at - raw.length,
        end: at,
      });
      break;
    }
  }
  return found;
}

/**
 * @param {TokenKind} kind
 * @param {string} raw
 */
function plain(kind, raw) {
  if (kind === "text") return raw.slice(1, -1).replaceAll("''", "'");
  if (kind === "quoted") return raw.slice(1, -1).replaceAll('""', '"');
  return raw;
}

/** @type {Set<string>} */
export const KEYWORDS = new Set(
  (
    "AND OR NOT IN BETWEEN LIKE ILIKE ESCAPE IS NULL TRUE FALSE DATE TIME TIMESTAMP TIMESTAMPTZ INTERVAL " +
    "CASE WHEN THEN ELSE END"
  ).split(" "),
);
