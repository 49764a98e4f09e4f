"""The loss of a Gaussian mixture against its mirror image: against mpmath, over the output."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import OppositeMixturesLoss

MIXTURES: list[tuple[Any, Any]] = [
    ((Fraction(0), Fraction(1, 2)), (Fraction(9, 10), Fraction(1, 10))),
    (
        (Fraction(0), Fraction(1, 20), Fraction(1), Fraction(3)),
        (Fraction(1, 2), Fraction(1, 4), Fraction(6, 25), Fraction(1, 100)),
    ),
    ((Fraction(1), Fraction(5, 2)), (Fraction(1, 3), Fraction(2, 3))),
    ((Fraction(0), Fraction(6)), (1 - Fraction(1, 10**40), Fraction(1, 10**40))),
]
each_mixture = pytest.mark.parametrize(("distances", "weights"), MIXTURES)


def log_density(distances: Any, weights: Any, x: Any) -> Any:
    """Return the logarithm of the density of the mixture over that of N(0, 1)."""
    pairs = [
        (mp.mpf(m.numerator) / m.denominator, mp.mpf(w.numerator) / w.denominator)
        for m, w in zip(distances, weights, strict=True)
    ]
    return mp.log(mp.fsum(w * mp.exp(m * x - m * m / 2) for m, w in pairs))


def output_at(distances: Any, weights: Any, loss: float) -> Any:
    """Return the output at which the loss has a value, by bisection."""

    def excess(x: Any) -> Any:
        there, back = (log_density(distances, weights, one) for one in (x, -x))
        return there - back - loss

    low, high = mp.mpf(-400), mp.mpf(400)
    for _ in range(160):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    return low


def mass(distances: Any, weights: Any, low: Any, high: Any, side: int) -> Any:
    """Return the mass of an interval of outputs under one of the mixtures."""
    total = mp.zero
    for m, w in zip(distances, weights, strict=True):
        middle = side * mp.mpf(m.numerator) / m.denominator
        near, far = (low - middle, high - middle)
        if near > 0:
            near, far = -far, -near
        total += mp.mpf(w.numerator) / w.denominator * (mp.ncdf(far) - mp.ncdf(near))
    return total


@each_mixture
def test_the_cells_hold_their_masses(distances: Any, weights: Any) -> None:
    loss = OppositeMixturesLoss(distances, weights)
    edges = np.array([-3.0, -0.4, -1e-3, 0.0, 1e-6, 0.3, 0.31, 1.0, 4.0, 30.0])
    masses = loss.cells(edges)
    with mp.workdps(60):
        ends = [output_at(distances, weights, float(edge)) for edge in edges]
        for k in range(edges.size - 1):
            for log, side in ((masses.log_p[k], 1), (masses.log_q[k], -1)):
                truth = mp.log(mass(distances, weights, ends[k], ends[k + 1], side))
                assert abs(truth - float(log)) <= masses.error[k]
    assert masses.error.max() < 1e-6
    assert masses.error[[0, 1, 5, 7, 8]].max() < 1e-9
