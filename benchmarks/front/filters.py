"""Print how many steps of DP-SGD fit into budgets that are spent on the way, by each filter.

``python -m benchmarks.front.filters`` prints the table of docs/howto/adaptive.md. Nearly all of the
time goes to the last row, which solves for the number of steps of a fixed plan.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from typing import Final

import hockeystick as hs
from hockeystick.calibration import Filter
from hockeystick.mechanisms import Mechanism

_STEP: Final = hs.PoissonSubsampled(hs.Gaussian(noise_multiplier=1.1), rate=256 / 60_000)
_EXPECTED: Final = 14_000
_DELTA: Final = 1e-5
_EPSILONS: Final = (1, 3, 8)
# What single steps may have of delta, in parts of the whole.
_SHARES: Final = tuple(10 ** -(k / 20) for k in range(1, 61))
# Those of Opacus.
_ORDERS: Final = (*(1 + k / 10 for k in range(1, 100)), *range(12, 64))


def _most(fits: Callable[[int], bool]) -> int:
    low, high = 0, 1
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _covered(spending: Filter, step: Mechanism) -> int:
    return _most(lambda n: spending.fits(step, count=n))


def _by_shares(epsilon: float, rule: str | None) -> int:
    slack = 0.0 if rule is None else _DELTA / 2
    budget = hs.ApproxDP(epsilon, _DELTA)
    releases = [hs.convert(_STEP, hs.ApproxDP, delta=share * _DELTA) for share in _SHARES]
    return max(_covered(Filter(budget, slack=slack, rule=rule), one) for one in releases)


def _by_rho(epsilon: float) -> int:
    return _covered(Filter(hs.ApproxDP(epsilon, _DELTA), slack=_DELTA), _STEP)


def _by_orders_of_opacus(epsilon: float) -> int:
    cost = dict(hs.convert(_STEP, hs.RenyiDP, orders=_ORDERS).divergences)
    left = {order: epsilon + math.log(_DELTA) / (order - 1) for order in _ORDERS}
    return max(int(max(left[order], 0) / cost[order]) for order in _ORDERS)


def _by_one_order(epsilon: float) -> int:
    return _covered(Filter(hs.ApproxDP(epsilon, _DELTA), expected=_STEP**_EXPECTED), _STEP)


def _fixed(epsilon: float) -> int:
    return _most(lambda n: hs.epsilon(_STEP**n, delta=_DELTA).upper <= epsilon)


_ROWS: Final = {
    "(epsilon, delta) of each step, added up (`slack=0`)": lambda e: _by_shares(e, None),
    'the same, `rule="whitehouse"`': lambda e: _by_shares(e, "whitehouse"),
    "rho (`slack=1e-5`)": _by_rho,
    "one order of Opacus's, epsilon less `ln(1/delta) / (order - 1)` (Feldman and Zrnic 2021)": (
        _by_orders_of_opacus
    ),
    "one order (`expected=step**14_000`)": _by_one_order,
    "the plan's own account, number of steps fixed in advance": _fixed,
}


def table() -> Iterator[str]:
    """Yield the lines of the table as they are found."""
    yield f"| | {' | '.join(f'epsilon {epsilon}' for epsilon in _EPSILONS)} |\n"
    yield f"|---|{'---|' * len(_EPSILONS)}\n"
    for name, count in _ROWS.items():
        yield f"| {name} | {' | '.join(f'{count(epsilon):,}' for epsilon in _EPSILONS)} |\n"


if __name__ == "__main__":
    for line in table():
        sys.stdout.write(line)
        sys.stdout.flush()
