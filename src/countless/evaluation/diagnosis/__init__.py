"""Diagnosis of a model's errors: by kind of query, by column, and by cause (the sampler or the model)."""

from countless.evaluation.diagnosis.answered import AnsweredQuery, DiagnosedQuery, Settled
from countless.evaluation.diagnosis.blame import Blame, Blamed
from countless.evaluation.diagnosis.diagnosis import Diagnosis, diagnose
from countless.evaluation.diagnosis.groups import Group
from countless.evaluation.diagnosis.settling import ConvergenceLimits
from countless.evaluation.diagnosis.suspects import Suspect

__all__ = [
    "AnsweredQuery",
    "Blame",
    "Blamed",
    "ConvergenceLimits",
    "DiagnosedQuery",
    "Diagnosis",
    "Group",
    "Settled",
    "Suspect",
    "diagnose",
]
