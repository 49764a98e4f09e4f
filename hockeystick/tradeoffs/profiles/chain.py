"""The privacy profile at distance g, by one profile for each of the g records on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from hockeystick.numerics import ULP
from hockeystick.tradeoffs.profiles.profile import Array, Profile, ProfileValues

_LARGEST_EXPONENT: Final = 690.0
_SMALLEST: Final = 5e-324
# Below this an exponential less 1 over another one is the number of records, next to it.
_SMALL: Final = 1e-12
_ROUND: Final = 1.0 + 64.0 * ULP


@final
@dataclass(frozen=True, slots=True)
class ChainProfile(Profile):
    """The smaller of a profile for a group and of what a chain of single records gives.

    For distributions ``P_0, ..., P_g`` of which neighbours have the profile ``one``,

        delta_g(eps) <= (1 + e^(eps/g) + ... + e^((g-1) eps/g)) one(eps/g):

    ``H_(e^(a+b))(P || R) <= H_(e^a)(P || Q) + e^a H_(e^b)(Q || R)``, as for every event
    ``P(S) - e^(a+b) R(S) = (P(S) - e^a Q(S)) + e^a (Q(S) - e^b R(S))``, g times over.

    Guarantees:
        Upper ends are the smaller ones of two proven bounds; the chain's is taken at a quotient
        that is rounded down, and up from there. Lower ends are those of the profile.

    Args:
        group: A profile for the group.
        one: The profile of each pair of neighbours on the way, all in one order.
        size: The number g of records, at least 1.
    """

    group: Profile
    one: Profile
    size: int

    @property
    def supremum(self) -> float:
        return self.group.supremum

    @property
    def smooth(self) -> bool:
        return self.group.smooth

    @property
    def breakpoints(self) -> Array:
        return self.group.breakpoints

    @property
    def infinity_mass_lower(self) -> float:
        return self.group.infinity_mass_lower

    def precisely(self, epsilon: float) -> tuple[float, float, float]:
        """Return the ends at one epsilon, each profile's at its own full precision."""
        lower, middle, upper = self.group.precisely(epsilon)
        share = self._share(np.array([epsilon]))
        link = self.one.precisely(float(share[0]))[2]
        chained = float(self._chained(np.array([epsilon]), share, np.array([link]))[0])
        return (lower, middle, upper) if upper <= chained else (lower, chained, chained)

    def at(self, epsilon: Array) -> ProfileValues:
        """Return the smaller upper ends, and the estimates and derivatives that go with them."""
        found, share = self.group.at(epsilon), self._share(epsilon)
        link = self.one.at(share)
        chained = self._chained(epsilon, share, link.upper)
        shorter = chained < found.upper
        with np.errstate(over="ignore", invalid="ignore"):
            slope = self._factor(share) * link.slope / self.size
        return ProfileValues(
            found.lower,
            np.where(shorter, chained, found.estimate),
            np.where(shorter, chained, found.upper),
            np.where(shorter, slope, found.slope),
        )

    def _share(self, epsilon: Array) -> Array:
        """Return the part of one record, rounded down."""
        return np.asarray(epsilon / self.size * (1.0 - 4.0 * ULP))

    def _chained(self, epsilon: Array, share: Array, link: Array) -> Array:
        """Return the chain's bound, rounded up; 1 where exponentials end."""
        with np.errstate(over="ignore", invalid="ignore"):
            bound = self._factor(share) * link * _ROUND + _SMALLEST
        return np.where((epsilon <= _LARGEST_EXPONENT) & (bound < 1.0), bound, 1.0)

    def _factor(self, share: Array) -> Array:
        """Return ``(e^(g share) - 1) / (e^share - 1)``, rounded up but for a few last places."""
        whole = np.minimum(share * self.size * (1.0 + 4.0 * ULP), _LARGEST_EXPONENT + 1.0)
        small = share < _SMALL
        step = np.expm1(np.where(small, 1.0, share))
        return np.where(small, self.size * np.exp(whole), np.expm1(whole) / step)
