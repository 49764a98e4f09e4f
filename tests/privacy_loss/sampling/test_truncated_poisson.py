"""Chances that a Poisson sample is cut, and the losses of one that is, against enumeration."""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.privacy_loss.core.base import Atoms
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.guarantees.least_favourable import ContaminatedLoss
from hockeystick.privacy_loss.sampling.truncated_poisson import cut_of

RATES = (Fraction(1, 10), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10))


def chance(trials: int, count: int, rate: Fraction) -> Fraction:
    """Return ``P[Bin(trials, rate) = count]``."""
    return math.comb(trials, count) * rate**count * (1 - rate) ** (trials - count)


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("examples", range(2, 13))
def test_the_chances_of_a_cut_hold_the_exact_ones(examples: int, rate: Fraction) -> None:
    for cap in range(1, examples):
        found = cut_of(examples, cap, rate)
        drawn = range(cap, examples)
        full = sum(chance(examples - 1, j, rate) for j in drawn)
        kept = sum(chance(examples - 1, j, rate) * rate * cap / (j + 1) for j in drawn) / full
        for ends, exact in ((found.full, full), (found.kept, kept)):
            assert ends.low <= exact <= ends.high
            assert ends.high - ends.low <= exact * Fraction(1, 10**9)


def test_the_chances_of_a_cut_of_large_data_are_those_of_the_normal_limit() -> None:
    found = cut_of(10**9, 10**7, Fraction(1, 100))
    assert float(found.full.low) == pytest.approx(0.5, abs=1e-3)
    assert float(found.full.high - found.full.low) < 1e-9
    rare = cut_of(60_000, 1100, Fraction(256, 60_000))
    assert 0 <= rare.full.low <= rare.full.high < 1e-200
    vast = cut_of(10**15, 10**13, Fraction(1, 100))
    assert vast.full.low < 0.5 < vast.full.high


Mixture = list[tuple[float, float]]
EDGES = np.linspace(-16.0, 16.0, 3000)


def masses(mixture: Mixture, noise: float) -> np.ndarray:
    """Return the masses of cells."""
    total = np.zeros(EDGES.size + 1)
    for weight, mean in mixture:
        total += weight * cells(mean, noise)
    return total


@cache
def cells(mean: float, noise: float) -> np.ndarray:
    """Return the masses of a Gaussian in cells."""
    below = np.array([0.5 * math.erfc((mean - x) / noise / math.sqrt(2.0)) for x in EDGES])
    return np.diff(below, prepend=0.0, append=1.0)


@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_a_generous_cap_costs_what_none_does_and_a_tight_one_a_sample_of_its_size(
    adjacency: str,
) -> None:
    noise = hs.Gaussian(2.0)
    capped = hs.mechanisms.TruncatedPoissonSubsampled
    free = hs.delta(hs.PoissonSubsampled(noise, 0.05, adjacency), 0.5).upper
    assert hs.delta(capped(noise, 0.05, 110, 1000, adjacency), 0.5).upper == pytest.approx(
        free, rel=1e-3
    )
    clipped = adjacency == "zero-out"
    fixed = hs.FixedSizeSubsampled(hs.Gaussian(1.0), 10, 1000, adjacency, clipped)
    tight = hs.delta(capped(noise, 0.05, 10, 1000, adjacency), 0.5).upper
    assert tight == pytest.approx(hs.delta(fixed, 0.5).upper, rel=1e-3)


def test_groups_of_a_capped_sample_are_those_of_a_public_number_of_examples() -> None:
    make = hs.mechanisms.TruncatedPoissonSubsampled
    with pytest.raises(hs.errors.IncompatibleError, match="leave the cap out"):
        make(hs.Gaussian(2.0), 0.3, 3, 10).for_group(2)
    public = make(hs.Gaussian(2.0), 0.3, 3, 10, "zero-out")
    with pytest.raises(hs.errors.NoGroupFormError):
        public.for_group(2)
    assert str(public).endswith("at most 3 of 10, zero-out)")
    assert not any("The larger" in text for text in public.assumptions)


class Listed(CellLoss):
    """A loss of a few outcomes."""

    supremum, infimum = math.inf, -math.inf

    def __init__(self, p: np.ndarray, q: np.ndarray) -> None:
        self.p, self.q = p, q

    def atoms(self) -> Atoms:
        loss = np.log(self.p / self.q)
        order = np.argsort(loss)
        return Atoms(loss[order], np.log(self.p)[order], np.full(self.p.size, 1e-15))

    def cells(self, edges: np.ndarray) -> None:  # type: ignore[override]
        raise NotImplementedError


@pytest.mark.parametrize("share", [1e-9, 1e-3, 0.05, 0.2])
def test_no_contamination_loses_less_than_the_least_favourable_pair(share: float) -> None:
    random = np.random.default_rng(0)
    for _ in range(50):
        p, q = (random.dirichlet(np.full(6, 0.7)) + 1e-12 for _ in range(2))
        p, q = p / p.sum(), q / q.sum()
        loss, log_p, _ = ContaminatedLoss(Listed(p, q), share).atoms()
        for epsilon in np.linspace(-2.0, 4.0, 13):
            least = float((np.exp(log_p) * np.maximum(1 - np.exp(epsilon - loss), 0.0)).sum())
            # What hides most has all mass where the other distribution has more.
            for towards in range(6):
                for against in range(6):
                    one, other = (1 - share) * p, (1 - share) * q
                    one[towards] += share
                    other[against] += share
                    cost = float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum())
                    assert least <= cost + 1e-12
