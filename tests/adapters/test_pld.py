"""Privacy-loss distributions of dp-accounting: of plans, on both sides, and as guarantees."""

import math
from collections import defaultdict
from functools import cache
from typing import Any

import numpy as np
import pytest

dp_accounting = pytest.importorskip("dp_accounting")

from dp_accounting.pld import privacy_loss_distribution as peer  # noqa: E402

import hockeystick as hs  # noqa: E402
from hockeystick.accountants import directed_delta  # noqa: E402
from hockeystick.adapters.dp_accounting import _distributions, from_pld, to_pld  # noqa: E402
from hockeystick.errors import ParameterError, UnsupportedError  # noqa: E402

PLANS = {
    "sampled": hs.PoissonSubsampled(hs.Gaussian(1.1), rate=0.01),
    "composed": hs.PoissonSubsampled(hs.Gaussian(1.1), rate=0.01) ** 100,
    "laplace": hs.Laplace(1.0),
    "mixed": hs.Gaussian(2) @ hs.Laplace(2),
    "showing": hs.PoissonSubsampled(hs.Gaussian(0), rate=1e-4) @ hs.Gaussian(2),
    "nothing": hs.Gaussian(float("inf")),
}
STEP = 0.01
EPSILONS = (-2.0, -0.5, -0.0137, 0.0, 0.0137, 0.3, 0.9, 2.5)
# What dp-accounting's own sums of floats may be off by.
ROUND_OFF = 1e-13


@cache
def ends(name: str) -> tuple[Any, Any]:
    """Return the dominated and the dominating distribution of a plan."""
    lower, upper = (to_pld(PLANS[name], step=STEP, dominating=one) for one in (False, True))
    return lower, upper


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_divergences_are_on_both_sides_of_the_plans(name: str, direction: str) -> None:
    lower, upper = (getattr(one, f"_pmf_{direction}") for one in ends(name))
    for epsilon in EPSILONS:
        truth = directed_delta(PLANS[name], epsilon, direction)
        assert lower.get_delta_for_epsilon(epsilon) <= truth.upper + ROUND_OFF
        assert truth.lower - ROUND_OFF <= upper.get_delta_for_epsilon(epsilon)


@pytest.mark.parametrize("name", ["sampled", "composed", "laplace", "mixed"])
def test_they_are_a_step_apart(name: str) -> None:
    truth = hs.epsilon(PLANS[name], delta=1e-3)
    lower, upper = (one.get_epsilon_for_delta(1e-3) for one in ends(name))
    assert truth.lower - 1.5 * STEP <= lower <= truth.upper
    assert truth.lower <= upper <= truth.upper + STEP


@pytest.mark.parametrize("name", ["sampled", "mixed", "laplace"])
def test_compositions_stay_on_their_sides(name: str) -> None:
    truth = hs.epsilon(PLANS[name] ** 5, delta=1e-5)
    lower, upper = (one.self_compose(5).get_epsilon_for_delta(1e-5) for one in ends(name))
    assert truth.upper - 6 * STEP <= lower <= truth.upper
    assert truth.lower <= upper <= truth.upper + STEP


def test_it_is_no_wider_than_connecting_the_dots_by_the_peer() -> None:
    other = peer.from_gaussian_mechanism(
        1.1, sampling_prob=0.01, value_discretization_interval=STEP
    )
    own = ends("sampled")[1]
    for epsilon in (0.0, 0.3, 0.9):
        found, known = (one.get_delta_for_epsilon(epsilon) for one in (own, other))
        assert found == pytest.approx(known, rel=1e-9)


