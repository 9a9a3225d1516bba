"""Rows to codes: the encoded table, in memory or in a folder, and codes for rows that come later."""
