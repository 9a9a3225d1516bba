"""PostgreSQL for the tests, or a reason to skip them."""

from __future__ import annotations

from functools import cache

import pytest

from countless.errors import MissingExtraError, ServerError
from countless.evaluation.baselines.postgres.server import PrivatePostgresServer


def need_postgres() -> None:
    """Skip the test, saying why, where no server can be started."""
    reason = _missing()
    if reason is not None:
        pytest.skip(f"no PostgreSQL here: {reason}")


@cache
def _missing() -> str | None:
    try:
        PrivatePostgresServer().close()
    except (ServerError, MissingExtraError) as error:
        return str(error)
    return None
