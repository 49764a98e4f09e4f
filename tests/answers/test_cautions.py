"""What an answer does not say by itself: why it is extreme, what it hides, what it rests on."""

from typing import Any

import pytest

import hockeystick as hs
from hockeystick.accountants.auto import ACCOUNTANTS
from hockeystick.answers import Caution, cautions, conversion_cautions
from hockeystick.answers.sources import references_of
from hockeystick.conversions import convert, lower_ends
from hockeystick.mechanisms import MECHANISMS
from hockeystick.notions import NOTIONS
from hockeystick.numerics.numerals import at_most

SHORT: Any = {"rate": 0.01, "noise_multiplier": 1.0}
NO_NOISE = "noise 0 hides nothing: epsilon is infinite, and there is no guarantee."


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (hs.DPSGD(steps=0, **SHORT), "0 steps: nothing is released."),
        (
            hs.DPSGD(epochs=0, examples=600, batch_size=6, noise_multiplier=0),
            "0 steps: nothing is released.",
        ),
        (hs.Laplace(1) ** 0, "0 runs: nothing is released."),
        (hs.DPSGD(steps=0, **SHORT) @ hs.Gaussian(0) ** 0, "0 runs: nothing is released."),
        (hs.Laplace(1) ** 0 @ hs.Gaussian(2), ""),
        (hs.DPSGD(steps=0, extra=hs.Gaussian(2), **SHORT), ""),
        (hs.DPSGD(steps=1, **SHORT), ""),
    ],
)
def test_nothing_that_runs_is_why_epsilon_is_zero(plan: hs.Mechanism, said: str) -> None:
    found = hs.epsilon(plan, 1e-6)
    assert (found.upper == 0.0) == bool(said)
    assert [one.text for one in cautions(found, plan, delta=1e-6)] == ([said] if said else [])


@pytest.mark.parametrize(
    ("plan", "delta", "said"),
    [
        (hs.Gaussian(0), 1e-6, NO_NOISE),
        (hs.Gaussian(0), 0.9, NO_NOISE),
        (hs.Laplace(0) @ hs.Gaussian(3), 1e-6, NO_NOISE),
        (hs.DiscreteGaussian(0), 1e-6, NO_NOISE),
        (hs.DPSGD(rate=0.01, steps=9, noise_multiplier=0), 1e-6, NO_NOISE),
        (hs.PoissonSubsampled(hs.Gaussian(0), 0.01) ** 3, 1e-6, NO_NOISE),
        (hs.ApproxDP(1, 0.5), 1e-6, "an infinite epsilon is no guarantee: it also holds for"),
        (hs.Gaussian(0) ** 0 @ hs.Gaussian(3), 1e-6, ""),
        (hs.DPSGD(rate=0.01, steps=1, noise_multiplier=0), 0.02, ""),
        (hs.PoissonSubsampled(hs.Gaussian(0), 0.01), 0.02, ""),
    ],
)
def test_no_noise_is_why_epsilon_is_infinite(plan: hs.Mechanism, delta: float, said: str) -> None:
    found = hs.epsilon(plan, delta)
    assert (found.lower == float("inf")) == bool(said)
    told = [one.text for one in cautions(found, plan, delta=delta) if one.about == "epsilon"]
    assert [one[: len(said)] for one in told] == ([said] if said else [])


SAMPLED = hs.DPSGD(examples=60_000, batch_size=256, epochs=60, noise_multiplier=1.1)


def said(plan: hs.Mechanism, target: str, **given: object) -> tuple[Caution, ...]:
    found = convert(plan, target, **given)
    return conversion_cautions(found, plan, lower_ends(plan, found))


@pytest.mark.parametrize(
    ("target", "given", "about"),
    [
        ("ZCDP", {}, "rho"),
        ("TCDP", {"omega": 32}, "rho"),
        ("GDP", {}, "mu"),
        ("RenyiDP", {"orders": [2, 64]}, "divergences"),
    ],
)
def test_one_number_for_all_orders_of_a_sampled_plan_is_explained(
    target: str, given: dict[str, object], about: str
) -> None:
    (one,) = said(SAMPLED, target, **given)
    ((_, cost),) = convert(SAMPLED, hs.RenyiDP, orders=2).divergences
    assert one.about == about
    assert at_most(cost) in one.text
    assert "sampling saves little" in one.text


def test_a_delta_of_one_promises_nothing() -> None:
    for found in (
        said(hs.ZCDP(0.5), "ApproxDP", delta=1),
        cautions(hs.epsilon(hs.Laplace(2), 1.0), hs.Laplace(2), delta=1.0),
    ):
        (one,) = found
        assert (one.about, one.text[:34]) == ("delta", "a delta of 1 promises nothing: a r")
    (one,) = said(SAMPLED, "ApproxDP", delta=1)
    assert "not below 1 / 60,000" in one.text
    assert said(hs.ZCDP(0.5), "ApproxDP", delta=0.9) == ()


EVERY: dict[str, type] = {
    **{name: type(one) for name, one in ACCOUNTANTS.items()},
    **MECHANISMS,
    **NOTIONS,
}


@pytest.mark.parametrize("name", EVERY)
def test_every_accountant_mechanism_and_notion_has_references(name: str) -> None:
    text = references_of(EVERY[name])
    assert len(text) > 20
    assert ">>>" not in text
    assert "\n" not in text
