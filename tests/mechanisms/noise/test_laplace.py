"""The Laplace mechanism's description."""

import math
from typing import Any

import numpy as np
import pytest

from hockeystick.errors import ParameterError
from hockeystick.mechanisms import Laplace


@pytest.mark.parametrize("value", [0, 1e-300, 1.1, math.inf, np.float32(2), np.int64(3)])
def test_the_scale_is_kept_as_a_python_float(value: Any) -> None:
    mechanism = Laplace(scale=value)
    assert type(mechanism.scale) is float
    assert mechanism.scale == value


@pytest.mark.parametrize("value", [-1, math.nan, -math.inf, True, "1.1", None, 1j])
def test_any_other_scale_is_refused_in_one_line(value: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        Laplace(value)
    told, _, _ = str(caught.value).partition(" (write ")
    assert told == f"scale must be a number >= 0 or inf; got {value!r}"


def test_laplace_noise_fits_every_adjacency() -> None:
    assert Laplace(1).adjacency is None


def test_the_assumption_names_the_sensitivity_that_the_scale_is_in_units_of() -> None:
    (sentence,) = Laplace(20).assumptions
    assert "its scale is 20 times the query's L1 sensitivity" in sentence


@pytest.mark.parametrize(("value", "text"), [(1.1, "1.1"), (2, "2"), (math.inf, "inf")])
def test_the_text_gives_the_scale(value: Any, text: Any) -> None:
    assert str(Laplace(value)) == f"Laplace (scale {text})"
