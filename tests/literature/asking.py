"""Asking ways, and holding their answers against mpmath's."""

from typing import Any

import pytest

from hockeystick.numerics.multiprecision import mp, mpf
from tests.claims import Found
from tests.claims.found import found
from tests.claims.registry import ways


def ask(way: str, **parameters: Any) -> Found:
    """Return what a way finds."""
    return found(ways()[way](**parameters))


def close(way: str, truth: Any, rel: float = 1e-12, **parameters: Any) -> bool:
    """Return whether a way's number is the truth but for so much of it."""
    return ask(way, **parameters).upper == pytest.approx(float(truth), rel=rel)


def holds(way: str, truth: Any, width: float = 1e-9, **parameters: Any) -> bool:
    """Return whether the truth is in a proven interval of a relative width."""
    answer = ask(way, **parameters)
    assert answer.kind == "proven"
    return bool(
        answer.lower <= truth <= answer.upper
        and answer.upper - answer.lower <= width * abs(answer.upper)
    )


def gaussian_delta(mu: Any, epsilon: Any) -> mpf:
    """Return delta of mu-Gaussian differential privacy."""
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)
