"""Samples of a fixed size, capped ones and those of a replaced example."""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import laplace

import hockeystick as hs
from hockeystick.accountants.contour import Contour
from hockeystick.kernels import fixed_size_gaussian as kernel
from hockeystick.numerics.multiprecision import mp, mpc, mpf
from hockeystick.precision.lines import gauss_legendre
from hockeystick.precision.profiles import exact
from hockeystick.privacy_loss import CellLoss, FixedSizeGaussianLoss, GaussianLoss
from hockeystick.privacy_loss.core import symmetrized
from hockeystick.privacy_loss.core.base import Atoms, dominating_pair
from hockeystick.privacy_loss.guarantees import ContaminatedLoss
from hockeystick.privacy_loss.sampling.poisson import cut_of
from hockeystick.privacy_loss.sampling.sampled import ReplacedGaussianLoss

FORTY_OF_FOUR = hs.mechanisms.WithReplacementSubsampled(hs.Gaussian(8.0), 40, 4)


def one_by_one(batch: int, examples: int, noise: float, epsilon: float) -> float:
    """Return delta where each number of hits is a Gaussian of its own."""
    with mp.workdps(30):
        share = mp.mpf(1) / examples
        inner = mp.log1p(mp.expm1(epsilon) / (1 - (1 - share) ** batch))
        return float(
            mp.fsum(
                mp.binomial(batch, k)
                * share**k
                * (1 - share) ** (batch - k)
                * GaussianLoss(Fraction(noise) / k).delta(inner)
                for k in range(1, batch + 1)
            )
        )


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_cell_above_an_epsilon_costs_no_less_than_hits_one_by_one(epsilon: float) -> None:
    loss = dominating_pair(FORTY_OF_FOUR).removing
    assert isinstance(loss, CellLoss)
    cell = loss.cells(np.array([epsilon, math.inf]))
    found = math.exp(cell.log_p[0]) - math.exp(epsilon) * math.exp(cell.log_q[0])
    theorem = one_by_one(40, 4, 8.0, epsilon)
    assert theorem * (1 - 1e-9) <= found <= 1.5 * theorem


def test_poisson_samples_of_a_replaced_example_shown_without_noise_fail_with_their_rate() -> None:
    plan = hs.PoissonSubsampled(hs.Gaussian(0.0), 0.25, "replace-one")
    assert hs.delta(plan, 1.0).upper == pytest.approx(0.25, rel=1e-12)


CONTOUR = Contour()
LOSSES = [
    FixedSizeGaussianLoss(0.01, 1.0),
    FixedSizeGaussianLoss(1e-6, 0.9),
    FixedSizeGaussianLoss(0.1, 0.25),
    FixedSizeGaussianLoss(0.5, 7.0),
    FixedSizeGaussianLoss(0.9999, 0.6),
]


def covers(real: float, imag: float, error: float, truth: mpc) -> bool:
    """Return whether the true M is within ``exp(error) - 1`` of the value, relative to it."""
    return bool(abs(mp.exp(truth - mp.mpc(real, imag)) - 1) <= mp.expm1(error))


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_kernel_and_its_twin_agree(loss: FixedSizeGaussianLoss) -> None:
    rule = loss.rule(2.0, 10.0, -36.0)
    assert rule is not None
    real, imag, error = rule.line(2.0, 2.5, 5)
    with mp.workdps(30):
        for k, one in enumerate(rule.reference_line(2.0, 2.5, 5)):
            assert covers(real[k], imag[k], error[k], one)


