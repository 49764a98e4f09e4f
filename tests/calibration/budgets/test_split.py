"""The least Gaussian noise, joint queries, several releases under one budget, largest errors."""

import math
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.calibration.budgets.split import with_noise
from hockeystick.numerics.multiprecision import mp

# (epsilon, delta), and the least noise by mpmath's root of Balle and Wang's formula.
LEAST = (
    (1.0, 1e-5, "3.73063163481594183224982257504"),
    (1.0, 1e-9, "5.49526615723829619322687065762"),
    (0.1, 1e-6, "36.304690426195784938628643578"),
    (10.0, 1e-5, "0.49988861970900851464"),
)
BUDGETS = (hs.GDP(0.7), hs.ZCDP(0.2), hs.PureDP(1.5), hs.ApproxDP(1.0, 1e-6))
each_budget = pytest.mark.parametrize("budget", BUDGETS, ids=str)


def spent(budget: Any) -> float:
    """The number that a budget is of."""
    return float(
        next(getattr(budget, name) for name in ("mu", "rho", "epsilon") if hasattr(budget, name))
    )


def noise_of(release: Any) -> float:
    """The noise of a Gaussian or of a Laplace release."""
    return float(release.scale if isinstance(release, hs.Laplace) else release.noise_multiplier)


@pytest.mark.parametrize(("epsilon", "delta", "least"), LEAST)
def test_the_least_gaussian_noise_is_met_from_above(
    epsilon: float, delta: float, least: str
) -> None:
    found = hs.calibration.gaussian_noise(epsilon, delta)
    assert 0 <= mp.mpf(found) / mp.mpf(least) - 1 < 5e-15


def test_the_least_noise_at_the_edges() -> None:
    assert hs.calibration.gaussian_noise(1.0, 0.0) == math.inf
    assert hs.calibration.gaussian_noise(1.0, 1.0) == 0.0
    with mp.workdps(30):
        # delta(0) = 2 Phi(mu/2) - 1.
        mu = 2 * mp.sqrt(2) * mp.erfinv(mp.mpf("0.3"))
        assert 1 <= mp.mpf(hs.calibration.gaussian_noise(0.0, 0.3)) * mu < 1 + mp.mpf(10) ** -14
    for epsilon in (-1.0, math.inf, math.nan, 1e16):
        with pytest.raises(hs.errors.ParameterError, match="epsilon must be"):
            hs.calibration.gaussian_noise(epsilon, 1e-5)
    with pytest.raises(hs.errors.ParameterError, match="delta must be"):
        hs.calibration.gaussian_noise(1.0, 1.5)


def test_the_classical_noise_is_its_formula() -> None:
    # At epsilon = 1 it would be 4.84480526260538942; the theorem holds below.
    found = hs.calibration.classical_gaussian_noise(0.5, 1e-5)
    assert found == pytest.approx(2 * 4.84480526260538942, rel=1e-14)
    with mp.workdps(40):
        exact = mp.sqrt(2 * mp.log(mp.mpf("1.25") / mp.mpf(10) ** -5)) * 2
        assert exact <= found <= exact * (1 + mp.mpf(10) ** -15)


@pytest.mark.parametrize("epsilon", [1.0, 3.0, 10.0])
def test_the_classical_noise_is_refused_where_nothing_proves_it(epsilon: float) -> None:
    with pytest.raises(hs.errors.ParameterError, match=r"proven for these alone.*gaussian_noise"):
        hs.calibration.classical_gaussian_noise(epsilon, 1e-5)


