"""Outputs of mechanisms on two neighbouring data sets, from the mechanisms' definitions.

A `Pair` lists the outcomes of one run with their probabilities under P (with the record) and Q
(without it), in mpmath. No loss formula is used: a loss is the logarithm of a quotient of two
probabilities, and outcomes of the same quotient are one outcome (a sufficient statistic).

Their n-fold products, exact, and what their profiles say:

* `multisets`: every multiset of outcomes, for few runs or few outcomes.
* `on_a_lattice`: losses at equal spacings: P^n and Q^n are each convolved as integers (fixed
  point, all coefficients packed into one integer), without any loss being computed.
* `Listed`: delta(epsilon) = sum (p - e^epsilon q)_+ and its inverse, outcome by outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from mpmath import mp
from mpmath.libmp import to_fixed

Real = Any  # an mpmath number: mpmath has no types of its own to name
_SAME = 30  # decimal digits to which two quotients of one outcome agree
_NEGLIGIBLE = 45  # outcomes below 10 to minus this are left out, under P and Q alike


@dataclass(frozen=True)
class Pair:
    """Outcomes of one run: probabilities under P and under Q, in ascending order of p / q."""

    p: tuple[Real, ...]
    q: tuple[Real, ...]

    @property
    def reversed(self) -> Pair:
        return Pair(self.q[::-1], self.p[::-1])

    def sampled(self, rate: Real) -> Pair:
        """The pair where the record takes part with a probability only."""
        mixed = ((1 - rate) * q + rate * p for p, q in zip(self.p, self.q, strict=True))
        return pair(tuple(mixed), self.q)


def pair(p: Sequence[Real], q: Sequence[Real]) -> Pair:
    """Sort outcomes by their quotient and put together those that share it."""
    least = mp.mpf(10) ** -_NEGLIGIBLE
    rows = sorted((a / b, a, b) for a, b in zip(p, q, strict=True) if max(a, b) > least)
    kept: list[list[Real]] = []
    for ratio, a, b in rows:
        if kept and abs(ratio / kept[-1][0] - 1) < mp.mpf(10) ** -_SAME:
            kept[-1][1] += a
            kept[-1][2] += b
        else:
            kept.append([ratio, a, b])
    return Pair(tuple(row[1] for row in kept), tuple(row[2] for row in kept))


def shifted(weight: Callable[[int], Real], reach: int, shift: int) -> Pair:
    """Integer noise of unnormalised probabilities weight(y), |y| <= reach, and its shift."""
    values = {y: weight(y) for y in range(-reach - shift, reach + shift + 1)}
    total = mp.fsum(values.values())
    ys = range(-reach, reach + shift + 1)
    return pair([values[y - shift] / total for y in ys], [values[y] / total for y in ys])


def discrete_gaussian(sigma: Real, shift: int = 1) -> Pair:
    """Integers with probability proportional to exp(-y^2 / (2 sigma^2))."""
    reach = int(sigma * mp.sqrt(2 * _NEGLIGIBLE * mp.log(10))) + 2
    return shifted(lambda y: mp.exp(-mp.mpf(y * y) / (2 * sigma**2)), reach, shift)


def discrete_laplace(scale: Real, shift: int = 1) -> Pair:
    """Integers with probability proportional to exp(-|y| / scale)."""
    reach = int(scale * _NEGLIGIBLE * mp.log(10)) + 2
    return shifted(lambda y: mp.exp(-abs(y) / scale), reach, shift)


def skellam(variance: Real, shift: int = 1) -> Pair:
    """Differences of two Poisson variables of mean variance / 2, summed over the smaller one."""
    mean, reach = variance / 2, 20
    while mp.besseli(reach, variance) > mp.mpf(10) ** -_NEGLIGIBLE:
        reach += 5

    def weight(y: int) -> Real:
        terms = (
            mean ** (2 * k + abs(y)) / (mp.factorial(k) * mp.factorial(k + abs(y)))
            for k in range(4 * reach)
        )
        return mp.fsum(terms)

    return shifted(weight, reach, shift)


def randomized_response(epsilon: Real, categories: int) -> Pair:
    """The true category with e^epsilon times the probability of each other one."""
    total = mp.exp(epsilon) + categories - 1
    rest = [1 / total] * (categories - 2)
    return pair(
        [mp.exp(epsilon) / total, 1 / total, *rest], [1 / total, mp.exp(epsilon) / total, *rest]
    )


def bits(one_if_one: Real, one_if_zero: Real, count: int) -> Pair:
    """Noisy bits, `count` of which go from 1 to 0 and as many from 0 to 1."""
    p, q = [mp.mpf(1)], [mp.mpf(1)]
    for here, there in ((one_if_one, one_if_zero), (one_if_zero, one_if_one)):
        for _ in range(count):
            p, q = (
                [a * b for a in p for b in (here, 1 - here)],
                [a * b for a in q for b in (there, 1 - there)],
            )
            merged = pair(p, q)
            p, q = list(merged.p), list(merged.q)
    return pair(p, q)


def symmetric_bits(epsilon: Real) -> Pair:
    """Unary encoding whose bits are kept with probability e^(epsilon/2) / (1 + e^(epsilon/2))."""
    kept = mp.exp(epsilon / 2) / (1 + mp.exp(epsilon / 2))
    return bits(kept, 1 - kept, 1)


def optimised_bits(epsilon: Real) -> Pair:
    """Unary encoding whose ones are kept with probability 1/2 and zeros raised with 1/(1+e^eps)."""
    return bits(mp.mpf(1) / 2, 1 / (1 + mp.exp(epsilon)), 1)


def rappor(flip: Real, hashes: int) -> Pair:
    """A Bloom filter's bits, each replaced by a fair coin with probability flip."""
    return bits(1 - flip / 2, flip / 2, hashes)


def exchanged(epsilon: Real) -> Pair:
    """Permute-and-flip between two candidates whose scores, one sensitivity apart, change places.

    The worse one is released if it comes first and its coin shows heads, or if it comes second and
    the better one's coin showed tails, which it never does.
    """
    worse = mp.exp(-epsilon / 2) / 2
    return pair((1 - worse, worse), (worse, 1 - worse))


def one_comparison(threshold: Real, query: Real) -> Pair:
    """Whether one query exceeds a threshold, Laplace noise on both, of the scales given.

    The query lies half its sensitivity above the threshold, or below it.
    """

    def above(gap: Real) -> Real:
        """Probability of (noise of threshold) - (noise of query) < gap, by quadrature."""

        def term(x: Real) -> Real:
            tail = mp.exp(-abs(gap - x) / threshold) / 2
            return mp.exp(-abs(x) / query) / (2 * query) * (1 - tail if gap > x else tail)

        far = 60 * max(threshold, query)
        return mp.quad(
            term, [-far, -far / 8, -far / 60, min(0, gap), max(0, gap), far / 60, far / 8, far]
        )

    half = mp.mpf(1) / 2
    p, q = above(half), above(-half)
    return pair((p, 1 - p), (q, 1 - q))


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