@pytest.mark.parametrize("c", [0.1, 2.0, 30.0])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_decay_holds_above_every_height(loss: FixedSizeGaussianLoss, c: float) -> None:
    decay, k = loss.decay(c), loss.cgf_estimate(c)
    step, count = 0.1 / math.sqrt(k.second_derivative), 60
    rule = loss.rule(c, count * step, k.value - 36.0)
    assert rule is not None
    real, _, error = rule.line(c, step, count)
    falls = real[0] + error[0] - real - np.minimum(error, 2.0)
    exponents = [decay.exponent(j * step) for j in range(1, count)]
    assert exponents == sorted(exponents)
    known = error[1:] < 0.5
    assert known[:30].all()
    assert all(np.array(exponents)[known] <= (falls[1:] + 2.0 * error[1:] + 1e-12)[known])
    # The first steps are in the parabola ln|M| = -K'' v^2 / 2, which the layers follow.
    assert exponents[4] > 0.05 * falls[5]


@pytest.mark.parametrize(
    ("rate", "runs", "epsilon", "delta"),
    [
        (0.01, 1000, 1.0, 9.9054377995653515758e-3),
        (Fraction(16, 600), 3534, 16.0, 2.29760306083325594e-7),
    ],
)
def test_known_compositions(
    rate: float | Fraction, runs: int, epsilon: float, delta: float
) -> None:
    terms = ((FixedSizeGaussianLoss(rate, 1.0), runs),)
    answer = CONTOUR.delta_of(terms, epsilon)
    assert answer.lower <= delta <= answer.upper
    assert answer.upper / answer.lower < 1.0 + 1e-10
    back = CONTOUR.epsilon_of(terms, delta)
    assert back.lower <= epsilon <= back.upper
    assert back.upper / back.lower < 1.0 + 1e-10


@pytest.mark.parametrize(
    ("rate", "noise"), [(1e-11, 1.0), (0.01, 1e4), (0.3, 0.01), (1.0 - 1e-9, 1.0)]
)
def test_out_of_reach_of_the_quadrature_the_convex_bound_holds(rate: float, noise: float) -> None:
    loss = FixedSizeGaussianLoss(rate, noise)
    assert loss.out_of_range
    assert not loss.quadrature_available(1.0)
    value, error = loss.cgf_bounds(1.0)
    mu = 1.0 / noise
    assert 0.0 <= value - error
    gaussian = mp.log1p(exact(rate) * mp.expm1(mp.mpf(mu) ** 2))
    assert value + error == pytest.approx(float(gaussian), rel=1e-9)
    assert CONTOUR.delta_of(((loss, 3),), 0.5).upper <= 1.0


def test_the_bound_of_the_integrand_holds_in_a_box_and_is_near_in_a_small_one() -> None:
    rng = np.random.default_rng(0)
    least = math.inf
    for _ in range(120):
        p, mu, c = 10.0 ** rng.uniform((-4, -1, -1), (-0.1, 0.4, 1.2))
        height = rng.choice((0.0, 8.0 * c))
        x, y = rng.uniform(0.0, 6.0), rng.uniform(0.0, 0.9) * math.pi / mu
        size = rng.choice((1e-6, 0.1))
        bound = kernel.log_box_bound(p, mu, c, height, x - size, x + size, max(y - size, 0.0), y)
        place = x + rng.uniform(-size, size, 9) + 1j * rng.uniform(max(y - size, 0.0), y, 9)
        place[:2] = x + size + 1j * y, x - size + 1j * y
        a = np.log1p(p * np.expm1(mu * place))
        # The turn of r counts most where the imaginary part of z has the sign of its power.
        for z in (c + 1j * height, c - 1j * height):
            logs = (-0.5 * (place + 0.5 * mu) ** 2).real - 0.5 * math.log(2.0 * math.pi)
            with np.errstate(divide="ignore"):
                logs += np.log(np.abs(np.expm1((1.0 + z) * a) * np.expm1(-z * a)))
            assert float(logs.max()) <= bound
            least = min(least, bound - float(logs.max()))
    assert least < 0.05


