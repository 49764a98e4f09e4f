"""Losses of noise on streams: balls in bins, matrix factorizations and trees.

*Balls in bins*, with correlated noise, are between two allocations. An example whose bin is r
contributes ``u_j``, ``|u_j| <= 1``, to the rounds ``j = r mod b``, chosen by the outputs before row
j. Let ``a_r(i) = sum_j C_ij u_j / z`` over these rounds up to i: what it moves row i by, in units
of the noise. Relative to Q, and up to a bijection that takes away what the other examples add, row
i multiplies the likelihood ratio of bin r by

    L_r(i) = exp(<a_r(i), xi_i> - |a_r(i)|^2/2),    xi_i ~ N(0, I),

and the profile is ``E_Q F(R_1, ..., R_b)``, R_r the product over all rows: F is a convex function
of their mean, ``(mean - e^eps)_+`` removing and ``(1 - e^eps mean)_+`` adding, whose second
derivatives are all at least 0.

*No contributions cost more than equal unit vectors.* Let ``G_i(x)`` be the mean of F over the rows
after i, all contributions being one unit vector, where the ratios so far are x. Its second
derivatives are means of those of F times likelihood ratios, so at least 0. Backwards in i, whatever
was contributed: by Kahane's inequality ``E G_i(x_1 L_1(i), ..., x_b L_b(i))`` rises with every
``<a_r(i), a_s(i)>``, r = s included, and as no entry of C is negative these are at most
``(sum_j C_ij)(sum_j C_ij) / z^2``, which equal unit vectors have. So it is at most ``G_(i-1)(x)``.

*The profile rises with every entry of the Gram matrix* ``G_rs = <m_r, m_s> / z^2``: the same
inequality once more. So what has an entrywise larger one dominates, and what has a smaller one
costs no more than data that are there.

*Above.* Tell in which class of bins the example is: classes have the same probabilities under P
and under Q, and divergences are jointly convex. In a class of k bins whose m_r are orthogonal and
of length at most ``|m_0|`` it is random allocation of 1 of k with noise ``z / |m_0|``. Fewer bins
cost more.
*Below.* Inner products that are 0 instead, at the least length: allocation of 1 of b. Or blocks of
w neighbouring bins of one mean, with the least product in a block: allocation of 1 of b/w.

For a Toeplitz matrix ``m_r`` is ``m_0`` moved down by r and cut off: with w the entries of m_0,

    <m_r, m_s> = sum_(t < n-s) w_t w_(t+s-r),    r <= s,

which falls with s at a given distance s - r.

References:
    Kahane, "Sur le chaos multiplicatif", Ann. Sci. Math. Quebec 1985.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final, NamedTuple, cast

import numpy as np

from hockeystick.mechanisms import BallsInBins, Gaussian, RandomAllocation
from hockeystick.mechanisms.streams.matrix_factorization import MatrixFactorization, TreeAggregation
from hockeystick.mechanisms.streams.sensitivity import square_root
from hockeystick.numerics import ULP, decimal
from hockeystick.privacy_loss.core.base import (
    LARGEST_EXPONENT,
    Array,
    DominatingPair,
    dominating_pair,
)
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.composition import edge_pair
from hockeystick.privacy_loss.core.symmetrized import DominatedLoss, dominated_pair
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss

# The widest block of bins that is tried as one.
_WIDEST: Final = 256


class Allocation(NamedTuple):
    """One of so many steps, each moved by the root of a square, times a scale."""

    steps: int
    square: float
    scale: float

    def chi_square(self, noise: float) -> float:
        """Return ``ln(chi^2)`` at a noise multiplier, unproven."""
        ratio = self.scale / noise
        exponent = self.square * ratio * ratio  # a power of floats raises where this is infinite
        if exponent > LARGEST_EXPONENT:
            return exponent - math.log(self.steps)
        return math.log(max(math.expm1(exponent), 5e-324)) - math.log(self.steps)

    def pair(self, noise: float, side: float) -> DominatingPair:
        """Return its losses, the noise rounded up (1) or down (-1)."""
        own = noise
        if (self.square, self.scale) != (1.0, 1.0):
            own = noise / self.scale / math.sqrt(self.square) * (1.0 + side * 16.0 * ULP)
        return dominating_pair(RandomAllocation(Gaussian(own), self.steps))


@dominating_pair.register
def _(mechanism: BallsInBins) -> DominatingPair:
    noise = mechanism.noise_multiplier
    if edge := edge_pair(noise if any(mechanism.coefficients[: mechanism.rounds]) else math.inf):
        return edge
    products = _Products(mechanism)
    above = products.above()
    below = max(products.below(), key=lambda one: one.chi_square(noise), default=None)
    upper = above.pair(noise, -1.0)
    if below == above:
        return upper
    lower = below.pair(noise, 1.0) if below else DominatingPair(None, None)
    return DominatingPair(
        *(
            DominatedLoss(cast(CellLoss, one.dominating), other.attained if other else None)
            if isinstance(one, CellLoss)
            else one  # without noise, as far as floats go
            for one, other in zip(upper, lower, strict=True)
        )
    )


def gram_matrix(mechanism: BallsInBins) -> Array:
    """Return the inner products of the bins' means in units of the noise, in floats, unproven."""
    products = _Products(mechanism)
    bins, rounds = mechanism.bins, mechanism.rounds
    found = np.zeros((bins, bins))
    for distance in range(min(bins, rounds)):
        sums = np.cumsum(products.mean[: rounds - distance] * products.mean[distance:])
        later = np.arange(distance, min(bins, rounds))
        found[later - distance, later] = found[later, later - distance] = sums[rounds - 1 - later]
    ratio = products.scale / mechanism.noise_multiplier
    return found * ratio * ratio


