"""What a fit logs without a listener."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from countless.estimator.fitting.fit import fit


def test_a_fit_logs_under_countless(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "rows.csv").write_text("n;price\n" + "".join(f"{row};{row},5\n" for row in range(200)))
    logger = logging.getLogger("countless")
    assert (logger.handlers, logger.level) == ([], logging.NOTSET)  # nothing is configured at import
    with caplog.at_level(logging.DEBUG, "countless"):
        fit(tmp_path / "rows.csv", epochs=2, hidden=8, blocks=1, embedding=4, calibrate=False, summary=False)
    levels = {record.levelno: record.getMessage() for record in caplog.records if record.name.startswith("countless.")}
    assert "200 rows, 2 columns" in caplog.text
    assert "add csv={'decimal_separator': ','}" in levels[logging.WARNING]
    assert "epoch 2: loss " in caplog.text
    assert "training" in caplog.text
