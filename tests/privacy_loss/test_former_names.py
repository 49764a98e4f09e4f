"""The names of the release before still work, and say what they are called now."""

import pytest

import hockeystick as hs
from hockeystick.privacy_loss import DominatedLoss, GaussianLoss


@pytest.mark.parametrize(
    ("former", "name"),
    [
        ("FirstOfManyLoss", "AboveThresholdRenyiLoss"),
        ("FoldedGaussianLoss", "AboveThresholdGaussianLoss"),
        ("ObservedMixtureProfiledLoss", "ObservedMixtureLoss"),
        ("SampledProfiledLoss", "SampledLoss"),
    ],
)
def test_a_former_name_is_the_class_of_the_new_one(former: str, name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{former} is now {name}"):
        found = getattr(hs.privacy_loss, former)
    assert found is getattr(hs.privacy_loss, name)
    assert former not in hs.privacy_loss.__all__


def test_a_function_that_is_a_property_now_still_reads_it() -> None:
    with pytest.warns(DeprecationWarning, match="closed_form_dominating_loss is now a property"):
        found = hs.privacy_loss.closed_form_dominating_loss  # type: ignore[attr-defined]
    assert found(DominatedLoss(GaussianLoss(2.0), None)) == GaussianLoss(2.0)


def test_a_name_that_never_was_is_none() -> None:
    with pytest.raises(AttributeError, match="no attribute 'NeverWas'"):
        hs.privacy_loss.NeverWas  # type: ignore[attr-defined]  # noqa: B018
