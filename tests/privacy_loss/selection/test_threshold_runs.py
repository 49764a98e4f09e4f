"""Runs of comparisons: their bounds against value iteration, random runs and searches."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss.core.atomic import AtomicLoss
from hockeystick.privacy_loss.core.mixtures import RandomizedResponsePairLoss
from hockeystick.privacy_loss.core.outcomes import OutcomesLoss
from hockeystick.privacy_loss.selection.above_threshold import (
    Corners,
    RunProfile,
    corners_of,
    gain_of,
    gaussian_run,
    run_profile,
    shifts_of,
)
from hockeystick.privacy_loss.selection.threshold_bound import (
    gaussian_atoms,
    gaussian_bound,
    gaussian_queries_bound,
    laplace_atoms,
    laplace_bound,
)

Array = NDArray[np.float64]
NODES = 2001


def profile(masses: AtomicLoss, x: float) -> float:
    atoms = masses.atoms()
    p = np.exp(atoms.log_p)
    return float(np.maximum(p - x * p * np.exp(-atoms.loss), 0.0).sum())


def noise_at(threshold: float, gaussian: bool) -> Array:
    """Return equally likely values of the threshold's noise: that of a discrete mechanism."""
    from scipy.special import ndtri

    share = (np.arange(NODES) + 0.5) / NODES
    if gaussian:
        return np.asarray(ndtri(share) * threshold)
    return -threshold * np.sign(share - 0.5) * np.log1p(-np.abs(2.0 * share - 1.0))


def outcomes(noise: Array, answers: Array, query: float) -> Array:
    """Return the probabilities of each query to be the first above, and of none."""
    left, found = np.ones(noise.size), []
    for answer in answers:
        far = np.exp(-np.abs(noise - answer) / query) / 2
        below = np.where(noise < answer, far, 1 - far)
        found.append((left * (1 - below)).mean())
        left = left * below
    return np.array([*found, left.mean()])


@pytest.mark.parametrize(
    "attack", [((-0.78, -0.3, -0.1, 0.3, 0.8), (1, -1, 1, 1, -1)), ((-0.4, 0.0), (1, -1))], ids=str
)
def test_small_losses_of_good_queries_come_within_a_factor_of_two_of_the_bound(
    attack: tuple[tuple[float, ...], tuple[int, ...]],
) -> None:
    threshold, query = 20.0, 40.0
    answers, moves = np.array(attack[0]) * query, np.array(attack[1])
    noise = noise_at(threshold, False)
    p, q = outcomes(noise, answers, query), outcomes(noise, answers + moves, query)
    attained = float(((p - q) ** 2 / q).sum()) * query**2
    atoms = laplace_bound(1 / threshold, 1 / query, False).atoms()
    bound = float((np.exp(atoms.log_p) * atoms.loss**2).sum()) * query**2
    assert 0.7 < attained < bound < 3.2


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("scales", [(0.05, 0.025), (3.0, 0.2), (1e-6, 2e-7)], ids=str)
def test_the_pair_is_its_own_mirror_image_and_is_bounded(
    scales: tuple[float, float], monotone: bool
) -> None:
    bound = laplace_bound(*scales, monotone)
    assert isinstance(bound, OutcomesLoss)
    assert sum(p for p, _ in bound.masses) == sum(q for _, q in bound.masses) == 1
    assert [(q, p) for p, q in reversed(bound.masses)] == list(bound.masses)
    largest = scales[0] + (1 if monotone else 2) * scales[1]
    assert bound.supremum == pytest.approx(largest, rel=4e-15)
    assert bound.supremum >= largest


def test_far_too_little_noise_is_a_pure_guarantee() -> None:
    bound = laplace_bound(1e4, 1.0, False)
    assert isinstance(bound, RandomizedResponsePairLoss)
    assert 10_002.0 <= float(bound.epsilon) <= 10_002.0 * (1 + 4e-15)
    tailed = gaussian_bound(Fraction(1, 100), 1.0, False)
    assert isinstance(tailed.middle, RandomizedResponsePairLoss)


@pytest.mark.parametrize("largest", [1e-4, 0.3, 5.0])
def test_the_atoms_of_a_laplace_loss_dominate_it_and_barely(largest: float) -> None:
    atoms = laplace_atoms(largest)
    for at in np.linspace(0.0, 0.9, 7) * largest:
        truth = -math.expm1((at - largest) / 2)
        found = float(np.maximum(-np.expm1(at - atoms.loss), 0.0) @ atoms.mass)
        assert truth <= found <= truth * (1 + 1e-2)


@pytest.mark.parametrize("multiplier", [Fraction(1, 2), Fraction(20), Fraction(10**6)])
def test_the_atoms_of_a_gaussian_loss_dominate_it_and_barely(multiplier: Fraction) -> None:
    from scipy.special import ndtr

    mu, atoms = float(1 / multiplier), gaussian_atoms(multiplier)
    for at in np.linspace(0.0, 4.0, 7) * mu:
        truth = ndtr(mu / 2 - at / mu) - math.exp(at) * ndtr(-mu / 2 - at / mu)
        found = float(np.maximum(-np.expm1(at - atoms.loss), 0.0) @ atoms.mass)
        assert truth - 1e-16 <= found <= truth * (1 + 1e-2) + 1e-12


