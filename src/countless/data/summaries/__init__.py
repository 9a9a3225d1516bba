"""Exact counts that are stored beside the model: values, pairs of values, and substrings of text."""
