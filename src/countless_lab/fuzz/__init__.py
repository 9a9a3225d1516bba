"""Fuzzing: random inputs for the product, checked against what it promises."""
