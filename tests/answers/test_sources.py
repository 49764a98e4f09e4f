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


@pytest.mark.parametrize(
    ("sampling", "adjacency", "cited"),
    [
        ("poisson", "add-remove", ["DPSGD"]),
        ("fixed-size", "replace-one", ["DPSGD", "FixedSizeSubsampled"]),
        ("random-allocation", "add-remove", ["DPSGD", "RandomAllocation"]),
    ],
)
def test_training_names_the_sampling_that_it_has(
    sampling: str, adjacency: str, cited: list[str]
) -> None:
    plan = hs.DPSGD(
        examples=640,
        batch_size=64,
        epochs=1,
        noise_multiplier=1.0,
        sampling=sampling,
        adjacency=adjacency,
    )
    found = sources(plan, "contour")[1:]
    assert [one.of for one in found] == cited
    assert "Other samplings" not in found[0].text
    assert ("Poisson" in found[0].text) == (sampling == "poisson")
