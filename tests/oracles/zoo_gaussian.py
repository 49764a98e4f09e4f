"""Profiles of Gaussian noise: plain, of random sensitivity, and sampled in many runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product

from mpmath import mp

from tests.oracles.zoo_line import root
from tests.oracles.zoo_outputs import Real

_REACH = 40  # standard deviations beyond which no threshold lies


def _tail(x: Real) -> Real:
    """The normal distribution's upper tail, to full relative precision."""
    return mp.erfc(x / mp.sqrt(2)) / 2


@dataclass(frozen=True)
class Gaussian:
    """N(mu, 1) against N(0, 1): the threshold is at epsilon / mu + mu / 2."""

    mu: Real

    def delta(self, epsilon: Real) -> Real:
        x = epsilon / self.mu + self.mu / 2
        with mp.extradps(20):
            return _tail(x - self.mu) - mp.exp(epsilon) * _tail(x)

    def epsilon(self, delta: Real) -> Real:
        """The root below a bound of zero-concentrated privacy."""
        rho = self.mu**2 / 2
        return root(self.delta, delta, rho + 2 * mp.sqrt(rho * mp.log(1 / delta)))


@dataclass(frozen=True)
class Mixture:
    """One run: sum w_i N(c_i, s^2), c_i >= 0, against N(0, s^2) (removing), or reversed."""

    noise: Real
    centres: Sequence[Real]
    weights: Sequence[Real]
    adding: bool

    def _quotient(self, x: Real) -> Real:
        """Density with the record over density without, which grows with x."""
        s2 = self.noise**2
        return mp.fsum(
            w * mp.exp(c * (2 * x - c) / (2 * s2))
            for c, w in zip(self.centres, self.weights, strict=True)
        )

    def _threshold(self, ratio: Real) -> Real:
        low, high = -_REACH * self.noise, _REACH * self.noise
        while high - low > mp.mpf(10) ** (3 - mp.dps):
            middle = (low + high) / 2
            low, high = (middle, high) if self._quotient(middle) < ratio else (low, middle)
        return (low + high) / 2

    def delta(self, epsilon: Real) -> Real:
        """The event above (removing) or below (adding) the threshold."""
        sign = -1 if self.adding else 1
        x = self._threshold(mp.exp(sign * epsilon))
        if abs(x) > (_REACH - 1) * self.noise:
            return mp.mpf(0)
        without = _tail(sign * x / self.noise)
        with_record = mp.fsum(
            w * _tail(sign * (x - c) / self.noise)
            for c, w in zip(self.centres, self.weights, strict=True)
        )
        p, q = (without, with_record) if self.adding else (with_record, without)
        return p - mp.exp(epsilon) * q

    def epsilon(self, delta: Real) -> Real:
        """The root below what the largest centre alone costs."""
        return root(self.delta, delta, Gaussian(max(self.centres) / self.noise).epsilon(delta))


@dataclass(frozen=True)
class SinhNormal:
    """One run of A asinh(N(0, s^2) / A) added to an answer that moves by 1.

    The distribution function is Phi(A sinh(x / A) / s), and the quotient of the densities at x - 1
    and at x grows with x where A is above s.
    """

    sigma: Real
    bend: Real

    def density(self, x: Real) -> Real:
        scaled = self.bend * mp.sinh(x / self.bend) / self.sigma
        return mp.npdf(scaled) * mp.cosh(x / self.bend) / self.sigma

    def tail(self, x: Real) -> Real:
        return _tail(self.bend * mp.sinh(x / self.bend) / self.sigma)

    @property
    def reach(self) -> Real:
        return self.bend * mp.asinh(17 * self.sigma / self.bend)

    def delta(self, epsilon: Real) -> Real:
        """P tail minus e^epsilon Q tail above where the quotient of densities is e^epsilon."""
        low, high = mp.mpf(1) / 2, self.reach + 1
        scale = mp.exp(epsilon)
        while high - low > mp.mpf(10) ** (3 - mp.dps):
            middle = (low + high) / 2
            less = self.density(middle - 1) < scale * self.density(middle)
            low, high = (middle, high) if less else (low, middle)
        x = (low + high) / 2
        return self.tail(x - 1) - scale * self.tail(x)

    def epsilon(self, delta: Real) -> Real:
        """The root below what 40 times the noise's parameter would give."""
        return root(self.delta, delta, 40 * Gaussian(1 / self.sigma).epsilon(delta))


def tree_mu(noise: Real, leaves: int) -> Real:
    """The leaf that is in most nodes of a tree, among the nodes whose leaves are all there."""
    nodes = [0] * leaves
    width = 1
    while width <= leaves:
        for start in range(0, leaves - width + 1, width):
            for leaf in range(start, start + width):
                nodes[leaf] += 1
        width *= 2
    return mp.sqrt(max(nodes)) / noise


def square_root(rounds: int) -> list[list[Real]]:
    """The first column of the square root of the prefix sums, its longest one, as a matrix."""
    return [[mp.binomial(2 * k, k) / mp.mpf(4) ** k] for k in range(rounds)]


def encoder_mu(
    noise: Real, rows: Sequence[Sequence[Real]], participations: int, separation: int
) -> Real:
    """The longest sum of columns with signs, over every pattern of participation."""
    columns = [[mp.mpf(value) for value in column] for column in zip(*rows, strict=True)]
    longest = mp.mpf(0)
    for count in range(1, participations + 1):
        for places in combinations(range(len(columns)), count):
            if any(b - a < separation for a, b in pairwise(places)):
                continue
            for signs in product((1, -1), repeat=count):
                chosen = [(sign, columns[i]) for sign, i in zip(signs, places, strict=True)]
                total = (mp.fsum(s * c[k] for s, c in chosen) for k in range(len(rows)))
                longest = max(longest, mp.fsum(x * x for x in total))
    return mp.sqrt(longest) / noise
