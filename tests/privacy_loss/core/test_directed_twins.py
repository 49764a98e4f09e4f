"""Bounds against their formulas in 50 digits: never on the wrong side, and near; moved edges."""

import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

from hockeystick.numerics import decimal
from hockeystick.numerics.multiprecision import mp
from hockeystick.numerics.rounding import float_down, float_up, product_up, quotient_down
from hockeystick.privacy_loss import LaplaceLoss, SampledGaussianLoss, SkellamLoss
from hockeystick.privacy_loss.bounds.moments import outward
from hockeystick.privacy_loss.core import symmetrized
from hockeystick.privacy_loss.core.composition import (
    ComposedLoss,
    cgf_upper,
    complement_bounds,
    decimal_or_above,
    log_mixed,
    mu_squared_upper,
)
from hockeystick.privacy_loss.core.uncertain_endpoints import (
    UncertainEdges,
    exact_edges,
    gaussian_edges,
    log_masses,
    log_mixture,
)
from hockeystick.privacy_loss.noise import integer_noise

ULP = 2.0**-52


class Twin(NamedTuple):
    """A bound, its formula in mpmath, its random arguments, and its side: 1 is above."""

    bound: Callable[..., Any]
    formula: Callable[..., Any]
    arguments: Callable[[random.Random], tuple[Any, ...]]
    side: int = 1
    draws: int = 300


def _exact_norms(p: float, noise: float, c: float) -> tuple[Any, Any]:
    rate, w, grown = mp.mpf(p), 1 + mp.mpf(c), mp.exp(mp.mpf(c) / mp.mpf(noise) ** 2 / 2)
    return mp.log((1 - rate) ** w + (rate * grown) ** w), w * mp.log1p(rate * (grown - 1))


def _log10(source: random.Random, low: float, high: float) -> float:
    return float(10.0 ** source.uniform(low, high))


def _skellam_upper(v: float, shift: int, c: float) -> Any:
    half = mp.mpf(c) * shift / mp.mpf(v)
    return mp.log(2) + 2 * half * shift + mp.mpf(v) * (mp.cosh(2 * half) - 1)


def _exactly(value: Fraction) -> Any:
    return mp.mpf(value.numerator) / value.denominator


def _fraction(source: random.Random) -> tuple[Fraction]:
    return (Fraction(source.randrange(10**60), 10 ** source.randrange(40, 80)),)


def _whole(source: random.Random) -> tuple[Any, ...]:
    return source.randrange(2, 10**6), _log10(source, -9, 9)


SIDES = (("below", -1), ("above", 1))
TWINS = {
    "float, above": Twin(float_up, _exactly, _fraction),
    "float, below": Twin(float_down, _exactly, _fraction, -1),
    "product, above": Twin(product_up, lambda n, x: n * max(mp.mpf(x), mp.mpf(repr(x))), _whole),
    "quotient, below": Twin(
        lambda n, x: quotient_down(x, n),
        lambda n, x: min(mp.mpf(x), mp.mpf(repr(x))) / n,
        _whole,
        -1,
    ),
    "sampled K": Twin(
        log_mixed,
        lambda k, w: mp.log1p(mp.mpf(w) * mp.expm1(k)),
        lambda s: (_log10(s, -6, 2.8), _log10(s, -8, -0.01)),
    ),
    "mirrored K": Twin(
        symmetrized._log_one_more,
        lambda k: mp.log1p(mp.exp(k)),
        lambda s: (s.choice((-1, 1)) * _log10(s, -3, 2.5),),
    ),
    "rho": Twin(outward, mp.mpf, lambda s: (_log10(s, -300, 300),)),
    "1/x^2": Twin(
        lambda x: mp.mpf(mu_squared_upper(x).numerator) / mu_squared_upper(x).denominator,
        lambda x: (mp.mpf(decimal(x).denominator) / decimal(x).numerator) ** 2,
        lambda s: (_log10(s, -3, 3),),
        draws=150,
    ),
    "a rate's float": Twin(
        lambda n, d: mp.mpf(decimal_or_above(Fraction(n, d))),
        lambda n, d: mp.mpf(n) / d,
        lambda s: (s.randrange(1, 10**6), 10**6 + s.randrange(10**6)),
    ),
    **{
        f"complement, {name}": Twin(
            lambda p, k=k: complement_bounds(p)[k],
            lambda p: mp.log(1 - mp.mpf(p.numerator) / p.denominator),
            lambda s: (Fraction(s.randrange(1, 10**18), 10**18),),
            side,
        )
        for k, (name, side) in enumerate(SIDES)
    },
    **{
        f"norm, {name}": Twin(
            lambda p, noise, c, k=k: SampledGaussianLoss(p, noise, True)._norm_bounds(c)[k],
            lambda *given, k=k: _exact_norms(*given)[k],
            lambda s: (_log10(s, -5, -0.1), _log10(s, -0.5, 0.5), _log10(s, -1, 2)),
            side,
            100,
        )
        for k, (name, side) in enumerate(SIDES)
    },
    "Skellam": Twin(
        lambda v, shift, c: SkellamLoss(v, shift).cgf_upper(c),
        _skellam_upper,
        lambda s: (_log10(s, -0.3, 3), s.randrange(1, 5), _log10(s, -2, 0.5)),
    ),
}


