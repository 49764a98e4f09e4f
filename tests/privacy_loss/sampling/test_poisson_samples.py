"""Poisson samples of any loss, of groups, and sequences of noises."""

import math
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.adjacency import Adjacency
from hockeystick.mechanisms import PoissonSubsampledGroup
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import (
    GaussianSequenceLoss,
    LaplaceLoss,
    SampledLoss,
    compose,
    dominating_pair,
)
from hockeystick.privacy_loss.sampling.noise_levels import (
    Around,
    Levels,
    Needs,
    _bounds_around,
    levels_of,
)


@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.5])
@pytest.mark.parametrize("removing", [True, False])
@pytest.mark.parametrize("scale", [0.7, 20.0])
def test_the_cells_are_those_of_the_mixtures(scale: float, rate: float, removing: bool) -> None:
    inner = np.array([-1.39, -1.0, -0.2, 0.3, 0.3 + 1e-7, 1.1, 1.42]) * 0.7 / scale
    edges = np.log1p(rate * np.expm1(inner))
    edges = edges if removing else -edges[::-1]
    masses = SampledLoss(LaplaceLoss(scale), rate, removing).cells(edges)
    with mp.workdps(60):
        p, b = mp.mpf(repr(rate)), mp.mpf(repr(scale))

        def below(loss: float, centre: int) -> Any:
            """The mass of the noise below the output at which ln(mixture/without) is a loss."""
            x = (mp.log1p(mp.expm1(mp.mpf(loss)) / p) * b + 1) / 2 - centre
            return mp.exp(x / b) / 2 if x < 0 else 1 - mp.exp(-x / b) / 2

        for k, (low, high) in enumerate(pairwise(edges.tolist())):
            ends = (low, high) if removing else (-high, -low)
            without, moved = (below(ends[1], at) - below(ends[0], at) for at in (0, 1))
            mixed = (1 - p) * without + p * moved
            own, other = (mixed, without) if removing else (without, mixed)
            assert abs(masses.log_p[k] - mp.log(own)) <= masses.error[k]
            assert abs(masses.log_q[k] - mp.log(other)) <= masses.error[k] < 3e-11


each_adjacency = pytest.mark.parametrize("adjacency", list(Adjacency))


# The larger divergence of the sum's mixtures by mpmath's quadrature; of examples that vanish or
# turn round.
@pytest.mark.parametrize(
    ("noise", "rate", "size", "vanish", "turn"),
    [
        (1.0, 0.1, 2, (0.01947121312, 0.001138680956), (0.03500581694, 0.001856227478)),
        (2.0, 0.3, 5, (0.1735377466, 0.03714102469), (0.3920168983, 0.1636472337)),
    ],
)
@each_adjacency
def test_delta_of_one_run_holds_the_quadrature(
    noise: float, rate: float, size: int, vanish: Any, turn: Any, adjacency: Adjacency
) -> None:
    plan = PoissonSubsampledGroup(hs.Gaussian(noise), rate, size, adjacency)
    costs = turn if adjacency is Adjacency.REPLACE_ONE else vanish
    for epsilon, truth in zip((0.4, 1.5), costs, strict=True):
        answer = hs.delta(plan, epsilon)
        assert answer.lower <= truth * (1 + 1e-9)
        assert truth * (1 - 1e-9) <= answer.upper <= answer.lower * (1 + 1e-2)


@each_adjacency
def test_a_group_of_one_is_a_record(adjacency: Adjacency) -> None:
    one = PoissonSubsampledGroup(hs.Gaussian(1.5), 0.1, 1, adjacency)
    record = hs.PoissonSubsampled(hs.Gaussian(1.5), 0.1, adjacency)
    assert dominating_pair(one) == dominating_pair(record)


def test_a_fraction_is_another_rate_than_the_float_that_equals_it() -> None:
    """The float 0.1 means 1/10, and ``Fraction(0.1)`` a little more."""
    one, other = (hs.PoissonSubsampled(hs.Gaussian(4.0), rate) for rate in (0.1, Fraction(0.1)))
    assert one == other
    assert len(compose(one**10 @ other**10).removing) == 2


each_side = pytest.mark.parametrize("removing", [True, False], ids=["removing", "adding"])


def exponential(start: float, end: float, steps: int) -> Levels:
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


@each_side
def test_the_line_holds_the_sum_of_what_independent_integrals_give(removing: bool) -> None:
    loss = GaussianSequenceLoss(0.02, exponential(2.0, 1.0, 40), removing)
    c, step = 3.0, 7.0
    rule = loss.rule(6.0, 14.0, -20.0)
    assert rule is not None
    values = rule.line(c, step, 3)
    for k in range(3):
        z = complex(c, step * k)
        truth = sum(transform(0.02, noise, removing, z) for noise in loss.levels.noise.tolist())
        assert values.error[k] < 1e-8
        assert abs(complex(values.real[k], values.imag[k]) - truth) <= values.error[k] + 1e-12


@pytest.mark.parametrize("z", [2.0 + 0.0j, 3.0 + 11.0j, 4.0 + 30.0j])
@each_side
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
    known = loss.cgf_bounds(needs.c, 1e-9)
    runs = [(run.cgf_bounds(needs.c), count) for run, count in loss.runs]
    truth = math.fsum(count * k.midpoint for k, count in runs)
    assert abs(known.midpoint - truth) <= known.radius < 1e-9


@pytest.mark.parametrize("epsilon", [0.0, 0.004, 0.03])
def test_samples_of_a_guarantee_that_may_fail_cost_what_its_worst_outcomes_cost(
    epsilon: float,
) -> None:
    """Of (0.3, 1e-4): all outcomes of three samples, added up in 30 digits."""
    rate, failure = mp.mpf("0.01"), mp.mpf("1e-4")
    with mp.workdps(30):
        rest = (1 - failure) / (1 + mp.exp(mp.mpf("0.3")))
        worst = (failure, 1 - failure - rest, rest, mp.zero)
        other = worst[::-1]
        sample = [rate * p + (1 - rate) * q for p, q in zip(worst, other, strict=True)]
        deltas = [
            sum(
                max(mp.fprod(p) - mp.exp(epsilon) * mp.fprod(q), 0)
                for p, q in zip(product(own, repeat=3), product(beside, repeat=3), strict=True)
            )
            for own, beside in ((sample, other), (other, sample))
        ]
    plan = hs.PoissonSubsampled(hs.ApproxDP(0.3, 1e-4), 0.01)
    masses = [loss and loss.infinity_mass.decimal for loss in dominating_pair(plan)]
    assert masses == [Fraction(1, 10**6), 0]  # removing alone shows everything
    found = hs.delta(plan**3, epsilon=epsilon)
    assert found.lower <= max(deltas) <= found.upper <= max(deltas) * (1 + 1e-8)
