"""Guarantees composed: exactly, by the theorems of the literature, by rho, and among others."""

import math
from fractions import Fraction

import pytest
from mpmath import mp

import hockeystick as hs
from hockeystick.accountants.base import can_be_infinite, composition_of
from hockeystick.notions import FDP, GDP, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
from hockeystick.tradeoffs import GaussianTradeOff, LaplaceTradeOff, ProfileTradeOff, mixture
from hockeystick.tradeoffs.functions.closed_forms import LaplaceProfile
from hockeystick.tradeoffs.functions.piecewise import discrete_tradeoff

THIRTY = PureDP(0.1) ** 30


def answer(plan: hs.Mechanism, accountant: str = "auto", **asked: float) -> hs.Certified:
    """Return an accountant's proven answer at a delta or at an epsilon."""
    ((name, value),) = asked.items()
    question = hs.epsilon if name == "delta" else hs.delta
    found = question(plan, value, accountant=accountant)
    assert isinstance(found, hs.Certified)
    return found


@pytest.mark.parametrize(
    ("plan", "epsilon", "delta"),
    [
        (THIRTY, 2.4, 2.97340390503302e-7),
        (THIRTY, 1.2, 4.09526930399204130841537876526e-3),
        (ApproxDP(1.0, 1e-6) ** 10, 4.0, 0.430582838732687219416),
        (PureDP(2.0), 1.0, 0.556769941145939744),
    ],
    ids=str,
)
def test_the_exact_delta_of_guarantees(plan: hs.Mechanism, epsilon: float, delta: float) -> None:
    found = answer(plan, epsilon=epsilon)
    assert found.accountant == "closed-form"
    assert found.estimate == pytest.approx(delta, rel=1e-12)
    assert found.lower <= delta * (1 + 1e-14)
    assert found.upper >= delta * (1 - 1e-14)
    assert found.relative_width < 1e-13


def test_the_exact_epsilon_of_guarantees() -> None:
    found = answer(THIRTY, delta=1e-6)
    assert found.lower <= 2.34588769300803662271 <= found.upper
    assert found.relative_width < 1e-14
    notion = ApproxDP(1.0, 1e-6)
    assert answer(notion, delta=1e-6).upper == pytest.approx(1.0, rel=1e-14)
    assert answer(notion, delta=1e-6).lower == pytest.approx(1.0, rel=1e-13)
    assert answer(notion, delta=math.nextafter(1e-6, 0)).lower == math.inf
    assert answer(notion, epsilon=1.0).upper == pytest.approx(1e-6, rel=1e-14)
    assert answer(notion, epsilon=5.0).lower == pytest.approx(1e-6, rel=1e-15)


def test_more_atoms_than_are_summed_are_left_to_a_lattice() -> None:
    plan = PureDP(0.001) ** 30_000
    with pytest.raises(hs.errors.UnsupportedError, match="at most 20,000 values"):
        answer(plan, "closed-form", delta=1e-5)
    found = answer(plan, delta=1e-5)
    assert found.accountant == "prv"
    # The limit of many small ones is a Gaussian with mu = epsilon sqrt(runs).
    limit = answer(GDP(0.001 * math.sqrt(30_000)), delta=1e-5)
    assert found.lower <= limit.estimate * (1 + 1e-4)
    assert limit.estimate * (1 - 1e-4) <= found.upper
    assert found.relative_width <= 1e-4


@pytest.mark.parametrize("epsilon", [1e16, math.inf])
@pytest.mark.parametrize("accountant", ["auto", "closed-form", "rdp", "basic", "advanced"])
def test_far_out_the_failures_are_left(accountant: str, epsilon: float) -> None:
    found = answer(ApproxDP(1.0, 1e-3) ** 2, accountant, epsilon=epsilon)
    assert found.lower <= 0.001999 <= found.upper
    if accountant in ("auto", "rdp"):
        lossy = FDP(discrete_tradeoff((0.75, 0.25, 0.0), (0.5, 0.25, 0.25)))
        assert answer(lossy, accountant, epsilon=epsilon).upper >= 0.25


@pytest.mark.parametrize(
    "notion", [ApproxDP(1.0, 1.0), PureDP(math.inf), GDP(math.inf), ZCDP(math.inf)], ids=str
)
@pytest.mark.parametrize("accountant", ["auto", "rdp", "basic", "advanced"])
def test_a_guarantee_of_nothing_costs_everything(notion: Notion, accountant: str) -> None:
    assert answer(notion**2, accountant, delta=0.5).lower == math.inf
    assert answer(notion @ hs.Gaussian(1), delta=0.5).lower == math.inf
    assert answer(notion**2, accountant, epsilon=5.0).lower == 1.0


