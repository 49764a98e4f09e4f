"""dp-accounting's events as mechanisms and back, and its accountants next to ours."""

import math
from fractions import Fraction
from typing import Any

import mpmath
import pytest

import hockeystick as hs
from hockeystick import Adjacency
from hockeystick.mechanisms import tuning

pytest.importorskip("dp_accounting")

import dp_accounting as dpa
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from hockeystick.adapters.dp_accounting import HockeystickAccountant, from_event, to_event
from hockeystick.adapters.dp_accounting._events import read

ADD, REPLACE, ZERO = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT
RELATION = {
    ADD: dpa.NeighboringRelation.ADD_OR_REMOVE_ONE,
    REPLACE: dpa.NeighboringRelation.REPLACE_ONE,
    ZERO: dpa.NeighboringRelation.REPLACE_SPECIAL,
}
NOTHING = hs.PureDP(0) ** 0
Gaussian, Poisson = dp_event.GaussianDpEvent, dp_event.PoissonSampledDpEvent
Times, Both = dp_event.SelfComposedDpEvent, dp_event.ComposedDpEvent
Without = dp_event.SampledWithoutReplacementDpEvent
With = dp_event.SampledWithReplacementDpEvent
Truncated = dp_event.TruncatedSubsampledGaussianDpEvent


def _dpsgd(noise: float, rate: float, steps: int) -> hs.Mechanism:
    return hs.PoissonSubsampled(hs.Gaussian(noise), rate) ** steps


# Event, adjacency, mechanism: what loses nothing in either direction.
EXACT: list[tuple[Any, Adjacency, hs.Mechanism]] = [
    (Gaussian(1.1), ADD, hs.Gaussian(1.1)),
    (Gaussian(1.1), ZERO, hs.Gaussian(1.1)),
    (Gaussian(1.1), REPLACE, hs.Gaussian(0.55)),
    (Gaussian(0.0), ADD, hs.Gaussian(0)),
    (dp_event.LaplaceDpEvent(3.0), ADD, hs.Laplace(3)),
    (dp_event.LaplaceDpEvent(3.0), REPLACE, hs.Laplace(1.5)),
    (dp_event.DiscreteLaplaceDpEvent(0.25, 3), ZERO, hs.DiscreteLaplace(4, 3)),
    (dp_event.DiscreteLaplaceDpEvent(0.25, 3), REPLACE, hs.DiscreteLaplace(4, 6)),
    (Times(Gaussian(2.0), 7), ADD, hs.Gaussian(2) ** 7),
    (Both([Gaussian(2.0), dp_event.LaplaceDpEvent(1.0)]), ADD, hs.Gaussian(2) @ hs.Laplace(1)),
    (
        Times(Both([Poisson(0.1, Gaussian(2.0)), Gaussian(9.0)]), 5),
        ADD,
        (hs.PoissonSubsampled(hs.Gaussian(2), 0.1) @ hs.Gaussian(9)) ** 5,
    ),
    (Poisson(0.1, Gaussian(2.0)), ZERO, hs.PoissonSubsampled(hs.Gaussian(2), 0.1, ZERO)),
    (Poisson(0.1, Gaussian(2.0)), REPLACE, hs.PoissonSubsampled(hs.Gaussian(2), 0.1, REPLACE)),
    (Poisson(0.1, dp_event.LaplaceDpEvent(2.0)), ADD, hs.PoissonSubsampled(hs.Laplace(2), 0.1)),
    (
        dp_event.SampledWithoutReplacementDpEvent(1000, 10, Gaussian(2.0)),
        REPLACE,
        hs.FixedSizeSubsampled(hs.Gaussian(1), 10, 1000),
    ),
    (
        dp_event.SampledWithoutReplacementDpEvent(1000, 10, Gaussian(2.0)),
        ADD,
        hs.FixedSizeSubsampled(hs.Gaussian(1), 10, 1000, ADD),
    ),
    (
        dp_event.SampledWithReplacementDpEvent(1000, 10, Gaussian(2.0)),
        REPLACE,
        hs.mechanisms.WithReplacementSubsampled(hs.Gaussian(1), 10, 1000),
    ),
    (
        dp_event.TruncatedSubsampledGaussianDpEvent(1000, 0.01, 20, 1.5),
        ADD,
        hs.mechanisms.TruncatedPoissonSubsampled(hs.Gaussian(1.5), 0.01, cap=20, examples=1000),
    ),
    (
        dp_event.SingleEpochTreeAggregationDpEvent(3.0, 12),
        ZERO,
        hs.mechanisms.TreeAggregation(3, leaves=12),
    ),
    (
        dp_event.MixtureOfGaussiansDpEvent(1.0, (0.0, 1.0), (0.9, 0.1)),
        ADD,
        hs.mechanisms.GaussianMixture(1, (0, 1), (0.9, 0.1)),
    ),
    (
        dp_event.RepeatAndSelectDpEvent(Gaussian(3.0), 10.0, math.inf),
        ADD,
        hs.mechanisms.RandomStopping(hs.Gaussian(3), tuning.Poisson(10)),
    ),
    (dp_event.ZCDpEvent(0.1), ZERO, hs.ZCDP(0.1)),
    (dp_event.NoOpDpEvent(), ADD, NOTHING),
    (dp_event.NonPrivateDpEvent(), ADD, hs.PureDP(math.inf)),
]


