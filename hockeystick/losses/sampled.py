"""The loss of any mechanism on a Poisson sample, from the mechanism's own pair of losses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, cast, final

from hockeystick.losses._sampling import Sampling
from hockeystick.losses._spans import DensityLoss, Edges
from hockeystick.losses.base import Atoms, CellLoss, Masses, ProfiledLoss

if TYPE_CHECKING:
    from mpmath import mpf

_ULP: Final = 2.0**-52
# Exponentials beyond this are taken as infinite.
_LARGEST_EXPONENT: Final = 700.0


@dataclass(frozen=True, slots=True)
class _Sampled(DensityLoss):
    """What both kinds of sampled loss have: the masses, by the map of the losses."""

    inner: CellLoss
    rate: float | Fraction
    removing: bool

    @property
    def _map(self) -> Sampling:
        """The map from the inner losses to the sampled ones."""
        return Sampling(self.rate, self.removing)

    @property
    def supremum(self) -> float:
        """The image of the largest inner loss, rounded up."""
        return self._map.supremum(self.inner.supremum)

    @property
    def infimum(self) -> float:
        """The image of the least inner loss, rounded down."""
        return self._map.infimum(self.inner.infimum)

    @property
    def limit_square(self) -> float:
        """Return ``p^2 chi^2`` of the inner pair."""
        exponent = self.inner.cumulants(1.0).value
        if exponent > _LARGEST_EXPONENT:
            return math.inf
        return float(self.rate) ** 2 * math.expm1(exponent)

    def atoms(self) -> Atoms:
        """Return the images of the inner atoms."""
        return self._map.atoms(self.inner.atoms())

    def spans(self, edges: Edges) -> Masses:
        """Return mixtures of the inner masses."""
        return self._map.masses(self.inner, edges)


@final
@dataclass(frozen=True, slots=True)
class SampledLoss(_Sampled):
    """The loss of ``(1-p) Q + p P`` against Q (removing), or P against ``(1-p) P + p Q`` (adding).

    ``inner`` is the loss of P against Q in the same direction. The loss is
    ``ln(1 - p + p e^l)`` when removing and ``-ln(1 - p + p e^-l)`` when adding; p is neither 0
    nor 1.

    References:
        Zhu, Dong and Wang, AISTATS 2022, theorem 11: the two pairs dominate Poisson sampling under
        add-remove adjacency.
    """

    @property
    def attained(self) -> SampledLoss | None:
        """The loss itself where the inner one is attained: by data of the one record or none."""
        return self if self.inner.attained is self.inner else None


@final
@dataclass(frozen=True, slots=True)
class SampledProfiledLoss(_Sampled, ProfiledLoss):
    """A ``SampledLoss`` of an inner loss d whose privacy profile has a closed form, as then it has.

    Removing, ``p d(ln(1 + (e^eps - 1)/p))``; adding, with ``c = 1 - e^eps (1-p)``,
    ``c d(-ln(1 - (1 - e^-eps)/p))`` while c is positive, and 0 from there on:
    ``P - e^eps ((1-p) P + p Q) = c P - e^eps p Q``. Both ask d for an epsilon >= 0 only.
    """

    @property
    def attained(self) -> SampledProfiledLoss | None:
        """The loss itself where the inner one is attained: by data of the one record or none."""
        return self if self.inner.attained is self.inner else None

    def delta(self, epsilon: mpf, nudge: int = 0) -> mpf:
        """Return the profile, for epsilon >= 0."""
        from mpmath import mp

        from hockeystick._reference.profiles import exact

        profiled = cast(ProfiledLoss, self.inner)
        rate = exact(self.rate)
        guard = 64 + 2 * max(0, -int(mp.mag(rate)))
        with mp.extraprec(guard):
            rate = min(exact(self.rate) * (1 + nudge * mp.mpf(_ULP)), 1)
            if self.removing:
                factor, inner = rate, mp.log1p(mp.expm1(epsilon) / rate)
            elif rate < 1 and epsilon >= -mp.log1p(-rate):
                return mp.zero
            else:
                factor = 1 - mp.exp(epsilon) * (1 - rate)
                inner = -mp.log1p(mp.expm1(-epsilon) / rate)
        return +(factor * profiled.delta(+inner, nudge))


def sampled(inner: CellLoss, rate: float | Fraction, removing: bool) -> CellLoss:
    """Return the sampled loss, with a profile where the inner one has one."""
    kind = SampledProfiledLoss if isinstance(inner, ProfiledLoss) else SampledLoss
    return kind(inner, rate, removing)
