"""What is asked: how a delta is read, what is refused, and deltas below all floats."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants import ACCOUNTANTS, directed_delta, gaussian_summary, monte_carlo_delta
from hockeystick.accountants.base import Interval
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import BallsInBins
from hockeystick.numerics.multiprecision import mp

GAUSSIAN, BINS = hs.Gaussian(1.0), BallsInBins(1.0, (1.0,), 4, 2)
REFUSED: list[tuple[str, Callable[[Any], object], list[Any]]] = [
    (
        "delta",
        lambda deltas: hs.epsilon(GAUSSIAN, deltas),
        [[], [1e-5, 2.0], ["a"], np.ones((2, 2)), "1e-5", [math.nan]],
    ),
    (
        "tolerance",
        lambda tolerance: hs.epsilon(GAUSSIAN, 1e-5, tolerance=tolerance),
        [0, -1, 1e-11, 0.2, math.nan, "1e-4", None],
    ),
    (
        "least_rate",
        lambda rate: gaussian_summary(GAUSSIAN, least_rate=rate),
        [0, -1e-3, 0.5, 1e-16, math.nan, "a", None],
    ),
    ("epsilon", lambda epsilon: directed_delta(GAUSSIAN, epsilon, "add"), [math.nan, "1"]),
    ("direction", lambda direction: directed_delta(GAUSSIAN, 1.0, direction), ["removing", None]),
    (
        "plan",
        lambda plan: monte_carlo_delta(plan, 1.0),
        [
            GAUSSIAN,
            *(BallsInBins(*one, 4, 2) for one in ((0.0, (1.0,)), (1.0, (0.0,)))),
            BallsInBins(1.0, (1.0,), 4, 2001),
        ],
    ),
    ("epsilon", lambda epsilon: monte_carlo_delta(BINS, epsilon), [math.inf]),
    ("samples", lambda samples: monte_carlo_delta(BINS, 1.0, samples=samples), [1]),
    ("confidence", lambda level: monte_carlo_delta(BINS, 1.0, confidence=level), [1.0]),
    ("seed", lambda seed: monte_carlo_delta(BINS, 1.0, seed=seed), [-1]),
    ("plan", hs.tradeoff, [3]),
    ("the right side of @", lambda other: hs.tradeoffs.G(1) @ other, [GAUSSIAN]),
    ("count", lambda count: hs.tradeoffs.G(1) ** count, [0.5]),
]


@pytest.mark.parametrize(
    ("name", "ask", "value"), [(name, ask, one) for name, ask, values in REFUSED for one in values]
)
def test_what_is_out_of_its_domain_is_refused_by_name(
    name: str, ask: Callable[[Any], object], value: Any
) -> None:
    with pytest.raises(ParameterError) as caught:
        ask(value)
    assert caught.value.name == name


def test_an_epsilon_by_place_that_looks_like_a_delta_warns() -> None:
    plan = hs.Gaussian(1)
    with pytest.warns(
        UserWarning, match=r"write hockeystick\.epsilon\(plan, delta=1e-05\)"
    ) as seen:
        found = hs.delta(plan, 1e-5)
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert hs.delta(plan, epsilon=1e-5) == found
        assert hs.delta(plan, 0.0) != hs.delta(plan, 1e-3)


# A delta, and epsilon at its own value rather than the decimal it prints as, by bisection.
READ = [
    (hs.Gaussian(0.061), 0.9988647317924046, "83.229412398483396513639540680085"),
    (hs.Gaussian(0.061), 0.9999999999999994, "1.6288989596043249036253673105889"),
    (hs.Gaussian(0.061), 5e-324, "764.47095347868908086293868649303"),
    (hs.PureDP(38.0), 0.9988647317924046, "31.219113650286688629048204390477"),
    (hs.PureDP(38.0), 0.9999999999999994, "2.814425868548120148920440979042"),
    (hs.PureDP(38.0), 5e-324, "38.0"),
    (
        hs.PureDP(31.5) @ hs.PureDP(0.5) @ hs.PureDP(11.8),
        0.9988647317924046,
        "36.512488876162876706484099934986",
    ),
    (hs.PureDP(31.5) @ hs.PureDP(0.5) @ hs.PureDP(11.8), 0.9999999999999994, "0.0"),
    (hs.PureDP(31.5) @ hs.PureDP(0.5) @ hs.PureDP(11.8), 5e-324, "43.8"),
    (hs.Laplace(0.0265), 0.9988647317924046, "24.174076357177206082266472261592"),
    (hs.Laplace(0.0265), 0.9999999999999994, "0.0"),
    (hs.Laplace(0.0265), 5e-324, "37.735849056603773584905660377358"),
]
PROVING = [name for name, one in ACCOUNTANTS.items() if one.kind != "approximation"]


@pytest.mark.parametrize("epsilon", [2.125000000000001, 4.125000000000002, 6.125000000000002])
def test_delta_of_floats_holds_what_digits_say_next_to_an_atom(epsilon: float) -> None:
    plan = hs.DiscreteGaussian(2.0)
    floats, known = hs.delta(plan, epsilon), hs.delta(plan, epsilon, digits=25)
    assert floats.lower <= known.lower <= known.upper <= floats.upper


@pytest.mark.parametrize(("plan", "delta", "own"), READ, ids=str)
def test_epsilon_holds_for_both_readings_of_delta(
    plan: hs.Mechanism, delta: float, own: str
) -> None:
    known = hs.epsilon(plan, delta, digits=30).estimate, mp.mpf(own)
    for name in PROVING:
        try:
            found = hs.epsilon(plan, delta, accountant=name)
        except hs.errors.UnsupportedError:
            continue
        assert isinstance(found, hs.Certified)
        assert found.lower <= min(known) * (1 + mp.mpf(10) ** -25), name
        assert max(known) * (1 - mp.mpf(10) ** -25) <= found.upper, name


LEAST = 5e-324
# Where noise is far out of proportion the best order of a divergence is out of any quadrature's
# reach, and lower ones do as well. Adding, no loss is above 1.005.
QUESTIONS = [
    (hs.DPSGD(noise_multiplier=noise, rate=0.01, steps=100), epsilon)
    for noise in (300.0, 7000.0)
    for epsilon in (0.5, 2.19)
]


@pytest.mark.parametrize("accountant", ["auto", "contour", "prv", "rdp"])
@pytest.mark.parametrize(("plan", "epsilon"), QUESTIONS, ids=str)
def test_a_delta_below_all_floats_is_known_as_such(
    plan: hs.Mechanism, epsilon: float, accountant: str
) -> None:
    found = hs.delta(plan, epsilon, accountant=accountant)
    assert isinstance(found, hs.Certified)
    assert (found.lower, found.upper) == (0.0, LEAST)


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
