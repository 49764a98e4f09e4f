"""The odometer's bound: above its formula, above exact tails, and true of adaptive choices."""

import json
import math
import pickle
import threading
import time
from typing import Any, Final

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.calibration.filters.odometer import OrderLines, _after
from hockeystick.conversions.theorems import steinke_rho
from hockeystick.numerics.multiprecision import mp

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


def test_the_shares_of_delta_add_up_to_less_than_delta() -> None:
    with mp.workdps(30):
        assert mp.pi * mp.coth(mp.pi) < mp.mpf("3.16")
        assert sum(1 / mp.mpf(1 + j * j) for j in range(-20, 21)) < mp.mpf("3.16")


@pytest.mark.parametrize("delta", DELTAS)
def test_at_any_one_time_the_tail_of_the_loss_is_below_delta(delta: float) -> None:
    odometer = hs.calibration.Odometer(delta)
    for _ in range(30):
        odometer.step(hs.Gaussian(3.0), count=7)
        rho = len(odometer) / 18.0
        with mp.workdps(40):
            tail = mp.erfc((odometer.epsilon - rho) / (2 * mp.sqrt(rho))) / 2
            assert 0 < tail < delta


def test_an_adversary_that_looks_at_the_losses_seldom_gets_past_the_bound() -> None:
    """Noise that is chosen by how the loss stands: 4,000 trials, at most delta of them pass."""
    delta, trials, steps = 0.3, 4000, 120
    draw = np.random.default_rng(6)
    loss, rho = np.zeros(trials), np.zeros(trials)
    passed = np.zeros(trials, dtype=bool)
    slopes = 8.0 * 2.0 ** np.arange(-20, 21)
    costs = np.log(3.16 * (1 + np.arange(-20, 21) ** 2) / delta) / slopes
    for _ in range(steps):
        behind = loss < 0.5 * (slopes[:, None] * rho + costs[:, None]).min(axis=0)
        one = np.where(behind, 0.02, 0.002)
        rho += one
        loss += one + np.sqrt(2.0 * one) * draw.standard_normal(trials)
        passed |= loss > ((slopes[:, None] + 1.0) * rho + costs[:, None]).min(axis=0)
    assert 0.0 < passed.mean() < delta


def test_small_largest_losses_are_added_up() -> None:
    odometer = hs.calibration.Odometer(1e-9)
    assert odometer.step(hs.PureDP(0.1), count=3) == 0.3
    assert odometer.step(hs.Laplace(10.0)) == 0.4
    rho = mp.mpf(4 * steinke_rho(0.1)) + mp.mpf(1) / 800
    odometer.step(hs.Gaussian(20.0))
    # Laplace noise has a line of its own, which is no higher.
    assert 0.4 < odometer.epsilon <= formula(rho, 1e-9) * (1 + mp.mpf(10) ** -12)


def test_the_bound_never_falls() -> None:
    odometer, last = hs.calibration.Odometer(1e-5), 0.0
    for step in (hs.PureDP(0.3), hs.Gaussian(2.0), hs.ZCDP(1e-9), hs.PureDP(3.0)) * 3:
        now = odometer.step(step)
        assert now >= last
        last = now


def test_nothing_costs_nothing() -> None:
    odometer = hs.calibration.Odometer(1e-5)
    assert odometer.epsilon == 0.0
    assert odometer.step(hs.Gaussian(1.0), count=0) == 0.0
    assert odometer.step(hs.Gaussian(math.inf), count=9) == 0.0
    assert len(odometer) == 9


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-9, math.nan, math.inf, "1e-5", None, True])
def test_a_delta_that_is_none_is_refused(delta: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match=r"^delta must be a number > 0 and < 1"):
        hs.calibration.Odometer(delta)


@pytest.mark.parametrize(
    "mechanism",
    [hs.ApproxDP(0.1, 1e-9), hs.Gaussian(0.0), hs.PureDP(math.inf), hs.TCDP(0.1, 5.0)],
    ids=str,
)
def test_what_has_no_rho_is_refused_and_not_recorded(mechanism: hs.Mechanism) -> None:
    odometer = hs.calibration.Odometer(1e-5)
    with pytest.raises(hs.errors.IncompatibleError):
        odometer.step(mechanism)
    assert len(odometer) == 0
    assert odometer.epsilon == 0.0


def test_a_state_comes_back_through_json() -> None:
    odometer = hs.calibration.Odometer(1e-5)
    odometer.step(hs.Gaussian(3.0), count=5)
    odometer.step(hs.Laplace(3.0))
    text = json.dumps(odometer.state_dict(), allow_nan=False)
    found = hs.calibration.Odometer.from_state_dict(json.loads(text))
    assert repr(found) == repr(odometer)
    assert json.dumps(found.state_dict()) == text
    assert repr(pickle.loads(pickle.dumps(odometer))) == repr(odometer)
    with pytest.raises(hs.errors.ParameterError, match=r"^kind must be"):
        hs.calibration.Odometer.from_state_dict(hs.Accountant().state_dict())


def test_a_state_is_taken_over_in_place_and_one_of_another_delta_is_refused() -> None:
    odometer, other = hs.calibration.Odometer(1e-5), hs.calibration.Odometer(1e-5)
    odometer.step(hs.Gaussian(3.0), count=5)
    other.step(hs.Laplace(1.0))
    other.load_state_dict(odometer.state_dict())
    assert repr(other) == repr(odometer)
    other.step(hs.Gaussian(3.0))
    assert len(odometer) == 5
    for state in (hs.calibration.Odometer(1e-6).state_dict(), hs.Accountant().state_dict(), None):
        with pytest.raises(hs.errors.ParameterError, match=r"^(delta|kind) must be"):
            other.load_state_dict(state)
    assert len(other) == 6


def test_eight_threads_lose_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def after(*amounts: Any) -> Any:
        found = _after(*amounts)
        time.sleep(0)
        return found

    monkeypatch.setattr("hockeystick.calibration.filters.odometer._after", after)
    odometer, barrier = hs.calibration.Odometer(1e-5), threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        for _ in range(50):
            odometer.step(hs.Gaussian(30.0))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
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


def test_the_weights_of_the_orders_add_up_to_less_than_one() -> None:
    with mp.workdps(30):
        assert sum(1 / mp.mpf(1 + k * k) for k in range(-6, 9)) < mp.mpf("2.8841")


def test_a_state_comes_back_with_its_order() -> None:
    odometer = hs.calibration.Odometer(1e-5, expected=STEP**100)
    odometer.step(STEP, count=5)
    text = json.dumps(odometer.state_dict(), allow_nan=False)
    found = hs.calibration.Odometer.from_state_dict(json.loads(text))
    assert (found.order, found.epsilon) == (odometer.order, odometer.epsilon)
    assert repr(found) == repr(odometer) == repr(pickle.loads(pickle.dumps(odometer)))
    other = hs.calibration.Odometer(1e-5)
    with pytest.raises(hs.errors.ParameterError, match=r"^order must be that of"):
        other.load_state_dict(odometer.state_dict())
    with pytest.raises(hs.errors.ParameterError, match=r"^order must be"):
        hs.calibration.Odometer.from_state_dict(odometer.state_dict() | {"order": 1.0})


def test_a_plan_that_chooses_no_order_is_refused() -> None:
    with pytest.raises(hs.errors.IncompatibleError):
        hs.calibration.Odometer(1e-5, expected=hs.Gaussian(0.0))
    expected: Any = "DP-SGD"
    with pytest.raises(hs.errors.ParameterError, match=r"^expected must be"):
        hs.calibration.Odometer(1e-5, expected=expected)
