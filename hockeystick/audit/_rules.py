"""The tests that an audit reads off its scores, all fixed before the scores are seen.

The k-th largest of m "out" scores, as a threshold that a score has to exceed, has a false positive
rate that is stochastically at most ``Beta(k, m - k + 1)``: that of the bound of Clopper and Pearson
for k - 1 false positives of m, with nothing lost to rounding. Given the "out" scores the threshold
is a number, so that the "in" scores above it are a binomial count. Ranks that are fixed in advance
therefore need no data held out; the same holds for the k-th smallest "in" score and the false
negative rate. Several ranks hold together by Bonferroni's inequality.

Tied scores are ordered at random, as if each had a uniform number behind its decimals: a test of
the score and that number is a test of what was put out, too. Of c tied scores, of which the j-th
largest is the threshold, that number is ``Beta(c - j + 1, j)``, and each tied score of the other
kind exceeds it or not by its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from hockeystick.audit._region import (
    Counts,
    Levels,
    Objective,
    Region,
    quarter_ellipse,
    rectangle,
    region,
)
from hockeystick.audit._scores import Array, Scores
from hockeystick.audit.results import OperatingPoint

Side = Literal["out", "in"]
_ENDS: Final[tuple[Literal["left"], Literal["right"]]] = ("left", "right")

# Ranks grow by this factor, up to half of the scores.
RATIO: Final = 3.0
# At small rates, where audits find most, the rarer error is what is uncertain.
SHARE: Final = 0.85


@dataclass(frozen=True, slots=True)
class Rule:
    """A test by a threshold, what it did, and the levels of its confidence region.

    The errors are false positives on the side "out", false negatives on the side "in".
    """

    side: Side
    threshold: float
    above: bool
    counts: Counts
    levels: Levels

    @property
    def region(self) -> Region:
        """The corners of its confidence region."""
        return region(self.counts, self.levels)

    def point(self, corners: Region, at: int) -> OperatingPoint:
        """Return one of the corners as a point of the curve of true and false positives."""
        counts = self.counts
        errors, hits = int(counts.errors), int(counts.hits)
        of_errors, of_hits = int(counts.error_trials), int(counts.hit_trials)
        if self.side == "out":
            fpr, tpr = float(corners.q[at]), float(corners.p[at])
            wrong, right = (errors, of_errors), (hits, of_hits)
        else:
            fpr, tpr = float(corners.miss[at]), float(corners.rest[at])
            wrong, right = (of_hits - hits, of_hits), (of_errors - errors, of_errors)
        return OperatingPoint(
            f"score {'>' if self.above else '>='} {self.threshold:.6g}",
            self.threshold,
            fpr,
            tpr,
            false_positives=wrong[0],
            out_trials=wrong[1],
            true_positives=right[0],
            in_trials=right[1],
        )


def ranks(trials: int) -> list[int]:
    """Return 1 and its multiples by a factor, up to half of the trials."""
    found = [1]
    while (larger := max(round(found[-1] * RATIO), found[-1] + 1)) <= trials // 2:
        found.append(larger)
    return found


def at_rank(side: Side, rank: int, both: tuple[Scores, Scores], levels: Levels, seed: int) -> Rule:
    """Return the test at a rank of sorted scores, "in" and "out"."""
    inside, outside = both
    if side == "out":
        threshold = float(outside[outside.size - rank])
        hits = _beyond(-threshold, rank, -outside[::-1], -inside[::-1], seed)
        counts = Counts(rank - 1, outside.size, hits, inside.size)
    else:
        threshold = float(inside[rank - 1])
        hits = _beyond(threshold, rank, inside, outside, seed)
        counts = Counts(rank - 1, inside.size, hits, outside.size)
    return Rule(side, threshold, side == "out", counts, levels)


def _beyond(threshold: float, rank: int, errs: Scores, other: Scores, seed: int) -> int:
    """Return how many rising scores come before the one of a rank of the other kind."""
    before, behind = (int(np.searchsorted(other, threshold, side=s)) for s in _ENDS)
    if behind == before or (errs[0] == errs[-1] and other[0] == other[-1] == errs[0]):
        return before
    first, last = (int(np.searchsorted(errs, threshold, side=s)) for s in _ENDS)
    generator = np.random.default_rng([seed, 4, errs.size, rank])
    place = rank - first
    number = generator.beta(place, last - first - place + 1)
    return before + int(generator.binomial(behind - before, number))


def at_ranks(
    inside: Scores, outside: Scores, alpha: float, seed: int, *, boxes: bool = False
) -> list[Rule]:
    """Return the tests at fixed ranks of both kinds, all of which hold together."""
    both = np.sort(inside), np.sort(outside)
    places: list[tuple[Side, int]] = [("out", k) for k in ranks(outside.size)]
    places += [("in", k) for k in ranks(inside.size)]
    each = alpha / len(places)
    levels = rectangle(each) if boxes else quarter_ellipse(each, SHARE)
    return [at_rank(side, rank, both, levels, seed) for side, rank in places]


def at_threshold(inside: Scores, outside: Scores, threshold: float, levels: Levels) -> Rule:
    """Return the test by a threshold that was fixed in advance: "in" where a score reaches it."""
    false_positives = int(np.count_nonzero(outside >= threshold))
    true_positives = int(np.count_nonzero(inside >= threshold))
    counts = Counts(false_positives, outside.size, true_positives, inside.size)
    return Rule("out", threshold, False, counts, levels)


def stacked(rules: Sequence[Rule]) -> Counts:
    """Return the counts of several tests as arrays."""
    names = ("errors", "error_trials", "hits", "hit_trials")
    return Counts(*(np.array([getattr(one.counts, name) for one in rules]) for name in names))


def in_the_middle(rules: Sequence[Rule], objective: Objective) -> Array:
    """Return the values that an objective has in the middle of the regions of tests."""
    for_errors, for_hits = rules[0].levels
    middle = slice(for_errors.size // 2, for_errors.size // 2 + 1)
    return objective(region(stacked(rules), (for_errors[middle], for_hits[middle])))[:, 0]


def best_of(rules: Sequence[Rule], objective: Objective) -> tuple[float, OperatingPoint]:
    """Return the largest value that a test proves, and where its region has it.

    All have the same levels. No test proves more than the value in the middle of its region, so
    that most need no more.
    """
    middles = in_the_middle(rules, objective)
    order = np.argsort(-middles, kind="stable").tolist()
    best = _proven(rules[order[0]], objective)
    for i in order[1:]:
        if middles[i] <= best[0]:
            break
        best = max(best, _proven(rules[i], objective), key=lambda one: one[0])
    return best


def _proven(rule: Rule, objective: Objective) -> tuple[float, OperatingPoint]:
    """Return the least value in a test's region, and where it is."""
    corners = rule.region
    values = objective(corners)
    at = int(np.argmin(values))
    return float(values[at]), rule.point(corners, at)
