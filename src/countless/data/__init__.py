"""Data: sources of rows, columns and their domains, and the encoded table.

The *code* of a value is its index among the column's distinct values, in DuckDB's order; NULL, if it occurs, has the
last code. In a column with too many values, a code stands for a cell of neighbouring values instead. Other rooms below
know no columns: models and the engine use *positions*.
"""
