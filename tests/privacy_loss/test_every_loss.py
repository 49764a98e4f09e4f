"""Laws of one loss of each kind: those of the examples of all mechanisms, and their parts."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import (
    CellLoss,
    FixedSizeGaussianLoss,
    GaussianSequenceLoss,
    LargestBatchLoss,
    PrivacyLoss,
    ProfileLoss,
    compose,
)
from hockeystick.privacy_loss.sampling.noise_levels import levels_of
from hockeystick.privacy_loss.sampling.shuffled import Shifts
from hockeystick.privacy_loss.selection.sparse_vector import AboveThresholdRenyiLoss
from hockeystick.tradeoffs import LaplaceTradeOff
from tests.examples import EXAMPLES

MORE: tuple[hs.Mechanism, ...] = (
    hs.DPSGD(noise_multiplier=2.0, examples=100, batch_size=10, steps=1, batch_cap=20),
    hs.FixedSizeSubsampled(hs.Gaussian(0.9), 3, 10, "zero-out", clipped=True),
    hs.Gaussian(0.0),
    hs.PoissonSubsampled(hs.Gaussian(1.0), 0.1, "replace-one"),
    hs.PoissonSubsampled(hs.DiscreteLaplace(2.0, 3), Fraction(1, 5)),
    hs.PoissonSubsampled(hs.Laplace(0.7), 0.01),
    hs.PoissonSubsampled(hs.Gaussian(0.0), 0.25),
    hs.mechanisms.BallsInBins(2.5, (1.0, 0.5), 4, bins=2),
    hs.mechanisms.ShuffledReports(hs.PureDP(2.0), 50),
    hs.mechanisms.ShuffledReports(hs.mechanisms.UnaryEncoding(1.0), 50),
)
LAPLACE = LaplaceTradeOff(1.0)
INSIDE: tuple[PrivacyLoss, ...] = (
    AboveThresholdRenyiLoss(40.0, 0.02, 3.0, None),
    FixedSizeGaussianLoss(0.01, 1.0),
    GaussianSequenceLoss(0.02, levels_of((2.0, 1.5, 1.0)), removing=True),
    LargestBatchLoss(1.0, 100, Shifts(2, 1)),
    ProfileLoss(LAPLACE.forward, LAPLACE.backward),
)


def parts(loss: PrivacyLoss) -> Iterator[PrivacyLoss]:
    yield loss
    for name in ("dominating", "attained", "inner", "alike", "opposite"):
        part = getattr(loss, name, None)
        if isinstance(part, PrivacyLoss) and part != loss and type(part) is not type(loss):
            yield from parts(part)


def kinds() -> dict[str, PrivacyLoss]:
    """Return one loss of each kind and direction, by its name."""
    found: dict[str, PrivacyLoss] = {type(loss).__name__: loss for loss in INSIDE}
    for plan in (*EXAMPLES, *MORE):
        try:
            pair = compose(plan)
        except hs.errors.UnsupportedError:
            continue
        for side in (pair.removing, pair.adding):
            for whole, _ in side:
                for loss in parts(whole):
                    removing = getattr(loss, "removing", "")
                    found.setdefault(f"{type(loss).__name__} {removing}".strip(), loss)
    return found


KINDS = kinds()
each_loss = pytest.mark.parametrize("loss", KINDS.values(), ids=KINDS)
each_cell_loss = pytest.mark.parametrize(
    "loss",
    [loss for loss in KINDS.values() if isinstance(loss, CellLoss)],
    ids=[name for name, loss in KINDS.items() if isinstance(loss, CellLoss)],
)


@each_loss
def test_the_estimates_are_each_others_derivatives_and_within_the_bounds(loss: PrivacyLoss) -> None:
    c, h = 0.7, 1e-4
    below, here, above = (loss.cgf_estimate(one) for one in (c - h, c, c + h))
    if not math.isfinite(here.value):
        assert loss.cgf_bounds(c).midpoint == math.inf
        return
    slope = (above.value - below.value) / (2 * h)
    bend = (above.first_derivative - below.first_derivative) / (2 * h)
    assert here.first_derivative == pytest.approx(slope, rel=1e-6)
    assert here.second_derivative == pytest.approx(bend, rel=1e-6, abs=1e-12)
    known = loss.cgf_bounds(c)
    assert abs(here.value - known.midpoint) <= known.radius * (1 + 1e-9) + 1e-4 * known.midpoint


def spread(loss: PrivacyLoss) -> float:
    bend = loss.cgf_estimate(0.7).second_derivative
    return min(math.sqrt(bend), 5.0) if 0.0 < bend < math.inf else 1.0


@each_cell_loss
def test_masses_are_two_distributions_whose_quotient_is_that_of_the_cell(loss: Any) -> None:
    inside = spread(loss) * np.array([-3.0, -1.0, -0.3, -0.01, 0.0, 0.02, 0.5, 1.3, 4.0])
    edges = np.concatenate(([-math.inf], inside, [math.inf]))
    cells, atoms = loss.cells(edges), loss.atoms()
    own = np.exp(cells.log_p).sum() + np.exp(atoms.log_p).sum()
    other = np.exp(cells.log_q).sum() + np.exp(atoms.log_p - atoms.loss).sum()
    assert own == pytest.approx(1.0, abs=1e-11)
    # Losses that are rounded down to a lattice make the other one larger.
    assert -1e-9 <= other - 1.0 <= 1e-5
    known = np.minimum(cells.log_p, cells.log_q) > -700.0
    quotient, slack = cells.log_p[known] - cells.log_q[known], 2.0 * cells.error[known] + 1e-12
    assert (quotient + slack >= edges[:-1][known]).all()
    assert (quotient - slack <= edges[1:][known]).all()
    assert ((loss.infimum <= atoms.loss) & (atoms.loss <= loss.supremum)).all()
    nowhere = (edges[1:] <= loss.infimum) | (edges[:-1] >= loss.supremum)
    assert (cells.log_p[nowhere] == -math.inf).all()
    assert (cells.log_q[nowhere] == -math.inf).all()


@each_cell_loss
@pytest.mark.parametrize("share", [0.0, 0.3, 1.3])
def test_the_profile_is_that_of_the_masses_and_moves_to_the_side_of_a_perturbation(
    loss: Any, share: float
) -> None:
    profile, epsilon = loss.closed_form_profile, share * spread(loss)
    if profile is None:
        return
    cells, atoms = loss.cells(np.array([epsilon, math.inf])), loss.atoms()
    above = math.exp(cells.log_p[0]) - math.exp(epsilon + cells.log_q[0])
    above += float((np.exp(atoms.log_p) * -np.expm1(np.minimum(epsilon - atoms.loss, 0.0))).sum())
    with mp.workdps(40):
        low, middle, high = (profile(mp.mpf(epsilon), side) for side in (-1, 0, 1))
    assert low <= middle <= high <= middle + 1e-11 * middle + 1e-300
    assert above == pytest.approx(float(middle), rel=1e-9, abs=1e-13)
