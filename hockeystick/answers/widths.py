"""Why the proven ends of an answer may be far apart, in words."""

from __future__ import annotations

from typing import Final

from hockeystick.mechanisms import (
    Exponential,
    MaxNoise,
    Mechanism,
    ReportNoisyMax,
    ShuffledReports,
    runs_of,
)
from hockeystick.notions import TCDP, ZCDP, RenyiDP

# Of these only upper bounds of Renyi divergences are known.
_CLASSES: Final = (RenyiDP, TCDP, ZCDP)
_SELECTIONS: Final = (
    "of selections that may depend on what came before, the worst is known by a bound only"
)
_SHUFFLED: Final = "of shuffled reports, the data that cost the most are known by a bound only"


def far_apart(plan: Mechanism) -> str:
    """Return what to make of proven ends that are far apart, and why they are where that is known.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.answers.widths import far_apart
        >>> print(far_apart(hs.ZCDP(2.5)))  # doctest: +NORMALIZE_WHITESPACE
        the truth lies between; nothing narrower is proven here, as of the ZCDP release
        nothing but that guarantee is known: quote the upper end
    """
    because = _reason(plan)
    why = f", as {because}" if because else ""
    return f"the truth lies between; nothing narrower is proven here{why}: quote the upper end"


def _reason(plan: Mechanism) -> str | None:
    """Return why nothing narrower is proven, or None where no single reason is known."""
    runs = [(one, count) for one, count in runs_of(plan) if count]
    for one, _ in runs:
        if isinstance(one, _CLASSES):
            return f"of the {type(one).__name__} release nothing but that guarantee is known"
        if isinstance(one, ShuffledReports):
            return _SHUFFLED
    several = sum(count for _, count in runs) > 1
    return _SELECTIONS if several and any(_is_of_range(one) for one, _ in runs) else None


def _is_of_range(mechanism: Mechanism) -> bool:
    """Return whether of a mechanism is known only in which range its losses are."""
    if isinstance(mechanism, ReportNoisyMax):
        return mechanism.noise is MaxNoise.GUMBEL
    return isinstance(mechanism, Exponential)
