"""The profile of one direction of a plan."""

import hockeystick as hs
from hockeystick.accountants.auto import Auto
from hockeystick.accountants.composition import composition_of
from hockeystick.accountants.profile import profile_of


def test_equal_terms_have_one_profile_with_what_it_has_tabulated() -> None:
    plan = hs.PoissonSubsampled(hs.Gaussian(1.0), 0.1) ** 3
    first, again = (composition_of(plan, "f-dp").removing for _ in range(2))
    assert profile_of(first, Auto()) is profile_of(again, Auto())
    other = composition_of(plan, "f-dp").adding
    assert profile_of(other, Auto()) is not profile_of(first, Auto())