@pytest.mark.parametrize(("event", "adjacency", "mechanism"), EXACT)
def test_an_event_is_read_as_its_mechanism_and_written_back(
    event: Any, adjacency: Adjacency, mechanism: hs.Mechanism
) -> None:
    assert from_event(event, adjacency) == mechanism
    assert to_event(mechanism, adjacency) == event
    assert from_event(event, str(adjacency)) == mechanism


# What DP-SGD of TensorFlow Privacy 0.9.0 and JAX Privacy 2 builds, and what is not in EXACT.
BUILT: list[tuple[Any, Adjacency, hs.Mechanism]] = [
    (Times(Poisson(256 / 60_000, Gaussian(1.1)), 3633), ADD, _dpsgd(1.1, 256 / 60_000, 3633)),
    # A DPQuery that clips at a quantile, sampled, in a ledger with one round that differs.
    (
        Both([Times(Poisson(0.1, Both([Gaussian(3.0), Gaussian(4.0)])), 9), Gaussian(5.0)]),
        ADD,
        _dpsgd(2.4, 0.1, 9) @ hs.Gaussian(5),
    ),
    *(
        (
            Truncated(1000, 0.1, 150, 3.0),
            adjacency,
            hs.mechanisms.TruncatedPoissonSubsampled(hs.Gaussian(3), 0.1, 150, 1000, adjacency),
        )
        for adjacency in (ZERO, REPLACE)
    ),
    (
        Without(1000, 50, Gaussian(3.0)),
        ZERO,
        hs.FixedSizeSubsampled(hs.Gaussian(1.5), 50, 1000, ZERO, clipped=True),
    ),
    (Times(dp_event.ZCDpEvent(0.5 / 3.0**2), 9), ADD, hs.ZCDP(0.5 / 9) ** 9),
]


@pytest.mark.parametrize(("event", "adjacency", "mechanism"), BUILT)
def test_what_tensorflow_privacy_and_jax_privacy_build_is_read_and_accounted_for(
    event: Any, adjacency: Adjacency, mechanism: hs.Mechanism
) -> None:
    found = from_event(event, adjacency)
    assert str(found) == str(mechanism)
    ours, truth = (hs.epsilon(one, 1e-5, tolerance=0.1) for one in (found, mechanism))
    assert (ours.lower, ours.upper) == pytest.approx((truth.lower, truth.upper), rel=1e-12)
    assert HockeystickAccountant(RELATION[adjacency]).supports(event)


def test_a_plan_is_written_as_what_it_stands_for() -> None:
    plan = hs.DPSGD(rate=0.25, steps=100, noise_multiplier=1.5)
    event = Times(Poisson(0.25, Gaussian(1.5)), 100)
    assert to_event(plan) == event
    assert from_event(event) == plan.mechanism
    replaced = hs.DPSGD(rate=0.25, steps=100, noise_multiplier=1.5, adjacency="replace-one")
    assert to_event(replaced) == event
    assert from_event(event, REPLACE) == replaced.mechanism


def test_what_releases_nothing_releases_nothing_in_a_sample() -> None:
    inside = [dp_event.NoOpDpEvent(), Times(Gaussian(1.0), 0), Both([])]
    for event in inside:
        assert from_event(Poisson(0.5, event)) == NOTHING
        assert from_event(Without(9, 3, event), REPLACE) == NOTHING
    assert from_event(Both([])) == NOTHING
    assert from_event(Without(9, 0, Gaussian(1.0)), REPLACE) == NOTHING
    assert from_event(With(9, 0, Gaussian(1.0)), REPLACE) == NOTHING
    assert from_event(dp_event.RandomizedResponseDpEvent(0.0, 1), REPLACE) == NOTHING
    assert from_event(dp_event.TruncatedSubsampledGaussianDpEvent(0, 0.5, 2, 1.0)) == NOTHING
    assert from_event(dp_event.TruncatedSubsampledGaussianDpEvent(9, 0.5, 0, 1.0)) == NOTHING


