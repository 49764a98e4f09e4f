"""What an answer does not say by itself: why it is extreme, what it hides, what it rests on."""

import pytest

import hockeystick as hs
from hockeystick.accountants.auto import ACCOUNTANTS
from hockeystick.answers import Caution, cautions, conversion_cautions
from hockeystick.answers.wording import references_of
from hockeystick.conversions import convert, lower_ends
from hockeystick.mechanisms import MECHANISMS
from hockeystick.notions import NOTIONS
from hockeystick.numerics.numerals import at_most

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
