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
from dp_accounting.rdp import RdpAccountant

from hockeystick.adapters.dp_accounting import HockeystickAccountant, from_event, to_event

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

Discrete, Laplace = dp_event.DiscreteLaplaceDpEvent, dp_event.LaplaceDpEvent
Response, Select = dp_event.RandomizedResponseDpEvent, dp_event.RepeatAndSelectDpEvent
Tree, Zcdp = dp_event.SingleEpochTreeAggregationDpEvent, dp_event.ZCDpEvent


# Event, adjacency, mechanism: what loses nothing in either direction.
EXACT: list[tuple[Any, Adjacency, hs.Mechanism]] = [
    (Gaussian(1.1), ADD, hs.Gaussian(1.1)),
    (Gaussian(1.1), ZERO, hs.Gaussian(1.1)),
    (Gaussian(1.1), REPLACE, hs.Gaussian(0.55)),
    (Gaussian(0.0), ADD, hs.Gaussian(0)),
    (Laplace(3.0), ADD, hs.Laplace(3)),
    (Laplace(3.0), REPLACE, hs.Laplace(1.5)),
    (Discrete(0.25, 3), ZERO, hs.DiscreteLaplace(4, 3)),
    (Discrete(0.25, 3), REPLACE, hs.DiscreteLaplace(4, 6)),
    (Times(Gaussian(2.0), 7), ADD, hs.Gaussian(2) ** 7),
    (Both([Gaussian(2.0), Laplace(1.0)]), ADD, hs.Gaussian(2) @ hs.Laplace(1)),
    (
        Times(Both([Poisson(0.1, Gaussian(2.0)), Gaussian(9.0)]), 5),
        ADD,
        (hs.PoissonSubsampled(hs.Gaussian(2), 0.1) @ hs.Gaussian(9)) ** 5,
    ),
    (Poisson(0.1, Gaussian(2.0)), ZERO, hs.PoissonSubsampled(hs.Gaussian(2), 0.1, ZERO)),
    (Poisson(0.1, Gaussian(2.0)), REPLACE, hs.PoissonSubsampled(hs.Gaussian(2), 0.1, REPLACE)),
    (Poisson(0.1, Laplace(2.0)), ADD, hs.PoissonSubsampled(hs.Laplace(2), 0.1)),
    (Without(99, 9, Gaussian(2.0)), REPLACE, hs.FixedSizeSubsampled(hs.Gaussian(1), 9, 99)),
    (Without(99, 9, Gaussian(2.0)), ADD, hs.FixedSizeSubsampled(hs.Gaussian(1), 9, 99, ADD)),
    (
        With(99, 9, Gaussian(2.0)),
        REPLACE,
        hs.mechanisms.WithReplacementSubsampled(hs.Gaussian(1), 9, 99),
    ),
    (
        Truncated(1000, 0.01, 20, 1.5),
        ADD,
        hs.mechanisms.TruncatedPoissonSubsampled(hs.Gaussian(1.5), 0.01, cap=20, examples=1000),
    ),
    (Tree(3.0, 12), ZERO, hs.mechanisms.TreeAggregation(3, leaves=12)),
    (
        dp_event.MixtureOfGaussiansDpEvent(1.0, (0.0, 1.0), (0.9, 0.1)),
        ADD,
        hs.mechanisms.GaussianMixture(1, (0, 1), (0.9, 0.1)),
    ),
    (
        Select(Gaussian(3.0), 10.0, math.inf),
        ADD,
        hs.mechanisms.RandomStopping(hs.Gaussian(3), tuning.Poisson(10)),
    ),
    (Zcdp(0.1), ZERO, hs.ZCDP(0.1)),
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


def test_what_releases_nothing_releases_nothing_in_a_sample() -> None:
    inside = [dp_event.NoOpDpEvent(), Times(Gaussian(1.0), 0), Both([])]
    for event in inside:
        assert from_event(Poisson(0.5, event)) == NOTHING
        assert from_event(Without(9, 3, event), REPLACE) == NOTHING
    assert from_event(Both([])) == NOTHING
    assert from_event(Without(9, 0, Gaussian(1.0)), REPLACE) == NOTHING
    assert from_event(With(9, 0, Gaussian(1.0)), REPLACE) == NOTHING
    assert from_event(Response(0.0, 1), REPLACE) == NOTHING
    assert from_event(Truncated(0, 0.5, 2, 1.0)) == NOTHING
    assert from_event(Truncated(9, 0.5, 0, 1.0)) == NOTHING


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
    read = from_event(Discrete(noise, 2))
    assert isinstance(read, hs.DiscreteLaplace)
    assert Fraction(read.scale) * Fraction(noise) <= 1
    assert read.scale == pytest.approx(1 / noise, rel=1e-15)
    written = to_event(read)
    assert Fraction(written.noise_parameter) * Fraction(read.scale) >= 1
    assert written.noise_parameter == pytest.approx(noise, rel=1e-15)


@pytest.mark.parametrize(("chance", "buckets"), [(0.3, 5), (0.999, 2), (1e-9, 100), (0.5, 10**6)])
def test_randomized_response_is_rounded_to_more_truth_both_ways(
    chance: float, buckets: int
) -> None:
    read = from_event(Response(chance, buckets), REPLACE)
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


def test_the_ends_of_what_is_rounded_are_the_ends() -> None:
    for chance, epsilon in ((0.0, math.inf), (1.0, 0.0)):
        event = Response(chance, 4)
        assert from_event(event, REPLACE) == hs.RandomizedResponse(epsilon, 4)
        assert to_event(hs.RandomizedResponse(epsilon, 4), REPLACE) == event
    assert from_event(Discrete(0.0, 1)) == hs.DiscreteLaplace(0)
    assert to_event(hs.DiscreteLaplace(0)) == dp_event.NonPrivateDpEvent()
    assert to_event(hs.DiscreteLaplace(math.inf)) == dp_event.NoOpDpEvent()
    with pytest.raises(hs.errors.UnsupportedError, match="an even number"):
        to_event(hs.DiscreteLaplace(2, sensitivity=3), REPLACE)


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, 3.0])
def test_a_random_number_of_runs_is_rounded_to_more_runs_both_ways(shape: float) -> None:
    read = from_event(Select(Gaussian(3.0), 7.0, shape))
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
    assert from_event(Select(Gaussian(3.0), 1, shape)) == hs.Gaussian(3)


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
    (Response(0.5, 2), ADD, "under replace-one alone, not under add-rem"),
    (With(9, 3, Gaussian(1.0)), ADD, "under replace-one alone"),
    (Tree(1.0, 3), ADD, "under zero-out alone"),
    (dp_event.MixtureOfGaussiansDpEvent(1.0, [1.0], [1.0]), REPLACE, "under add-remove alone"),
    (Zcdp(-0.1), ADD, "rho must be"),
    (Zcdp(0.1, -0.2), ADD, "xi must be"),
    (Without(9, 3, Zcdp(0.1)), ADD, "not known under replace-one but add-remove"),
    (Poisson(0.5, Laplace(1.0)), REPLACE, "analysed for the Gaussian mechanism"),
    (Gaussian(math.nan), ADD, "noise_multiplier must be"),
    (Gaussian(-1.0), REPLACE, "noise_multiplier must be"),
    (Laplace("1"), ADD, "noise_multiplier must be"),
    (Discrete(-1.0, 1), ADD, "noise_parameter must be"),
    (Discrete(0.0, 0), ADD, "sensitivity must be"),
    (Response(1.1, 2), REPLACE, "noise_parameter must be"),
    (Response(0.5, 0), REPLACE, "num_buckets must be"),
    (Select(Gaussian(1.0), 0.5, 1.0), ADD, "mean must be"),
    (Select(Gaussian(1.0), 5.0, -0.5), ADD, "shape must be"),
    (Tree(1.0, []), ZERO, "step_counts must be"),
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
        Select(Without(9, 3, Gaussian(1.0)), 5.0, 1.0),
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