def test_a_record_is_in_one_tree_and_the_largest_counts() -> None:
    event = dp_event.SingleEpochTreeAggregationDpEvent(3.0, [5, 12, 1])
    assert from_event(event, ZERO) == hs.mechanisms.TreeAggregation(3, leaves=12)


def test_several_gaussians_on_one_sample_are_one_with_no_more_noise() -> None:
    event = Poisson(0.1, Both([Gaussian(2.0), Times(Gaussian(3.0), 2), dp_event.NoOpDpEvent()]))
    read = from_event(event)
    assert isinstance(read, hs.PoissonSubsampled)
    assert isinstance(read.inner, hs.Gaussian)
    truth = (Fraction(1, 4) + Fraction(2, 9)) ** -1
    assert Fraction(read.inner.noise_multiplier) ** 2 <= truth
    assert read.inner.noise_multiplier == pytest.approx(math.sqrt(truth), rel=1e-15)
    assert from_event(Poisson(0.1, Times(Gaussian(3.0), 1))) == from_event(
        Poisson(0.1, Gaussian(3.0))
    )
    quiet = from_event(Poisson(0.1, Both([Gaussian(0.0), Gaussian(3.0)])))
    assert quiet == hs.PoissonSubsampled(hs.Gaussian(0), 0.1)
    silent = from_event(Poisson(0.1, Times(Gaussian(math.inf), 3)))
    assert silent == hs.PoissonSubsampled(hs.Gaussian(math.inf), 0.1)


@pytest.mark.parametrize("noise", [0.1, 0.3, 0.7, 3.0, 1e-300, 1e300])
def test_discrete_laplace_is_rounded_to_less_noise_both_ways(noise: float) -> None:
    read = from_event(dp_event.DiscreteLaplaceDpEvent(noise, 2))
    assert isinstance(read, hs.DiscreteLaplace)
    assert Fraction(read.scale) * Fraction(noise) <= 1
    assert read.scale == pytest.approx(1 / noise, rel=1e-15)
    written = to_event(read)
    assert Fraction(written.noise_parameter) * Fraction(read.scale) >= 1
    assert written.noise_parameter == pytest.approx(noise, rel=1e-15)


def test_the_ends_of_discrete_laplace_are_the_ends() -> None:
    assert from_event(dp_event.DiscreteLaplaceDpEvent(0.0, 1)) == hs.DiscreteLaplace(0)
    assert to_event(hs.DiscreteLaplace(0)) == dp_event.NonPrivateDpEvent()
    assert to_event(hs.DiscreteLaplace(math.inf)) == dp_event.NoOpDpEvent()
    with pytest.raises(hs.errors.UnsupportedError, match="an even number"):
        to_event(hs.DiscreteLaplace(2, sensitivity=3), REPLACE)


@pytest.mark.parametrize(("chance", "buckets"), [(0.3, 5), (0.999, 2), (1e-9, 100), (0.5, 10**6)])
def test_randomized_response_is_rounded_to_more_truth_both_ways(
    chance: float, buckets: int
) -> None:
    read = from_event(dp_event.RandomizedResponseDpEvent(chance, buckets), REPLACE)
    assert isinstance(read, hs.RandomizedResponse)
    assert read.categories == buckets
    with mpmath.workdps(40):
        p = mpmath.mpf(chance)
        truth = mpmath.log((1 - p + p / buckets) / (p / buckets))
        assert truth <= read.epsilon
        assert read.epsilon == pytest.approx(float(truth), rel=1e-13)
        written = to_event(read, REPLACE).noise_parameter
        assert written <= buckets / (mpmath.exp(mpmath.mpf(read.epsilon)) + buckets - 1)
    assert written == pytest.approx(chance, rel=1e-12)


def test_the_ends_of_randomized_response_are_the_ends() -> None:
    for chance, epsilon in ((0.0, math.inf), (1.0, 0.0)):
        event = dp_event.RandomizedResponseDpEvent(chance, 4)
        assert from_event(event, REPLACE) == hs.RandomizedResponse(epsilon, 4)
        assert to_event(hs.RandomizedResponse(epsilon, 4), REPLACE) == event


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, 3.0])
def test_a_random_number_of_runs_is_rounded_to_more_runs_both_ways(shape: float) -> None:
    read = from_event(dp_event.RepeatAndSelectDpEvent(Gaussian(3.0), 7.0, shape))
    assert isinstance(read, hs.mechanisms.RandomStopping)
    distribution = read.distribution
    assert isinstance(distribution, tuning.TruncatedNegativeBinomial)
    with mpmath.workdps(40):
        gamma, eta = mpmath.mpf(distribution.gamma), mpmath.mpf(shape)
        share = (1 - gamma**eta) / eta if shape else -mpmath.log(gamma)
        mean = (1 - gamma) / gamma / share
        assert 7 <= mean <= 7 * (1 + mpmath.mpf("3e-11"))
        written = to_event(read)
        assert mean <= written.mean <= mean * (1 + mpmath.mpf("3e-11"))
    assert written.shape == shape
    assert from_event(dp_event.RepeatAndSelectDpEvent(Gaussian(3.0), 1, shape)) == hs.Gaussian(3)


