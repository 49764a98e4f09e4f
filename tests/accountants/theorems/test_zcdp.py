"""The zCDP accountant: rho adds up, and one order of the sum says what it can."""

import math

import pytest

import hockeystick as hs
from hockeystick.conversions import theorems
from hockeystick.tradeoffs import GaussianTradeOff, LaplaceTradeOff
from hockeystick.tradeoffs.operations.mixture import mixture

INF = math.inf


def certified(answer: hs.Certified | hs.Approximate) -> hs.Certified:
    assert isinstance(answer, hs.Certified)
    return answer


def epsilon(plan: hs.Mechanism, delta: float) -> hs.Certified:
    return certified(hs.epsilon(plan, delta, accountant="zcdp"))


def delta(plan: hs.Mechanism, at: float) -> hs.Certified:
    return certified(hs.delta(plan, at, accountant="zcdp"))


@pytest.mark.parametrize(
    ("rho", "target", "one_term", "textbook"),
    [
        (0.5, 1e-5, 4.72838698494331389997, 5.29852591218808120757),
        (0.1, 1e-6, 2.14193892838547366139, 2.45078800047679961814),
    ],
)
def test_epsilon_of_zcdp_is_just_below_the_known_values(
    rho: float, target: float, one_term: float, textbook: float
) -> None:
    found = epsilon(hs.ZCDP(rho), target).upper
    assert one_term * (1 - 1e-6) < found < one_term < textbook


@pytest.mark.parametrize(
    ("omega", "textbook"), [(5.0, 3.378231366242557105), (50.0, 2.245966026289347240)]
)
def test_epsilon_of_tcdp_is_below_the_textbook_value(omega: float, textbook: float) -> None:
    found = epsilon(hs.TCDP(0.1, omega), 1e-5).upper
    sharper = theorems.canonne_kamath_steinke_concentrated(0.1, omega, delta=1e-5)
    assert 0.98 * sharper < found < sharper < textbook


@pytest.mark.parametrize(
    ("plan", "rho", "omega"),
    [
        (hs.Gaussian(2.0) ** 8, 1.0, INF),
        (hs.PureDP(1.0) ** 3, 3 * math.tanh(0.5), INF),
        (
            hs.Gaussian(4.0) @ hs.ZCDP(0.02) ** 5 @ hs.PureDP(0.2),
            0.13125 + 0.2 * math.tanh(0.1),
            INF,
        ),
        (hs.Gaussian(4.0) @ hs.TCDP(0.02, 9.0) @ hs.TCDP(0.03, 70.0), 0.08125, 9.0),
        (hs.RenyiDP({2.0: 0.2, 8.0: 0.4}) ** 2, 0.4, 8.0),
        (hs.FDP(LaplaceTradeOff(2.0)), math.exp(-0.5) - 0.5, INF),
        (hs.FDP(GaussianTradeOff(0.7)), 0.245, INF),
        (hs.PoissonSubsampled(hs.Gaussian(5.0), 0.01) ** 10, 0.2, INF),
    ],
    ids=str,
)
def test_rhos_add_up(plan: hs.Mechanism, rho: float, omega: float) -> None:
    line = hs.TCDP(rho, omega) if omega < INF else hs.ZCDP(rho)
    largest = certified(hs.epsilon(plan, 0.0)).upper
    expected = min(hs.convert(line, hs.ApproxDP, delta=1e-5).epsilon, largest)
    assert epsilon(plan, 1e-5).upper == pytest.approx(expected, rel=1e-9)
    expected = hs.convert(line, hs.ApproxDP, epsilon=0.3).delta
    assert delta(plan, 0.3).upper == pytest.approx(expected, rel=1e-9)


def test_a_bounded_loss_caps_epsilon_and_ends_delta() -> None:
    plan = hs.PureDP(0.1) ** 3
    assert epsilon(plan, 1e-200).upper == pytest.approx(0.3, rel=1e-12)
    assert delta(plan, 0.31) == hs.delta(plan, 0.31, accountant="zcdp")
    assert delta(plan, 0.31).upper == 0.0


@pytest.mark.parametrize("noise", [1e-160, 1e-154])
def test_a_rho_out_of_reach_of_floats_promises_nothing(noise: float) -> None:
    plan = hs.Gaussian(noise) ** 1000
    assert epsilon(plan, 1e-5).upper == INF
    assert delta(plan, 1.0).upper == 1.0


@pytest.mark.parametrize("noise", [1e150, 1e170, 1e300])
def test_hardly_any_loss_still_has_a_delta(noise: float) -> None:
    plan = hs.Gaussian(noise)
    assert epsilon(plan, 1e-5).upper == 0.0
    found = delta(plan, 0.0)
    assert 0.0 < found.lower < found.upper < 1e-15


def test_what_has_no_rho_is_refused_with_the_reason() -> None:
    tails = hs.FDP(mixture([(0.5, GaussianTradeOff(0.5)), (0.5, GaussianTradeOff(0.3))]))
    with pytest.raises(
        hs.errors.UnsupportedError, match=r"no rho is known .* a ProfileLoss; use account"
    ):
        epsilon(hs.Gaussian(2.0) @ tails, 1e-5)
    with pytest.raises(hs.errors.UnsupportedError, match="no rho is known"):
        delta(tails, 1.0)
