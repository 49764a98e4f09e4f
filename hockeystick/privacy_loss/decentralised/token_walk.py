"""The dominating pair of a model's random walk between parties (amplification by iteration)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Final, cast, final

from hockeystick.mechanisms.decentralised.convex import change
from hockeystick.mechanisms.decentralised.token_walk import TokenWalk
from hockeystick.numerics import decimal
from hockeystick.numerics.working_precision import working_digits
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.dominated import dominated_pair
from hockeystick.privacy_loss.core.infinity_mass import edge_pair
from hockeystick.privacy_loss.core.observed_mixture import observed_mixture
from hockeystick.privacy_loss.core.registry import DominatingPair, dominating_pair
from hockeystick.privacy_loss.decentralised.iterated import StepNoise

# Numbers of steps that are distinguished, and the number of blocks of the others, or a smaller one
# where they would differ by less than a factor. Every block costs time: the lower end has few.
_SINGLES_ABOVE: Final = 12
_BLOCKS_ABOVE: Final = 20
_SINGLES_BELOW: Final = 3
_BLOCKS_BELOW: Final = 5
_LEAST_GROWTH: Final = 1.25
# Probabilities are multiples of 2^-192; numbers of steps in a tail below exp(-14) are one case.
_BITS: Final = 192
_RARE: Final = 14


@dominating_pair.register
def _(mechanism: TokenWalk) -> DominatingPair:
    edge = edge_pair(mechanism.noise_multiplier)
    if edge is not None:
        return edge
    noise = StepNoise(decimal(mechanism.noise_multiplier) / change(mechanism.adjacency))
    if mechanism.distance is not None:
        return dominated_pair(
            noise.covered(mechanism.distance), noise.covered(mechanism.parties - 1)
        )
    walk = _Walk(mechanism.parties, cast(int, mechanism.observers))
    return dominated_pair(cast(CellLoss, _above(noise, walk)), _below(noise, walk))


@final
@dataclass(frozen=True, slots=True)
class _Walk:
    """The number of noisy steps after a contribution to a walk on the complete graph."""

    parties: int
    observers: int

    def likely_steps(self, observed: int) -> int:
        """Return the number of steps to one of several parties that is exceeded with e^-14."""
        return -(-_RARE * self.parties // observed)

    def observed_tail(self, steps: int) -> Fraction:
        """Return a lower bound of ``Pr[more than steps follow]``, where both parties are observed.

        ``(1 - p)^steps`` with ``p = (c + 1)/n``, rounded down.
        """
        if steps == 0:
            return Fraction(1)
        return _rounded([(1, self.observers + 1, steps)], self.parties, up=False)

    def between_observers_tail(self, steps: int) -> Fraction:
        """Return an upper bound of ``Pr[more than steps between two observers]``.

        Those up to the contribution are geometric with ``p = (c + 1)/n``, as w is observed anew
        from each observer; those after it, up to the next observer, with ``c/n``: in all, more than
        g with probability ``(c + 1) (1 - c/n)^(g + 1) - c (1 - (c + 1)/n)^(g + 1)``.
        """
        if steps == 0:
            return Fraction(1)
        c = self.observers
        return _rounded([(c + 1, c, steps + 1), (-c, c + 1, steps + 1)], self.parties, up=True)


def _rounded(terms: list[tuple[int, int, int]], parties: int, *, up: bool) -> Fraction:
    """Return ``sum w (1 - k/n)^e`` over (w, k, e), rounded to a multiple of ``2^-192``."""
    from hockeystick.numerics.multiprecision import mp

    with working_digits(120):
        total = mp.fsum(
            weight * (mp.mpf(parties - stopping) / parties) ** exponent
            for weight, stopping, exponent in terms
        )
        scaled = int(mp.floor(mp.ldexp(total, _BITS)))
    units = scaled + 2 if up else scaled - 1
    return Fraction(min(max(units, 0), 1 << _BITS), 1 << _BITS)


def _ends(steps: int, singles: int, blocks: int) -> list[int]:
    """Return the last number of each block of numbers of steps, from 0 to at least ``steps``.

    The first blocks have one number each, the others grow geometrically.
    """
    ends = list(range(min(steps, singles) + 1))
    growth = max(_LEAST_GROWTH, (steps / singles) ** (1 / blocks))
    while ends[-1] < steps:
        ends.append(math.ceil(ends[-1] * growth))
    return ends


@lru_cache(maxsize=64)
def _above(noise: StepNoise, walk: _Walk) -> CellLoss | None:
    """Return the mixture in which each block has the noise of its least number of steps."""
    ends = _ends(walk.likely_steps(walk.observers + 1), _SINGLES_ABOVE, _BLOCKS_ABOVE)
    left = [*(walk.observed_tail(end) for end in ends), Fraction(0)]
    shares = [first - second for first, second in pairwise(left)]
    parts = [(share, noise.covered(end + 1)) for end, share in zip(ends, shares, strict=True)]
    return observed_mixture(parts)


@lru_cache(maxsize=64)
def _below(noise: StepNoise, walk: _Walk) -> CellLoss | None:
    """Return the mixture in which each block has the noise of its largest number of steps."""
    ends = _ends(walk.likely_steps(walk.observers), _SINGLES_BELOW, _BLOCKS_BELOW)
    left = [walk.between_observers_tail(end) for end in ends]
    shares = [first - second for first, second in pairwise(left)]
    parts = [(share, noise.covered(end)) for end, share in zip(ends[1:], shares, strict=True)]
    return observed_mixture([*parts, (left[-1], None)])
