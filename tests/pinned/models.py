"""Small models whose answers do not depend on the machine: real schemas and counts, weights that nobody trained.

The weights of the columns' network are small multiples of a power of two, so that its sums are exact in float32 in
whatever order a processor takes them. A network of text is not that fortunate: its answers differ in the last digits.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countless.data.sources.source import Source, connect
from countless.estimator.calibration.conformal import Calibration, CalibrationQuery, Shape
from countless.estimator.estimator import Estimator
from countless.estimator.fitting.fit import fit
from countless.options import Network, TextNetwork
from countless.store import COLUMNS, TEXT, StoredNetwork, StoredTensors

# A category with NULLs, a boolean, a number in digits, a grid with NULLs, a date and a decimal.
TRIPS = """
SELECT
    CASE WHEN range % 11 > 0 THEN ['Oslo', 'Rome', 'New York', 'Łódź', 'Bern'][1 + (range * range) % 5] END AS city,
    (range * 7) % 10 > (range % 4) AS paid,
    (range * 37) % 2600 AS number,
    CASE WHEN range % 9 > 0 THEN ((range * 7919) % 100003) / 64.0 END AS weight,
    DATE '2020-01-01' + ((range * 13) % 90)::INTEGER AS day,
    ((range * 31) % 17 / 4.0)::DECIMAL(4, 2) AS score
FROM range(6000)
"""
# Text whose ending depends on the country, a note with NULLs, and a size.
PAGES = """
SELECT
    ['DE', 'FR', 'IS', 'MT'][1 + (range % 7) % 4] AS country,
    (range * 11) % 40 AS size,
    ['a', 'b', 'cd'][1 + range % 3] || ['.de/', '.fr/', '.is/', '.mt/'][1 + (range % 7) % 4]
        || ['shop', 'news', 'blog', 'mail'][1 + ((range * 11) % 40) // 10] AS url,
    CASE WHEN range % 8 > 0 THEN 'note ' || (range * 17) % 50 || ['!', ' Ok', '?'][1 + range % 3] END AS note
FROM range(1200)
"""
STORED: dict[str, Any] = {"evidence": "none", "dtype": "float16"}  # the weights are replaced, number by number
SMALL = Network(hidden=24, blocks=1, embedding=8)
SMALL_TEXT = TextNetwork(width=16, blocks=1, heads=2, inner=16, buckets=64)


def columns() -> Estimator:
    """Columns in one order, with counts of pairs."""
    return untrained(fit(_rows(TRIPS), epochs=1, batch=1000, network=SMALL, calibrate=False, **STORED))


def orders() -> Estimator:
    """The same columns in three orders, without counts."""
    return untrained(
        fit(_rows(TRIPS), epochs=1, batch=1000, network=SMALL, orders=3, summary=False, calibrate=False, **STORED)
    )


def text() -> Estimator:
    """Text alone, with counts of n-grams."""
    rows = _rows(f"SELECT url, note FROM ({PAGES})")
    return untrained(
        fit(rows, epochs=1, batch=400, text=["url", "note"], text_network=SMALL_TEXT, calibrate=False, **STORED)
    )


def mixed() -> Estimator:
    """Columns and text that is read in their context."""
    options: dict[str, Any] = {"text": ["url", "note"], "network": SMALL, "text_network": SMALL_TEXT}
    return untrained(fit(_rows(PAGES), epochs=1, batch=400, calibrate=False, **options, **STORED))


def evidence() -> Estimator:
    """Columns with a tenth of the rows as evidence: the default method, which fuses them with the model."""
    stored = {**STORED, "evidence": 600}
    return untrained(fit(_rows(TRIPS), epochs=1, batch=1000, network=SMALL, calibrate=False, **stored))


MODELS: dict[str, Callable[[], Estimator]] = {
    "columns": columns,
    "orders": orders,
    "text": text,
    "mixed": mixed,
    "evidence": evidence,
}


def untrained(fitted: Estimator) -> Estimator:
    """The estimator with other weights in its networks, and with error bars."""
    networks = dict(fitted._sections.networks)
    for name, weights in ((COLUMNS, _column_weights), (TEXT, _text_weights)):
        if name in networks:
            stored = {key: weights(key, array) for key, array in networks[name].weights.stored.items()}
            networks[name] = StoredNetwork(networks[name].spec, StoredTensors(stored))
    return Estimator(fitted.schema, replace(fitted._sections, networks=networks), _error_bars())


def _column_weights(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Multiples of 1/4 or 1/8, and 0 where the array is: where its position is not to be seen."""
    rng, most = _rng(name), 4 if array.ndim == 1 else 2
    weights = rng.integers(-most, most + 1, size=array.shape) / (8 if "weight" in name else 4)
    return np.asarray(np.where(array == 0, 0, weights) if "weight" in name else weights, dtype=array.dtype)


def _text_weights(name: str, array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind != "f":
        return _rng(name).integers(-127, 128, size=array.shape).astype(array.dtype)
    if name.endswith(".scale"):
        return np.full_like(array, 1 / 256)
    return (0.5 * _rng(name).standard_normal(array.shape)).astype(array.dtype)


def _error_bars() -> Calibration:
    rng = _rng("calibration")
    queries = []
    for number in range(300):
        rows = int(np.exp(rng.uniform(0, 8)))
        shape = Shape(int(rng.integers(1, 5)), int(rng.integers(0, 2)), bool(rng.integers(2)))
        queries.append(CalibrationQuery(f"number = {number}", rows, rows * float(np.exp(rng.normal(0, 0.5))), shape))
    return Calibration(tuple(queries))


def _rng(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def _rows(sql: str) -> Source:
    return Source.open(connect().sql(sql))
