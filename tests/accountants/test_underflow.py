"""A delta below all floats: known at once, and by all that know the plan."""

import pytest

import hockeystick as hs
from hockeystick.accountants.base import DirectedAccountant
from hockeystick.accountants.composition import composition_of
from hockeystick.accountants.contour import Contour, _smoothed, search
from hockeystick.accountants.interval import Interval
from hockeystick.accountants.prv import PRV, _refine

LEAST = 5e-324
# Where noise is far out of proportion the best order of a divergence is out of any quadrature's
# reach, and lower ones do as well. Adding, no loss is above 1.005.
QUESTIONS = [
    (hs.DPSGD(noise_multiplier=noise, rate=0.01, steps=100), epsilon)
    for noise in (300.0, 700.0, 1000.0, 3000.0, 7000.0)
    for epsilon in (0.5, 1.0, 2.19)
]
FURTHER = [
    (hs.Gaussian(50.0), 2.19),
    (hs.Gaussian(1e100), 1e-3),
    (hs.DPSGD(noise_multiplier=10.0, rate=0.01, steps=100), 2.19),
    (hs.mechanisms.GaussianSequence((90.0, 80.0, 70.0), rate=0.05), 1.0),
    (hs.Laplace(40.0) ** 3 @ hs.Gaussian(50.0), 3.0),
    (hs.ZCDP(1e-6), 2.19),
]
# Lines, smoothing and lattices.
WORK = [(search, "cheapest_integral"), (_smoothed, "smoothed_delta"), (_refine, "refined")]


def fail(*_: object, **__: object) -> None:
    """Stand for what is not to be asked."""
    raise AssertionError


@pytest.mark.parametrize("accountant", ["auto", "contour", "prv", "rdp"])
@pytest.mark.parametrize(("plan", "epsilon"), QUESTIONS, ids=str)
def test_a_delta_below_all_floats_is_known_as_such(
    plan: hs.Mechanism, epsilon: float, accountant: str
) -> None:
    found = hs.delta(plan, epsilon, accountant=accountant)
    assert isinstance(found, hs.Certified)
    assert (found.lower, found.upper) == (0.0, LEAST)


@pytest.mark.parametrize(("plan", "epsilon"), [*QUESTIONS, *FURTHER], ids=str)
def test_neither_lattices_nor_smoothing_are_asked_where_no_float_is_left(
    plan: hs.Mechanism, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for room, work in WORK:
        monkeypatch.setattr(room, work, fail)
    found = hs.delta(plan, epsilon)
    assert (found.lower, found.upper) == (0.0, LEAST)


@pytest.mark.parametrize("accountant", [PRV(), Contour()], ids=["prv", "contour"])
@pytest.mark.parametrize(("plan", "epsilon"), QUESTIONS, ids=str)
def test_who_is_asked_alone_goes_no_further_either(
    plan: hs.Mechanism,
    epsilon: float,
    accountant: DirectedAccountant,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for room, work in WORK:
        monkeypatch.setattr(room, work, fail)
    for terms in composition_of(plan, accountant.name).directions:
        assert accountant.delta_of(terms, epsilon).upper in (0.0, LEAST)


@pytest.mark.parametrize("epsilon", [0.05, 0.08, 0.1])
def test_a_delta_that_floats_hold_is_still_integrated(epsilon: float) -> None:
    # 2e-52, 4e-122 and 4e-184.
    plan = hs.DPSGD(noise_multiplier=30.0, rate=0.01, steps=100)
    found = hs.delta(plan, epsilon, accountant="contour")
    assert isinstance(found, hs.Certified)
    assert 0.0 < found.lower
    assert found.relative_width < 1e-6


@pytest.mark.parametrize("tolerance", [1e-12, 1e-9, 1e-3])
def test_an_interval_without_a_float_inside_is_narrow(tolerance: float) -> None:
    assert Interval(0.0, 0.0, LEAST).is_narrow(tolerance)
    assert Interval(LEAST, LEAST, 2 * LEAST).is_narrow(tolerance)
    assert not Interval(0.0, LEAST, 2 * LEAST).is_narrow(tolerance)
    assert Interval(1.0, 1.0, 1.0 + 9e-10).is_narrow(tolerance)
    assert not Interval(1.0, 1.0, 1.01).is_narrow(tolerance)


def test_orders_next_to_1_that_no_float_tells_from_it_say_nothing() -> None:
    often = hs.FDP(hs.tradeoffs.tradeoff_of_deltas([(0.0, 0.5), (3.0, 1e-6), (0.5, 0.25)]))
    reports = hs.mechanisms.ShuffledReports(hs.RandomizedResponse(0.3, 2), 2)
    plan = hs.federated.RevealedRound(often**2, 0.25) @ reports
    assert hs.delta(plan, 6.5).upper >= 1e-6