@pytest.mark.parametrize(
    "pld",
    [
        peer.from_laplace_mechanism(2.0, value_discretization_interval=0.1),
        peer.from_gaussian_mechanism(2.0, sampling_prob=0.1, value_discretization_interval=0.1),
        peer.from_privacy_parameters(
            dp_accounting.pld.common.DifferentialPrivacyParameters(1.0, 1e-3),
            value_discretization_interval=0.1,
        ),
    ],
    ids=["laplace", "sampled", "parameters"],
)
def test_what_is_read_has_the_divergences_that_it_is_of(pld: Any) -> None:
    plan = from_pld(pld)
    for epsilon in (-0.5, 0.0, 0.1, 0.33, 0.8):
        truth = float(pld._pmf_remove.get_delta_for_epsilon(epsilon))
        found = directed_delta(plan, epsilon, "remove")
        assert found.lower <= truth * (1 + 1e-9) + 1e-14
        assert truth * (1 - 1e-12) <= found.upper
    twice = hs.epsilon(plan**2, delta=2e-3)
    theirs = pld.self_compose(2).get_epsilon_for_delta(2e-3)
    # Probabilities under Q are rounded down, and their sums are floats.
    assert twice.lower - 1e-12 <= theirs <= twice.upper + 1e-6


@pytest.mark.parametrize("step", [1e-4, 1e-2])
@pytest.mark.parametrize("runs", [1, 3])
def test_a_randomized_response_stays_pure(step: float, runs: int) -> None:
    pld = peer.from_randomized_response(0.5, 2, value_discretization_interval=step)
    plan = hs.RandomizedResponse(math.log(3)) ** runs
    for delta in (0.0, 1e-6, 1e-2):
        truth, found = hs.epsilon(plan, delta), hs.epsilon(from_pld(pld) ** runs, delta)
        assert truth.lower <= found.upper <= truth.upper + 2 * runs * step


# Probabilities of losses on a grid, an infinite one last, and what is left under Q: asymmetric.
PAIRS = {
    "asymmetric": ({-2: 0.05, -1: 0.1, 0: 0.2, 1: 0.25, 3: 0.4}, 0.0),
    "infinite": ({-2: 0.05, -1: 0.1, 0: 0.2, 1: 0.25, 3: 0.37}, 0.03),
    "one-sided": ({-1: 0.1, 0: 0.3, 2: 0.6}, 0.0),
}


