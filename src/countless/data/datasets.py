"""Data that ships with the package."""

from __future__ import annotations

from pathlib import Path


def adult() -> Path:
    """UCI Adult (Becker and Kohavi, 1996; CC BY 4.0): 48,842 people of the 1994 US census, 15 columns.

    >>> adult().name
    'adult.parquet'
    """
    return Path(__file__).with_name("adult.parquet")


def npm_urls() -> Path:
    """Where the sources of npm packages are kept (MIT): a random sample of 20,000 URLs, one column.

    >>> npm_urls().name
    'npm_urls.parquet'
    """
    return Path(__file__).with_name("npm_urls.parquet")


EMBEDDED = {"adult": adult, "npm_urls": npm_urls}
