"""Every pair of notions is decided: converted, exactly or by a bound, or refused with a reason."""

import itertools
import math
from typing import Any, Final

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.conversions import convert, theorems
from hockeystick.notions import FDP, GDP, NOTIONS, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
from hockeystick.numerics.multiprecision import mp

SOURCES: dict[str, Notion] = {
    "PureDP": PureDP(0.75),
    "ApproxDP": ApproxDP(0.75, 1e-4),
    "GDP": GDP(0.8),
    "ZCDP": ZCDP(0.3),
    "TCDP": TCDP(0.2, 6),
    "RenyiDP": RenyiDP({2: 0.5, 6: 1.1}),
    "FDP": FDP(hs.tradeoffs.GaussianTradeOff(0.8)),
}
GIVEN: dict[str, dict[str, Any]] = {
    "ApproxDP": {"delta": 1e-3},
    "TCDP": {"omega": 4},
    "RenyiDP": {"orders": [2, 3.5]},
}
# One row for each source, in the order of the columns; x: refused.
COLUMNS = ("PureDP", "ApproxDP", "GDP", "ZCDP", "TCDP", "RenyiDP", "FDP")
DECIDED = {
    "PureDP": "exact exact exact exact exact exact exact",
    "ApproxDP": "x exact x x x x exact",
    "GDP": "x exact exact exact exact exact exact",
    "ZCDP": "x bound x exact exact exact bound",
    "TCDP": "x bound x x exact exact bound",
    "RenyiDP": "x bound x x bound bound exact",
    "FDP": "x exact exact exact exact exact exact",
}


def kind(found: Notion) -> str:
    """Return whether a result is exact or a bound, by a theorem."""
    assert found.origin is not None
    assert found.origin.theorem
    return found.origin.kind


PAIRS = [(source, target) for source in NOTIONS for target in NOTIONS]


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_pair_is_decided_as_the_table_says(source: str, target: str) -> None:
    decided = DECIDED[source].split()[COLUMNS.index(target)]
    given = GIVEN.get(target, {})
    if decided == "x":
        with pytest.raises(
            hs.errors.IncompatibleError, match=f"no {target} is proven to follow from .*: ..."
        ):
            convert(SOURCES[source], target, **given)
        return
    result = convert(SOURCES[source], NOTIONS[target], **given)
    assert type(result) is NOTIONS[target]
    assert kind(result) == decided
    assert convert(SOURCES[source], target, **given) == result


NOTHING = (PureDP(0), ApproxDP(0, 0), GDP(0), ZCDP(0), TCDP(0, 2), RenyiDP({1.5: 0}))
EVERYTHING = (
    *(PureDP(math.inf), ApproxDP(math.inf, 0.1), ApproxDP(1, 1), GDP(math.inf), ZCDP(math.inf)),
    *(TCDP(math.inf, 3), RenyiDP({2: math.inf})),
)


@pytest.mark.parametrize("target", NOTIONS)
@pytest.mark.parametrize("source", NOTHING, ids=str)
def test_what_releases_nothing_implies_the_same_of_every_notion(source: Any, target: str) -> None:
    result = convert(source, target, **GIVEN.get(target, {}))
    if isinstance(result, FDP):
        assert result.tradeoff(0.25) == pytest.approx(0.75, rel=1e-15)
    elif isinstance(result, RenyiDP):
        assert not any(size for _, size in result.divergences)
    else:
        assert not any(getattr(result, name, 0.0) for name in ("epsilon", "mu", "rho"))


@pytest.mark.parametrize("target", NOTIONS)
@pytest.mark.parametrize("source", EVERYTHING, ids=str)
def test_what_allows_everything_implies_nothing(source: Notion, target: str) -> None:
    with pytest.raises(hs.errors.IncompatibleError, match="it allows everything"):
        convert(source, target, **GIVEN.get(target, {}))


