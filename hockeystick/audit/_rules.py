"""The tests that an audit reads off its scores, all fixed before the scores are seen.

The k-th largest of m "out" scores, as a threshold that a score has to exceed, has a false positive
rate that is stochastically at most ``Beta(k, m - k + 1)``: that of the bound of Clopper and Pearson
for k - 1 false positives of m, with nothing lost to rounding. Given the "out" scores the threshold
is a number, so that the "in" scores above it are a binomial count. Ranks that are fixed in advance
therefore need no data held out; the same holds for the k-th smallest "in" score and the false
negative rate. Several ranks hold together by Bonferroni's inequality.
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
from hockeystick.audit._scores import Scores, halves
from hockeystick.audit.results import OperatingPoint

Side = Literal["out", "in"]
SIDES: Final[tuple[Side, Side]] = ("out", "in")

# Ranks grow by this factor, up to half of the scores.
RATIO: Final = 3.0
# At small rates, where audits find most, the rarer error is what is uncertain.
SHARE: Final = 0.85
HELD_OUT: Final = 0.3
_HELD_OUT_RATIO: Final = 1.3
_SHARES: Final = (0.3, 0.5, 0.7, 0.85, 0.95)
_FEW_CELLS: Final = 16


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
        if self.side == "out":
            fpr, tpr = float(corners.q[at]), float(corners.p[at])
            wrong, right = (errors, counts.error_trials), (hits, counts.hit_trials)
        else:
            fpr, tpr = float(corners.miss[at]), float(corners.rest[at])
            wrong = (counts.hit_trials - hits, counts.hit_trials)
            right = (counts.error_trials - errors, counts.error_trials)
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


def ranks(trials: int, ratio: float = RATIO) -> list[int]:
    """Return 1 and its multiples by a factor, up to half of the trials."""
    found = [1]
    while (larger := max(round(found[-1] * ratio), found[-1] + 1)) <= trials // 2:
        found.append(larger)
    return found


def at_rank(side: Side, rank: int, both: tuple[Scores, Scores], levels: Levels) -> Rule:
    """Return the test at a rank of sorted scores, "in" and "out"."""
    inside, outside = both
    if side == "out":
        threshold = float(outside[outside.size - rank])
        hits = inside.size - int(np.searchsorted(inside, threshold, side="right"))
        counts = Counts(rank - 1, outside.size, hits, inside.size)
    else:
        threshold = float(inside[rank - 1])
        hits = int(np.searchsorted(outside, threshold, side="left"))
        counts = Counts(rank - 1, inside.size, hits, outside.size)
    return Rule(side, threshold, side == "out", counts, levels)


def at_ranks(inside: Scores, outside: Scores, alpha: float, *, boxes: bool = False) -> list[Rule]:
    """Return the tests at fixed ranks of both kinds, all of which hold together."""
    both = np.sort(inside), np.sort(outside)
    places: list[tuple[Side, int]] = [("out", k) for k in ranks(outside.size)]
    places += [("in", k) for k in ranks(inside.size)]
    each = alpha / len(places)
    levels = rectangle(each) if boxes else quarter_ellipse(each, SHARE)
    return [at_rank(side, rank, both, levels) for side, rank in places]


def at_threshold(inside: Scores, outside: Scores, threshold: float, levels: Levels) -> Rule:
    """Return the test by a threshold that was fixed in advance: "in" where a score reaches it."""
    false_positives = int(np.count_nonzero(outside >= threshold))
    true_positives = int(np.count_nonzero(inside >= threshold))
    counts = Counts(false_positives, outside.size, true_positives, inside.size)
    return Rule("out", threshold, False, counts, levels)


def held_out(
    inside: Scores, outside: Scores, alpha: float, objective: Objective, seed: int
) -> list[Rule]:
    """Return the one test that a part of the scores predicts to be the best, on the other part."""
    held_in, rest_in = halves(inside, HELD_OUT, seed, 1)
    held_outside, rest_out = halves(outside, HELD_OUT, seed, 2)
    held, rest = (held_in, held_outside), (rest_in, rest_out)
    best = -np.inf
    chosen: tuple[Side, int, float] = ("out", 1, SHARE)
    for side in SIDES:
        for share in _SHARES:
            levels = quarter_ellipse(alpha, share, _FEW_CELLS)
            rank, value = _predicted(side, held, rest, levels, objective)
            if value > best:
                best, chosen = value, (side, rank, share)
    kept, rank, weight = chosen
    return [at_rank(kept, rank, rest, quarter_ellipse(alpha, weight))]


def _predicted(
    side: Side,
    held: tuple[Scores, Scores],
    rest: tuple[Scores, Scores],
    levels: Levels,
    objective: Objective,
) -> tuple[int, float]:
    """Return the best rank for the rest, and the value that the held part predicts for it."""
    errs, other = (1, 0) if side == "out" else (0, 1)
    of_errors, of_hits = rest[errs].size, rest[other].size
    found = [at_rank(side, k, held, levels) for k in ranks(held[errs].size, _HELD_OUT_RATIO)]
    known = np.array([int(rule.counts.errors) + 1 for rule in found])
    hits = np.array([int(rule.counts.hits) for rule in found])
    there = np.maximum(np.round(known * of_errors / held[errs].size), 1).astype(np.int64)
    expected = np.floor(hits * of_hits / held[other].size).astype(np.int64)
    corners = region(Counts(there - 1, of_errors, expected, of_hits), levels)
    values = objective(corners).min(axis=-1)
    best = int(np.argmax(values))
    return int(there[best]), float(values[best])


def best_of(rules: Sequence[Rule], objective: Objective) -> tuple[float, OperatingPoint]:
    """Return the largest value that a test proves, and where its region has it."""
    found: list[tuple[float, Rule, Region, int]] = []
    for rule in rules:
        corners = rule.region
        values = objective(corners)
        at = int(np.argmin(values))
        found.append((float(values[at]), rule, corners, at))
    value, rule, corners, at = max(found, key=lambda one: one[0])
    return value, rule.point(corners, at)
