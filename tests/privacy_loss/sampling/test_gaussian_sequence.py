"""Many noises of their own: against integrals one by one, the runs themselves, a known answer."""

import math

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants.contour import Contour
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import GaussianSequenceLoss
from hockeystick.privacy_loss.sampling.gaussian_sequence import Around, Needs, _bounds_around
from hockeystick.privacy_loss.sampling.noise_levels import Levels, levels_of

each_direction = pytest.mark.parametrize("removing", [True, False], ids=["removing", "adding"])


def exponential(start: float, end: float, steps: int) -> Levels:
    """Return noises that fall by the same factor in each step."""
    return levels_of(tuple((start * (end / start) ** np.linspace(0.0, 1.0, steps)).tolist()))


def transform(rate: float, noise: float, removing: bool, z: complex) -> complex:
    """``ln E[r(U)^w]`` over N(0, 1), by a sum over a grid that is far finer than it need be."""
    u = np.arange(-14.0, 22.0, 1 / 256)
    log_ratio = np.log1p(rate * np.expm1(u / noise - 0.5 / noise**2))
    power = 1.0 + z if removing else -z
    terms = np.exp(power * log_ratio - 0.5 * u * u)
    return complex(np.log(terms.sum() / 256.0 / math.sqrt(2.0 * math.pi)))


def alone(loss: GaussianSequenceLoss, z: complex) -> complex:
    """``ln M`` of all runs, one by one by their own quadratures."""
    rules = [(loss.run(noise), noise) for noise in loss.levels.noise.tolist()]
    total = 0j
    for run, _ in rules:
        rule = run.rule(z.real, z.imag, -34.0)
        assert rule is not None
        line = rule.line(z.real, max(z.imag, 1e-9), 2)
        total += complex(line.real[1], line.imag[1])
    return total


@each_direction
def test_the_line_holds_the_sum_of_what_independent_integrals_give(removing: bool) -> None:
    loss = GaussianSequenceLoss(0.02, exponential(2.0, 1.0, 90), removing)
    c, step = 3.0, 7.0
    rule = loss.rule(6.0, 14.0, -20.0)
    assert rule is not None
    values = rule.line(c, step, 3)
    for k in range(3):
        z = complex(c, step * k)
        truth = sum(transform(0.02, noise, removing, z) for noise in loss.levels.noise.tolist())
        assert values.error[k] < 1e-8
        assert abs(complex(values.real[k], values.imag[k]) - truth) <= values.error[k] + 1e-12


@each_direction
def test_the_line_by_mpmath_is_that_by_floats(removing: bool) -> None:
    loss = GaussianSequenceLoss(0.02, levels_of((2.0, 1.5, 1.5)), removing)
    rule = loss.rule(6.0, 14.0, -20.0)
    assert rule is not None
    values = rule.line(3.0, 7.0, 2)
    with mp.workdps(30):
        exact = [complex(value) for value in rule.reference_line(3.0, 7.0, 2)]
    for k in range(2):
        found = complex(values.real[k], values.imag[k])
        assert abs(found - exact[k]) <= values.error[k] + 1e-14


@pytest.mark.parametrize("z", [2.0 + 0.0j, 3.0 + 11.0j, 4.0 + 30.0j])
@each_direction
def test_no_rule_errs_by_more_than_its_bound(removing: bool, z: complex) -> None:
    loss = GaussianSequenceLoss(0.01, exponential(1.6, 0.9, 300), removing)
    for cell in (*loss.levels.cells, *loss.levels.halves(loss.levels.cells[0])):
        own = GaussianSequenceLoss(0.01, levels_of(loss.levels.one_by_one(cell)), removing)
        weighted = sum(
            weight * alone(GaussianSequenceLoss(0.01, levels_of((noise,)), removing), z)
            for noise, weight in zip(cell.noise, cell.weights, strict=True)
        )
        gap = abs(weighted - alone(own, z))
        bounds = _bounds_around(loss, cell, z.real)
        known = [one.error(z.real, z.imag) for one in bounds]
        assert all(gap <= error + 1e-10 for error in known)
        assert min(known) < 1e-3


def test_a_bound_around_a_cell_grows_with_the_height_until_it_says_nothing() -> None:
    around = Around(excess=1e-3, share=1e-6)
    errors = [around.error(2.0, y) for y in (0.0, 5.0, 20.0, 60.0, 80.0)]
    assert errors == sorted(errors)
    assert errors[0] == pytest.approx(1e-9, rel=1e-3)
    assert errors[-1] == math.inf


def test_the_run_with_more_noise_bounds_the_density_of_every_run_of_its_bin() -> None:
    loss = GaussianSequenceLoss(0.02, exponential(2.0, 1.0, 40), removing=True)
    for c in (2.0, 5.0):
        decay = loss.decay(c)
        at_c = alone(loss, complex(c, 0.0)).real
        for y in (3.0, 10.0, 30.0):
            assert alone(loss, complex(c, y)).real - at_c <= -decay.exponent(y)
        assert decay.exponent(30.0) > 0.5


def test_equal_noises_cost_what_repeated_steps_cost() -> None:
    # sampled Gaussian, rate 0.0042666..., noise 1.1, 14,062 steps, delta 1e-5.
    loss = GaussianSequenceLoss(256 / 60_000, levels_of((1.1,) * 14_062), removing=True)
    found = Contour().epsilon_of(((loss, 1),), 1e-5)
    step = hs.PoissonSubsampled(hs.Gaussian(1.1), 256 / 60_000)
    truth = hs.epsilon(step**14_062, 1e-5)
    assert max(found.lower, truth.lower) <= min(found.upper, truth.upper)
    assert found.relative_width < 1e-8


@pytest.mark.parametrize(
    ("noises", "nodes"),
    [((1.0,) * 200 + (2.0,), 2), ((1.0,) * 100 + (math.nextafter(1.0, 2.0),) * 100, 2)],
    ids=["equal", "next to each other"],
)
def test_noises_that_no_cell_tells_apart_are_counted_together(
    noises: tuple[float, ...], nodes: int
) -> None:
    # M - 1 is too far from 0 around the cell for a rule, but not at the cell itself.
    loss = GaussianSequenceLoss(0.01, Levels(noises), removing=True)
    needs = Needs(8.688752016505418, ((0.0, 1e-9),))
    found = loss.nodes(needs)
    assert found is not None
    assert len(found.noise) == nodes
    assert found.weights.sum() == len(noises)
    assert found.error(needs.c) == 0.0
    known = loss.cgf_bounds_within(needs.c, 1e-9)
    runs = [(run.cgf_bounds(needs.c), count) for run, count in loss.runs]
    truth = math.fsum(count * k.midpoint for k, count in runs)
    assert abs(known.midpoint - truth) <= known.radius < 1e-9
