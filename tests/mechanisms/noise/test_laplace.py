"""The Laplace mechanism's description."""

from hockeystick.mechanisms import Laplace


def test_the_assumption_names_the_sensitivity_that_the_scale_is_in_units_of() -> None:
    (sentence,) = Laplace(20).assumptions
    assert "its scale is 20 times the query's L1 sensitivity" in sentence