@pytest.mark.parametrize(("rho", "xi"), [(0.1, 0.2), (1e-4, 3.0), (0.0, 0.1), (2.0, 1e-9)])
def test_zcdp_with_a_constant_is_read_at_orders_and_rounded_to_larger_divergences(
    rho: float, xi: float
) -> None:
    read = from_event(dp_event.ZCDpEvent(rho, xi))
    assert isinstance(read, hs.RenyiDP)
    for order, divergence in read.divergences:
        truth = Fraction(xi) + Fraction(rho) * Fraction(order)
        assert truth <= Fraction(divergence) <= truth * Fraction(1 + 1e-14)
    best = min(
        xi + rho * order + math.log1p(-1 / order) - math.log(1e-6 * order) / (order - 1)
        for order in (1 + 2 ** (k / 100) for k in range(-500, 1500))
    )
    assert hs.epsilon(read, 1e-6).upper == pytest.approx(best, rel=2e-3)


def test_an_exact_rate_is_written_as_no_smaller_float() -> None:
    for rate in (Fraction(1, 3), Fraction(1, 10), Fraction(2, 3), Fraction(1)):
        written = to_event(hs.PoissonSubsampled(hs.Gaussian(1), rate)).sampling_probability
        assert Fraction(written) >= rate
        assert written == pytest.approx(float(rate), rel=1e-15)


@pytest.mark.parametrize("noise", [5e-324, 1.5e-323, 1e308, 1.7976931348623157e308])
def test_halving_and_doubling_never_add_noise(noise: float) -> None:
    read = from_event(Gaussian(noise), REPLACE)
    assert isinstance(read, hs.Gaussian)
    assert Fraction(read.noise_multiplier) * 2 <= Fraction(noise)
    assert Fraction(to_event(hs.Gaussian(noise), REPLACE).noise_multiplier) <= 2 * Fraction(noise)
    assert to_event(hs.Gaussian(math.inf), REPLACE) == Gaussian(math.inf)


REFUSED: list[tuple[Any, Adjacency, str]] = [
    (dp_event.UnsupportedDpEvent(), ADD, "there is no mechanism for a UnsupportedDpEvent"),
    (dp_event.RandomizedResponseDpEvent(0.5, 2), ADD, "under replace-one alone, not under add-rem"),
    (dp_event.RandomizedResponseDpEvent(0.5, 2), ZERO, "under replace-one alone"),
    (dp_event.SampledWithReplacementDpEvent(9, 3, Gaussian(1.0)), ADD, "under replace-one alone"),
    (dp_event.SingleEpochTreeAggregationDpEvent(1.0, 3), ADD, "under zero-out alone"),
    (dp_event.MixtureOfGaussiansDpEvent(1.0, [1.0], [1.0]), REPLACE, "under add-remove alone"),
    (dp_event.ZCDpEvent(-0.1), ADD, "rho must be"),
    (dp_event.ZCDpEvent(0.1, -0.2), ADD, "xi must be"),
    (
        dp_event.SampledWithoutReplacementDpEvent(9, 3, dp_event.ZCDpEvent(0.1)),
        ADD,
        "not known under replace-one but add-remove",
    ),
    (Poisson(0.5, dp_event.LaplaceDpEvent(1.0)), REPLACE, "analysed for the Gaussian mechanism"),
    (Gaussian(math.nan), ADD, "noise_multiplier must be"),
    (Gaussian(-1.0), REPLACE, "noise_multiplier must be"),
    (dp_event.LaplaceDpEvent("1"), ADD, "noise_multiplier must be"),
    (dp_event.DiscreteLaplaceDpEvent(-1.0, 1), ADD, "noise_parameter must be"),
    (dp_event.DiscreteLaplaceDpEvent(0.0, 0), ADD, "sensitivity must be"),
    (dp_event.RandomizedResponseDpEvent(1.1, 2), REPLACE, "noise_parameter must be"),
    (dp_event.RandomizedResponseDpEvent(0.5, 0), REPLACE, "num_buckets must be"),
    (dp_event.RepeatAndSelectDpEvent(Gaussian(1.0), 0.5, 1.0), ADD, "mean must be"),
    (dp_event.RepeatAndSelectDpEvent(Gaussian(1.0), 5.0, -0.5), ADD, "shape must be"),
    (dp_event.SingleEpochTreeAggregationDpEvent(1.0, []), ZERO, "step_counts must be"),
    (Times(Gaussian(1.0), -1), ADD, "count must be"),
    (Without(9, 0.5, Gaussian(1.0)), REPLACE, "sample_size must be"),
    (Without(9, 10, Gaussian(1.0)), REPLACE, "batch_size must be"),
    # JAX Privacy's execution plans for truncated batches name these neighbours.
    (Poisson(1.5, Gaussian(1.0)), ADD, "rate must be"),
]


