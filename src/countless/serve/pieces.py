"""The most frequent beginnings and endings of a text column, as the service lists them."""

from __future__ import annotations

from typing import Any

from countless.estimator.answers.string_pieces import StringPiece
from countless.serve.answers import plain
from countless.serve.api import limits
from countless.serve.api.requests import PiecesRequest
from countless.serve.models import Served


def pieces(served: Served, asked: PiecesRequest) -> dict[str, Any]:
    """Beginnings and endings that several evidence rows share: a piece must not identify a single row."""
    found = served.estimator.pieces(asked.column, asked.where, top=asked.top, least_hits=limits.LEAST_HITS)
    lists = {
        name: [_told(piece, found.total.rows) for piece in each]
        for name, each in (("starts", found.starts), ("ends", found.ends))
    }
    return {"total": plain(found.total), "column": asked.column, **lists}


def _told(piece: StringPiece, total: float) -> dict[str, Any]:
    return {**vars(piece), "share": min(1.0, piece.rows / total) if total else 0.0}
