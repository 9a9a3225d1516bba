"""The findings of the paper, and ours: which of them hold on these tables?

The criteria are stated in words, and each verdict comes with its figures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from countless.data.columns.digits import DIGITS_FROM
from countless_lab.paper.numbers import Record
from countless_lab.paper.report import judges
from countless_lab.paper.report.judges import Judged

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "not measured"
MIN_QUERIES = 100  # for high quantiles


@dataclass(frozen=True)
class Verdict:
    """Whether a finding holds on a data set, and the figures that say so."""

    data: str
    verdict: str
    figures: str


@dataclass(frozen=True)
class PaperFinding:
    """A claim about an exhibit, where it is made, and when it counts as true of a data set.

    With ``large``, it is a claim about tables with a column of many values, and others are not asked.
    """

    claim: str
    source: str
    exhibit: str
    criterion: str
    judge: Callable[[Record], Judged]
    large: bool = False

    def verdicts(self, gathered: Mapping[str, Sequence[Record]]) -> list[Verdict]:
        """One for every data set that the exhibit has and the claim is about."""
        verdicts = []
        for table in gathered.get(self.exhibit, ()):
            if self.large and table["data"].get("domains", (0, 0))[1] <= DIGITS_FROM:
                continue
            queries = table["data"].get("queries", MIN_QUERIES)
            too_few = f"{queries:,} queries are too few to tell"
            holds, figures = self.judge(table) if queries >= MIN_QUERIES else (None, too_few)
            verdict = UNKNOWN if holds is None else HOLDS if holds else FAILS
            verdicts.append(Verdict(table["data"]["name"], verdict, figures))
        return verdicts


def _fewest_samples(better: str, worse: str, at_least: float) -> Callable[[Record], Judged]:
    """A judge of the largest errors of two methods at the smallest budget."""
    return lambda facts: judges.times_better(facts, judges.fewest(facts), better, worse, "max", at_least)


_LARGE = f"Asked of tables with a column of more than {DIGITS_FROM:,} values."

FINDINGS = (
    PaperFinding(
        "The median error is near 1 for every method.",
        "Section 5.4",
        "main",
        f"The mean p50 of each of the paper's four methods is below {judges.NEAR_ONE:g} at every budget.",
        judges.medians_near_one,
    ),
    PaperFinding(
        "At few samples, skipping reduces the largest error 10 to 100 times against progressive sampling.",
        "Section 5.4",
        "main",
        "At the smallest budget the mean max error of progressive is at least 10 times that of skipping.",
        _fewest_samples("skipping", "progressive", judges.ORDER_OF_MAGNITUDE),
    ),
    PaperFinding(
        "Skipping is up to 10 times better than multi-order alone.",
        "Section 5.4",
        "main",
        "At the smallest budget the mean max error of skipping is below that of multi-order; the ratio tells how far.",
        _fewest_samples("skipping", "multi-order", 1.0),
    ),
    PaperFinding(
        "On large domains, combining multi-order and skipping helps further.",
        "Section 5.4, of DMV-Full",
        "main",
        f"At the smallest budget both p99 and max of the two combined are below those of each alone. {_LARGE}",
        judges.combining_helps,
        large=True,
    ),
    PaperFinding(
        "On large domains, skipping helps even at many samples.",
        "Section 5.4, of DMV-Full",
        "main",
        f"At 10,000 samples the mean max error of progressive is at least 10 times that of skipping. {_LARGE}",
        judges.at_many_samples,
        large=True,
    ),
    PaperFinding(
        "Skipping needs 10 to 100 times fewer forward passes for a single-digit error at p99.",
        "Figure 1",
        "summary",
        "Progressive needs at least 10 times the forward passes of skipping; a bound counts where it decides.",
        judges.fewer_passes,
    ),
    PaperFinding(
        "Masking costs a little likelihood, several orders cost more, and more orders still more.",
        "Section 5.5, Table 3",
        "likelihoods",
        "The mean bits per row rise strictly: baseline, masking, multi-order with fewer and with more orders.",
        judges.likelihoods_in_order,
    ),
    PaperFinding(
        "Skipping keeps its advantage across model sizes.",
        "Section 5.6, Figure 6",
        "sizes",
        "Its max error is below that of progressive at every size.",
        lambda facts: judges.at_every_size(facts, "skipping", "progressive"),
    ),
    PaperFinding(
        "Drawing the masking probability uniformly is a robust choice.",
        "Section 5.6, Figure 7",
        "maskings",
        f"Its max error with skipping is the lowest of all schemes, or at most {judges.NEAR_BEST:g} times the lowest.",
        judges.uniform_is_robust,
    ),
    PaperFinding(
        "On text, skipping's high quantiles are far below those of naive and progressive sampling.",
        "Section 5.7, Table 4",
        "text",
        "Its p99 and its max are each at least 10 times below those of both.",
        judges.text_tails,
    ),
    PaperFinding(
        "On text, naive sampling has the best median.",
        "Table 4",
        "text",
        "Its p50 is no larger than those of progressive and skipping.",
        judges.text_median,
    ),
    *(
        PaperFinding(
            f"A masked model fills in a hidden {value} as well, without sampling what is hidden before it.",
            "the section on applications",
            exhibit,
            "It is right at least as often as the samples of the unmasked model, but for a hundredth, and takes at most"
            " a tenth of the forward passes of the most samples.",
            judges.fills_in,
        )
        for value, exhibit in (("value", "completion"), ("character", "text-completion"))
    ),
    PaperFinding(
        "On the same model and at no more forward passes, particles is at least as good as the paper's sampler.",
        "ours",
        "main",
        "At every budget, its p50, p99, max and forward passes are at most 1% above those of skipping on the same"
        " model, with one order and with several.",
        judges.same_model,
    ),
    PaperFinding(
        "At equal samples, particles is at least as good as the best of the paper's methods.",
        "ours",
        "main",
        "At every budget, the better of its two p50, p99 and max is at most 1% above the best of the paper's four.",
        judges.best_of_all,
    ),
    PaperFinding(
        "Particles takes a tenth of the time, or less.",
        "ours",
        "main",
        "At every budget, its median time is at most a tenth of skipping's on the same model.",
        judges.tenth_of_the_time,
    ),
    PaperFinding(
        "Particles is at least as good as skipping at every model size.",
        "ours",
        "sizes",
        "Its max error is at most 1% above that of skipping on the same model at every size.",
        lambda facts: judges.at_every_size(facts, "particles", "skipping", 1 / judges.SLACK),
    ),
    PaperFinding(
        "On text, particles is at least as good as each of the paper's methods.",
        "ours",
        "text",
        "Its p50, p99 and max are at most 1% above those of each.",
        judges.text_particles,
    ),
)
