"""Rewrites of a clause before it is compiled: calendar parts, truncated dates, derived columns, UUIDs."""
