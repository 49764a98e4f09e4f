"""Exact n-fold products of pairs of few outcomes, and what their profiles say.

* `multisets`: every multiset of outcomes, for few runs or few outcomes.
* `on_a_lattice`: losses at equal spacings: P^n and Q^n are each convolved as integers (fixed
  point, all coefficients packed into one integer), without any loss being computed.
* `Listed`: delta(epsilon) = sum (p - e^epsilon q)_+ and its inverse, outcome by outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import comb
from typing import Protocol

from mpmath import mp
from mpmath.libmp import to_fixed

from tests.oracles.zoo_outputs import Pair, Real, pair

MOST = 1_300_000  # multisets that are listed


class Curve(Protocol):
    """A privacy profile and its inverse."""

    def delta(self, epsilon: Real) -> Real: ...

    def epsilon(self, delta: Real) -> Real:
        """The least epsilon >= 0 at which delta is reached."""
        ...


def listed(one: Pair, runs: int) -> bool:
    """Whether the multisets of that many outcomes can be listed."""
    return comb(runs + len(one.p) - 1, runs) <= MOST


def multisets(one: Pair, runs: int) -> Pair:
    """The product pair of several runs: each outcome as often as counted, in any order."""
    states: list[list[tuple[Real, Real]]] = [[] for _ in range(runs + 1)]
    states[0].append((mp.factorial(runs), mp.factorial(runs)))
    for p, q in zip(one.p, one.q, strict=True):
        powers = [(p**c / mp.factorial(c), q**c / mp.factorial(c)) for c in range(runs + 1)]
        grown = [list(rows) for rows in states]
        for used, rows in enumerate(states):
            for more in range(1, runs - used + 1):
                u, v = powers[more]
                grown[used + more] += [(a * u, b * v) for a, b in rows]
        states = grown
    return Pair(tuple(a for a, _ in states[runs]), tuple(b for _, b in states[runs]))


def _packed(coefficients: Sequence[Real], step: int, fraction: int) -> int:
    """One integer with a fixed-point coefficient at every multiple of so many bytes."""
    digits = (int(to_fixed(mp.mpf(one)._mpf_, fraction)) for one in coefficients)
    return int.from_bytes(b"".join(one.to_bytes(step, "little") for one in digits), "little")


def _product(first: Sequence[Real], second: Sequence[Real]) -> list[Real]:
    """Coefficients of the product of two polynomials with coefficients in [0, 1]."""
    fraction = mp.prec + 64
    count = len(first) + len(second) - 1
    step = (2 * fraction + count.bit_length()) // 8 + 1  # bytes: no carry reaches the next one
    left, right = (_packed(coefficients, step, fraction) for coefficients in (first, second))
    raw = (left * right).to_bytes(step * (count + 1), "little")
    return [
        mp.ldexp(int.from_bytes(raw[step * i : step * (i + 1)], "little"), -2 * fraction)
        for i in range(count)
    ]


def _power(masses: Sequence[Real], runs: int) -> list[Real]:
    """Masses of the sum of that many independent indices."""
    if runs == 1:
        return list(masses)
    half = _power(masses, runs // 2)
    whole = _product(half, half)
    return _product(whole, masses) if runs % 2 else whole


def equally_spaced(one: Pair) -> bool:
    if not all(one.p) or not all(one.q) or len(one.p) < 2:
        return False
    steps = [b / a for a, b in pairwise(p / q for p, q in zip(one.p, one.q, strict=True))]
    return all(abs(step / steps[0] - 1) < mp.mpf(10) ** -25 for step in steps)


def on_a_lattice(one: Pair, runs: int) -> Pair:
    """The product pair where p / q is a geometric sequence: the sum of indices is sufficient."""
    return pair(_power(one.p, runs), _power(one.q, runs))


@dataclass(frozen=True)
class Listed:
    """The profile of a pair whose outcomes are all listed."""

    ratios: tuple[Real, ...]  # descending
    p_tails: tuple[Real, ...]
    q_tails: tuple[Real, ...]

    @classmethod
    def of(cls, listing: Pair) -> Listed:
        """Sort the outcomes by p / q, the largest first, and cumulate from the tail."""
        rows = sorted(
            ((a / b if b else mp.inf, a, b) for a, b in zip(listing.p, listing.q, strict=True)),
            reverse=True,
        )
        return cls(
            tuple(row[0] for row in rows),
            tuple(accumulate(row[1] for row in rows)),
            tuple(accumulate(row[2] for row in rows)),
        )

    def delta(self, epsilon: Real) -> Real:
        """P tail minus e^epsilon Q tail over the outcomes that gain."""
        scale, found = mp.exp(epsilon), mp.mpf(0)
        for ratio, p, q in zip(self.ratios, self.p_tails, self.q_tails, strict=True):
            if ratio <= scale:
                break
            found = p - scale * q
        return found

    def epsilon(self, delta: Real) -> Real:
        """The root of the line P tail - x Q tail, on the piece of x = e^epsilon where it lies."""
        below = (*self.ratios[1:], mp.mpf(0))
        for after, p, q in zip(below, self.p_tails, self.q_tails, strict=True):
            if q and p - after * q >= delta:
                return max(mp.log((p - delta) / q), mp.mpf(0))
        return mp.mpf(0)
