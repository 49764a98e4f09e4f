"""The methods: which tests are looked at, and what makes their bounds hold."""

from __future__ import annotations

from typing import Final

from hockeystick._validate import Domain, one_of, real
from hockeystick.audit._region import Objective, quarter_ellipse, rectangle
from hockeystick.audit._rules import Rule, at_ranks, at_threshold, held_out
from hockeystick.audit._scores import Scores
from hockeystick.errors import ParameterError

_COMBINED: Final = "combined exact binomial p-values (hockeystick, docs/theory/audit)"
THEOREMS: Final = {
    "simultaneous": f"{_COMBINED} at ranks fixed in advance, by Bonferroni's inequality",
    "split": f"{_COMBINED} at a rank chosen on scores held out",
    "combined": f"{_COMBINED} at a threshold fixed in advance",
    "clopper-pearson": "Clopper and Pearson 1934, two bounds at half the error probability each, "
    "at a threshold fixed in advance",
}
ASSUMPTIONS: Final = (
    "The scores are independent: each comes from a run, or a record, of its own.",
    "The runs of both kinds differ only as neighbours do.",
)
_METHODS: Final = ("auto", *THEOREMS)
_ATTHRESHOLD: Final = ("combined", "clopper-pearson")
_FEWEST_TO_SPLIT: Final = 10
_SHARE: Final = Domain(symbol="w", low=0.01, high=0.99, typical=(0.1, 0.9))
THRESHOLD: Final = Domain(symbol="t", low=-float("inf"), high=float("inf"), typical=(-10.0, 10.0))


def chosen_method(method: object, threshold: float | None) -> str:
    """Return which method is used, which depends on nothing that the scores say, or raise."""
    asked = one_of("method", method, _METHODS)
    if asked == "auto":
        return "simultaneous" if threshold is None else "combined"
    if (asked in _ATTHRESHOLD) == (threshold is None):
        needed = "given for this method" if threshold is None else "left out for this method"
        raise ParameterError("threshold", threshold, f"{needed}, {asked!r}")
    return asked


def rules_of(
    method: str,
    both: tuple[Scores, Scores],
    alpha: float,
    objective: Objective,
    *,
    threshold: float | None,
    share: float,
    seed: int,
) -> list[Rule]:
    """Return the tests of a method on "in" and "out" scores."""
    inside, outside = both
    if method == "simultaneous":
        return at_ranks(inside, outside, alpha, seed)
    if method == "split":
        fewest = min(inside.size, outside.size)
        if fewest < _FEWEST_TO_SPLIT:
            allowed = f"'simultaneous' for fewer than {_FEWEST_TO_SPLIT} scores of a kind"
            raise ParameterError("method", method, allowed)
        return held_out(inside, outside, alpha, objective, seed)
    known = real("threshold", threshold, THRESHOLD)
    weight = real("share", share, _SHARE)
    levels = rectangle(alpha) if method == "clopper-pearson" else quarter_ellipse(alpha, weight)
    return [at_threshold(inside, outside, known, levels)]