@pytest.mark.parametrize(
    ("plan", "infinite"),
    [
        (PureDP(1.0), False),
        (ApproxDP(1.0, 1e-9), True),
        (hs.Gaussian(1.0) @ ApproxDP(0.0, 1e-9), True),
        (ZCDP(0.1) @ hs.Gaussian(1), False),
        (FDP(LaplaceTradeOff(1.0)), False),
        (FDP(discrete_tradeoff((1.0, 0.0), (0.75, 0.25))), True),
        (FDP(discrete_tradeoff((0.75, 0.25), (1.0, 0.0))), True),
        (hs.Gaussian(0.0), True),
    ],
    ids=str,
)
def test_what_can_be_infinite_is_known(plan: hs.Mechanism, infinite: bool) -> None:
    assert can_be_infinite(composition_of(plan, "auto")) == infinite


def test_basic_composition_is_two_sums_at_one_point() -> None:
    plan = ApproxDP(0.1, 1e-7) ** 30 @ ApproxDP(0.5, 2e-7)
    assert answer(plan, "basic", delta=3.2e-6).upper == 3.5
    assert answer(plan, "basic", delta=3.1e-6).upper == math.inf
    assert answer(plan, "basic", epsilon=3.5).upper == pytest.approx(3.2e-6, rel=1e-15)
    assert answer(plan, "basic", epsilon=3.4).upper == 1.0
    assert answer(PureDP(0.1) ** 3, "basic", delta=1e-9).upper >= Fraction(3, 10)


def test_advanced_composition_is_the_closed_form_of_kairouz_oh_and_viswanath() -> None:
    found = answer(THIRTY, "advanced", delta=1e-6)
    assert found.upper == pytest.approx(2.96556642031104010656, rel=1e-11)
    assert found.upper >= 2.96556642031104010656
    back = answer(THIRTY, "advanced", epsilon=2.96556642031104010656)
    assert back.upper == pytest.approx(1e-6, rel=1e-9)
    assert back.upper >= 1e-6 * (1 - 1e-14)


@pytest.mark.parametrize("accountant", ["basic", "advanced", "closed-form", "contour"])
@pytest.mark.parametrize("part", [ZCDP(0.1), TCDP(0.1, 5), RenyiDP({2: 0.1})], ids=str)
def test_divergences_alone_are_refused_where_more_is_needed(
    part: hs.Mechanism, accountant: str
) -> None:
    with pytest.raises(hs.errors.UnsupportedError, match=accountant):
        answer(PureDP(0.1) @ part, accountant, delta=1e-5)


@pytest.mark.parametrize("accountant", ["basic", "advanced"])
@pytest.mark.parametrize("part", [hs.Gaussian(1.0), GDP(1.0), hs.Gaussian(0.0)], ids=str)
def test_the_theorems_on_guarantees_refuse_noise(part: hs.Mechanism, accountant: str) -> None:
    with pytest.raises(hs.errors.UnsupportedError, match="guarantees only"):
        answer(PureDP(0.1) @ part, accountant, delta=1e-5)


def test_one_divergence_is_converted_at_its_order_below_the_textbook_bound() -> None:
    found = answer(RenyiDP({10: 1}), epsilon=3)
    textbook = 5.90040620015666167320335816846e-10
    assert textbook * (1 - 2e-4) <= found.upper < textbook
    # The largest over coins with both divergences at most 1/2, by a search beside this.
    half = answer(RenyiDP({2: 0.5}), epsilon=0.5)
    assert half.upper == pytest.approx(0.19273716917, rel=1e-9)


def test_a_failure_leaves_the_rest_of_a_plan_its_own_accountant() -> None:
    training = hs.PoissonSubsampled(hs.Gaussian(1.0), 0.01) ** 1000
    found = answer(training @ ApproxDP(0.0, 1e-6), delta=1e-5)
    assert found.accountant == "contour"
    left = (Fraction("1e-5") - Fraction("1e-6")) / (1 - Fraction("1e-6"))
    assert found.estimate == pytest.approx(answer(training, delta=float(left)).estimate, rel=1e-12)
    whole = 1e-6 + (1 - 1e-6) * answer(training, epsilon=1.0).estimate
    found = answer(training @ ApproxDP(0.0, 1e-6), epsilon=1.0)
    assert found.lower <= whole <= found.upper
    assert found.estimate == pytest.approx(whole, rel=1e-11)


def test_digits_of_failures_and_of_functions_are_refused() -> None:
    with pytest.raises(hs.errors.UnsupportedError, match="arbitrary-precision"):
        hs.epsilon(ApproxDP(1.0, 1e-6), 1e-5, digits=30, accountant="closed-form")
    profile = LaplaceProfile(1.0)
    known = FDP(ProfileTradeOff((profile, profile)))
    with pytest.raises(hs.errors.UnsupportedError, match="digits of floats"):
        hs.delta(known, 0.5, digits=30, accountant="closed-form")


