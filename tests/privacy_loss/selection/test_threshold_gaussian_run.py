"""Runs of comparisons with Gaussian noise: bounds against runs with likelihoods, and searches."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss.selection.threshold_bound import gaussian_queries_bound
from hockeystick.privacy_loss.selection.threshold_gaussian_run import (
    Corners,
    corners_of,
    gain_of,
    gaussian_run,
    shifts_of,
)


def test_the_normal_distribution_function_is_as_good_as_the_enlarged_steps_take_it() -> None:
    with mp.workdps(30):
        for t in np.linspace(-12.5, 3.0, 156):
            assert abs(mp.mpf(float(ndtr(t))) / mp.ncdf(mp.mpf(float(t))) - 1) < 5e-14


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


@pytest.mark.parametrize("steps", [(0.2, 0.2), (0.4, 0.0), (0.3, 0.1)], ids=str)
def test_no_run_exceeds_the_bound(steps: tuple[float, float]) -> None:
    rng = np.random.default_rng(3)
    for length in (1, 2, 5, 30):
        profile = gaussian_run(*steps, length)
        for _ in range(40):
            t = rng.normal(rng.normal(0.5, 1.0), 1.0, length)
            moved = t + rng.choice([steps[0], -steps[1], 0.0], length, p=(0.45, 0.45, 0.1))
            found = []
            for one in (t, moved):
                left = np.cumprod(np.concatenate(([1.0], ndtr(one))))
                found.append(np.append(left[:-1] * ndtr(-one), left[-1]))
            for at in rng.uniform(-1.0, 1.0, 5):
                z = float(np.maximum(found[0] - math.exp(at) * found[1], 0.0).sum())
                z -= max(1 - math.exp(at), 0.0)
                assert z <= float(profile.at(np.array([at]))[0])


def test_what_it_is_not_made_for_is_left_to_renyi_divergences() -> None:
    assert gaussian_queries_bound(Fraction(5), 0.1, False, 1) is None
    assert gaussian_queries_bound(Fraction(5), 0.1, False, 10**6) is None
    assert gaussian_queries_bound(Fraction(1, 9), 0.1, False, 5) is None
