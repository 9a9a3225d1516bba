"""Intervals from queries whose true counts are known."""
