/**
 * The types that the modules share. There is nothing to run here.
 *
 * @typedef {{name: string, type: string, kind: "category" | "number" | "time" | "text", distinct: number,
 *   has_null: boolean, binned: boolean}} Column
 * @typedef {{name: string, rows: number, checkable: boolean, columns: Column[]}} Model
 * @typedef {{where: string, rows: number, low: number, high: number, level: number, selectivity: number,
 *   exact: boolean, sampled: boolean, ms: number}} Estimate
 *
 * @typedef {string | null} Value of a category, as DuckDB prints it
 * @typedef {string | number | null} Edge of a bin
 * @typedef {{value?: Value, from?: Edge, to?: Edge, share: number, rows: number, low?: number, high?: number}} Slice
 *   A value of a category, or a bin of numbers or times; NULL's bin has no edges.
 * @typedef {{values: number, share: number, rows: number}} Others
 * @typedef {{column: string, kind: string, values: Slice[], others: Others | null, counted?: boolean,
 *   disagreement?: number, total?: Estimate}} Spread
 *   How the rows of a condition are spread over a column's values; before they were made to add up to its `total`, their
 *   sum was off by the factor 1 + `disagreement`.
 *
 * @typedef {{text: string, share: number, rows: number, low: number, high: number}} Piece
 * @typedef {{total: Estimate, column: string, starts: Piece[], ends: Piece[]}} Pieces
 *   The most frequent beginnings and endings of a text column among the rows of a condition.
 *
 * @typedef {{kind: "in", values: Value[]}} InFilter
 * @typedef {{text: string, strict: boolean}} Bound  A strict bound is not itself in the range.
 * @typedef {{kind: "range", from: Bound | null, to: Bound | null, orNull: boolean}} RangeFilter
 *   Without both bounds it is IS NULL.
 * @typedef {"contains" | "starts" | "ends" | "like"} Mode
 * @typedef {{kind: "like", mode: Mode, text: string, anyCase: boolean, not: boolean}} LikeFilter
 * @typedef {InFilter | RangeFilter | LikeFilter} Filter
 *
 * @typedef {{model: string, filters: Map<string, Filter>, extra: string[]}} View
 *   What is looked at: the filters of cards by column, and conditions that no card can show.
 */
export {};
