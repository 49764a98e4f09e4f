"""The three pictures of the page, empty: the answers are drawn into them in the browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from hockeystick.explore.answers import NOISE_RANGE
from hockeystick.numerics.numerals import at_least
from hockeystick.reports import Point
from hockeystick.reports.figures import (
    BAND,
    DOT_SIZE,
    DOTS,
    GUESS,
    LINE,
    MARK,
    MARK_SIZE,
    TRADE_OFF,
    Curve,
    Item,
    add_tooltip,
    axes_of,
    bounded,
    columns,
    embedded,
)
from hockeystick.reports.words import per_cent

if TYPE_CHECKING:
    from bokeh.plotting import figure as Figure  # noqa: N812 - it is a class

# How many plans can be pinned; each has a colour and a dash of its own.
PINS: Final = 4
_DASHES: Final = ("dashed", "dotted", "dashdot", "solid")
_HEIGHT: Final = 300
_NOISE_TICKS: Final = (0.5, 1, 2, 5, 10, 20)
CURVES: Final[Mapping[str, Curve]] = {
    "trade-off": TRADE_OFF,
    "course": Curve(
        points=(), across="epochs", up="epsilon (nats)", across_name="after", up_name="epsilon"
    ),
    "noise": Curve(
        points=(),
        across="noise multiplier (log scale)",
        up="epsilon (nats, log scale)",
        across_name="noise",
        up_name="epsilon",
        log_across=True,
        log_up=True,
    ),
}


def drawn(name: str, points: Sequence[Point]) -> dict[str, list[Any]]:
    """Return the columns of a curve: numbers to draw, and texts that are rounded outward."""
    found = columns(replace(CURVES[name], points=points))
    if name == "trade-off":
        # What is missed at least at one rate is missed at a smaller one, too.
        found["place"] = [per_cent(at_least(one.at)) for one in points]
        del found["most"]
    return found


def items(names: Sequence[str]) -> list[Item]:
    """Return pictures of these names as BokehJS embeds them, with no points yet."""
    return [embedded(_picture(name), name) for name in names]


def _picture(name: str) -> Figure:
    """Return a picture: the present plan's band, line, dots and mark, and the pinned lines."""
    from bokeh.models import ColumnDataSource

    curve = CURVES[name]
    picture = axes_of(curve)
    picture.height = _HEIGHT
    for pin in range(PINS):
        source = ColumnDataSource({"at": [], "safe": []}, name=f"pin-{pin}")
        picture.line(
            "at",
            "safe",
            source=source,
            name=f"pin-{pin}",
            line_width=2,
            line_dash=_DASHES[pin],
            visible=False,
        )
    source = ColumnDataSource(drawn(name, ()), name="present")
    picture.varea("at", "lower", "upper", source=source, name=BAND, fill_alpha=0.25)
    line = picture.line("at", curve.safe_side, source=source, name=LINE, line_width=2)
    picture.scatter("at", curve.safe_side, source=source, name=DOTS, size=DOT_SIZE)
    mark = ColumnDataSource({"at": [], "safe": []}, name="mark")
    picture.scatter("at", "safe", source=mark, name=MARK, size=MARK_SIZE)
    if name == "trade-off":
        picture.line([0, 100], [100, 0], name=GUESS, line_dash="dashed", line_width=1.5)
        bounded(picture, (0, 100), (0, 101))
    if name == "noise":
        _fix_noises(picture)
    # Of a trade-off curve the lower ends alone are asked for while it moves.
    ends = ("≥ @least", "≤ @most") if name != "trade-off" else ("≥ @least",)
    add_tooltip(picture, curve, line, ends)
    return picture


def _fix_noises(picture: Figure) -> None:
    """Let the noise axis stay where it is, whatever the plan, with a few round numbers on it."""
    from bokeh.models import FixedTicker, Range1d

    picture.x_range = Range1d(*NOISE_RANGE)
    for axis in picture.xaxis:
        axis.ticker = FixedTicker(ticks=list(_NOISE_TICKS), minor_ticks=[])
    for grid in picture.xgrid:
        grid.ticker = FixedTicker(ticks=list(_NOISE_TICKS))