@pytest.mark.parametrize("source", [TCDP(0.3, 3), RenyiDP({3: 1})], ids=str)
@pytest.mark.parametrize("target", ["TCDP", "RenyiDP", "ZCDP"])
def test_orders_beyond_the_last_one_are_refused(source: Notion, target: str) -> None:
    beyond: dict[str, dict[str, Any]] = {"TCDP": {"omega": 4}, "RenyiDP": {"orders": 3.5}}
    given = beyond.get(target, {})
    with pytest.raises(hs.errors.IncompatibleError, match=f"no {target} is .* orders above 3"):
        convert(source, target, **given)


def test_a_line_above_divergences_is_above_their_chords() -> None:
    # K = 1.3 c - 1.2 between the orders 2 and 4, and the line touches it at omega.
    found = convert(RenyiDP({2: 0.1, 4: 0.9, 8: 1.4}), TCDP, omega=3)
    assert found.rho == pytest.approx(1.4 / 6, rel=1e-12)


def test_without_delta_or_truncation_it_is_the_simpler_notion() -> None:
    assert convert(TCDP(0.3, math.inf), ZCDP) == ZCDP(0.3)
    assert convert(ApproxDP(1, 0), PureDP) == PureDP(1)
    assert convert(ApproxDP(1, 0), ZCDP) == convert(PureDP(1), ZCDP)


@pytest.mark.parametrize("source", [GDP(1), ZCDP(0.5), TCDP(0.5, 9), RenyiDP({2: 1})], ids=str)
def test_no_epsilon_has_delta_0_where_losses_are_unbounded(source: Notion) -> None:
    with pytest.raises(hs.errors.IncompatibleError, match="no largest value"):
        convert(source, ApproxDP, delta=0)
    assert convert(source, ApproxDP, delta=1).epsilon == 0.0
    assert convert(source, ApproxDP, epsilon=math.inf).delta == 0.0


def test_no_epsilon_has_a_delta_below_the_probability_of_failure() -> None:
    with pytest.raises(hs.errors.IncompatibleError, match="as small as 1e-05"):
        convert(ApproxDP(1, 1e-4), ApproxDP, delta=1e-5)
    assert convert(ApproxDP(1, 1e-4), ApproxDP, delta=1e-4) == ApproxDP(1, 1e-4)
    assert convert(ApproxDP(1, 1e-4), ApproxDP, epsilon=1) == ApproxDP(1, 1e-4)
    assert convert(ApproxDP(1, 1e-4), ApproxDP, epsilon=9).delta == 1e-4


@pytest.mark.parametrize(
    ("to", "given", "told"),
    [
        ("QDP", {}, "to must be one of 'PureDP'"),
        (None, {}, "to must be a notion: one of PureDP"),
        (hs.Gaussian, {}, "to must be one of 'PureDP'"),
        (ApproxDP, {}, "exactly one of epsilon and delta must be given: delta to ask for epsilon"),
        (ApproxDP, {"epsilon": 1, "delta": 0.1}, "exactly one of epsilon and delta must be given"),
        (ApproxDP, {"delta": -1}, "delta must be a number from 0 to 1"),
        (ApproxDP, {"epsilon": math.nan}, "epsilon must be a number >= 0 or inf"),
        (ApproxDP, {"delta": 0.1, "omega": 2}, "omega must be left out: ApproxDP takes delta, e"),
        (GDP, {"delta": 0.1}, "delta must be left out: GDP takes no parameters; got 0.1"),
        (RenyiDP, {}, "orders must be an order > 1, or several"),
        (RenyiDP, {"orders": "2"}, "orders must be a finite number > 1; got '2'"),
        (RenyiDP, {"orders": [2, 1]}, "orders must be a finite number > 1; got 1"),
        (TCDP, {"omega": 1}, "omega must be a number > 1 or inf; got 1"),
    ],
)
def test_wrong_requests_are_named(to: Any, given: dict[str, Any], told: str) -> None:
    with pytest.raises(hs.errors.ParameterError) as refusal:
        convert(PureDP(1), to, **given)
    assert told in str(refusal.value)
    wrong: Any = 1.0
    with pytest.raises(hs.errors.ParameterError, match=r"^x must be a notion or a plan"):
        convert(wrong, PureDP)