class _Products:
    """The inner products of the bins' means, over the square of the largest coefficient."""

    def __init__(self, mechanism: BallsInBins) -> None:
        self.rounds, self.bins, self.bands = mechanism.rounds, mechanism.bins, mechanism.bands
        inside = mechanism.coefficients[: self.rounds]
        self.scale = max(inside)
        # The entries of m_0, ``w_t = w_(t-b) + c_t``, rounded.
        padded = np.zeros(-(-self.rounds // self.bins) * self.bins)
        padded[: len(inside)] = [value / self.scale for value in inside]
        self.mean = np.cumsum(padded.reshape(-1, self.bins), axis=0).reshape(-1)[: self.rounds]
        # Sums of rounded products of rounded sums, none of them negative; ones are exact.
        self.error = 0.0 if self.bands == 1 else (3.0 * self.rounds + 16.0) * ULP

    def least(self, distance: int) -> float:
        """Return the least product of two means at a distance, rounded down."""
        count = max(self.rounds - self.bins + 1, 0)
        return float(self.mean[:count] @ self.mean[distance:][:count]) * (1.0 - self.error)

    def above(self) -> Allocation:
        """Return the allocation in the largest classes of orthogonal bins.

        Every so many bins are a class: the last of them and the first one in the next epoch must
        be p diagonals apart as well.
        """
        most = float(self.mean @ self.mean) * (1.0 + self.error)
        for spacing in range(self.bands, self.bins):
            over = (self.bins - 1) % spacing + 1
            if self.rounds <= self.bins or over >= self.bands:
                return Allocation(self.bins // spacing, most, self.scale)
        return Allocation(1, most, self.scale)

    def below(self) -> list[Allocation]:
        """Return allocations with no larger products, of blocks of bins as one."""
        found, square = [], math.inf
        for width in range(1, min(self.bins, _WIDEST) + 1):
            square = min(square, self.least(width - 1))
            if square <= 0.0:
                break
            if self.bins % width == 0:
                found.append(Allocation(self.bins // width, square, self.scale))
        return found


_ROUNDED: Final = Fraction(1, 2**150)


@dominating_pair.register
def _(mechanism: MatrixFactorization) -> DominatingPair:
    encoder = mechanism.encoder
    return encoder_pair(mechanism.noise_multiplier, encoder.least_square, encoder.square)


def encoder_pair(noise_multiplier: float, least: Fraction, most: Fraction) -> DominatingPair:
    """Return the losses of Gaussian noise on what moves between two distances, squared.

    Where no float tells these apart, they are those of the larger one.
    """
    if edge := edge_pair(noise_multiplier if most else math.inf):
        return edge
    noise = decimal(noise_multiplier)
    least = most if most - least <= most * _ROUNDED else least
    return dominated_pair(*(GaussianLoss(noise / square_root(end)) for end in (most, least)))


@dominating_pair.register
def _(mechanism: TreeAggregation) -> DominatingPair:
    square = Fraction(mechanism.height)
    return encoder_pair(mechanism.noise_multiplier, square, square)
