"""Exact noise: nanoseconds a draw beside numpy's floats, and draws against exact probabilities.

Run as a program (``python benchmarks/bench_samplers.py``), it prints processor time per draw (the
least of some runs) and p-values of chi-square tests with 10^8 draws, and how often noise that is
drawn and added in floats tells 0 from 1 by a point that the other never reaches.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy import special, stats

from hockeystick.release import samplers

DRAWS: Final = 2_000_000
MANY: Final = 100_000_000
BLOCK: Final = 5_000_000
REPEATS: Final = 5
# Every cell of a chi-square test is to be expected at least this often.
OFTEN: Final = 20.0


def timed(draw: Callable[[int], Any], count: int, repeats: int) -> float:
    """Return nanoseconds of the processor per draw."""
    draw(10)
    best = float("inf")
    for _ in range(repeats):
        began = time.process_time()
        draw(count)
        best = min(best, time.process_time() - began)
    return 1e9 * best / count


def gaussian_mass(s: float) -> Callable[[Any], Any]:
    """Return the probabilities of ``round(N(0, s^2))``, from the tail that is the shorter."""

    def mass(k: Any) -> Any:
        return special.ndtr((0.5 - abs(k)) / s) - special.ndtr((-0.5 - abs(k)) / s)

    return mass


def discrete_gauss(s: float) -> Callable[[Any], Any]:
    """Return the probabilities of the discrete Gaussian."""
    total = np.exp(-0.5 * (np.arange(-int(40 * s) - 9, int(40 * s) + 10) / s) ** 2).sum()
    return lambda k: np.exp(-0.5 * (k / s) ** 2) / total


def discrete_laplace(b: float) -> Callable[[Any], Any]:
    """Return the probabilities of the discrete Laplace law."""
    return lambda k: np.tanh(0.5 / b) * np.exp(-abs(k) / b)


Draw = Callable[[int], Any]
CHECKED: Final[tuple[tuple[str, Draw, Callable[[Any], Any]], ...]] = (
    ("rounded Gaussian, s = 3", partial(samplers.rounded_gaussian, 3.0), gaussian_mass(3.0)),
    ("rounded Gaussian, s = 500", partial(samplers.rounded_gaussian, 500.0), gaussian_mass(500.0)),
    ("discrete Gaussian, s = 2", partial(samplers.discrete_gaussian, 2.0), discrete_gauss(2.0)),
    ("discrete Gaussian, s = 70", partial(samplers.discrete_gaussian, 70.0), discrete_gauss(70.0)),
    ("discrete Laplace, b = 5", partial(samplers.discrete_laplace, 5.0), discrete_laplace(5.0)),
    ("Poisson, mean 40", partial(samplers.poisson, 40.0), stats.poisson(40.0).pmf),
    ("Skellam, variance 40", partial(samplers.skellam, 40.0), stats.skellam(20.0, 20.0).pmf),
)
TIMED: Final[tuple[tuple[str, Draw], ...]] = (
    ("numpy: standard normal, floats", np.random.default_rng(1).standard_normal),
    ("random bits alone", samplers.secret_bits),
    ("rounded Gaussian, s = 2^22", partial(samplers.rounded_gaussian, 2.0**22)),
    ("rounded Laplace, b = 2^22", partial(samplers.rounded_laplace, 2.0**22)),
    *(
        (f"discrete Gaussian, s = {s:g}", partial(samplers.discrete_gaussian, s))
        for s in (0.5, 10.0, 63.0, 64.0, 1e3, 1e6)
    ),
    ("discrete Laplace, b = 5", partial(samplers.discrete_laplace, 5.0)),
    ("Poisson, mean 1000", partial(samplers.poisson, 1000.0)),
    ("Skellam, variance 1000", partial(samplers.skellam, 1000.0)),
    ("coins, p = 0.01", partial(samplers.bernoulli, 0.01)),
    ("order", samplers.permutation),
)


def p_value(draw: Callable[[int], Any], mass: Callable[[Any], Any], draws: int) -> float:
    """Return the p-value of draws against exact probabilities, rare integers taken together."""
    reach = 4096
    counts = np.zeros(2 * reach + 1)
    for start in range(0, draws, BLOCK):
        drawn = np.clip(draw(min(BLOCK, draws - start)), -reach, reach)
        counts += np.bincount(drawn + reach, minlength=2 * reach + 1)
    expected = draws * mass(np.arange(-reach, reach + 1))
    often = expected >= OFTEN
    seen = np.append(counts[often], draws - counts[often].sum())
    wanted = np.append(expected[often], draws - expected[often].sum())
    return float(stats.chi2.sf(((seen - wanted) ** 2 / wanted).sum(), len(seen) - 1))


def told_apart(draws: int) -> tuple[float, float]:
    """Return how often a float draw, and an exact one, tells 0 from 1 for certain.

    ``1 + N`` in doubles is a multiple of 2^-53 wherever it is near zero. A number there that is
    none can only be ``0 + N``. With an integer sum and exact noise both reach every integer.
    """
    generator = np.random.default_rng(7)
    seen = 0
    for start in range(0, draws, BLOCK):
        noisy = 0.0 + generator.standard_normal(min(BLOCK, draws - start))
        near = noisy[np.abs(noisy) < 0.5]
        seen += int((np.modf(near * 2.0**53)[0] != 0).sum())
    exact = samplers.rounded_gaussian(8.0, BLOCK)
    reached = [set(np.unique(start + exact[abs(start + exact) <= 24])) for start in (0, 1)]
    return seen / draws, float(reached[0] != reached[1])


def main() -> None:
    console = Console()
    table = Table(title=f"Processor time, least of {REPEATS} runs of {DRAWS:,} draws")
    table.add_column("")
    table.add_column("ns a draw", justify="right")
    for name, draw in track(TIMED, description="Timing", transient=True):
        table.add_row(name, f"{timed(draw, DRAWS, REPEATS):.1f}")
    console.print(table)
    table = Table(title=f"Chi-square tests, {MANY:,} draws each")
    table.add_column("")
    table.add_column("p", justify="right")
    for name, sampler, mass in track(CHECKED, description="Counting", transient=True):
        table.add_row(name, f"{p_value(sampler, mass, MANY):.4f}")
    console.print(table)
    floats, exact = told_apart(20_000_000)
    console.print(
        f"Told from 1 + N for certain: {floats:.2g} of 0 + N in floats, {exact:g} exactly."
    )


def test_all_samplers_are_timed_and_checked() -> None:
    for _, draw in TIMED:
        assert timed(draw, 100, 1) > 0
    for _, sampler, mass in CHECKED:
        assert p_value(sampler, mass, 200_000) > 1e-6
    floats, exact = told_apart(1_000_000)
    assert floats > 0
    assert exact == 0


if __name__ == "__main__":
    main()