def test_the_quadrature_of_a_panel_errs_less_than_its_bound() -> None:
    p, mu, c, count = 0.1, 1.3, 3.0, 6
    offset, weight = (np.array(one, dtype=float) for one in gauss_legendre(count, mp.prec))
    for start, half in ((0.0, 0.5), (3.0, 0.7)):
        with mp.workdps(30):

            def term(x: mpf) -> mpf:
                a = mp.log1p(mp.mpf(p) * mp.expm1(mp.mpf(mu) * x))
                factor = mp.expm1((1 + c) * a) * -mp.expm1(-c * a)
                return factor * mp.npdf(x + mp.mpf(mu) / 2)

            points = [start + half * mp.mpf(float(one)) for one in offset]
            rule = mp.fsum(half * float(w) * term(x) for x, w in zip(points, weight, strict=True))
            miss = abs(rule - mp.quad(term, [start, start + 2 * half]))
        bound = kernel.log_panel_error(p, mu, c, 0.0, start + half, half, count)
        assert float(mp.log(miss)) <= bound < float(mp.log(miss)) + 16.0


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
        for (low, high), chance_of in zip(found, (full, kept), strict=True):
            assert low <= chance_of <= high
            assert high - low <= chance_of * Fraction(1, 10**9)


@pytest.mark.parametrize(
    ("adjacency", "error"),
    [("add-remove", hs.errors.IncompatibleError), ("zero-out", hs.errors.NoGroupFormError)],
)
def test_a_capped_sample_has_no_groups(adjacency: str, error: type[Exception]) -> None:
    plan = hs.mechanisms.TruncatedPoissonSubsampled(hs.Gaussian(2.0), 0.3, 3, 10, adjacency)
    with pytest.raises(error):
        plan.for_group(2)


# The difference of the tails beyond the output whose loss is epsilon, in 50 digits.
@pytest.mark.parametrize(
    ("rate", "noise", "epsilon", "truth"),
    [
        (0.01, 1.0, 0.0, "0.0068268949213708589717"),
        (0.01, 1.0, 4.0, "3.5787979912771941645e-19"),
        (0.5, 0.5, 0.1, "0.45222919228260942803"),
        (0.5, 0.5, 4.0, "0.043153706635113399289"),
        (1e-6, 0.7, 0.0, "8.4687254898033046989e-7"),
        (1e-6, 0.7, 1.0, "6.5518538270162303796e-28"),
        (0.9, 20.0, 0.1, "0.0063443669282871018527"),
        (0.9, 20.0, 1.0, "4.2493164411420595135e-31"),
        (0.2, 0.15, 1.0, "0.19956613729811364292"),
    ],
)
def test_the_profile_is_the_difference_of_the_tails(
    rate: float, noise: float, epsilon: float, truth: str
) -> None:
    loss = ReplacedGaussianLoss(rate, noise)
    masses = loss.cells(np.array([epsilon, math.inf]))
    with mp.workdps(50):
        assert abs(loss.delta(mp.mpf(epsilon)) / mp.mpf(truth) - 1) < 1e-13
        above = mp.exp(masses.log_p[0]) - mp.exp(mp.mpf(epsilon)) * mp.exp(masses.log_q[0])
        assert abs(above - mp.mpf(truth)) <= mp.exp(masses.log_p[0]) * 4 * masses.error[0]


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


Triples = Sequence[Sequence[np.ndarray]]


def costliest(triples: Triples, rate: float, x: np.ndarray, runs: int) -> np.ndarray:
    """Return ``E (P - x Q)_+``, each run being that of one of the triples, the worst each time."""
    if runs == 0:
        return np.maximum(1.0 - x, 0.0)
    found = []
    for a, b, c in triples:
        p, q = (1.0 - rate) * a + rate * b, (1.0 - rate) * a + rate * c
        found.append(costliest(triples, rate, x[..., None] * (q / p), runs - 1) @ p)
    return np.asarray(np.max(found, axis=0))


def responses(epsilon: float, categories: int) -> np.ndarray:
    odds = 1.0 + math.expm1(epsilon) * np.eye(categories)
    return np.asarray(odds / odds.sum(axis=1))


TWO: Triples = [[*responses(1.0, 2)[[0, 1, 0]]], [*responses(1.0, 2)[[0, 0, 1]]]]


