"""The Gaussian mechanism's description."""

import pytest

from hockeystick.errors import ParameterError
from hockeystick.mechanisms import Gaussian


def test_an_integer_beyond_floats_is_refused_and_not_taken_for_infinity() -> None:
    with pytest.raises(ParameterError) as caught:
        Gaussian(10**400)
    assert str(caught.value) == (
        "noise_multiplier must be a number >= 0 or inf, within the range of a float; "
        "got an integer of 1329 bits"
    )