@pytest.mark.parametrize(("event", "adjacency", "reason"), REFUSED)
def test_what_has_no_counterpart_is_refused_with_the_reason_and_not_supported(
    event: Any, adjacency: Adjacency, reason: str
) -> None:
    with pytest.raises(hs.HockeystickError, match=reason):
        from_event(event, adjacency)
    accountant = HockeystickAccountant(RELATION[adjacency]).compose(Gaussian(2.0))
    for inside in (event, Both([Gaussian(2.0), event])):
        assert not accountant.supports(inside)
        with pytest.raises(dpa.UnsupportedEventError, match=reason):
            accountant.compose(inside)
    assert len(accountant.account) == 1
    assert accountant.ledger == Gaussian(2.0)


@pytest.mark.parametrize(
    "event",
    [
        Without(60_000, 256, Gaussian(2.2)),
        Times(Both([Gaussian(1.0), Without(60_000, 256, Gaussian(2.2))]), 3),
        dp_event.RepeatAndSelectDpEvent(Without(9, 3, Gaussian(1.0)), 5.0, 1.0),
    ],
)
def test_a_sample_of_a_fixed_size_is_read_only_for_the_neighbours_that_are_named(
    event: Any,
) -> None:
    # RdpAccountant has it under REPLACE_ONE alone; what costs less is never answered in silence.
    name = r"write from_event\(event, 'replace-one'\) or HockeystickAccountant\(NeighboringRelati"
    with pytest.raises(hs.errors.UnsupportedError, match=name):
        from_event(event)
    assert not RdpAccountant().supports(event)
    assert not HockeystickAccountant().supports(event)
    with pytest.raises(dpa.UnsupportedEventError, match=name):
        HockeystickAccountant().compose(event)
    for adjacency in (ADD, REPLACE):
        assert from_event(event, adjacency).adjacency is adjacency
        assert HockeystickAccountant(RELATION[adjacency]).supports(event)


@pytest.mark.parametrize("adjacency", [ADD, REPLACE, ZERO])
@pytest.mark.parametrize(
    "inside",
    [
        Without(100, 10, Gaussian(1.0)),
        With(100, 10, Gaussian(1.0)),
        Truncated(100, 0.1, 20, 1.0),
        Both([Gaussian(1.0), Times(Without(100, 10, Gaussian(1.0)), 2)]),
        Poisson(0.5, Without(100, 10, Gaussian(1.0))),
        dp_event.RepeatAndSelectDpEvent(Without(100, 10, Gaussian(1.0)), 5.0, 1.0),
    ],
)
def test_nothing_is_drawn_from_a_given_number_of_records_in_a_poisson_sample(
    inside: Any, adjacency: Adjacency
) -> None:
    # Of 100 records half are in the sample: 10 of those are a fifth, and not the tenth it says.
    with pytest.raises(hs.errors.UnsupportedError, match="a Poisson sample has a random size"):
        from_event(Poisson(0.5, inside), adjacency)
    assert not HockeystickAccountant(RELATION[adjacency]).supports(Poisson(0.5, inside))


def test_a_poisson_sample_of_a_sample_is_one_of_the_product_of_the_rates() -> None:
    nested = HockeystickAccountant().compose(Poisson(0.5, Poisson(0.1, Gaussian(1.0))), 2)
    one = HockeystickAccountant().compose(Poisson(0.05, Gaussian(1.0)), 2)
    assert nested.get_epsilon(1e-5) == pytest.approx(one.get_epsilon(1e-5), rel=1e-3)
    batches = Without(100, 10, Poisson(0.1, Gaussian(1.0)))
    of_batches = HockeystickAccountant(RELATION[REPLACE]).compose(batches, 2)
    at_once = HockeystickAccountant(RELATION[REPLACE]).compose(Poisson(0.01, Gaussian(1.0)), 2)
    assert of_batches.get_epsilon(1e-5) > at_once.account.epsilon(1e-5).lower


