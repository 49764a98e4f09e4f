"""Noise that changes in every step, beside dp-accounting's moments, added up step by step.

``make timings`` times each side once. Run as a program (``make tables``), it prints medians of runs
that take turns, how wide the intervals for epsilon are, and how long the peer takes beside them.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pytest
from rich.console import Console
from rich.progress import track
from rich.table import Table

import hockeystick as hs
from hockeystick.mechanisms import schedules

RATE: Final = 0.004
NOISE: Final = 1.5
END: Final = 0.5
DELTA: Final = 1e-5
REPEATS: Final = 3
# Longer ones are left out for the peer, and those longer than the other are asked once.
PEERS_MOST: Final = 10_000
PEERS_OFTEN: Final = 100
# So many run all of the code in little time.
FEW: Final = 200
STEPS: Final = (100, 2_000, 10_000, 1_000_000)


def plan_of(steps: int, noise: float) -> hs.DPSGD:
    """Return a run whose noise halves along the way."""
    return hs.DPSGD(
        noise_multiplier=noise, rate=RATE, steps=steps, schedule=schedules.Exponential(end=END)
    )


def by_auto(steps: int, noise: float) -> tuple[float, float]:
    """Return the ends of epsilon."""
    return _ends(hs.epsilon(plan_of(steps, noise), DELTA))


def by_moments(steps: int, noise: float) -> tuple[float, float]:
    """Return the ends of epsilon by Renyi divergences."""
    return _ends(hs.epsilon(plan_of(steps, noise), DELTA, accountant="rdp"))


def by_the_peer(steps: int, noise: float) -> tuple[float, float]:
    """Return dp-accounting's upper end, and nothing for a lower one."""
    from dp_accounting import dp_event
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant()
    for one in plan_of(steps, noise).noise_multipliers.tolist():
        accountant.compose(dp_event.PoissonSampledDpEvent(RATE, dp_event.GaussianDpEvent(one)))
    return 0.0, float(accountant.get_epsilon(DELTA))


def _ends(found: hs.Certified | hs.Approximate) -> tuple[float, float]:
    """Return the ends of an interval."""
    assert isinstance(found, hs.Certified)
    return found.lower, found.upper


SIDES: Final[dict[str, Callable[[int, float], tuple[float, float]]]] = {
    "auto": by_auto,
    "rdp": by_moments,
    "dp-accounting rdp": by_the_peer,
}


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("side", SIDES)
def bench_schedule(benchmark: Any, steps: int, side: str) -> None:
    if side == "dp-accounting rdp":
        pytest.importorskip("dp_accounting", reason="needs the extra peers")
        if steps > PEERS_MOST:
            pytest.skip("the peer takes some 40 ms a step: hours for so many")
    benchmark.group = f"{steps} steps"
    if benchmark.enabled:
        SIDES[side](FEW, NOISE)
    asked = (steps if benchmark.enabled else FEW, NOISE)
    lower, upper = benchmark.pedantic(SIDES[side], asked)
    benchmark.extra_info["epsilon"] = [lower, upper]
    assert 0.0 <= lower <= upper


class Measured(NamedTuple):
    """What a side took, in seconds, and the epsilon that it found."""

    seconds: float
    lower: float
    upper: float

    @property
    def width(self) -> float:
        """The width over the upper end."""
        return (self.upper - self.lower) / self.upper


def measured(steps: int) -> dict[str, Measured]:
    """Return what each side takes: medians of runs that take turns, each with noise of its own."""
    seconds: dict[str, list[float]] = {side: [] for side in SIDES}
    ends = {}
    for k in range(REPEATS):
        for side, ask in SIDES.items():
            peer = ask is by_the_peer
            if peer and (steps > PEERS_MOST or (k > 0 and steps > PEERS_OFTEN)):
                continue
            start = time.perf_counter()
            found = ask(steps, NOISE * (1.0 + k * 2.0**-40))
            seconds[side].append(time.perf_counter() - start)
            ends[side] = found
    return {side: Measured(statistics.median(seconds[side]), *ends[side]) for side in ends}


def table() -> Table:
    """Return all lengths side by side."""
    shown = Table(title=f"exponential noise {NOISE:g} to {NOISE * END:g}; medians of {REPEATS}")
    shown.add_column("steps")
    for column in ("side", "seconds", "peer/own", "relative width", "epsilon"):
        shown.add_column(column, justify="right")
    for ask in SIDES.values():
        ask(FEW, NOISE)
    for steps in track(STEPS, "schedules"):
        found = measured(steps)
        peer = found.get("dp-accounting rdp")
        for side, one in found.items():
            shown.add_row(
                f"{steps:,}" if side == "auto" else "",
                side,
                f"{one.seconds:.4f}",
                "" if peer is None else f"{peer.seconds / one.seconds:.0f}",
                "" if one is peer else f"{one.width:.1e}",
                f"{one.upper:.6g}" if one is peer else f"[{one.lower:.9g}, {one.upper:.9g}]",
                end_section=side == list(found)[-1],
            )
    return shown


def main() -> None:
    """Print the table."""
    Console(width=110).print(table())


if __name__ == "__main__":
    main()
