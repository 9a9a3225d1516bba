"""Distributions of columns under a condition, and the values and bins they are shown in."""