@pytest.mark.parametrize(
    ("noise", "bits", "gradient"),
    [(1.0, 5.0, "1.00503781525921207549"), (0.5, 10.0, "0.500156323280355346")],
)
def test_the_noise_of_gradients_beside_a_noisy_quantile(
    noise: float, bits: float, gradient: str
) -> None:
    with mp.workdps(30):
        found, truth = mp.mpf(hs.calibration.clipping_noise(noise, bits)), mp.mpf(gradient)
        assert 1 - mp.mpf(10) ** -17 <= found / truth <= 1 + mp.mpf(10) ** -15


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("query_noise", lambda: hs.calibration.joint_noise(2.0, query_noise=2.0)),
        ("bit_noise", lambda: hs.calibration.clipping_noise(2.0, 1.0)),
        ("query_noise, inflation", lambda: hs.calibration.joint_noise(2.0)),
        ("noise_multiplier", lambda: hs.calibration.joint_noise(math.nan, inflation=1.1)),
        ("inflation", lambda: hs.calibration.joint_noise(2.0, inflation=1.0)),
        ("inflation", lambda: hs.calibration.joint_noise(1e308, inflation=1e308)),
        ("sigma", lambda: hs.calibration.max_error_quantile(-1.0, 5, 0.1)),
        ("sigma", lambda: hs.calibration.max_error_quantile(math.inf, 5, 0.1)),
        ("coordinates", lambda: hs.calibration.max_error_quantile(1.0, 0, 0.1)),
        ("failure", lambda: hs.calibration.max_error_quantile(1.0, 5, 0.0)),
        ("failure", lambda: hs.calibration.max_error_union_bound(1.0, 5, 1.0)),
        ("coordinates", lambda: hs.calibration.max_error_union_bound(1.0, 2.5, 0.5)),  # type: ignore[arg-type]
        ("error", lambda: hs.calibration.max_error_probability(-1.0, 1.0, 5)),
        ("error", lambda: hs.calibration.max_error_probability(math.nan, 1.0, 5)),
    ],
)
def test_wrong_values_are_refused_by_name(name: str, call: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match=f"^{name} must be"):
        call()


@each_budget
@pytest.mark.parametrize("by", ["cost", "least-noise"])
@pytest.mark.parametrize("weights", [(1.0,), (0.1, 3.0, 7.0, 20.0)])
def test_a_split_keeps_to_its_budget_and_meets_it(
    budget: Any, by: str, weights: tuple[float, ...]
) -> None:
    split = hs.calibration.split_budget(budget, weights=weights, by=by)
    assert len(split.releases) == len(weights)
    assert spent(split.achieved) <= spent(budget)
    assert spent(split.achieved) >= spent(budget) * (1 - 1e-13)
    assert split.achieved == hs.convert(split.plan, type(budget), **given_of(budget))


def given_of(budget: Any) -> dict[str, float]:
    """The free parameter of a budget's notion."""
    return {"delta": budget.delta} if isinstance(budget, hs.ApproxDP) else {}


@each_budget
def test_shares_of_cost_are_in_proportion_to_the_weights(budget: Any) -> None:
    first, second = map(noise_of, hs.calibration.split_budget(budget, weights=[1, 4]).releases)
    power = 1 if isinstance(budget, hs.PureDP) else 2
    assert (first / second) ** power == pytest.approx(4, rel=1e-12)


@each_budget
def test_no_other_split_has_less_noise(budget: Any) -> None:
    weights = (1.0, 2.0, 9.0)
    best = [
        noise_of(one)
        for one in hs.calibration.split_budget(budget, weights=weights, by="least-noise").releases
    ]
    power = 1 if isinstance(budget, hs.PureDP) else 2

    def total(noises: list[float]) -> float:
        return math.fsum(w * b * b for w, b in zip(weights, noises, strict=True))

    shares = [b**-power for b in best]
    for i, j in ((0, 1), (1, 2), (2, 0)):
        for step in (1e-3, -1e-3, 0.05):
            moved = list(shares)
            moved[i] += step * shares[j]
            moved[j] -= step * shares[j]
            assert total([s ** (-1 / power) for s in moved]) > total(best)
    equal = [noise_of(one) for one in hs.calibration.split_budget(budget, parts=3).releases]
    assert total(best) < total(equal)


@pytest.mark.parametrize(
    "budget",
    [
        hs.GDP(0.0),
        hs.GDP(math.inf),
        hs.PureDP(0),
        hs.ApproxDP(1, 0),
        hs.ApproxDP(1, 1),
        hs.TCDP(1, 2),
        3,
    ],
    ids=str,
)
def test_budgets_of_nothing_or_everything_are_refused(budget: Any) -> None:
    noise, refused = hs.Gaussian(1), "budget must be a finite budget above 0"
    with pytest.raises(hs.errors.ParameterError, match=refused):
        hs.calibration.split_budget(budget, parts=2)
    with pytest.raises(hs.errors.ParameterError, match=refused):
        hs.calibration.share_budget(budget, [noise])
    with pytest.raises(hs.errors.ParameterError, match=refused):
        hs.calibration.grid_search(budget, noise, 2)


