"""What a run of a system came to, the settings a system is shown in, and medians over seeds."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal

from click import echo


@dataclass(frozen=True)
class Outcome:
    """What one run of a system came to.

    Args:
        system: The system's name and setting.
        result: The figures on data, by name.
        plan: What ran, in the accountant's words.
        epsilon: The certified upper end, inf without privacy.
        delta: The delta it holds at.
        checks: What was compared between the run and its account, by name: True where they agree.
    """

    system: str
    result: dict[str, float]
    plan: str
    epsilon: float
    delta: float
    checks: dict[str, bool] = field(default_factory=dict)


@dataclass(frozen=True)
class Setting:
    """A setting that a system is shown in.

    Args:
        run: From a seed to an outcome.
        beside: The setting of the same system without privacy that it is compared with.
        figures: Those of the result that a table shows; all where none are named.
        plain: The figure of its own result that is without privacy, where there is one.
    """

    run: Callable[[int], Outcome]
    beside: str | None = None
    figures: tuple[str, ...] = ()
    plain: str | None = None


@dataclass(frozen=True)
class Spread:
    """A figure over several seeds."""

    values: tuple[float, ...]

    def __str__(self) -> str:
        """Return the median, and where there are several values the least and the largest."""
        whole = all(value == int(value) for value in self.values) and max(self.values) > 1
        middle, *ends = (
            f"{value:g}" if whole else f"{value:.3f}"
            for value in (statistics.median(self.values), min(self.values), max(self.values))
        )
        return f"{middle} [{', '.join(ends)}]" if len(self.values) > 1 else middle


def spreads(outcomes: Sequence[Outcome]) -> dict[str, Spread]:
    """Return each figure of a result over several runs."""
    names = outcomes[0].result
    return {name: Spread(tuple(one.result[name] for one in outcomes)) for name in names}


def wrong(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the names of the checks that some run did not pass."""
    return sorted({name for one in outcomes for name, right in one.checks.items() if not right})


def cost(outcomes: Sequence[Outcome]) -> str:
    """Return the largest epsilon of several runs, rounded up, and its delta."""
    dearest = max(outcomes, key=lambda one: one.epsilon)
    if dearest.epsilon == float("inf"):
        return "no privacy"
    epsilon = Decimal(dearest.epsilon).quantize(Decimal("0.001"), ROUND_CEILING)
    return f"({epsilon}, {dearest.delta:g})"


def repeated(run: Callable[[int], Outcome], first: int, count: int) -> list[Outcome]:
    """Return the outcomes of several seeds."""
    return [run(first + seed) for seed in range(count)]


def line(outcomes: Sequence[Outcome]) -> str:
    """Return the medians of several runs of one system with their spread, its cost and checks."""
    first, named = outcomes[0], wrong(outcomes)
    shown = ", ".join(f"{name} {spread}" for name, spread in spreads(outcomes).items())
    checked = f"NOT AS ACCOUNTED: {', '.join(named)}" if named else "as accounted"
    told = checked if first.checks else ""
    return f"{first.system:<34} {shown:<44} {cost(outcomes):<18} {told}".rstrip()


def show_lines(settings: Mapping[str, Setting], first: int, count: int) -> None:
    """Print the medians over some seeds of each setting, a line for each."""
    for setting in settings.values():
        echo(line(repeated(setting.run, first, count)))


def show(outcome: Outcome) -> None:
    """Print an outcome."""
    echo(outcome.system)
    echo(f"  {outcome.plan}")
    echo(f"  epsilon <= {outcome.epsilon:.4f} at delta {outcome.delta:g}")
    for name, value in outcome.result.items():
        echo(f"  {name}: {value:.4g}")
    for name, agrees in outcome.checks.items():
        echo(f"  {'agrees' if agrees else 'DIFFERS'}: {name}")
