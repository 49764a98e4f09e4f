"""The pair of losses of a model's walk between parties: later noise covers a contribution."""

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
from hockeystick.privacy_loss.core.observed_mixture import observed_mixture
from hockeystick.privacy_loss.core.registry import DominatingPair, dominating_pair
from hockeystick.privacy_loss.decentralised.iterated import StepNoise, edge_pair, pair_between

# Numbers of steps that are distinguished, and the number of blocks of the others, or a smaller one
# where they would differ by less than a factor. Every block costs time: the lower end has few.
_APART_ABOVE: Final = 12


_BLOCKS_ABOVE: Final = 20


_APART_BELOW: Final = 3


_BLOCKS_BELOW: Final = 5


_WIDER: Final = 1.25


# Chances are multiples of 2^-192, and what is rarer than exp(-14) is one case.
_BITS: Final = 192


_RARE: Final = 14


@dominating_pair.register
def _(mechanism: TokenWalk) -> DominatingPair:
    edge = edge_pair(mechanism.noise_multiplier)
    if edge is not None:
        return edge
    noise = StepNoise(decimal(mechanism.noise_multiplier) / change(mechanism.adjacency))
    if mechanism.distance is not None:
        return pair_between(noise.covered(mechanism.distance), noise.covered(mechanism.parties - 1))
    walk = _Walk(mechanism.parties, cast(int, mechanism.observers))
    return pair_between(cast(CellLoss, _above(noise, walk)), _below(noise, walk))


@final
@dataclass(frozen=True, slots=True)
class _Walk:
    """How many steps' noise covers a contribution to a walk on the complete graph."""

    parties: int
    observers: int

    def few(self, shown: int) -> int:
        """Return what the number of steps up to several parties exceeds with a chance of e^-14."""
        return -(-_RARE * self.parties // shown)

    def shown_after(self, steps: int) -> Fraction:
        """Return the chance that more than so many steps cover it, where both parties are shown.

        ``(1 - p)^steps`` with ``p = (c + 1)/n``, rounded down.
        """
        if steps == 0:
            return Fraction(1)
        return _rounded([(1, self.observers + 1, steps)], self.parties, up=False)

    def seen_after(self, steps: int) -> Fraction:
        """Return the chance that more than so many steps lie between two observers, rounded up.

        Those up to the contribution are geometric with ``p = (c + 1)/n``, as w is shown anew from
        each observer; those after it, up to the next observer, with ``c/n``: in all, more than g
        with the chance ``(c + 1) (1 - c/n)^(g + 1) - c (1 - (c + 1)/n)^(g + 1)``.
        """
        if steps == 0:
            return Fraction(1)
        c = self.observers
        return _rounded([(c + 1, c, steps + 1), (-c, c + 1, steps + 1)], self.parties, up=True)


def _rounded(terms: list[tuple[int, int, int]], parties: int, *, up: bool) -> Fraction:
    """Return ``sum w (1 - k/n)^e`` over (w, k, e), rounded to a multiple of ``2^-192``."""
    from mpmath import mp

    with working_digits(120):
        total = mp.fsum(
            weight * (mp.mpf(parties - hit) / parties) ** exponent
            for weight, hit, exponent in terms
        )
        scaled = int(mp.floor(mp.ldexp(total, _BITS)))
    units = scaled + 2 if up else scaled - 1
    return Fraction(min(max(units, 0), 1 << _BITS), 1 << _BITS)


def _ends(steps: int, apart: int, blocks: int) -> list[int]:
    """Return where blocks of numbers of steps end, from 0 to the first that is not below a number.

    One by one, then ever wider.
    """
    ends = list(range(min(steps, apart) + 1))
    wider = max(_WIDER, (steps / apart) ** (1 / blocks))
    while ends[-1] < steps:
        ends.append(math.ceil(ends[-1] * wider))
    return ends


@lru_cache(maxsize=64)
def _above(noise: StepNoise, walk: _Walk) -> CellLoss | None:
    """Return the mixture in which each block has the noise of its least number of steps."""
    ends = _ends(walk.few(walk.observers + 1), _APART_ABOVE, _BLOCKS_ABOVE)
    left = [*(walk.shown_after(end) for end in ends), Fraction(0)]
    shares = [first - second for first, second in pairwise(left)]
    parts = [(share, noise.covered(end + 1)) for end, share in zip(ends, shares, strict=True)]
    return observed_mixture(parts)


@lru_cache(maxsize=64)
def _below(noise: StepNoise, walk: _Walk) -> CellLoss | None:
    """Return the mixture in which each block has the noise of its largest number of steps."""
    ends = _ends(walk.few(walk.observers), _APART_BELOW, _BLOCKS_BELOW)
    left = [walk.seen_after(end) for end in ends]
    shares = [first - second for first, second in pairwise(left)]
    parts = [(share, noise.covered(end)) for end, share in zip(ends[1:], shares, strict=True)]
    return observed_mixture([*parts, (left[-1], None)])
