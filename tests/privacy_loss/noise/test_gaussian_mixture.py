"""The loss of a Gaussian mixture: against quadrature over the output, by mpmath."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import (
    DominatingPair,
    GaussianLoss,
    GaussianMixtureLoss,
    NoAnalysisError,
    NoiselessLoss,
    SampledGaussianLoss,
    SampledLoss,
    dominating_pair,
)
from hockeystick.privacy_loss.noise import gaussian_mixture

MIXTURES: list[tuple[Any, Any]] = [
    ((Fraction(1, 2), Fraction(2)), (Fraction(9, 10), Fraction(1, 10))),
    (
        (Fraction(1, 20), Fraction(1), Fraction(3)),
        (Fraction(1, 2), Fraction(49, 100), Fraction(1, 100)),
    ),
    ((Fraction(1), Fraction(1001, 1000)), (Fraction(1, 3), Fraction(2, 3))),
]
RARE: list[tuple[Any, Any]] = [
    # The second component counts from an output of 8.8 on, the third from one of 16 on.
    (
        (Fraction(1), Fraction(4), Fraction(9)),
        (1 - Fraction(1, 10**30) - Fraction(1, 10**60), Fraction(1, 10**30), Fraction(1, 10**60)),
    )
]
each_mixture = pytest.mark.parametrize(("distances", "weights"), MIXTURES)
each_mixture_or_rare = pytest.mark.parametrize(("distances", "weights"), MIXTURES + RARE)
each_direction = pytest.mark.parametrize("removing", [True, False])


def exact(value: Fraction) -> Any:
    """Return a fraction at mpmath's precision."""
    return mp.mpf(value.numerator) / value.denominator


def densities(distances: Any, weights: Any, x: Any) -> tuple[Any, Any]:
    """Return the densities of the mixture and of N(0, 1)."""
    root = mp.sqrt(2 * mp.pi)
    parts = [
        exact(w) * mp.exp(-((x - exact(m)) ** 2) / 2)
        for m, w in zip(distances, weights, strict=True)
    ]
    return mp.fsum(parts) / root, mp.exp(-x * x / 2) / root


def loss_at(distances: Any, weights: Any, x: Any) -> Any:
    """Return the loss of removing at an output."""
    with_record, without = densities(distances, weights, x)
    return mp.log(with_record / without)


def log_integral(density: Any, cuts: list[Any]) -> Any:
    """Return the logarithm of an integral; mpmath's tolerance is absolute, so it is scaled."""
    scale = max(density(cuts[0]), density(cuts[-1]))
    return mp.log(scale) + mp.log(mp.quad(lambda x: density(x) / scale, cuts))


@each_direction
@each_mixture_or_rare
@pytest.mark.parametrize("edges", [(-12.0, 40.0, 2000), (-700.0, 700.0, 400), (3.0, 3.5, 5000)])
def test_leaving_components_out_moves_no_mass_by_more_than_its_error(
    distances: Any, weights: Any, removing: bool, edges: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss = GaussianMixtureLoss(distances, weights, removing)
    found = loss.cells(np.linspace(*edges))
    monkeypatch.setattr(gaussian_mixture, "_NEGLIGIBLE", 1e9)
    whole = loss.cells(np.linspace(*edges))
    for some, all_of_them in ((found.log_p, whole.log_p), (found.log_q, whole.log_q)):
        same = some == all_of_them
        apart = np.abs(np.where(same, 0.0, some - all_of_them))
        assert (apart <= found.error + whole.error).all()
        assert (same | np.isfinite(apart)).all()


@each_direction
@each_mixture_or_rare
@pytest.mark.parametrize(("start", "width"), [(-7.0, 1.0), (-0.4, 1e-7), (0.5, 0.05), (9.0, 1e-3)])
def test_the_cells_are_the_outputs_with_such_a_loss(
    distances: Any, weights: Any, removing: bool, start: float, width: float
) -> None:
    side = 1 if removing else -1
    with mp.workdps(40):
        low = side * float(loss_at(distances, weights, mp.mpf(start)))
        edges = np.array([low, low + width])
        ends = sorted(
            mp.findroot(
                lambda x, at=edge: loss_at(distances, weights, x) - side * mp.mpf(at), start
            )
            for edge in edges.tolist()
        )
        cuts = [ends[0] + (ends[1] - ends[0]) * k / 8 for k in range(9)]
        mixed = log_integral(lambda x: densities(distances, weights, x)[0], cuts)
        alone = log_integral(lambda x: densities(distances, weights, x)[1], cuts)
        own, other = (mixed, alone) if removing else (alone, mixed)
        masses = GaussianMixtureLoss(distances, weights, removing).cells(edges)
        assert abs(masses.log_p[0] - own) <= masses.error[0]
        assert abs(masses.log_q[0] - other) <= masses.error[0] < 1e-11


@each_direction
@each_mixture
def test_the_cells_add_up_to_one(distances: Any, weights: Any, removing: bool) -> None:
    edges = np.concatenate(([-np.inf], np.linspace(-20.0, 30.0, 20_001), [np.inf]))
    masses = GaussianMixtureLoss(distances, weights, removing).cells(edges)
    for log in (masses.log_p, masses.log_q):
        assert math.fsum(np.exp(log)) == pytest.approx(1.0, abs=1e-13)
    assert masses.error[masses.log_p > -700].max() < 1e-10


@pytest.mark.parametrize(
    ("mechanism", "pair"),
    [
        (hs.mechanisms.GaussianMixture(math.inf, (0, 1), (0.5, 0.5)), DominatingPair(None, None)),
        (hs.mechanisms.GaussianMixture(1, (0, 1), (1, 0)), DominatingPair(None, None)),
        (
            hs.mechanisms.GaussianMixture(2, (1, 1), (0.5, 0.5)),
            DominatingPair(*(GaussianLoss(Fraction(2)),) * 2),
        ),
        (
            hs.mechanisms.GaussianMixture(0, (0, 1, 2), (0.5, 0.25, 0.25)),
            DominatingPair(*(NoiselessLoss(Fraction(1, 2), side) for side in (True, False))),
        ),
        (
            hs.mechanisms.GaussianMixture(3, (0, 2), (0.9, 0.1)),
            DominatingPair(
                *(
                    SampledGaussianLoss(Fraction(1, 10), Fraction(3, 2), side)
                    for side in (True, False)
                )
            ),
        ),
        (
            hs.mechanisms.GaussianMixture(2, (0, 1, 4), (0.5, 0.45, 0.05)),
            DominatingPair(
                *(
                    SampledLoss(
                        GaussianMixtureLoss(
                            (Fraction(1, 2), Fraction(2)), (Fraction(9, 10), Fraction(1, 10)), side
                        ),
                        Fraction(1, 2),
                        side,
                    )
                    for side in (True, False)
                )
            ),
        ),
    ],
    ids=str,
)
def test_a_random_sensitivity_has_this_pair(mechanism: hs.Mechanism, pair: DominatingPair) -> None:
    assert dominating_pair(mechanism) == pair


def test_what_floats_cannot_hold_is_refused() -> None:
    with pytest.raises(NoAnalysisError, match="out of the reach of floats"):
        dominating_pair(hs.mechanisms.GaussianMixture(1e-300, (0.5, 1), (0.5, 0.5)))