@pytest.mark.parametrize("epsilon", [0.3, 0.30000000000000004, 1.0])
def test_digits_know_where_the_largest_loss_ends(epsilon: float) -> None:
    assert hs.delta(PureDP(0.1) ** 3, epsilon, digits=30).upper == 0
    below = hs.delta(PureDP(0.1) ** 3, math.nextafter(0.3, 0.0), digits=30)
    with mp.workdps(60):
        # All three runs have their largest loss.
        excess = mp.exp(mp.mpf("0.3")) - mp.exp(mp.mpf(repr(math.nextafter(0.3, 0.0))))
        truth = excess / (1 + mp.exp(mp.mpf("0.1"))) ** 3
        assert below.lower <= truth <= below.upper
        assert below.upper - below.lower < truth * mp.mpf(10) ** -28


def test_the_third_form_is_the_least_for_a_large_delta() -> None:
    """B + sqrt(2 V ln(e + sqrt(V)/d)) beats B + sqrt(2 V ln(1/d)) where sqrt(V) is small."""
    plan, delta = PureDP(0.001) ** 100, 1e-4
    mean, square = 0.1 * math.tanh(0.0005), 1e-4
    third = mean + math.sqrt(2 * square * math.log(math.e + math.sqrt(square) / delta))
    assert third < mean + math.sqrt(2 * square * math.log(1 / delta))
    assert answer(plan, "advanced", delta=delta).upper == pytest.approx(third, rel=1e-10)
    assert answer(plan, "advanced", epsilon=third).upper == pytest.approx(delta, rel=1e-8)


def test_a_trade_off_function_with_an_infinite_loss_is_never_free() -> None:
    lossy = FDP(discrete_tradeoff((0.5, 0.25, 0.25, 0.0), (0.25, 0.25, 0.25, 0.25)))
    assert answer(lossy, epsilon=50.0).lower > 0.2
    assert answer(lossy, delta=0.2).upper == math.inf
    twice = answer(lossy**2, epsilon=50.0)
    assert twice.lower <= 1.0 - 0.75**2 <= twice.upper < 0.4376
    assert answer(lossy**2, delta=0.4).upper == math.inf


@pytest.mark.parametrize(
    ("plan", "rho", "omega"),
    [
        (hs.Gaussian(2.0) ** 8, 1.0, math.inf),
        (hs.PureDP(1.0) ** 3, 3 * math.tanh(0.5), math.inf),
        (hs.Gaussian(4.0) @ hs.TCDP(0.02, 9.0) @ hs.TCDP(0.03, 70.0), 0.08125, 9.0),
        (hs.RenyiDP({2.0: 0.2, 8.0: 0.4}) ** 2, 0.4, 8.0),
        (hs.FDP(LaplaceTradeOff(2.0)), math.exp(-0.5) - 0.5, math.inf),
        (hs.FDP(GaussianTradeOff(0.7)), 0.245, math.inf),
        (hs.PoissonSubsampled(hs.Gaussian(5.0), 0.01) ** 10, 0.2, math.inf),
    ],
    ids=str,
)
def test_rhos_add_up(plan: hs.Mechanism, rho: float, omega: float) -> None:
    line = hs.TCDP(rho, omega) if omega < math.inf else hs.ZCDP(rho)
    expected = min(hs.convert(line, hs.ApproxDP, delta=1e-5).epsilon, answer(plan, delta=0.0).upper)
    assert answer(plan, "zcdp", delta=1e-5).upper == pytest.approx(expected, rel=1e-9)
    expected = hs.convert(line, hs.ApproxDP, epsilon=0.3).delta
    assert answer(plan, "zcdp", epsilon=0.3).upper == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("noise", [1e-160, 1e-154])
def test_a_rho_out_of_reach_of_floats_promises_nothing(noise: float) -> None:
    plan = hs.Gaussian(noise) ** 1000
    assert answer(plan, "zcdp", delta=1e-5).upper == math.inf
    assert answer(plan, "zcdp", epsilon=1.0).upper == 1.0


@pytest.mark.parametrize("noise", [1e150, 1e170, 1e300])
def test_hardly_any_loss_still_has_a_delta(noise: float) -> None:
    plan = hs.Gaussian(noise)
    assert answer(plan, "zcdp", delta=1e-5).upper == 0.0
    found = answer(plan, "zcdp", epsilon=0.0)
    assert 0.0 < found.lower < found.upper < 1e-15


def test_what_has_no_rho_is_refused_and_has_no_bound_by_divergences() -> None:
    mixed = FDP(mixture([(0.5, GaussianTradeOff(0.5)), (0.5, GaussianTradeOff(0.3))]))
    for asked in ({"delta": 1e-5}, {"epsilon": 1.0}):
        with pytest.raises(hs.errors.UnsupportedError, match="no rho is known"):
            answer(hs.Gaussian(2.0) @ mixed, "zcdp", **asked)
    assert answer(mixed, "rdp", delta=1e-5).upper == math.inf
    assert answer(mixed, delta=1e-5).upper < 2.5
