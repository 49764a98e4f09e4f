"""What the literature says of epochs over shuffled or resampled data: an approximation, and groups.

The proven interval of shuffled epochs is that of ``Shuffled(...) ** epochs``, the exact answer for
an adversary who sees the batches that of ``RevealedSample(...) ** rounds``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.accountants.closed_forms.closed_form import ClosedForm
from hockeystick.mechanisms import Clipping, Gaussian
from hockeystick.notions import GDP
from hockeystick.numerics import decimal
from hockeystick.privacy_loss import GaussianLoss
from hockeystick.results import Approximate

_EPOCHS: Final = Domain(symbol="E", low=0.5, high=math.inf, high_open=True, typical=(1, 500))
_SIZE: Final = whole_numbers("g", 1, (1, 100))
_SIDE: Final = Domain(symbol="s", low=-1, high=1, typical=(-1, 1), whole=True)
_NOISE: Final = Domain(
    symbol="z", low=0, high=math.inf, low_open=True, high_open=True, typical=(0.5, 10)
)
_NAME: Final = "shuffling-limit"


def limit_epsilon(
    noise_multiplier: float, epochs: float, delta: float, side: int = 1
) -> Approximate:
    """Return epsilon by the published approximation for epochs over resampled or shuffled data.

    It is that of a Gaussian with ``mu = sqrt((1 + side/sqrt(2 E)) E) / noise_multiplier``, where
    ``side`` is 1 or -1: the spread ``sqrt(E/2)`` of the number of hits is taken once.

    Guarantees:
        None, on either side. For batches drawn afresh in each round, whose members an adversary
        sees, epsilon at small delta is larger for few epochs than with ``side = 1``, and smaller
        for many; shuffled data are hit exactly once in each epoch, which is
        ``mu = sqrt(E)/noise_multiplier`` exactly for such an adversary.

    Edge cases:
        Half an epoch with ``side`` -1 has mu = 0: epsilon is 0.

    Args:
        noise_multiplier: Standard deviation of the noise over the largest change of a batch's sum,
            finite and positive; under replace-one, over twice the clipping norm.
        epochs: How often each example is used on average, at least 0.5 and finite.
        delta: Above 0 and below 1.
        side: 1 for the published upper bound, -1 for the lower one, 0 for their middle.

    Returns:
        An ``Approximate``: no guarantee.

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        van Dijk, Nguyen, Nguyen and Nguyen, "Generalizing DP-SGD with shuffling and batch
        clipping", 2022 (arXiv 2212.05796).

    Example:
        >>> print(limit_epsilon(3.0, epochs=10, delta=1e-5))
        epsilon ~ 5.23415 at delta = 1e-05 (approximation, no guarantee; shuffling-limit)
    """
    probability = _validate.real("delta", delta, _DELTA)
    mu = _limiting_mu(noise_multiplier, epochs, side)
    value = ClosedForm().epsilon_of(_run(mu), probability).estimate if mu > 0.0 else 0.0
    return Approximate(value, quantity="epsilon", accountant=_NAME, at=probability)


def limit_delta(
    noise_multiplier: float, epochs: float, epsilon: float, side: int = 1
) -> Approximate:
    """Return delta by the published approximation for epochs over resampled or shuffled data.

    As ``limit_epsilon``, with the same guarantees: none.

    Args:
        noise_multiplier: As in ``limit_epsilon``.
        epochs: As in ``limit_epsilon``.
        epsilon: At least 0 and finite.
        side: As in ``limit_epsilon``.

    Returns:
        An ``Approximate``: no guarantee.

    Raises:
        ParameterError: If a parameter is outside its domain.

    Example:
        >>> print(limit_delta(3.0, epochs=10, epsilon=5.0))
        delta ~ 0.0000233015 at epsilon = 5 (approximation, no guarantee; shuffling-limit)
    """
    at = _validate.real("epsilon", epsilon, _EPSILON)
    mu = _limiting_mu(noise_multiplier, epochs, side)
    value = ClosedForm().delta_of(_run(mu), at).estimate if mu > 0.0 else 0.0
    return Approximate(value, quantity="delta", accountant=_NAME, at=at)


def shuffled_group(
    inner: Gaussian, epochs: int, size: int, clipping: Clipping | str = Clipping.INDIVIDUAL
) -> GDP:
    """Return what shuffled epochs cost a group of several examples.

    With z the noise multiplier, at most g of an epoch's batches hold examples of the group, and

    - where a batch's sum is clipped as a whole, each of them changes by no more than it would for
      one example: ``mu = sqrt(g E) / z``;
    - where each example is clipped, j examples of the group in one batch change its sum j times as
      much, ``sum j^2 <= g^2``, and they may all be in one: ``mu = g sqrt(E) / z``.

    The published ``sqrt(g E) / z`` is for batch clipping; for individual clipping it is only about
    right where the group is much smaller than the number of batches, and no bound. The account of
    ``Shuffled(...).for_group(g) ** E`` is one, and hardly larger there.

    Guarantees:
        An upper bound of what any two data sets that differ in the group lose: given which batch
        each example is in, both are compositions of Gaussians.

    Edge cases:
        No epochs have mu = 0; noise multiplier 0 has mu = inf, inf has 0.

    Args:
        inner: The noise on a batch's sum, in units of the largest change that one example makes:
            twice the clipping norm where examples are replaced or a batch is clipped as a whole.
        epochs: Passes over the data, an integer from 0 to 10^15.
        size: Examples in the group, an integer from 1 to 10^15.
        clipping: "individual" or "batch".

    Returns:
        ``GDP(mu)``, mu rounded up.

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        van Dijk, Nguyen, Nguyen and Nguyen 2022 (arXiv 2212.05796).

    Example:
        >>> import hockeystick as hs
        >>> print(shuffled_group(hs.Gaussian(4.0), epochs=4, size=9, clipping="batch"))
        1.5-GDP release
    """
    runs = _validate.count("epochs", epochs, _RUNS)
    group = _validate.count("size", size, _SIZE)
    whole = _validate.choice("clipping", clipping, Clipping) is Clipping.BATCH
    noise = inner.noise_multiplier
    if runs == 0 or noise == math.inf:
        return GDP(0.0)
    if noise == 0.0:
        return GDP(math.inf)
    return GDP(_root_up((group if whole else group * group) * runs / decimal(noise) ** 2))


_DELTA: Final = Domain(
    symbol="delta", low=0, high=1, low_open=True, high_open=True, typical=(1e-12, 1e-4)
)
_EPSILON: Final = Domain(symbol="eps", low=0, high=math.inf, high_open=True, typical=(0.01, 20))
_RUNS: Final = whole_numbers("E", 0, (1, 500))


def _limiting_mu(noise_multiplier: float, epochs: float, side: int) -> float:
    """Return the mu of the published approximation."""
    noise = _validate.real("noise_multiplier", noise_multiplier, _NOISE)
    passes = _validate.real("epochs", epochs, _EPOCHS)
    way = _validate.count("side", side, _SIDE)
    return math.sqrt(max(passes + way * math.sqrt(0.5 * passes), 0.0)) / noise


def _run(mu: float) -> tuple[tuple[GaussianLoss, int], ...]:
    """Return one run of a Gaussian."""
    return ((GaussianLoss(1.0 / mu), 1),)


def _root_up(square: Fraction) -> float:
    """Return the least float whose square is at least this; its parts may be any size."""
    try:
        found = math.sqrt(square)
    except OverflowError:
        return math.inf
    while found < math.inf and Fraction(found) ** 2 < square:
        found = math.nextafter(found, math.inf)
    while found > 0.0 and Fraction(below := math.nextafter(found, 0.0)) ** 2 >= square:
        found = below
    return found