@pytest.mark.parametrize("step", [1e-12, 1e-9, 1e-5, 1e-3, 0.2, 3.0])
def test_every_comparison_lies_within_the_corners(step: float) -> None:
    corners = corners_of(step)
    with mp.workdps(40):
        for t in np.linspace(-9.0, 9.4, 47):
            at, side = mp.mpf(float(t)), 1 if t <= 0.0 else -1
            own, other = (mp.ncdf(side * (at + moved)) for moved in (0, mp.mpf(step)))
            x, y = (corners.below, corners.others_below)
            if side < 0:
                x, y = corners.above[::-1], corners.others_above[::-1]
            k = int(np.searchsorted(x, float(own)))
            (x0, x1), (y0, y1) = ([mp.mpf(float(v[k + i])) for i in (-1, 0)] for v in (x, y))
            line = y0 + (y1 - y0) * (own - x0) / (x1 - x0)
            assert side * (line - other) >= 0


@pytest.mark.parametrize("steps", [(0.3, 0.1), (2e-6, 1e-5), (1.0, 1.0)], ids=str)
def test_gains_and_chords_are_upper_bounds_at_every_corner(steps: tuple[float, float]) -> None:
    unit, places = max(steps) / 25, np.arange(-350, 301)
    one, other = (corners_of(step) for step in steps)
    corners = Corners(*map(np.concatenate, zip(one, [other[k] for k in (1, 0, 3, 2)], strict=True)))
    shifts, gain = shifts_of(corners, unit, places), gain_of(corners, unit, places)
    seen, rng = np.zeros(gain.shape, dtype=int), np.random.default_rng(0)
    # Z of a Gaussian release, whose chords are known.
    mu = mp.mpf(max(steps)) * 3

    def z(log_x: mp.mpf) -> mp.mpf:
        at = log_x / mu
        value = mp.ncdf(mu / 2 - at) - mp.exp(log_x) * mp.ncdf(-mu / 2 - at)
        return value - max(1 - mp.exp(log_x), 0)

    with mp.workdps(40):
        for (k, start, stop, offset), low, high in zip(*shifts, strict=True):
            seen[k, start:stop] += 1
            if k % 8 or start == stop:
                continue
            a, b, above, others = (mp.mpf(float(column[k])) for column in corners)
            j = int(rng.integers(start, stop))
            log_x = mp.mpf(unit) * int(places[j])
            # Of "below" and "above" the lesser is exact, and the other one 1 minus it.
            a, b, above, others = (
                (a, b, 1 - a, 1 - b) if max(a, b) < 0.5 else (1 - above, 1 - others, above, others)
            )
            u, w = above - mp.exp(log_x) * others, a - mp.exp(log_x) * b
            assert max(u, 0) + max(w, 0) - max(u + w, 0) <= gain[k, j]
            if a > 0:
                first, second = (z(log_x + unit * (int(offset) + i)) for i in (0, 1))
                assert (
                    a * z(log_x + mp.log(b / a)) <= low * first + high * second + mp.mpf(10) ** -30
                )
    assert (seen == 1).all()


def test_one_comparison_is_a_gaussian_release() -> None:
    for step in (0.05, 0.4, 1.5):
        profile = gaussian_run(step, 0.0, 1)
        for at in (0.0, step, 2 * step, -step):
            truth = ndtr(step / 2 - at / step) - math.exp(at) * ndtr(-step / 2 - at / step)
            truth -= max(1 - math.exp(at), 0.0)
            found = float(profile.at(np.array([at]))[0])
            assert truth <= found <= truth * (1 + 3e-2) + 1e-12


def test_what_it_is_not_made_for_is_left_to_renyi_divergences() -> None:
    assert gaussian_queries_bound(Fraction(5), 0.1, False, 1) is None
    assert gaussian_queries_bound(Fraction(5), 0.1, False, 10**6) is None
    assert gaussian_queries_bound(Fraction(1, 9), 0.1, False, 5) is None
    assert run_profile(0.5, 10, 4) is None


# The unit, and s+ and s- in units.
STEPS = [(0.05, 4, 4), (0.05, 8, 0), (0.05, 6, 2), (0.3, 3, 1), (2.0, 5, 0), (1e-7, 7, 1)]
each_step = pytest.mark.parametrize("steps", STEPS, ids=str)


def found_for(steps: tuple[float, int, int]) -> RunProfile:
    found = run_profile(*steps)
    assert found is not None
    return found


