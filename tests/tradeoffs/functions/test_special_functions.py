"""The bounds assume special functions good to 32 units in the last place, arguments as given."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

from hockeystick.numerics.multiprecision import mp

LIMIT = 32


def _phi(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _log_phi(x: Any) -> Any:
    return mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2) if x > 0 else mp.log(_phi(x))


def _erfcx(x: Any) -> Any:
    return mp.erfc(x) * mp.exp(x * x)


def around(source: random.Random) -> float:
    return source.uniform(-37, 37) if source.random() < 0.7 else source.gauss(0, 0.01)


def upward(source: random.Random) -> float:
    return float(10 ** source.uniform(-10, 5)) - 1.0 * (source.random() < 0.3)


def downward(source: random.Random) -> float:
    return source.uniform(-1e4, 8)


FUNCTIONS: dict[str, tuple[Any, Any, Callable[[random.Random], float]]] = {
    "ndtr": (special.ndtr, _phi, around),
    "log_ndtr": (special.log_ndtr, _log_phi, downward),
    "erfcx": (special.erfcx, _erfcx, upward),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_is_good_to_so_many_units(name: str) -> None:
    function, exact, draw = FUNCTIONS[name]
    source = random.Random(f"special {name}")
    points = [draw(source) for _ in range(3000)]
    with mp.workdps(40):
        for x, found in zip(points, function(np.array(points)), strict=True):
            truth = exact(mp.mpf(x))
            # The argument's own half unit is not the function's fault, but comes with it.
            assert abs(mp.mpf(float(found)) - truth) <= LIMIT * mp.mpf(2) ** -52 * abs(truth) * (
                1 + abs(x) if name == "ndtr" else 1
            ), x
