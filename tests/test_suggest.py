"""A name that there is not is refused with the one that is near."""

import pytest

import hockeystick as hs
from hockeystick._suggest import near, same_name


@pytest.mark.parametrize(
    ("name", "names", "found"),
    [
        ("noise_multiplyer", ["noise_multiplier", "rate"], "noise_multiplier"),
        ("sigma", ["noise_multiplier", "rate"], "noise_multiplier"),
        ("T", ["rate", "steps"], "steps"),
        ("n", ["rate"], None),
        ("unbounded", ["add-remove", "replace-one"], "add-remove"),
        ("Batch-Size", ["batch_size"], "batch_size"),
        ("xyz", ["rate", "steps"], None),
    ],
)
def test_the_name_that_is_meant_is_found(name: str, names: list[str], found: str | None) -> None:
    assert near(name, names) == found


def test_capitals_and_dashes_make_no_other_name() -> None:
    assert same_name("zcdp", ["PureDP", "ZCDP"]) == "ZCDP"
    assert same_name("Closed_Form", ["closed-form"]) == "closed-form"
    assert same_name("rho", ["ZCDP"]) == "rho"
    assert same_name(3, ["3"]) == 3


def test_an_error_names_what_is_near() -> None:
    with pytest.raises(hs.errors.ParameterError, match=r"\(did you mean 'poisson'\?\)"):
        hs.DPSGD(rate=0.1, steps=9, noise_multiplier=1, sampling="poison")
    with pytest.raises(AttributeError, match="nothing"):
        hs.nothing  # type: ignore[attr-defined]  # noqa: B018