PLAN = hs.PoissonSubsampled(hs.Gaussian(1.5), rate=0.1) ** 20


def test_a_plan_of_gaussians_becomes_every_notion_that_a_gaussian_has() -> None:
    plan = hs.Gaussian(2) ** 3 @ hs.Gaussian(4)
    mu = math.sqrt(3 / 4 + 1 / 16)
    assert convert(plan, GDP).mu == pytest.approx(mu, rel=1e-15)
    assert convert(plan, ZCDP).rho == pytest.approx(mu * mu / 2, rel=1e-15)
    assert convert(plan, TCDP, omega=3).rho == pytest.approx(mu * mu / 2, rel=1e-15)
    found = dict(convert(plan, RenyiDP, orders=[2, 8]).divergences)
    assert found == pytest.approx({2: mu * mu, 8: 4 * mu * mu}, rel=1e-13)
    for result in (convert(plan, GDP), convert(plan, ZCDP), convert(plan, TCDP, omega=3)):
        assert kind(result) == "exact"
    with pytest.raises(hs.errors.IncompatibleError, match="no largest value"):
        convert(plan, PureDP)


def test_a_sampled_plan_gets_its_certified_numbers() -> None:
    assert convert(PLAN, ApproxDP, delta=1e-5).epsilon == hs.epsilon(PLAN, 1e-5).upper
    assert convert(PLAN, ApproxDP, epsilon=0.5).delta == hs.delta(PLAN, 0.5).upper
    rates = np.array([0.01, 0.2])
    assert (convert(PLAN, FDP).tradeoff(rates) == hs.tradeoff(PLAN)(rates)).all()
    ((_, divergence),) = convert(PLAN, RenyiDP, orders=2).divergences
    # ln(1 + q^2 (e^(1/sigma^2) - 1)) a step
    assert divergence == pytest.approx(20 * math.log1p(0.01 * math.expm1(1 / 2.25)), rel=1e-12)
    assert divergence >= 20 * math.log1p(0.01 * math.expm1(1 / 2.25)) * (1 - 1e-15)


TANH: Final = 0.5 * math.tanh(0.25)
KL: Final = 0.5 - 1.0 + math.exp(-0.5)


@pytest.mark.parametrize(
    ("plan", "rho"),
    [
        (hs.DiscreteGaussian(2.0), 1 / 8),
        (FDP(hs.tradeoffs.LaplaceTradeOff(2.0)), KL),
        (hs.RandomizedResponse(0.5), TANH),
        (hs.Exponential(1.0), 1 / 8),
        (hs.mechanisms.GaussianSequence((2.0, 4.0), 0.1), 1 / 8 + 1 / 32),
        (hs.FixedSizeSubsampled(hs.Gaussian(2.0), 3, 30), 1 / 8),
        (hs.Parallel((hs.Gaussian(2.0) ** 3, hs.Laplace(2.0))) ** 2, 6 / 8),
        (hs.federated.RevealedRound(hs.PoissonSubsampled(hs.Gaussian(2.0), 0.1) ** 3, 0.5), 3 / 8),
        (hs.Laplace(2.0) ** 3 @ hs.Gaussian(2.0), 3 * KL + 1 / 8),
        (hs.DiscreteGaussian(2e7, sensitivity=10**7) ** 2 @ hs.Laplace(2.0), 0.25 + KL),
        (hs.DiscreteGaussian(2.5, sensitivity=3) @ hs.Gaussian(2.0), 0.72 + 0.125),
    ],
    ids=str,
)
def test_what_the_losses_tell_of_rho_is_told_and_charged(plan: hs.Mechanism, rho: float) -> None:
    found = convert(plan, ZCDP)
    assert rho * (1 - 1e-15) <= found.rho <= rho * (1 + 1e-12)
    spending = hs.calibration.Filter(ZCDP(100.0))
    spending.step(plan)
    assert spending.spent.rho == pytest.approx(found.rho, rel=1e-12)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("plan", "epsilon"),
    [
        (hs.RandomizedResponse(0.7), 0.7),
        (hs.Exponential(1.0), 1.0),
        (hs.DiscreteLaplace(3.0), 1 / 3),
    ],
    ids=str,
)
def test_a_bounded_loss_has_the_mu_of_its_end(plan: hs.Mechanism, epsilon: float) -> None:
    mu = theorems.liu_mu(epsilon)
    assert convert(plan, GDP).mu == pytest.approx(mu, rel=1e-12)
    both = convert(plan @ hs.Gaussian(2.0), GDP)
    assert both.mu == pytest.approx(math.hypot(mu, 0.5), rel=1e-12)
    assert kind(both) == "bound"


