"""The most frequent beginnings and endings of a text column, as the service lists them."""

from __future__ import annotations

from typing import Any

from countless.estimator.answers.string_pieces import StringPiece
from countless.serve.answers import plain
from countless.serve.api import limits
from countless.serve.api.requests import PiecesRequest
from countless.serve.models import Served


def pieces(served: Served, body: PiecesRequest) -> dict[str, Any]:
    """Beginnings and endings that several evidence rows share: a piece must not identify a single row."""
    result = served.estimator.pieces(body.column, body.where, top=body.top, least_hits=limits.LEAST_HITS)
    lists = {
        name: [_plain(piece, result.total.rows) for piece in frequent]
        for name, frequent in (("starts", result.starts), ("ends", result.ends))
    }
    return {"total": plain(result.total), "column": body.column, **lists}


def _plain(piece: StringPiece, total: float) -> dict[str, Any]:
    return {**vars(piece), "share": min(1.0, piece.rows / total) if total else 0.0}
