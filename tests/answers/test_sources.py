"""Every answer says which theorems it rests on."""

import pytest

import hockeystick as hs
from hockeystick.accountants.registry import ACCOUNTANTS
from hockeystick.answers import sources
from hockeystick.answers.sources import references_of
from hockeystick.mechanisms import MECHANISMS
from hockeystick.notions import NOTIONS

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


def test_the_accountant_comes_first_and_each_mechanism_once() -> None:
    plan = (hs.PoissonSubsampled(hs.Gaussian(2), 0.1) @ hs.Gaussian(3)) ** 2
    found = sources(plan, "prv")
    assert [one.of for one in found] == [
        "prv",
        "Repeated",
        "Composed",
        "PoissonSubsampled",
        "Gaussian",
    ]
    assert "Gopi, Lee and Wutschitz" in found[0].text
    assert "theorem 11" in found[3].text
