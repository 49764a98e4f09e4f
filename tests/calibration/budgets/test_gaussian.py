"""The largest of many Gaussian errors: against the distribution itself, by mpmath."""

import math
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp

CASES = [
    (1.0, 1, 0.05),
    (9.15345, 10_000, 0.01),
    (0.3, 7, 0.999),
    (1e10, 10**15, 1e-200),
    (2.0, 3, 1e-12),
]


def inside(limit: float, sigma: float, coordinates: int) -> Any:
    """Return ``ln P(no error exceeds a limit)``, by the error function's complement."""
    place = mp.mpf(limit) / (mp.mpf(repr(sigma)) * mp.sqrt(2))
    return coordinates * mp.log1p(-mp.erfc(place))


@pytest.mark.parametrize(("sigma", "coordinates", "failure"), CASES)
def test_the_quantile_is_exceeded_as_often_as_it_should(
    sigma: float, coordinates: int, failure: float
) -> None:
    found = hs.calibration.max_error_quantile(sigma, coordinates, failure)
    with mp.workdps(260):
        goal = mp.log1p(-mp.mpf(repr(failure)))
        assert inside(found, sigma, coordinates) >= goal
        assert inside(found * (1 - 4e-16), sigma, coordinates) < goal


@pytest.mark.parametrize(("sigma", "coordinates", "failure"), CASES)
def test_the_probability_is_a_lower_end_within_some_ulps(
    sigma: float, coordinates: int, failure: float
) -> None:
    for factor in (0.2, 1.0, 3.0):
        limit = factor * hs.calibration.max_error_quantile(sigma, coordinates, failure)
        found = hs.calibration.max_error_probability(limit, sigma, coordinates)
        with mp.workdps(60):
            truth = mp.exp(inside(limit, sigma, coordinates))
            assert found <= truth
            # A probability may be below any float.
            assert found >= truth * (1 - mp.mpf(10) ** -15) - mp.mpf(10) ** -300


@pytest.mark.parametrize(("sigma", "coordinates", "failure"), CASES)
def test_the_union_bound_is_its_formula_and_above_the_quantile(
    sigma: float, coordinates: int, failure: float
) -> None:
    found = hs.calibration.max_error_union_bound(sigma, coordinates, failure)
    with mp.workdps(40):
        share = 2 * coordinates / mp.mpf(repr(failure))
        truth = mp.mpf(repr(sigma)) * mp.sqrt(2 * mp.log(share))
        assert truth <= found <= truth * (1 + mp.mpf(10) ** -15)
    assert found > hs.calibration.max_error_quantile(sigma, coordinates, failure)


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (hs.calibration.max_error_quantile(0.0, 5, 0.1), 0.0),
        (hs.calibration.max_error_union_bound(0.0, 5, 0.1), 0.0),
        (hs.calibration.max_error_probability(0.0, 0.0, 5), 1.0),
        (hs.calibration.max_error_probability(0.0, 1.0, 5), 0.0),
        (hs.calibration.max_error_probability(math.inf, 1.0, 5), 1.0),
        (hs.calibration.max_error_probability(1e300, 1e-300, 10**15), math.nextafter(1.0, 0.0)),
    ],
)
def test_edge_cases(found: float, value: float) -> None:
    assert found == value


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: hs.calibration.max_error_quantile(-1.0, 5, 0.1), "sigma"),
        (lambda: hs.calibration.max_error_quantile(math.inf, 5, 0.1), "sigma"),
        (lambda: hs.calibration.max_error_quantile(1.0, 0, 0.1), "coordinates"),
        (lambda: hs.calibration.max_error_quantile(1.0, 5, 0.0), "failure"),
        (lambda: hs.calibration.max_error_union_bound(1.0, 5, 1.0), "failure"),
        (lambda: hs.calibration.max_error_union_bound(1.0, 2.5, 0.5), "coordinates"),  # type: ignore[arg-type]
        (lambda: hs.calibration.max_error_probability(-1.0, 1.0, 5), "error"),
        (lambda: hs.calibration.max_error_probability(math.nan, 1.0, 5), "error"),
    ],
)
def test_wrong_values_are_named(call: Any, name: str) -> None:
    with pytest.raises(hs.errors.ParameterError) as caught:
        call()
    assert caught.value.name == name
