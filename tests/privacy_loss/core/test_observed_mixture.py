"""Mixtures of pairs whose choice is seen: against the components' formulas, by mpmath."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import (
    CellLoss,
    DominatedLoss,
    GaussianLoss,
    RandomizedResponsePairLoss,
)
from hockeystick.privacy_loss.core.observed_mixture import log_sum, observed_mixture

# Two Gaussians, of mu = 1/2 and 2, and nothing at all.
MUS = (Fraction(1, 2), Fraction(2))
WEIGHTS = (Fraction(3, 10), Fraction(1, 5))
NO_INFINITY_MASS = Fraction(1, 2)
PARTS = [
    (NO_INFINITY_MASS, None),
    *((weight, GaussianLoss(1 / mu)) for weight, mu in zip(WEIGHTS, MUS, strict=True)),
]


def gaussians(as_floats: bool = False) -> CellLoss:
    """Return the mixture of both Gaussians and nothing."""
    kind: Callable[[Fraction], float | Fraction] = float if as_floats else Fraction
    found = observed_mixture([(kind(weight), loss) for weight, loss in PARTS])
    assert found is not None
    return found


def exact(value: Fraction) -> Any:
    """Return a fraction at mpmath's precision."""
    return mp.mpf(value.numerator) / value.denominator


def mean(of_mu: Callable[[Any], Any], of_nothing: Any) -> Any:
    """Return the mean over the components of a function of mu."""
    pairs = zip(WEIGHTS, MUS, strict=True)
    return exact(NO_INFINITY_MASS) * of_nothing + mp.fsum(
        exact(w) * of_mu(exact(mu)) for w, mu in pairs
    )


@pytest.mark.parametrize("c", [1e-3, 0.7, 3.0, 40.0, 300.0, 1e5])
@pytest.mark.parametrize("as_floats", [False, True])
def test_the_moment_is_the_mean_of_the_moments(c: float, as_floats: bool) -> None:
    with mp.workdps(40):
        truth = mp.log(mean(lambda mu: mp.exp(mp.mpf(c) * (c + 1) * mu * mu / 2), 1))
        found = gaussians(as_floats).cgf_bounds(c)
        assert abs(truth - found.midpoint) <= found.radius <= 1e-13 * truth
        assert gaussians(as_floats).cgf_estimate(c).value == pytest.approx(float(truth), rel=1e-14)


@pytest.mark.parametrize("as_floats", [False, True])
def test_masses_of_cells_are_means_within_their_errors(as_floats: bool) -> None:
    edges = np.array([-math.inf, -30.0, -2.0, -1e-7, 0.0, 1e-7, 1.0, 1.001, 9.0, 60.0, math.inf])
    found = gaussians(as_floats).cells(edges)
    with mp.workdps(60):
        for k, (a, b) in enumerate(pairwise(edges)):

            def between(mu: Any, side: int, a: Any = a, b: Any = b) -> Any:
                low, high = ((mp.mpf(x) - side * mu * mu / 2) / mu for x in (a, b))
                return mp.ncdf(-low) - mp.ncdf(-high) if a > 0 else mp.ncdf(high) - mp.ncdf(low)

            p = mp.log(mean(lambda mu: between(mu, 1), 0))
            q = mp.log(mean(lambda mu: between(mu, -1), 0))
            assert abs(p - found.log_p[k]) <= found.error[k]
            assert abs(q - found.log_q[k]) <= found.error[k]
    assert float(found.error.max()) < 1e-11


def test_what_tells_nothing_is_an_atom_at_0_and_equal_atoms_add_up() -> None:
    loss = observed_mixture(
        [
            (Fraction(1, 4), None),
            (Fraction(1, 4), RandomizedResponsePairLoss(0.0)),
            (0.5, RandomizedResponsePairLoss(1.5)),
        ]
    )
    assert loss is not None
    atoms = loss.atoms()
    with mp.workdps(30):
        won = 1 / (1 + mp.exp(mp.mpf("-1.5")))
        masses = [(1 - won) / 2, mp.mpf(1) / 2, won / 2]
        assert [float(value) for value in atoms.loss] == [-1.5, 0.0, 1.5]
        for mass, log_p, error in zip(masses, atoms.log_p, atoms.error, strict=True):
            assert abs(mp.log(mass) - log_p) <= error <= 2e-14
    assert loss.supremum == 1.5 == -loss.infimum
    assert np.isneginf(loss.cells(np.array([-math.inf, math.inf])).log_p).all()


@pytest.mark.parametrize(
    "weights", [(0.5, 0.4), (1.5, -0.5), (1.0, 1e-310), (math.nan, 1.0), (0.5, 0.5 + 1e-13)]
)
def test_weights_are_positive_and_add_up_to_1(weights: tuple[float, float]) -> None:
    losses = (GaussianLoss(1.0), GaussianLoss(2.0))
    with pytest.raises(hs.errors.ParameterError, match="weight"):
        observed_mixture(zip(weights, losses, strict=True))


def test_what_no_data_reach_counts_as_nothing_below() -> None:
    known, below = GaussianLoss(3.0), GaussianLoss(4.0)
    loss = observed_mixture(
        [
            (0.5, known),
            (0.25, DominatedLoss(GaussianLoss(1.0), below)),
            (0.25, DominatedLoss(GaussianLoss(2.0), None)),
        ]
    )
    assert loss is not None
    assert loss.attained == observed_mixture([(0.5, known), (0.25, below), (0.25, None)])
    assert gaussians().attained == gaussians()


def test_infinite_errors_stay_infinite_and_hidden_ones_do_not_matter() -> None:
    logs = np.array([[-1.0, -1.0, -math.inf], [-5e19, -math.inf, -math.inf]])
    errors = np.array([[1e-15, 1e-15, 0.0], [1e4, math.inf, 0.0]])
    value, error = log_sum(logs, errors)
    assert value.tolist() == [-1.0, -1.0, -math.inf]
    assert error[0] < 1e-14
    assert error[1:].tolist() == [math.inf, 0.0]