def test_what_has_no_rho_or_mu_is_refused_with_the_reason() -> None:
    for target in (GDP, ZCDP):
        with pytest.raises(hs.errors.IncompatibleError, match=f"no {target.__name__} is proven"):
            convert(hs.PoissonSubsampled(hs.Gaussian(0.0), 0.5), target)
    with pytest.raises(hs.errors.IncompatibleError, match="no rho is known"):
        convert(hs.mechanisms.Skellam(10.0), ZCDP)
    with pytest.raises(hs.errors.IncompatibleError, match="no mu is known"):
        convert(hs.DiscreteGaussian(2.0), GDP)


def normal_quantile(rate: Any) -> Any:
    """Return the quantile by the inverse error function."""
    return mp.sqrt(2) * mp.erfinv(2 * rate - 1)


def laplace_mu(scale: Any, rate: Any) -> Any:
    """Return the mu that the test at one false-positive rate < 1/2 needs of Laplace noise."""
    place = -scale * mp.log(2 * rate) - 1
    tail = mp.exp(-abs(place) / scale) / 2
    return normal_quantile(tail if place > 0 else 1 - tail) - normal_quantile(rate)


@pytest.mark.parametrize("scale", [0.2, 2.0])
def test_the_mu_of_laplace_noise_is_that_of_its_best_test(scale: float) -> None:
    found = convert(hs.Laplace(scale), GDP)
    with mp.workdps(40):
        size = mp.mpf(repr(scale))
        best = mp.exp(-1 / (2 * size)) / 2
        assert laplace_mu(size, best) <= found.mu <= laplace_mu(size, best) * (1 + 1e-14)
        for rate in [best / 2, best * mp.mpf("0.99"), best**2, best**7]:
            assert laplace_mu(size, rate) < found.mu
    assert (kind(found), found.mu < theorems.liu_mu(1 / scale)) == ("exact", True)
    together = convert(hs.Laplace(scale) ** 2, GDP)
    assert together.mu == pytest.approx(math.sqrt(2) * found.mu, rel=1e-12)
    assert kind(together) == "bound"
    sampled = convert(hs.PoissonSubsampled(hs.Laplace(scale), rate=0.9), GDP)
    assert sampled.mu <= found.mu * (1 + 1e-12)


@pytest.mark.parametrize(
    "plan",
    [
        hs.Laplace(0.05),
        hs.Laplace(1e9),
        hs.DiscreteLaplace(0.3, sensitivity=2),
        hs.RandomizedResponse(2.0),
        hs.RandomizedResponse(0.3) ** 2 @ hs.Laplace(2.0) @ hs.Gaussian(3.0),
    ],
    ids=str,
)
def test_the_rho_is_that_of_order_1_and_no_order_needs_more(plan: hs.Mechanism) -> None:
    found = convert(plan, ZCDP)
    near = 1 + 2.0**-30
    orders = [near, *(1 + 2.0**k for k in range(-12, 12))]
    slopes = [d / a for a, d in convert(plan, RenyiDP, orders=orders).divergences]
    assert all(later <= slope * (1 + 1e-14) for slope, later in itertools.pairwise(slopes))
    assert slopes[0] * (1 - 1e-12) <= found.rho <= slopes[0] * (1 + 1e-7)
    assert kind(found) == "exact"
