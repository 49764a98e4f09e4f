"""The privacy profile of one direction of a plan, at many epsilons."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from hockeystick.accountants._wide_profiles import InfinityProfile, WideProfile
from hockeystick.accountants.base import Accountant
from hockeystick.accountants.contour.profile import ContourProfile
from hockeystick.accountants.infinity import split_infinity
from hockeystick.privacy_loss import AnalyticLoss, Terms
from hockeystick.tradeoffs import PerfectPrivacy, Profile

# A report asks for the profiles of one plan several times, which take seconds to tabulate.
_REMEMBERED: Final = 8


@lru_cache(maxsize=_REMEMBERED)
def profile_of(terms: Terms, accountant: Accountant) -> Profile:
    """Return the profile of one direction; what has no lines is asked of an accountant.

    The last few are remembered, with what they have tabulated.
    """
    mass, rest = split_infinity(terms)
    if mass is not None:
        return InfinityProfile(mass, profile_of(rest, accountant))
    if not terms:
        return PerfectPrivacy()
    if len(terms) == 1 and terms[0][1] == 1:
        alone = terms[0][0].proven_profile()
        if alone is not None:
            return alone
    wide = WideProfile(terms, accountant)
    lines = tuple((loss, n) for loss, n in terms if isinstance(loss, AnalyticLoss))
    if (
        len(lines) < len(terms)
        or any(loss.out_of_range for loss, _ in lines)
        or wide.has_breakpoints
    ):
        return wide
    return ContourProfile(lines, wide)