@pytest.mark.parametrize("name", TWINS)
def test_a_bound_is_on_its_side_of_the_formula_and_near(name: str) -> None:
    twin, source = TWINS[name], random.Random(1)
    with mp.workdps(50):
        for _ in range(twin.draws):
            given = twin.arguments(source)
            found, truth = mp.mpf(twin.bound(*given)), twin.formula(*given)
            assert 0 <= twin.side * (found - truth) <= mp.mpf("1e-9") * abs(truth) + 1e-11


def test_what_each_part_is_unsure_of_counts_in_sums() -> None:
    # Out of reach K is known within [0, C] only: as a midpoint and a radius.
    one = LaplaceLoss(1e-20)
    k = one.cgf_bounds(1.0)
    assert k.radius == k.midpoint > 0.0
    assert cgf_upper(((one, 3),), 1.0) >= 3.0 * (k.midpoint + k.radius)
    whole = ComposedLoss(((one, 3),)).cgf_bounds(1.0)
    assert whole.midpoint + whole.radius >= 3.0 * (k.midpoint + k.radius)


def test_cells_of_laplace_noise_cover_edges_and_widths_that_are_off() -> None:
    low, width = np.array([-0.9, 0.2]), np.array([1e-3, 0.5])
    for moved, wider in ((1e-7, 0.0), (0.0, 1e-7)):
        for at, wide in zip(low, width, strict=True):
            edges = UncertainEdges(
                np.array([at, at + wide]), np.full(2, moved), np.array([wide]), np.array([wider])
            )
            found = LaplaceLoss(1.0).uncertain_cells(edges)
            with mp.workdps(30):
                span = mp.mpf(float(wide)) * (1 + mp.mpf(wider))
                part = mp.log(-mp.expm1(-span / 2) / 2)
                high = mp.mpf(float(at + wide)) + moved
                off = abs((high - 1) / 2 + part - found.log_p[0])
            assert 0.3 * found.error[0] < off <= found.error[0]
    unsure = UncertainEdges(np.array([0.0, 0.1]), np.zeros(2), np.array([0.1]), np.array([0.06]))
    assert LaplaceLoss(1.0).uncertain_cells(unsure).error[0] == math.inf


@pytest.mark.parametrize("low", [0.5, 6.0, -0.2, -7.0])
@pytest.mark.parametrize("which", [0, 1])
def test_wide_cells_of_a_gaussian_cover_either_edge_that_is_off(low: float, which: int) -> None:
    ends, moved = np.array([low, low + 0.4]), np.zeros(2)
    moved[which] = 1e-6
    value, error = log_masses(UncertainEdges(ends, moved, np.diff(ends), np.full(1, 1e-5)))
    with mp.workdps(30):
        for sign in (-1, 1):
            a, b = (mp.mpf(float(at + sign * by)) for at, by in zip(ends, moved, strict=True))
            a, b = (-b, -a) if low > 0 else (a, b)
            assert abs(mp.log(mp.ncdf(b) - mp.ncdf(a)) - value[0]) <= error[0]
    assert error[0] < 2e-5


@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("noise", [0.3, 1.7, 41.0])
def test_edges_of_a_gaussian_loss_are_right_within_their_errors(side: float, noise: float) -> None:
    source = random.Random(2)
    losses = np.sort([source.uniform(-30.0, 30.0) for _ in range(300)])
    found = gaussian_edges(exact_edges(losses), 1.0 / noise, side)
    rough = gaussian_edges(
        exact_edges(losses)._replace(error=np.full(300, 1e-3)), 1.0 / noise, side
    )
    with mp.workdps(30):
        mu = 1 / mp.mpf(repr(noise))
        for k, loss in enumerate(losses):
            truth = mp.mpf(float(loss)) / mu - side * mu / 2
            assert abs(found.at[k] - truth) <= found.error[k] <= 1e-13 * (1 + abs(truth))
            assert rough.error[k] >= (1e-3 / mu) * (1 - 1e-12)


def test_a_mixture_of_masses_counts_the_error_of_either_part_by_its_share() -> None:
    source = random.Random(3)
    for _ in range(80):
        logs = [source.uniform(-9.0, 0.0) for _ in range(2)]
        errors = [_log10(source, -9, -5) for _ in range(2)]
        weight = source.uniform(0.05, 0.95)
        parts = [(np.array([one]), np.array([off])) for one, off in zip(logs, errors, strict=True)]
        value, error = log_mixture(parts[0], weight, parts[1], 1.0 - weight)
        with mp.workdps(30):
            worst = mp.mpf(weight) * mp.exp(mp.mpf(logs[0]) + errors[0])
            worst += (1 - mp.mpf(weight)) * mp.exp(mp.mpf(logs[1]) + errors[1])
            off = abs(mp.log(worst) - value[0])
        assert off <= error[0] <= sum(errors) + 1e-13


def test_the_norm_of_skellam_masses_covers_what_their_logarithms_are_off() -> None:
    fall = np.array([0.0, *np.linspace(2.0, 3.0, 12)])
    value, error = integer_noise._log_norm_of_skellam(fall)
    with mp.workdps(30):
        off = [mp.mpf(float(one)) * (1 - 4 * mp.mpf(ULP)) - 8 * mp.mpf(ULP) for one in fall[1:]]
        truth = mp.log(1 + 2 * mp.fsum(mp.exp(-one) for one in off))
        assert abs(truth - value) <= error < 1e-13