def test_no_privacy_in_a_sample_is_no_privacy_of_those_in_it() -> None:
    accountant = HockeystickAccountant().compose(Poisson(0.25, dp_event.NonPrivateDpEvent()))
    assert accountant.get_epsilon(0.2) == math.inf
    assert 0.25 <= accountant.get_delta(5.0) <= 0.25 * (1 + 1e-9)
    never = HockeystickAccountant().compose(Poisson(0.0, dp_event.NonPrivateDpEvent()))
    assert never.get_epsilon(0.0) == 0.0
    for sampled in (Without, With):
        event = sampled(100, 10, dp_event.NonPrivateDpEvent())
        assert not any(HockeystickAccountant(one).supports(event) for one in RELATION.values())


def test_every_class_of_events_is_in_the_tables_here_or_refused_by_name() -> None:
    tested = {type(event) for event, *_ in (*EXACT, *REFUSED)}
    unknown = read.dispatch(dp_event.DpEvent)
    classes = [one for one in vars(dp_event).values() if isinstance(one, type)]
    events = [one for one in classes if issubclass(one, dp_event.DpEvent)]
    assert len(events) >= 18
    for one in events:
        assert one in tested or read.dispatch(one) is unknown


def test_an_event_of_a_later_version_is_refused_by_name() -> None:
    class RandomAllocationDpEvent(dp_event.DpEvent):  # type: ignore[misc]  # theirs has no types
        """A class that dp-accounting 0.6 does not have."""

    for event in (RandomAllocationDpEvent(), Poisson(0.5, RandomAllocationDpEvent())):
        with pytest.raises(
            hs.errors.UnsupportedError, match="no mechanism for a RandomAllocationDpEvent"
        ):
            from_event(event)
        assert not HockeystickAccountant().supports(event)


@pytest.mark.parametrize("sampled", [Without, With])
def test_zcdp_in_a_sample_of_a_fixed_size_is_not_supported(sampled: Any) -> None:
    # As JAX Privacy's fixed_dpsgd_event builds it with use_zcdp=True.
    event = Times(sampled(1000, 10, dp_event.ZCDpEvent(0.5 / 3.0**2)), 512)
    assert not any(HockeystickAccountant(one).supports(event) for one in RELATION.values())


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (Poisson(0.1, dp_event.ZCDpEvent(0.1)), "only some bounds of its privacy loss are known"),
        (
            Poisson(0.1, Both([Gaussian(1.0), dp_event.LaplaceDpEvent(1.0)])),
            "what shares a sample is not amplified apart",
        ),
    ],
)
def test_what_is_read_but_cannot_be_accounted_for_is_not_supported(event: Any, reason: str) -> None:
    assert to_event(from_event(event)) == event
    accountant = HockeystickAccountant()
    assert not accountant.supports(event)
    with pytest.raises(dpa.UnsupportedEventError, match=reason):
        accountant.compose(event)
    assert len(accountant.account) == 0


@pytest.mark.parametrize(
    ("mechanism", "adjacency", "reason"),
    [
        (hs.mechanisms.Skellam(9), None, "dp-accounting has no event for it"),
        (hs.PureDP(1), None, "dp-accounting has no event for it"),
        (hs.Gaussian(1) @ hs.GDP(1), None, "dp-accounting has no event for it"),
        (hs.RandomizedResponse(1), None, "under replace-one alone"),
        (hs.mechanisms.TreeAggregation(1, 3), None, "under zero-out alone"),
        (hs.PoissonSubsampled(hs.Gaussian(1), 0.5), ZERO, "under add-remove, not under zero-out"),
        (hs.FixedSizeSubsampled(hs.Gaussian(1), 2, 9, ZERO), None, "clipped to that norm, say so"),
        (
            hs.mechanisms.RandomStopping(
                hs.Gaussian(1), tuning.TruncatedNegativeBinomial(-0.5, 0.1)
            ),
            None,
            "an event's shape is at least 0",
        ),
        (
            hs.mechanisms.RandomStopping(hs.Gaussian(1), tuning.Binomial(4, 0.5)),
            None,
            "truncated negative binomial or Poisson",
        ),
    ],
)
def test_a_mechanism_without_an_event_is_refused_with_the_reason(
    mechanism: hs.Mechanism, adjacency: Adjacency | None, reason: str
) -> None:
    with pytest.raises(hs.errors.UnsupportedError, match=reason):
        to_event(mechanism, adjacency)


