"""Where a model's errors are, and whose they are: by kinds of queries, by columns, the sampler's or its own."""

from countless.evaluation.diagnosis.answered import Answered, Question, Settled
from countless.evaluation.diagnosis.blame import Blame, Blamed
from countless.evaluation.diagnosis.diagnosis import Diagnosis, diagnose
from countless.evaluation.diagnosis.groups import Group
from countless.evaluation.diagnosis.settling import Effort
from countless.evaluation.diagnosis.suspects import Suspect

__all__ = ["Answered", "Blame", "Blamed", "Diagnosis", "Effort", "Group", "Question", "Settled", "Suspect", "diagnose"]