def test_weights_and_parts_are_checked() -> None:
    ask: Any = hs.calibration.split_budget
    for wrong in ({}, {"parts": 2, "weights": [1, 2]}):
        with pytest.raises(
            hs.errors.ParameterError, match="parts, weights must be given one without"
        ):
            ask(hs.GDP(1), **wrong)
    for weights in ([], [1, -1], [0], [math.inf], [math.nan], 3, ["1"]):
        with pytest.raises(hs.errors.ParameterError, match=r"^weights must be"):
            ask(hs.GDP(1), weights=weights)
    for parts in (0, -1, 1.5, math.nan):
        with pytest.raises(hs.errors.ParameterError, match=r"^parts must be an integer"):
            ask(hs.GDP(1), parts=parts)
    with pytest.raises(hs.errors.ParameterError, match=r"^by must be one of"):
        ask(hs.GDP(1), parts=2, by="taste")


@pytest.mark.parametrize("by", ["cost", "least-noise"])
@pytest.mark.parametrize("weights", [(1e-300, 1e300, 1e300), (5e-324, 1.0)])
@pytest.mark.parametrize("budget", [*BUDGETS, hs.GDP(5e-324), hs.PureDP(1e308)], ids=str)
def test_weights_far_apart_and_budgets_next_to_nothing_are_split(
    budget: Any, weights: tuple[float, ...], by: str
) -> None:
    split = hs.calibration.split_budget(budget, weights=weights, by=by)
    assert len(split.releases) == len(weights)
    assert spent(split.achieved) <= spent(budget)


def test_a_common_factor_meets_the_budget_from_below() -> None:
    runs = [hs.DPSGD(noise_multiplier=z, rate=0.02, steps=300) for z in (1.0, 2.0)]
    parts = [*runs, hs.Gaussian(5.0) ** 3, hs.Laplace(8.0)]
    budget = hs.ApproxDP(1.5, 1e-6)
    split = hs.calibration.share_budget(budget, parts)
    truth = hs.epsilon(split.plan, 1e-6)
    assert isinstance(split.achieved, hs.ApproxDP)
    assert truth.upper <= split.achieved.epsilon <= 1.5
    factor = noise_of(split.releases[0])
    assert noise_of(split.releases[1]) == pytest.approx(2 * factor, rel=1e-14)
    assert noise_of(split.releases[3]) == pytest.approx(8 * factor, rel=1e-14)
    less = hs.Composed(split.releases)
    assert less == split.plan
    assert hs.epsilon(with_noise(less, 1 - 1e-6), 1e-6).upper > 1.5


def test_parts_without_noise_and_budgets_out_of_reach_are_refused() -> None:
    for budget, part in (
        (hs.GDP(1.0), hs.RandomizedResponse(1.0, 2)),
        (hs.PureDP(1.0), hs.Gaussian(1.0)),
        (hs.ApproxDP(1.0, 1e-5), hs.Gaussian(0.0)),
    ):
        with pytest.raises(hs.errors.IncompatibleError):
            hs.calibration.share_budget(budget, [part])
    wrong: Any = [1.0]
    calls: tuple[tuple[str, Any], ...] = (
        (r"parts\[0\]", lambda: hs.calibration.share_budget(hs.GDP(1.0), wrong)),
        ("parts", lambda: hs.calibration.share_budget(hs.GDP(1.0), [])),
        ("parts", lambda: hs.calibration.share_budget(hs.GDP(1.0), wrong[0])),
        ("runs", lambda: hs.calibration.grid_search(hs.GDP(1.0), hs.Gaussian(1.0), 0)),
    )
    for name, call in calls:
        with pytest.raises(hs.errors.ParameterError, match=f"^{name} must be"):
            call()