def test_what_is_no_event_and_no_mechanism_is_refused() -> None:
    with pytest.raises(hs.errors.ParameterError, match="event must be a DpEvent"):
        from_event(hs.Gaussian(1))
    with pytest.raises(hs.errors.ParameterError, match="mechanism must be a mechanism"):
        to_event(Gaussian(1.0))
    with pytest.raises(hs.errors.ParameterError, match="adjacency must be"):
        from_event(Gaussian(1.0), "add")
    with pytest.raises(hs.errors.ParameterError, match="neighboring_relation must be"):
        HockeystickAccountant("add-remove")
    with pytest.raises(hs.errors.ParameterError, match="the best of all real ones is taken"):
        HockeystickAccountant([2, 4, 8])
    with pytest.raises(TypeError, match="DpEvent"):
        HockeystickAccountant().compose(hs.Gaussian(1))


PLD_SUPPORTS: list[tuple[Any, Adjacency]] = [
    (Gaussian(1.3), ADD),
    (Gaussian(1.3), REPLACE),
    (Gaussian(1.3), ZERO),
    (dp_event.LaplaceDpEvent(2.0), ADD),
    (dp_event.DiscreteLaplaceDpEvent(0.7, 3), ZERO),
    (Poisson(0.05, Gaussian(1.0)), ADD),
    (Poisson(0.05, Gaussian(1.0)), REPLACE),
    (Poisson(0.05, dp_event.LaplaceDpEvent(1.0)), ADD),
]


@pytest.mark.extras
@pytest.mark.parametrize(("event", "adjacency"), PLD_SUPPORTS)
def test_epsilon_is_that_of_their_loss_distributions(event: Any, adjacency: Adjacency) -> None:
    ours = HockeystickAccountant(RELATION[adjacency]).compose(event, 3)
    theirs = PLDAccountant(RELATION[adjacency]).compose(event, 3)
    assert ours.get_epsilon(1e-5) == pytest.approx(theirs.get_epsilon(1e-5), rel=2e-4)
    assert ours.get_delta(1.0) == pytest.approx(theirs.get_delta(1.0), rel=2e-3)


@pytest.mark.extras
@pytest.mark.parametrize("shape", [0.5, 1.0, math.inf])
def test_epsilon_is_at_most_that_of_their_renyi_divergences(shape: float) -> None:
    tuned = dp_event.RepeatAndSelectDpEvent(Gaussian(3.0), 10.0, shape)
    tree = dp_event.SingleEpochTreeAggregationDpEvent(3.0, [5, 12])
    sampled = Poisson(0.05, Both([Gaussian(2.0), Times(Gaussian(3.0), 2)]))
    for event in (tuned, tree, sampled, dp_event.ZCDpEvent(0.1), dp_event.ZCDpEvent(0.1, 0.1)):
        ours = HockeystickAccountant(RELATION[ZERO]).compose(event, 3).get_epsilon(1e-5)
        theirs = RdpAccountant(neighboring_relation=RELATION[ZERO]).compose(event, 3)
        assert 0.5 * theirs.get_epsilon(1e-5) <= ours <= theirs.get_epsilon(1e-5)


@pytest.mark.extras
def test_replacing_one_record_moves_a_sum_by_twice_the_contribution() -> None:
    event = dp_event.SampledWithoutReplacementDpEvent(1000, 50, Gaussian(2.0))
    ours = HockeystickAccountant(RELATION[REPLACE]).compose(event, 3)
    theirs = RdpAccountant(neighboring_relation=RELATION[REPLACE]).compose(event, 3)
    assert theirs.get_epsilon(1e-5) < 0.4 * ours.account.epsilon(1e-5).lower


def test_a_count_counts_the_runs_of_every_event() -> None:
    response = dp_event.RandomizedResponseDpEvent(0.5, 2)
    at_once = HockeystickAccountant(RELATION[REPLACE]).compose(response, 100)
    one_by_one = HockeystickAccountant(RELATION[REPLACE])
    for _ in range(100):
        one_by_one.compose(response)
    nested = HockeystickAccountant(RELATION[REPLACE]).compose(Times(Times(response, 5), 4), 5)
    assert at_once.get_epsilon(1e-5) == one_by_one.get_epsilon(1e-5) == nested.get_epsilon(1e-5)
    assert at_once.ledger == one_by_one.ledger == nested.ledger
    assert at_once.get_epsilon(1e-5) > 50


def test_an_accountant_answers_with_the_upper_ends_of_its_plan() -> None:
    step = Poisson(0.01, Gaussian(1.1))
    accountant = HockeystickAccountant().compose(Both([step, Gaussian(20.0)]), 500)
    accountant.compose(Times(step, 500))
    plan = hs.PoissonSubsampled(hs.Gaussian(1.1), 0.01) ** 1000 @ hs.Gaussian(20) ** 500
    assert accountant.account.plan == plan
    assert accountant.get_epsilon(1e-6) == hs.epsilon(plan, 1e-6).upper
    assert accountant.get_delta(1.0) == hs.delta(plan, 1.0).upper
    assert accountant.supports(accountant.ledger)
    assert HockeystickAccountant().compose(accountant.ledger).account.plan == plan


