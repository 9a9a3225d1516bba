"""The picture of a diagnosis."""

from __future__ import annotations

import pytest

from countless.evaluation.diagnosis.diagnosis import Diagnosis
from countless_lab.diagnosis.picture import draw
from tests.estimator.test_diagnosis_sheets import FOUND, NOTHING


@pytest.mark.parametrize("found", [FOUND, NOTHING])
def test_the_picture_is_the_same_every_time(found: Diagnosis) -> None:
    pytest.importorskip("matplotlib")
    first, second = draw(found), draw(found)
    assert first == second
    assert first["svg"].startswith(b"<?xml")
    assert first["png"].startswith(b"\x89PNG")