def test_all_that_wraps_noise_has_it_multiplied() -> None:
    inner, more = hs.Gaussian(3.0), hs.Gaussian(6.0)
    for wrap in (
        lambda one: hs.PoissonSubsampled(one, 0.1),
        lambda one: hs.FixedSizeSubsampled(one, 5, 50),
        lambda one: hs.mechanisms.RandomAllocation(one, steps=10),
        lambda one: hs.mechanisms.RandomStopping(one, hs.mechanisms.tuning.Poisson(3)),
        lambda one: hs.mechanisms.RevealedSample(one, 0.1),
        lambda one: hs.Shuffled(one, steps=4),
        lambda one: hs.mechanisms.TruncatedPoissonSubsampled(one, 0.1, 20, 50),
        lambda one: hs.mechanisms.WithReplacementSubsampled(one, 3, 15),
        lambda one: hs.mechanisms.BatchClipped(hs.mechanisms.RandomAllocation(one, 20), 200),
        lambda one: one**5 @ hs.Gaussian(one.noise_multiplier),
    ):
        assert with_noise(wrap(inner), 2.0) == wrap(more)


# The largest of many Gaussian errors: against the distribution itself, by mpmath.

CASES = [
    (1.0, 1, 0.05),
    (9.15345, 10_000, 0.01),
    (0.3, 7, 0.999),
    (1e10, 10**15, 1e-200),
    (2.0, 3, 1e-12),
]


def log_chance(limit: float, sigma: float, coordinates: int) -> Any:
    """Return ``ln P(no error exceeds a limit)``, by the error function's complement."""
    place = mp.mpf(limit) / (mp.mpf(repr(sigma)) * mp.sqrt(2))
    return coordinates * mp.log1p(-mp.erfc(place))


@pytest.mark.parametrize(("sigma", "coordinates", "failure"), CASES)
def test_the_quantile_is_exceeded_as_often_as_it_should(
    sigma: float, coordinates: int, failure: float
) -> None:
    found = hs.calibration.max_error_quantile(sigma, coordinates, failure)
    with mp.workdps(260):
        goal = mp.log1p(-min(mp.mpf(failure), mp.mpf(repr(failure))))
        assert log_chance(found, sigma, coordinates) >= goal
        assert log_chance(found * (1 - 4e-16), sigma, coordinates) < goal


@pytest.mark.parametrize(("sigma", "coordinates", "failure"), CASES)
def test_the_probability_is_a_lower_end_within_some_ulps(
    sigma: float, coordinates: int, failure: float
) -> None:
    for factor in (0.2, 1.0, 3.0):
        limit = factor * hs.calibration.max_error_quantile(sigma, coordinates, failure)
        found = hs.calibration.max_error_probability(limit, sigma, coordinates)
        with mp.workdps(60):
            truth = mp.exp(log_chance(limit, sigma, coordinates))
            assert found <= truth
            # A probability may be below any float.
            assert found >= truth * (1 - mp.mpf(10) ** -15) - mp.mpf(10) ** -300


@pytest.mark.parametrize(("sigma", "coordinates", "failure"), CASES)
def test_the_union_bound_is_its_formula_and_above_the_quantile(
    sigma: float, coordinates: int, failure: float
) -> None:
    found = hs.calibration.max_error_union_bound(sigma, coordinates, failure)
    with mp.workdps(40):
        share = 2 * coordinates / mp.mpf(repr(failure))
        truth = mp.mpf(repr(sigma)) * mp.sqrt(2 * mp.log(share))
        assert truth <= found <= truth * (1 + mp.mpf(10) ** -15)
    assert found > hs.calibration.max_error_quantile(sigma, coordinates, failure)


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (hs.calibration.max_error_quantile(0.0, 5, 0.1), 0.0),
        (hs.calibration.max_error_union_bound(0.0, 5, 0.1), 0.0),
        (hs.calibration.max_error_probability(0.0, 0.0, 5), 1.0),
        (hs.calibration.max_error_probability(0.0, 1.0, 5), 0.0),
        (hs.calibration.max_error_probability(math.inf, 1.0, 5), 1.0),
        (hs.calibration.max_error_probability(1e300, 1e-300, 10**15), math.nextafter(1.0, 0.0)),
    ],
)
def test_the_edges_of_the_largest_error(found: float, value: float) -> None:
    assert found == value
