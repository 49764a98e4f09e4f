"""The Gaussian mechanism's description."""

import math
from typing import Any

import numpy as np
import pytest

from hockeystick.errors import ParameterError
from hockeystick.mechanisms import Gaussian


@pytest.mark.parametrize("value", [0, 1e-300, 1.1, 2**1000, math.inf, np.float32(2), np.int64(3)])
def test_the_noise_multiplier_is_kept_as_a_python_float(value: Any) -> None:
    mechanism = Gaussian(noise_multiplier=value)
    assert type(mechanism.noise_multiplier) is float
    assert mechanism.noise_multiplier == value


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (-1, "-1"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (True, "True"),
        ("1.1", "'1.1'"),
        (None, "None"),
        (1j, "1j"),
    ],
)
def test_any_other_noise_multiplier_is_refused_in_one_line(value: Any, shown: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        Gaussian(value)
    told, _, _ = str(caught.value).partition(" (write ")
    assert told == f"noise_multiplier must be a number >= 0 or inf; got {shown}"


def test_an_integer_beyond_floats_is_refused_and_not_taken_for_infinity() -> None:
    with pytest.raises(ParameterError) as caught:
        Gaussian(10**400)
    assert str(caught.value) == (
        "noise_multiplier must be a number >= 0 or inf, within the range of a float; "
        "got an integer of 1329 bits"
    )


def test_the_gaussian_fits_every_adjacency() -> None:
    assert Gaussian(1).adjacency is None


@pytest.mark.parametrize(
    ("value", "text"), [(1.1, "1.1"), (2, "2"), (math.inf, "inf"), (1 / 3, "0.333333")]
)
def test_the_text_gives_the_noise_multiplier(value: Any, text: Any) -> None:
    assert str(Gaussian(value)) == f"Gaussian (noise multiplier {text})"
