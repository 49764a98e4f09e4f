"""The profile of a function: the bound on what is concave between the rates that are asked."""

import numpy as np

from hockeystick.tradeoffs.profiles.by_function import _concave_maximum


def test_a_maximum_between_rates_next_to_zero_is_bounded_without_a_warning() -> None:
    # The lines through neighbours so close are steeper than the largest float.
    x = np.array([[0.0], [5e-324], [1e-310], [0.5], [1.0]])
    values = np.array([[0.0], [0.3], [0.4], [0.6], [0.0]])
    bound = _concave_maximum(x, values, values + 1e-16)
    assert np.all(bound >= 0.6)
    assert np.all(np.isfinite(bound))
