"""Encoding of rows as codes: the encoded table, in memory or on disk, and codes for new rows."""
