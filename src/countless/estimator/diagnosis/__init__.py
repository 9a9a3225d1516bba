"""Where a model's errors are, and whose they are: by kinds of queries, by columns, the sampler's or its own."""

from countless.estimator.diagnosis.answered import Answered, Question, Settled
from countless.estimator.diagnosis.blame import Blame, Blamed
from countless.estimator.diagnosis.diagnosis import Diagnosis, diagnose
from countless.estimator.diagnosis.groups import Group
from countless.estimator.diagnosis.settling import Effort
from countless.estimator.diagnosis.suspects import Suspect

__all__ = ["Answered", "Blame", "Blamed", "Diagnosis", "Effort", "Group", "Question", "Settled", "Suspect", "diagnose"]