def bits(*shared: tuple[int, int, int]) -> Sequence[np.ndarray]:
    """Return masses of the reports of bits, given which of three sets each is in."""
    laws = np.array([[0.75, 0.25], [0.25, 0.75]])
    return [reduce(np.multiply.outer, laws[list(one)]).ravel() for one in zip(*shared, strict=True)]


SETS = [((1, 1, 0), (0, 0, 1)), ((1, 0, 1), (0, 1, 0)), ((1, 0, 0), (0, 1, 0), (0, 0, 1))]


def in_the_plane(*corners: complex) -> Sequence[np.ndarray]:
    """Return masses of cells of the plane, with Laplace noise of scale 5 at three points of it."""
    edges = np.array([-np.inf, 0.0, 0.25, 0.5, 0.75, 1.0, np.inf])
    sides = [
        np.diff(laplace.cdf(edges - np.array([[z.real], [z.imag]]), scale=5.0)) for z in corners
    ]
    return [np.outer(*one).ravel() for one in sides]


CORNERS = [(0, 1, 0), (0, 0, 1), (0, 1, 0.5), (0, 1, 0.5 + 0.5j)]


def triangles(mu: float) -> Triples:
    """Return masses of cells of the plane for corners of triangles with sides of up to mu."""
    rng, edges = np.random.default_rng(3), np.append(np.linspace(-4.0, 4.0, 12), np.inf)
    corners: list[tuple[complex, ...]] = [
        (0, 1, 0),
        (0, 0, 1),
        (0, 1, 0.5 + 0.75**0.5 * 1j),
        (0, 1, 0.97 + 0.2j),
    ]
    corners += [tuple(0.57 * rng.uniform(0, 1, 3) * np.exp(2j * np.pi * rng.uniform(0, 1, 3)))]
    found = []
    for triple in corners:
        sides = [np.diff(ndtr(edges - mu * np.array([[z.real], [z.imag]]))) for z in triple]
        masses = [np.outer(one[0], one[1]).ravel() for one in sides]
        found.append(tuple(np.append(one, 1.0 - one.sum()) for one in masses))
    return found


@pytest.mark.parametrize(
    ("inner", "triples", "runs", "most"),
    [
        (hs.RandomizedResponse(1.0), TWO, 4, 1.02),
        (hs.PureDP(1.0), [*TWO, responses(1.0, 3), responses(-1.0, 3)], 3, 1.02),
        (hs.RandomizedResponse(1.0, categories=4), [responses(1.0, 4)[:3]], 3, 1.0 + 1e-9),
        (hs.Gaussian(1.0), triangles(1.0), 2, 1.1),
        (hs.mechanisms.UnaryEncoding(2 * math.log(3)), [bits(*one) for one in SETS], 3, 1.02),
        (hs.mechanisms.RAPPOR(0.5, 2), [bits(*one, *one) for one in SETS], 2, 1.01),
        (hs.Laplace(5.0), [in_the_plane(*one) for one in CORNERS], 2, 1.01),
    ],
    ids=["two categories", "pure", "four categories", "triangles", "bits", "sets", "Laplace"],
)
def test_runs_cost_what_the_worst_three_examples_of_each_cost(
    inner: hs.Mechanism, triples: Triples, runs: int, most: float
) -> None:
    plan = hs.FixedSizeSubsampled(inner, 2, 10) ** runs
    for epsilon in (0.05, 0.2):
        cost = float(costliest(triples, 0.2, np.array(math.exp(epsilon)), runs))
        assert cost <= hs.delta(plan, epsilon).upper * (1.0 + 1e-12) <= cost * most


def test_runs_on_a_coarse_lattice_cost_no_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symmetrized, "_MOST_POINTS", 2.0)
    cost = float(costliest(TWO, 0.25, np.array(math.exp(0.1)), 4))
    found = hs.delta(hs.FixedSizeSubsampled(hs.RandomizedResponse(1.0), 2, 8) ** 4, 0.1).upper
    assert 1.001 * cost < found < 1.2 * cost
