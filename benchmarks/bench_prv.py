"""The lattice accountant beside dp-accounting's on the same grid: time, width and memory.

``make timings`` times each side once. Run as a program (``make tables``), it prints medians of runs
that take turns, how wide both intervals for delta are, and the peak memory of a process of its own.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import pytest
from rich.console import Console
from rich.progress import track
from rich.table import Table

import hockeystick as hs
from hockeystick.accountants.base import composition_of
from hockeystick.accountants.prv import PRV

GRID: Final = 1e-4
TOLERANCE: Final = 1e-4
REPEATS: Final = 3


class Case(NamedTuple):
    """So many runs of each of some mechanisms, and an epsilon where delta is about 1e-6."""

    noise: type[hs.Gaussian] | type[hs.Laplace]
    scales: tuple[float, ...]
    rate: float
    runs: int
    epsilon: float


def spread(low: float, high: float, count: int) -> tuple[float, ...]:
    """Return numbers from low to high, each as many times the one before."""
    return tuple(low * (high / low) ** (k / (count - 1)) for k in range(count))


CASES: Final = {
    "sampled Gaussian x 1e4": Case(hs.Gaussian, (2.0,), 0.01, 10**4, 2.45),
    "sampled Gaussian x 1e5": Case(hs.Gaussian, (2.0,), 0.01, 10**5, 9.0),
    "sampled Gaussian x 1e6": Case(hs.Gaussian, (2.0,), 0.01, 10**6, 38.8),
    "Laplace x 1e4": Case(hs.Laplace, (100.0,), 1.0, 10**4, 4.85),
    "Laplace x 1e5": Case(hs.Laplace, (100.0,), 1.0, 10**5, 19.4),
    "Laplace x 1e6": Case(hs.Laplace, (100.0,), 1.0, 10**6, 96.2),
    "200 sampled Gaussians": Case(hs.Gaussian, spread(1.0, 2.0, 200), 0.01, 1, 0.65),
    "200 Laplaces": Case(hs.Laplace, spread(20.0, 200.0, 200), 1.0, 1, 1.4),
}


def plan_of(case: Case) -> hs.Mechanism:
    """Return a case as a plan."""
    noises = [case.noise(scale) for scale in case.scales]
    steps = [hs.PoissonSubsampled(one, case.rate) if case.rate < 1.0 else one for one in noises]
    return hs.Composed(tuple(step**case.runs for step in steps))


def on_the_grid(case: Case) -> tuple[float, float]:
    """Return the ends of delta on the grid."""
    found = PRV(step=GRID).delta(composition_of(plan_of(case), "prv"), case.epsilon)
    return found.lower, found.upper


def as_asked(case: Case) -> tuple[float, float]:
    """Return the ends of delta on a grid that is as fine as the tolerance needs."""
    found = hs.delta(plan_of(case), case.epsilon, accountant="prv", tolerance=TOLERANCE)
    assert isinstance(found, hs.Certified)
    return found.lower, found.upper


def by_the_peer(case: Case) -> tuple[float, float]:
    """Return the optimistic and the pessimistic delta of dp-accounting on the grid.

    Its optimistic distributions are rounded down point by point; it connects no dots there.
    """
    optimistic, pessimistic = (
        float(peer_composed(case, pessimistic=side).get_delta_for_epsilon(case.epsilon))
        for side in (False, True)
    )
    return max(optimistic, 0.0), pessimistic


def peer_composed(case: Case, *, pessimistic: bool) -> Any:
    """Return dp-accounting's privacy-loss distribution of a case."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    makers: dict[Any, Callable[..., Any]] = {
        hs.Gaussian: pld.from_gaussian_mechanism,
        hs.Laplace: pld.from_laplace_mechanism,
    }
    composed = None
    for scale in case.scales:
        one = makers[case.noise](
            scale,
            pessimistic_estimate=pessimistic,
            value_discretization_interval=GRID,
            sampling_prob=case.rate,
            use_connect_dots=pessimistic,
        ).self_compose(case.runs)
        composed = one if composed is None else composed.compose(one)
    return composed


SIDES: Final[dict[str, Callable[[Case], tuple[float, float]]]] = {
    "prv": on_the_grid,
    "prv as asked": as_asked,
    "dp-accounting": by_the_peer,
}


def small(case: Case) -> Case:
    """Return a case that runs all of the code and takes no time."""
    return case._replace(scales=case.scales[:3], runs=min(case.runs, 50), epsilon=0.01)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("side", SIDES)
def bench_delta(benchmark: Any, name: str, side: str) -> None:
    if side == "dp-accounting":
        pytest.importorskip("dp_accounting", reason="needs the extra peers")
    case = CASES[name]
    benchmark.group = name
    SIDES[side](small(case))
    lower, upper = benchmark.pedantic(SIDES[side], (case if benchmark.enabled else small(case),))
    benchmark.extra_info["delta"] = [lower, upper]
    assert 0.0 <= lower <= upper <= 1.0


def afresh(case: Case) -> Iterator[Case]:
    """Return the case again and again, with scales that no cache has met."""
    for k in range(REPEATS):
        yield case._replace(scales=tuple(scale * (1.0 + k * 2.0**-40) for scale in case.scales))


class Measured(NamedTuple):
    """What a side took for a case, in seconds and MB, and the delta that it found."""

    seconds: float
    megabytes: float
    lower: float
    upper: float

    @property
    def width(self) -> float:
        """The width over the upper end."""
        return (self.upper - self.lower) / self.upper


def measured(name: str, memory: dict[str, float]) -> dict[str, Measured]:
    """Return what each side takes for a case: medians of runs that take turns."""
    case = CASES[name]
    seconds: dict[str, list[float]] = {side: [] for side in SIDES}
    ends = {}
    for again in afresh(case):
        for side, ask in SIDES.items():
            ask(small(case))
            start = time.perf_counter()
            ends[side] = ask(again)
            seconds[side].append(time.perf_counter() - start)
    return {
        side: Measured(statistics.median(seconds[side]), memory[side], *ends[side])
        for side in SIDES
    }


def peak_memory(name: str, side: str) -> float:
    """Return the peak memory in MB of a process that answers a case, libraries included."""
    command = [sys.executable, __file__, "--memory", name, side]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def table() -> Table:
    """Return all cases side by side."""
    shown = Table(title=f"delta on a grid of {GRID:g}; medians of {REPEATS}; peak MB of a process")
    shown.add_column("case")
    for column in ("side", "seconds", "peer/own", "relative width", "MB", "delta"):
        shown.add_column(column, justify="right")
    # A process inherits the peak of the one that starts it: this comes before anything large.
    peaks = {
        name: {side: peak_memory(name, side) for side in SIDES} for name in track(CASES, "memory")
    }
    for name in track(CASES, "lattices"):
        found = measured(name, peaks[name])
        for side, one in found.items():
            shown.add_row(
                name if side == "prv" else "",
                side,
                f"{one.seconds:.3f}",
                f"{found['dp-accounting'].seconds / one.seconds:.1f}",
                f"{one.width:.1e}",
                f"{one.megabytes:.0f}",
                f"[{one.lower:.7g}, {one.upper:.7g}]",
                end_section=side == "dp-accounting",
            )
    return shown


def main() -> None:
    """Print the table, or the peak memory in MB after one case on one side."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", nargs=2, metavar=("CASE", "SIDE"))
    asked = parser.parse_args().memory
    console = Console(width=120)
    if asked is None:
        console.print(table())
        return
    name, side = asked
    SIDES[side](CASES[name])
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    console.print(kilobytes * 1024 / 1e6)


if __name__ == "__main__":
    main()