@pytest.mark.parametrize("coarse", [1, 2, 5])
@pytest.mark.parametrize("name", PAIRS)
def test_what_adding_tells_of_removing_leaves_every_divergence_covered(
    name: str, coarse: int
) -> None:
    known, infinite = PAIRS[name]
    step = 0.25
    other = {k: p * math.exp(-step * k) for k, p in known.items()}
    left = 1.0 - sum(other.values())
    assert left > 0.0
    # Losses rounded up to a coarser grid dominate: then both directions are of different pairs.
    remove, add = defaultdict[int, float](float), defaultdict[int, float](float)
    for k, p in known.items():
        remove[-(-k // coarse)] += p
        add[-(k // coarse)] += other[k]
    pld = peer.PrivacyLossDistribution.create_from_rounded_probability(
        remove,
        infinite,
        step * coarse,
        rounded_probability_mass_function_add=add,
        infinity_mass_add=left,
        symmetric=False,
    )
    plan = from_pld(pld)
    for epsilon in (-2.0, -0.5, -0.2, 0.0, 0.1, 0.33, 0.8, 3.0):
        removing = infinite + sum(
            p * max(1 - math.exp(epsilon - step * k), 0.0) for k, p in known.items()
        )
        adding = left + sum(
            p * max(1 - math.exp(epsilon + step * k), 0.0) for k, p in other.items()
        )
        for direction, truth in (("remove", removing), ("add", adding)):
            found = directed_delta(plan, epsilon, direction)
            assert truth * (1 - 1e-11) <= found.upper
            assert coarse > 1 or found.lower <= truth * (1 + 1e-9) + 1e-11
            # Away from 0 it is no more than either distribution tells.
            told = getattr(pld, f"_pmf_{direction}").get_delta_for_epsilon(epsilon)
            assert epsilon < step * coarse or found.lower <= told * (1 + 1e-9) + 1e-11


def test_what_fits_into_no_loss_is_an_infinite_one_and_both_sums_stay_1() -> None:
    nothing = np.zeros(0)
    some, none = (_distributions._Side(nothing, nothing, nothing, mass) for mass in (0.5, 0.0))
    for removing, adding in ((none, some), (some, none)):
        first, second = _distributions._joined_sides(removing, adding)
        assert (first.sum(), second.sum()) == (1.0, 1.0)
        assert first[second == 0.0].sum() == second[first == 0.0].sum() == 0.5


@pytest.mark.parametrize(
    ("sigma", "how"),
    [(1.0, {}), (0.5, {}), (2.0, {"use_connect_dots": False})],
    ids=["connected", "little-noise", "rounded"],
)
def test_what_the_peer_makes_of_gaussian_noise_is_read_close_by_and_above(
    sigma: float, how: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_distributions, "_MOST_READ", 600)
    pld = peer.from_gaussian_mechanism(sigma, value_discretization_interval=1e-2, **how)
    plan = from_pld(pld)
    for epsilon in (0.0, 0.5, 2.0, 4.0):
        found = directed_delta(plan, epsilon, "remove")
        truth = hs.delta(hs.Gaussian(sigma), epsilon)
        known = float(pld._pmf_remove.get_delta_for_epsilon(epsilon))
        # The peer's own round-off is not counted.
        assert truth.lower * (1 - 1e-12) <= found.upper
        assert known * (1 - 1e-12) <= found.upper <= known * (1 + 2e-2)


def test_losses_below_zero_that_are_of_no_distribution_change_no_delta_above() -> None:
    # Probabilities of losses -3, -2, ..., 1: those under Q sum to 1.6, those under P to 1.0005.
    masses = {-3: 0.04, -2: 0.03, -1: 0.2, 0: 0.2305, 1: 0.5}
    pld = peer.PrivacyLossDistribution.create_from_rounded_probability(masses, 0.0, 1.0)
    plan = from_pld(pld)
    for epsilon in (0.0, 0.4, 0.9):
        known = sum(p * max(1 - math.exp(epsilon - loss), 0) for loss, p in masses.items())
        assert directed_delta(plan, epsilon, "remove").upper >= known
        assert directed_delta(plan, epsilon, "remove").upper <= known * (1 + 1e-9)


def test_an_optimistic_one_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="no upper end follows"):
        from_pld(ends("sampled")[0])


@pytest.mark.parametrize("mass", [0.5, 1.5])
def test_what_is_no_distribution_is_refused(mass: float) -> None:
    pld = peer.PrivacyLossDistribution.create_from_rounded_probability({0: mass, 3: 0.1}, 0.0, 0.1)
    with pytest.raises(ParameterError, match="probabilities of sum 1"):
        from_pld(pld)


@pytest.mark.parametrize(
    ("name", "value"),
    [("step", 0), ("step", 2), ("truncation", 0.0), ("dominating", "yes"), ("step", np.nan)],
)
def test_bad_input_is_named(name: str, value: Any) -> None:
    given: dict[str, Any] = {name: value}
    with pytest.raises(ParameterError) as caught:
        to_pld(hs.Gaussian(1), **given)
    assert caught.value.name == name


def test_what_is_none_cannot_be_read() -> None:
    with pytest.raises(ParameterError, match="a PrivacyLossDistribution"):
        from_pld(hs.Gaussian(1))


def test_ends_that_are_not_convex_do_not_make_it_a_multiple_of_a_distribution() -> None:
    plan = hs.PoissonSubsampled(hs.Gaussian(1), 0.1) ** 10
    pld = to_pld(plan, step=0.01)
    for pmf in (pld._pmf_remove, pld._pmf_add):
        assert 1.0 <= pmf.to_dense_pmf()._probs.sum() + pmf._infinity_mass <= 1.0 + 1e-9
    for epsilon in (0.0, 0.5, 2.0, 4.0):
        truth = hs.delta(plan, epsilon)
        assert truth.lower <= pld.get_delta_for_epsilon(epsilon) <= truth.upper * (1.0 + 1e-6)
