"""Upper ends by closed forms of what dominates a plan."""

import math

import pytest

import hockeystick as hs
from hockeystick.accountants.closed_forms.dominating import (
    are_dominated_by_closed_form,
    closed_delta_upper,
    closed_epsilon_upper,
)
from hockeystick.accountants.composition import composition_of
from hockeystick.privacy_loss import GaussianLoss, dominating_pair

SHUFFLED = hs.Shuffled(hs.Gaussian(2.0), steps=20)
REPLACED = hs.mechanisms.WithReplacementSubsampled(hs.Gaussian(1.0), 10, 1000)


def test_what_has_a_closed_form_itself_stays() -> None:
    loss = GaussianLoss(2.0)
    assert loss.closed_form_dominating_loss is loss
    for one in (dominating_pair(SHUFFLED).removing, dominating_pair(REPLACED).removing):
        assert one is not None
        assert one.closed_form_profile is None
        assert one.closed_form_dominating_loss.closed_form_profile is not None


def test_epochs_are_gaussians_together_and_with_others() -> None:
    terms = composition_of(SHUFFLED**3 @ hs.Gaussian(4.0), "prv").removing
    whole = hs.Gaussian(2.0) ** 3 @ hs.Gaussian(4.0)
    assert closed_epsilon_upper(terms, 1e-6) == hs.epsilon(whole, 1e-6).upper
    assert closed_delta_upper(terms, 1.0) == hs.delta(whole, 1.0).upper
    assert are_dominated_by_closed_form(terms)


@pytest.mark.parametrize(
    "plan", [REPLACED**2, SHUFFLED @ hs.Laplace(3.0), hs.Gaussian(2.0), hs.Laplace(1.0)], ids=str
)
def test_nothing_is_said_where_no_form_is_known_or_none_is_needed(plan: hs.Mechanism) -> None:
    terms = composition_of(plan, "prv").removing
    assert closed_epsilon_upper(terms, 1e-6) == math.inf
    assert closed_delta_upper(terms, 1.0) == math.inf
    assert not are_dominated_by_closed_form(terms)
