"""Where a model's errors are, and whose they are: by kinds of queries, by columns, the sampler's or its own."""

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