def test_the_best_order_is_theirs_on_a_fine_grid() -> None:
    orders = [1.05 + 0.05 * k for k in range(500)]
    for event in (Times(Poisson(0.01, Gaussian(1.1)), 1000), Times(Gaussian(5.0), 20)):
        theirs = RdpAccountant(orders).compose(event).get_epsilon_and_optimal_order(1e-6)
        ours = HockeystickAccountant().compose(event)
        epsilon, order = ours.get_epsilon_and_optimal_order(1e-6)
        assert epsilon == hs.epsilon(ours.account.plan, 1e-6, accountant="rdp").upper
        assert (epsilon, order) == pytest.approx(theirs, rel=5e-3)
        assert ours.get_epsilon(1e-6) < epsilon <= theirs[0]


def test_nothing_costs_nothing_and_no_privacy_is_infinite() -> None:
    accountant = HockeystickAccountant()
    assert (accountant.get_epsilon(1e-5), accountant.get_delta(1.0)) == (0.0, 0.0)
    accountant.compose(dp_event.NoOpDpEvent(), 3)
    assert accountant.get_epsilon(1e-5) == 0.0
    accountant.compose(dp_event.NonPrivateDpEvent())
    assert (accountant.get_epsilon(1e-5), accountant.get_delta(1.0)) == (math.inf, 1.0)


@pytest.mark.parametrize("adjacency", [ADD, ZERO])
def test_their_calibration_finds_the_noise_that_ours_does(adjacency: Adjacency) -> None:
    noise = dpa.calibrate_dp_mechanism(
        lambda: HockeystickAccountant(RELATION[adjacency]),
        lambda noise: Times(Poisson(256 / 60_000, Gaussian(noise)), 14_063),
        target_epsilon=2.0,
        target_delta=1e-5,
    )
    plan = hs.PoissonSubsampled(hs.Gaussian(noise), 256 / 60_000, adjacency) ** 14_063
    assert hs.epsilon(plan, 1e-5).upper <= 2.0
    budget = hs.ApproxDP(epsilon=2, delta=1e-5)
    ours = hs.calibrate(plan, "noise_multiplier", budget).value
    assert noise == pytest.approx(float(ours), abs=2e-6)


def test_a_sample_of_a_fixed_size_without_noise_shows_whoever_is_in_it() -> None:
    for sampled, chance in ((Without, 0.01), (With, 1 - (1 - Fraction(1, 1000)) ** 10)):
        for count in (1, 3):
            event = Times(sampled(1000, 10, Gaussian(0.0)), count)
            accountant = HockeystickAccountant(RELATION[REPLACE]).compose(event)
            truth = float(1 - (1 - Fraction(chance)) ** count)
            assert accountant.get_epsilon(truth * 0.999) == math.inf
            assert accountant.get_epsilon(truth * 1.001) == 0.0
            for epsilon in (0.0, 5.0):
                assert accountant.get_delta(epsilon) == pytest.approx(truth, rel=1e-9)
                assert accountant.get_delta(epsilon) >= truth
    assert HockeystickAccountant(RELATION[ZERO]).supports(Without(1000, 10, Gaussian(0.0)))


def test_their_calibration_begins_without_noise_in_samples_of_a_fixed_size_too() -> None:
    # As JAX Privacy calibrates its fixed_dpsgd_event; the bracket of theirs begins at 0.
    noise = dpa.calibrate_dp_mechanism(
        lambda: HockeystickAccountant(RELATION[REPLACE]),
        lambda noise: Without(1000, 10, Gaussian(noise)),
        target_epsilon=2.0,
        target_delta=1e-5,
        tol=1e-3,
    )
    plan = from_event(Without(1000, 10, Gaussian(noise)), REPLACE)
    assert 1.9 < hs.epsilon(plan, 1e-5).upper <= 2.0


def test_neighbours_may_be_those_that_dp_accounting_names() -> None:
    event = Gaussian(2.0)
    for relation, adjacency in zip(dpa.NeighboringRelation, Adjacency, strict=False):
        assert from_event(event, relation) == from_event(event, adjacency)
    assert from_event(event, dpa.NeighboringRelation.REPLACE_ONE) == hs.Gaussian(1.0)
    with pytest.raises(hs.errors.ParameterError, match=r"did you mean 'add-remove'\?"):
        from_event(event, "add_or_remove_one")
