"""Data: sources of rows, columns and their domains, and the encoded table.

A column's distinct values are sorted by DuckDB; a value's *code* is its place in that order, and NULL, where it
occurs, is the last code. Where they are too many, a code is a cell of neighbouring values instead. Below this room
nothing knows columns: models and the engine speak of *positions*.
"""
