"""The round-off bounds assume elementary functions good to four units in the last place."""

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

from hockeystick.numerics.multiprecision import mp

LIMIT = 4


def jitted(function: Callable[..., float]) -> Any:
    """Return the function as a kernel calls it: compiled."""
    names = ("a", "b")[: 2 if function is math.atan2 else 1]
    scope: dict[str, Any] = {"f": function}
    exec(f"def call({', '.join(names)}): return f({', '.join(names)})", scope)
    return njit(scope["call"])


def signed(source: random.Random, low: float, high: float) -> float:
    return float(source.choice((-1, 1)) * 10 ** source.uniform(low, high))


def near_zero(source: random.Random) -> float:
    return signed(source, -20, 2.8)


def positive(source: random.Random) -> float:
    close_to_one = source.random() < 0.3
    return 1 + signed(source, -15, -1) if close_to_one else float(10 ** source.uniform(-300, 300))


def above_minus_one(source: random.Random) -> float:
    return max(signed(source, -20, 0) * 0.999999, -0.999999) * source.choice((1.0, 0.5))


def angle(source: random.Random) -> float:
    return signed(source, -6, 6)


FUNCTIONS: dict[str, tuple[Any, Any, Any, Callable[[random.Random], float]]] = {
    "exp": (math.exp, np.exp, mp.exp, near_zero),
    "expm1": (math.expm1, np.expm1, mp.expm1, near_zero),
    "log": (math.log, np.log, mp.log, positive),
    "log1p": (math.log1p, np.log1p, mp.log1p, above_minus_one),
    "sin": (math.sin, np.sin, mp.sin, angle),
    "cos": (math.cos, np.cos, mp.cos, angle),
}


def units(found: float, truth: Any) -> float:
    """Return the distance in units in the last place of the truth."""
    return float(abs(mp.mpf(float(found)) - truth) / mp.mpf(math.ulp(float(truth))))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("library", ["compiled", "math", "numpy"])
def test_a_function_of_one_number_errs_by_at_most_four_units(name: str, library: str) -> None:
    plain, of_arrays, exact, draw = FUNCTIONS[name]
    source = random.Random(name)
    points = [draw(source) for _ in range(1500)]
    if library == "numpy":
        found = of_arrays(np.array(points)).tolist()
    else:
        call = jitted(plain) if library == "compiled" else plain
        found = [call(x) for x in points]
    with mp.workdps(60):
        worst = max(units(y, exact(mp.mpf(x))) for x, y in zip(points, found, strict=True))
    assert worst <= LIMIT


def test_the_angle_of_a_point_errs_by_at_most_four_units() -> None:
    call = jitted(math.atan2)
    source = random.Random(3)
    with mp.workdps(60):
        for _ in range(1500):
            y, x = signed(source, -8, 3), signed(source, -8, 3)
            truth = mp.atan2(mp.mpf(y), mp.mpf(x))
            assert units(call(y, x), truth) <= LIMIT
            assert units(float(np.arctan2(y, x)), truth) <= LIMIT
