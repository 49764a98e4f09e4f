"""A public coin that picks which mechanism runs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import ParameterError
from hockeystick.numerics import ULP
from hockeystick.tradeoffs.base import TradeOff
from hockeystick.tradeoffs.functions.by_profile import ProfileTradeOff
from hockeystick.tradeoffs.profiles.profile import Array, CombinedProfile, Profile, ProfileValues

_SUM: Final = 1e-12
_WEIGHT: Final = Domain(symbol="w", low=0, high=1, typical=(0.01, 0.99))


@final
@dataclass(frozen=True, slots=True)
class MixtureProfile(CombinedProfile):
    """``delta = sum of w_i delta_i``; weights that add up to 1 + s widen the ends by s."""

    weights: tuple[float, ...]
    profiles: tuple[Profile, ...]

    @property
    def parts(self) -> tuple[Profile, ...]:
        return self.profiles

    @property
    def infinity_mass_lower(self) -> float:
        masses = (profile.infinity_mass_lower for profile in self.profiles)
        mean = math.fsum(w * mass for w, mass in zip(self.weights, masses, strict=True))
        return mean * (1.0 - 2.0 * _SUM)

    def at(self, epsilon: Array) -> ProfileValues:
        values = [profile.at(epsilon) for profile in self.profiles]
        sums = [
            sum((w * one for w, one in zip(self.weights, part, strict=True)), 0.0 * epsilon)
            for part in zip(*values, strict=True)
        ]
        slack = abs(math.fsum(self.weights) - 1.0) + (len(values) + 4.0) * ULP
        lower, estimate, upper, slope = sums
        # Products of subnormal numbers underflow to 0.
        tiny = len(values) * 5e-324
        above = upper * (1.0 + slack) + tiny * np.any([one.upper > 0.0 for one in values], axis=0)
        return ProfileValues(np.maximum(lower * (1.0 - slack) - tiny, 0.0), estimate, above, slope)


def mixture(parts: Iterable[tuple[float, TradeOff]]) -> TradeOff:
    """Return the trade-off function where a public coin picks the mechanism.

    Whoever attacks sees the coin, so ``delta(eps) = sum of w_i delta_i(eps)`` in each direction.

    Guarantees:
        Exact but for round-off for a public coin. With a secret coin (only the output is seen) it
        is still a valid lower f: dropping the coin is post-processing.

    Edge cases:
        Parts of weight 0 play no part; equal functions give that function itself.

    Args:
        parts: Pairs of a weight in [0, 1] and a trade-off function; the weights add up to 1 to
            within 1e-12.

    References:
        ``f_p = p f + (1-p) (1 - alpha)`` of Dong, Roth and Su 2022 is below the mixture, which may
        spend its alpha unevenly: there the coin says whether a record takes part.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.tradeoffs.operations.mixture import mixture
        >>> f = mixture([(0.5, hs.tradeoffs.G(1.0)), (0.5, hs.tradeoffs.G(2.0))])
        >>> print(f"{float(f.delta(1.0)):.6f}")
        0.318399
    """
    pairs = _checked(parts)
    first = pairs[0][1]
    if all(f == first for _, f in pairs):
        return first
    weights = tuple(weight for weight, _ in pairs)
    forward = MixtureProfile(weights, tuple(f.forward for _, f in pairs))
    return ProfileTradeOff((forward, MixtureProfile(weights, tuple(f.backward for _, f in pairs))))


def _checked(parts: Iterable[tuple[float, TradeOff]]) -> list[tuple[float, TradeOff]]:
    allowed = "pairs (weight, trade-off function) whose weights add up to 1"
    try:
        pairs = [(weight, f) for weight, f in parts]
    except (TypeError, ValueError):
        raise ParameterError("parts", parts, allowed) from None
    if not all(isinstance(f, TradeOff) for _, f in pairs):
        raise ParameterError("parts", pairs, allowed)
    checked = [(_validate.real("weight", weight, _WEIGHT), f) for weight, f in pairs]
    if not abs(math.fsum(weight for weight, _ in checked) - 1.0) <= _SUM:
        raise ParameterError("parts", pairs, allowed)
    return [(weight, f) for weight, f in checked if weight > 0.0]