def iterated(steps: tuple[float, int, int], rounds: int) -> tuple[Array, Array]:
    """Return V_n by its definition at both corners, at the logarithms of x."""
    unit, plus, minus = steps
    far = 60 * max(plus, minus)
    at = np.arange(-far, far + 1) * unit
    x = np.exp(at)
    value = np.maximum(1 - x, 0.0)
    for _ in range(rounds):
        best = value.copy()
        for step in (plus, -minus):
            a, b = 1 / (1 + math.exp(step * unit)), 1 / (1 + math.exp(-step * unit))
            later = np.interp(at + step * unit, at, value, left=np.nan, right=0.0)
            later = np.where(np.isnan(later), 1 - np.exp(at + step * unit), later)
            best = np.maximum(best, np.maximum((1 - a) - x * (1 - b), 0.0) + a * later)
        value = best
    return np.asarray(at), np.asarray(value)


@each_step
def test_the_bound_is_that_of_many_comparisons(steps: tuple[float, int, int]) -> None:
    at, value = iterated(steps, 55)
    middle = slice(at.size // 2 - 12, at.size // 2 + 13)
    truth = value[middle] - np.maximum(1 - np.exp(at[middle]), 0.0)
    bound = found_for(steps).at(at[middle])
    assert (truth <= bound + 1e-14).all()
    assert (bound <= truth * (1 + 1e-8) + 1e-10 * truth.max()).all()


def largest_found(
    threshold: float, query: float, x: float, monotone: bool, gaussian: bool, seed: int
) -> float:
    """Return the largest divergence that a random search over many queries finds."""
    rng, noise = np.random.default_rng(seed), noise_at(threshold, gaussian)
    length = int(rng.integers(1, 16))
    answers = rng.normal(0.0, query, length)
    low = 0.0 if monotone else -1.0
    moves = rng.choice([low, 1.0], length)

    def divergence(answers: Array, moves: Array) -> float:
        p, q = outcomes(noise, answers, query), outcomes(noise, answers + moves, query)
        return max(float(np.maximum(a - x * b, 0.0).sum()) for a, b in ((p, q), (q, p)))

    best = divergence(answers, moves)
    for step in np.geomspace(1.0, 0.05, 60):
        trial = answers + rng.normal(0.0, step * query, length) * (rng.random(length) < 0.4)
        flips = rng.random(length) < 0.15
        moved = np.where(flips, rng.choice([low, 1.0], length), moves)
        now = divergence(trial, moved)
        if now > best:
            best, answers, moves = now, trial, moved
    return best


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("scales", [(2.0, 4.0), (20.0, 5.0), (1.0, 6.0), (0.8, 0.9)], ids=str)
def test_no_queries_that_a_search_finds_exceed_the_bound(
    scales: tuple[float, float], monotone: bool
) -> None:
    threshold, query = scales
    bound = laplace_bound(1 / threshold, 1 / query, monotone)
    for seed, share in enumerate((0.0, 0.05, 0.15, 0.3, 0.5, 0.7, 0.9)):
        x = math.exp(share * bound.supremum)
        found = largest_found(threshold, query, x, monotone, False, seed)
        # The noise is discrete, so that its mean is off by a little.
        assert found <= profile(bound, x) + 2e-4


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("scales", [(2.0, 4.0), (1.0, 6.0)], ids=str)
def test_no_queries_with_a_gaussian_threshold_exceed_the_bound(
    scales: tuple[float, float], monotone: bool
) -> None:
    threshold, query = scales
    bound = gaussian_bound(Fraction(threshold), 1 / query, monotone)
    for seed, epsilon in enumerate((0.0, 0.05, 0.1, 0.2, 0.4, 0.6)):
        found = largest_found(threshold, query, math.exp(epsilon), monotone, True, seed)
        assert found <= profile(bound.middle, math.exp(epsilon)) + 2e-4


def runs(rng: np.random.Generator, plus: float, minus: float, length: int) -> tuple[Array, Array]:
    """Return the probabilities of the outcomes of a random run with pairs in the quadrilateral."""
    corners = np.array(
        [
            (0.0, 0.0),
            (1.0, 1.0),
            (1 / (1 + math.exp(plus)), 1 / (1 + math.exp(-plus))),
            (1 / (1 + math.exp(-minus)), 1 / (1 + math.exp(minus))),
        ]
    )
    pairs = rng.dirichlet(np.full(4, 0.3), length) @ corners
    left = np.cumprod(np.vstack((np.ones(2), pairs)), axis=0)
    first = left[:-1] * (1 - pairs)
    return np.append(first[:, 0], left[-1, 0]), np.append(first[:, 1], left[-1, 1])


@each_step
def test_no_run_exceeds_the_bound(steps: tuple[float, int, int]) -> None:
    unit, plus, minus = steps
    profile, rng = found_for(steps), np.random.default_rng(1)
    for length in (1, 2, 3, 8, 30):
        for _ in range(10):
            p, q = runs(rng, plus * unit, minus * unit, length)
            for at in rng.uniform(-4 * plus * unit, 4 * plus * unit, 5):
                x = math.exp(at)
                z = float(np.maximum(p - x * q, 0.0).sum()) - max(1 - x, 0.0)
                assert z <= float(profile.at(np.array([at]))[0]) + 4e-16 * max(x, 1.0)
