"""Columns with too many values: grids of cells, and the granularity of values inside a cell."""