@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
@pytest.mark.parametrize(
    "inside",
    [
        Without(100, 10, Gaussian(1.0)),
        With(100, 10, Gaussian(1.0)),
        Truncated(100, 0.1, 20, 1.0),
        Both([Gaussian(1.0), Times(Without(100, 10, Gaussian(1.0)), 2)]),
        Select(Without(100, 10, Gaussian(1.0)), 5.0, 1.0),
    ],
)
def test_nothing_is_drawn_from_a_given_number_of_records_in_a_poisson_sample(
    inside: Any, adjacency: Adjacency
) -> None:
    # Of 100 records half are in the sample: 10 of those are a fifth, and not the tenth it says.
    with pytest.raises(hs.errors.UnsupportedError, match="a Poisson sample has a random size"):
        from_event(Poisson(0.5, inside), adjacency)
    assert not HockeystickAccountant(RELATION[adjacency]).supports(Poisson(0.5, inside))


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (Poisson(0.1, Zcdp(0.1)), "only some bounds of its privacy loss are known"),
        (
            Poisson(0.1, Both([Gaussian(1.0), Laplace(1.0)])),
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


# Read, and written otherwise: what capped batches and several trees are.
BUILT: list[tuple[Any, Adjacency, hs.Mechanism]] = [
    (
        Truncated(1000, 0.1, 150, 3.0),
        REPLACE,
        hs.mechanisms.TruncatedPoissonSubsampled(hs.Gaussian(3), 0.1, 150, 1000, REPLACE),
    ),
    (
        Without(1000, 50, Gaussian(3.0)),
        ZERO,
        hs.FixedSizeSubsampled(hs.Gaussian(1.5), 50, 1000, ZERO, clipped=True),
    ),
    (Tree(3.0, [5, 12, 1]), ZERO, hs.mechanisms.TreeAggregation(3, leaves=12)),
]


@pytest.mark.parametrize(("event", "adjacency", "mechanism"), BUILT)
def test_what_their_libraries_build_is_read_and_accounted_for(
    event: Any, adjacency: Adjacency, mechanism: hs.Mechanism
) -> None:
    found = from_event(event, adjacency)
    assert str(found) == str(mechanism)
    assert from_event(event, RELATION[adjacency]) == found
    assert HockeystickAccountant(RELATION[adjacency]).supports(event)


@pytest.mark.parametrize(("rho", "xi"), [(0.1, 0.2), (0.0, 0.1), (2.0, 1e-9)])
def test_zcdp_with_a_constant_is_read_at_orders_and_rounded_to_larger_divergences(
    rho: float, xi: float
) -> None:
    read = from_event(Zcdp(rho, xi))
    assert isinstance(read, hs.RenyiDP)
    for order, divergence in read.divergences:
        truth = Fraction(xi) + Fraction(rho) * Fraction(order)
        assert truth <= Fraction(divergence) <= truth * Fraction(1 + 1e-14)


class NewDpEvent(dp_event.DpEvent):  # type: ignore[misc]  # theirs has no types
    """A class that dp-accounting 0.6 does not have."""


def test_every_class_of_events_is_in_the_tables_here_or_refused_by_name() -> None:
    tested = {dp_event.DpEvent, *(type(event) for event, *_ in (*EXACT, *REFUSED))}
    classes = {one for one in vars(dp_event).values() if isinstance(one, type)}
    assert {one for one in classes if issubclass(one, dp_event.DpEvent)} <= tested
    with pytest.raises(hs.errors.UnsupportedError, match="for a NewDpEvent"):
        from_event(Poisson(0.5, NewDpEvent()))
    assert not HockeystickAccountant().supports(Poisson(0.5, NewDpEvent()))


def test_what_is_no_event_and_no_mechanism_is_refused_by_name() -> None:
    for name, call in (
        ("event", lambda: from_event(hs.Gaussian(1))),
        ("mechanism", lambda: to_event(Gaussian(1.0))),
        ("adjacency", lambda: from_event(Gaussian(1.0), "add_or_remove_one")),
        ("neighboring_relation", lambda: HockeystickAccountant([2, 4, 8])),
    ):
        with pytest.raises(hs.errors.ParameterError, match=f"^{name} must be"):
            call()
    with pytest.raises(TypeError, match="DpEvent"):
        HockeystickAccountant().compose(hs.Gaussian(1))
