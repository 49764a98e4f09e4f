"""What a budget buys, for people: two tables in a panel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hockeystick.calibration.sweeps.frontier import FrontierPoint
from hockeystick.cli.panels import render
from hockeystick.cli.results.planned import Planned
from hockeystick.numerics import numerals as numerals

_DIGITS: Final = 4
_ON_SUM: Final = "noise multiplier: the noise on the sum of a batch, in clipping norms"
_ON_MEAN: Final = "noise multiplier / batch size: the noise on its mean"
_HOLDS_IF: Final = "Every one of these plans meets the budget, proven, if"


def panel(done: Planned) -> RenderableType:
    """Return the panel: the noise on the sum and on the mean, and what it rests on."""
    blocks: list[RenderableType] = [
        Text(f"{done.base.sampling.capitalize()} batches and no others, {done.base.adjacency}"),
        Text(f"\n{_ON_SUM}", style="bold"),
        _table(done, lambda one: one.noise_multiplier),
        Text(f"\n{_ON_MEAN}", style="bold"),
        _table(done, lambda one: one.noise_on_mean),
    ]
    reasons = dict.fromkeys(one.reason for one in done.points if one.reason)
    blocks += [Text(f"\nnone: {reason}", style="dim") for reason in reasons]
    blocks += render.picture(done.plot)
    blocks += render.listed(_HOLDS_IF, done.assumptions)
    return render.framed(done.title, *blocks)


def _table(done: Planned, value: Callable[[FrontierPoint], float | None]) -> Table:
    """Return one row per length and one column per batch size."""
    table = render.bare_table()
    table.add_column("epochs", justify="right", style="bold")
    for size in done.batch_sizes:
        table.add_column(f"batch {size:,}", justify="right")
    at = {(one.epochs, one.batch_size): one for one in done.points}
    for epochs in done.epochs:
        cells = [_cell(value(at[epochs, size])) for size in done.batch_sizes]
        table.add_row(Text(numerals.plain(epochs)), *cells)
    return table


def _cell(value: float | None) -> Text:
    """Return one number, rounded up: more noise meets the budget as well."""
    if value is None:
        return Text("none", style="dim")
    return Text(numerals.at_most(value, _DIGITS))
