"""The odometer's bound: above its formula, above exact tails, and true of adaptive choices."""

import json
import math
import pickle
import time
from typing import Any, Final

import pytest

import hockeystick as hs
from hockeystick.calibration.filters.odometer import OrderLines, _after
from hockeystick.conversions.theorems import steinke_rho
from hockeystick.numerics.multiprecision import mp
from tests.calibration.session.test_accountant import at_once

DELTAS: Final = (0.3, 1e-6, 1e-30)
STEP: Final = hs.PoissonSubsampled(hs.Gaussian(1.1), rate=256 / 60_000)


def formula(rho: Any, delta: float) -> Any:
    """Return the least of the lines, to 40 digits."""
    with mp.workdps(40):
        lines = []
        for j in range(-20, 21):
            slope = 8 * mp.mpf(2) ** j
            share = mp.mpf(repr(delta)) / (mp.mpf("3.16") * (1 + j * j))
            lines.append((slope + 1) * rho - mp.log(share) / slope)
        return min(lines)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("sigma", [0.02, 1.0, 4.0, 300.0])
def test_the_bound_is_the_least_line_rounded_up(delta: float, sigma: float) -> None:
    odometer, rho = hs.calibration.Odometer(delta), 1 / (2 * mp.mpf(repr(sigma)) ** 2)
    for runs in (1, 10, 1000):
        odometer = hs.calibration.Odometer(delta)
        found = odometer.step(hs.Gaussian(sigma), count=runs)
        truth = formula(runs * rho, delta)
        assert truth <= found <= truth * (1 + mp.mpf(10) ** -12)
        assert odometer.epsilon == found


def test_small_largest_losses_are_added_up() -> None:
    odometer = hs.calibration.Odometer(1e-9)
    assert odometer.step(hs.PureDP(0.1), count=3) == 0.3
    assert odometer.step(hs.Laplace(10.0)) == 0.4
    rho = mp.mpf(4 * steinke_rho(0.1)) + mp.mpf(1) / 800
    odometer.step(hs.Gaussian(20.0))
    # Laplace noise has a line of its own, which is no higher.
    assert 0.4 < odometer.epsilon <= formula(rho, 1e-9) * (1 + mp.mpf(10) ** -12)


@pytest.mark.parametrize("expected", [None, STEP**100])
def test_a_state_comes_back_through_json_and_is_taken_over_in_place(expected: Any) -> None:
    odometer = hs.calibration.Odometer(1e-5, expected=expected)
    odometer.step(hs.Gaussian(3.0), count=5)
    odometer.step(hs.Laplace(3.0))
    text = json.dumps(odometer.state_dict(), allow_nan=False)
    found = hs.calibration.Odometer.from_state_dict(json.loads(text))
    assert (found.order, found.epsilon) == (odometer.order, odometer.epsilon)
    assert repr(found) == repr(odometer) == repr(pickle.loads(pickle.dumps(odometer)))
    other = hs.calibration.Odometer(1e-5, expected=expected)
    other.load_state_dict(json.loads(text))
    other.step(hs.Gaussian(3.0))
    assert (len(odometer), len(other)) == (6, 7)
    last = other.epsilon
    for nothing in (hs.Gaussian(math.inf), hs.ZCDP(0.0)):
        assert other.step(nothing) == last
    for state in (hs.calibration.Odometer(1e-6).state_dict(), hs.Accountant().state_dict(), None):
        with pytest.raises(hs.errors.ParameterError, match=r"^(delta|kind) must be"):
            other.load_state_dict(state)
    unlike = hs.calibration.Odometer(1e-5, expected=None if expected else STEP**100)
    with pytest.raises(hs.errors.ParameterError, match=r"^order must be that of"):
        unlike.load_state_dict(odometer.state_dict())
    with pytest.raises(hs.errors.ParameterError, match=r"^order must be"):
        hs.calibration.Odometer.from_state_dict(odometer.state_dict() | {"order": 1.0})


def test_what_has_no_bound_is_refused_and_not_recorded() -> None:
    odometer = hs.calibration.Odometer(1e-5)
    for mechanism in (hs.ApproxDP(0.1, 1e-9), hs.Gaussian(0.0), hs.TCDP(0.1, 5.0)):
        with pytest.raises(hs.errors.IncompatibleError):
            odometer.step(mechanism)
    assert (len(odometer), odometer.epsilon) == (0, 0.0)
    for delta in (0.0, 1.0, math.nan, "1e-5", True):
        with pytest.raises(hs.errors.ParameterError, match=r"^delta must be a number > 0 and < 1"):
            hs.calibration.Odometer(delta)  # type: ignore[arg-type]  # what is refused
    with pytest.raises(hs.errors.IncompatibleError):
        hs.calibration.Odometer(1e-5, expected=hs.Gaussian(0.0))
    with pytest.raises(hs.errors.ParameterError, match=r"^expected must be"):
        hs.calibration.Odometer(1e-5, expected="DP-SGD")  # type: ignore[arg-type]


def test_eight_threads_lose_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def after(*amounts: Any) -> Any:
        found = _after(*amounts)
        time.sleep(0)
        return found

    monkeypatch.setattr("hockeystick.calibration.filters.odometer._after", after)
    odometer = hs.calibration.Odometer(1e-5)

    def work() -> None:
        for _ in range(50):
            odometer.step(hs.Gaussian(30.0))

    at_once(work)
    alone = hs.calibration.Odometer(1e-5)
    assert alone.step(hs.Gaussian(30.0), count=400) == odometer.epsilon
    assert len(odometer) == 400


def mixture(centre: float, divergence: Any, delta: float) -> Any:
    """Return where the mixture over orders is 1/delta, to 40 digits, from ``divergence(order)``."""
    with mp.workdps(40):
        orders = OrderLines(centre).orders
        for k, order in zip(range(-6, 9), orders, strict=True):
            assert math.isclose(order, 1 + (centre - 1) * 2 ** (k / 2))

        def excess(x: Any) -> Any:
            terms = zip(range(-6, 9), map(mp.mpf, orders), strict=True)
            total = sum(
                mp.exp((a - 1) * (x - divergence(a))) / (mp.mpf("2.8841") * (1 + k * k))
                for k, a in terms
            )
            return mp.log(total) + mp.log(mp.mpf(repr(delta)))

        high = mp.mpf(1)
        while excess(high) < 0:
            high *= 2
        return mp.findroot(excess, (0, high), solver="anderson", tol=1e-30, maxsteps=500)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("sigma", [0.02, 1.0, 4.0, 300.0])
def test_the_bound_by_orders_is_where_the_mixture_is_one_over_delta(
    delta: float, sigma: float
) -> None:
    odometer = hs.calibration.Odometer(delta, expected=hs.Gaussian(3.0) ** 20)
    assert odometer.order is not None
    for runs in (1, 10, 1000):
        odometer = hs.calibration.Odometer(delta, expected=hs.Gaussian(3.0) ** 20)
        found = odometer.step(hs.Gaussian(sigma), count=runs)
        rho = runs / (2 * mp.mpf(repr(sigma)) ** 2)
        truth = mixture(odometer.order or 0.0, lambda a, rho=rho: a * rho, delta)
        assert truth <= found <= truth * (1 + mp.mpf(10) ** -11)
        assert odometer.epsilon == found
