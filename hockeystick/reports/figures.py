"""The curves of a report; the only file that knows Bokeh."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, final

from hockeystick.numerics.numerals import at_least, at_most, plain
from hockeystick.reports.findings import Attack, Findings, Point
from hockeystick.reports.words import per_cent

if TYPE_CHECKING:
    from bokeh.models import ColumnDataSource
    from bokeh.plotting import figure as Figure  # noqa: N812 - it is a class

HEIGHT: Final = 340
MARK_SIZE: Final = 14
DOT_SIZE: Final = 5
_FOUND_SIZE: Final = 7
PER_CENT: Final = 100.0
_DECADE: Final = 10.0
# A gap between the proven ends that is wider than a line is visible: a share of the whole axis.
_VISIBLE: Final = 0.006
_FONT: Final = "system-ui, sans-serif"
_RATE_TICKS: Final = {1e-6: "0.0001 %", 1e-4: "0.01 %", 1e-2: "1 %", 1.0: "100 %"}
# The script of the page gives each of these its colour, by the reader's scheme.
LINE, BAND, DOTS, MARK, GUESS = "line", "band", "dots", "mark", "guess"
_FOUND: Final = "found"
# As BokehJS writes what a page embeds.
Item = Mapping[str, Any]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One proven curve, in the units of its axes.

    Args:
        points: Its proven points.
        across: What the horizontal axis is.
        up: What the vertical axis is.
        across_name: What the tooltip calls the first.
        up_name: What it calls the second.
        log_across: Whether the first is logarithmic.
        log_up: Whether the second is.
        scale: What both are multiplied by to be drawn.
        are_rates: Whether both are told in per cent.
        mark: Where a larger dot draws the eye to what is quoted.
        safe_side: The end that is the guarantee: "upper" or "lower".
    """

    points: Sequence[Point]
    across: str
    up: str
    across_name: str
    up_name: str
    log_across: bool = False
    log_up: bool = False
    scale: float = 1.0
    are_rates: bool = False
    mark: tuple[float, float] | None = None
    safe_side: str = "upper"


# What an attack misses at least over its false positive rate, without its points.
TRADE_OFF: Final = Curve(
    points=(),
    across="false positive rate (%)",
    up="least false negative rate (%)",
    across_name="FPR",
    up_name="FNR",
    scale=PER_CENT,
    are_rates=True,
    safe_side="lower",
)


def figures(findings: Findings) -> dict[str, Item]:
    """Return the curves of a report by name, each as what BokehJS embeds.

    Guarantees:
        The same findings give the same items: names that Bokeh draws afresh in each process are
        replaced by numbers.

    Args:
        findings: What the report says.

    Returns:
        JSON for each of "epsilon-of-delta", "delta-of-epsilon", "course", "trade-off" and
        "low-rates" that has something to show.
    """
    drawn: dict[str, Figure] = {}
    curves = {
        "epsilon-of-delta": _epsilon_of_delta(findings),
        "delta-of-epsilon": _delta_of_epsilon(findings),
        "course": _course(findings),
    }
    for name, curve in curves.items():
        if len(curve.points) > 1:
            drawn[name] = _drawn(curve)
    if findings.attack is not None:
        drawn["trade-off"] = _trade_off(findings.attack)
        _add_found(drawn["trade-off"], findings)
        drawn["low-rates"] = _low_rates(findings.attack)
    return {name: embedded(figure, name) for name, figure in drawn.items()}


def is_wide(points: Sequence[Point]) -> bool:
    """Return whether the gap between the proven ends can be seen."""
    highest = max((one.upper for one in points), default=0.0)
    return any(one.upper - one.lower > _VISIBLE * highest for one in points)


def shown(points: Sequence[Point], *, log: bool = False) -> list[Point]:
    """Return the points that a picture can hold: finite, and above 0 on a logarithmic axis."""
    finite = [one for one in points if one.upper < math.inf]
    return [one for one in finite if one.upper > 0.0] if log else finite


def _epsilon_of_delta(findings: Findings) -> Curve:
    """Return epsilon over delta."""
    delta = findings.subject.delta
    return Curve(
        points=shown(findings.by_delta),
        across="delta (probability, log scale)",
        up="epsilon (nats)",
        across_name="delta",
        up_name="epsilon",
        log_across=True,
        mark=(delta, findings.answer.upper) if _can_be_drawn(findings) else None,
    )


def _can_be_drawn(findings: Findings) -> bool:
    """Return whether the headline has a place on a logarithmic axis."""
    return 0.0 < findings.subject.delta < 1.0 and findings.answer.upper < math.inf


def _delta_of_epsilon(findings: Findings) -> Curve:
    """Return delta over epsilon."""
    delta = findings.subject.delta
    points = shown(findings.by_epsilon, log=True)
    steep = bool(points) and points[0].upper > _DECADE * points[-1].upper
    return Curve(
        points=points,
        across="epsilon (nats)",
        up="delta (probability, log scale)" if steep else "delta (probability)",
        across_name="epsilon",
        up_name="delta",
        log_up=steep,
        mark=(findings.answer.upper, delta) if _can_be_drawn(findings) else None,
    )


def _course(findings: Findings) -> Curve:
    """Return epsilon over the stages of the plan."""
    unit = "" if findings.course is None else findings.course.unit
    points = shown(findings.spent)
    return Curve(
        points=points,
        across=unit,
        up="epsilon (nats)",
        across_name=f"after {unit}",
        up_name="epsilon",
        mark=(points[-1].at, points[-1].upper) if points else None,
    )


def _trade_off(attack: Attack) -> Figure:
    """Return the least false negative rate over the false positive rate."""
    drawn = _drawn(replace(TRADE_OFF, points=attack.misses))
    drawn.line([0, 100], [100, 0], name=GUESS, line_dash="dashed", line_width=1.5)
    bounded(drawn, (0, 100), (0, 101))
    return drawn


def _add_found(drawn: Figure, findings: Findings) -> None:
    """Add the rates of false positives and negatives that an audited attack has at most."""
    points = () if findings.audited is None else findings.audited.points
    if points:
        across = [PER_CENT * one.fpr for one in points]
        up = [PER_CENT * (1.0 - one.tpr) for one in points]
        drawn.scatter(across, up, name=_FOUND, marker="square", size=_FOUND_SIZE)


def _low_rates(attack: Attack) -> Figure:
    """Return the largest true positive rate over low false positive rates."""
    from bokeh.models import FixedTicker

    lowest = attack.finds[0].at
    drawn = _drawn(
        Curve(
            points=attack.finds,
            across="false positive rate (log scale)",
            up="largest true positive rate (log scale)",
            across_name="FPR",
            up_name="TPR",
            log_across=True,
            log_up=True,
            are_rates=True,
            mark=attack.headline,
        )
    )
    drawn.line([lowest, 1.0], [lowest, 1.0], name=GUESS, line_dash="dashed", line_width=1.5)
    bounded(drawn, (lowest, 1.0), (lowest, 1.3))
    for axis in (*drawn.xaxis, *drawn.yaxis):
        axis.ticker = FixedTicker(ticks=list(_RATE_TICKS), minor_ticks=[])
        axis.major_label_overrides = dict(_RATE_TICKS)
    for grid in (*drawn.xgrid, *drawn.ygrid):
        grid.ticker = FixedTicker(ticks=list(_RATE_TICKS))
    return drawn


def bounded(drawn: Figure, across: tuple[float, float], up: tuple[float, float]) -> None:
    """Set the ends of both axes."""
    from bokeh.models import Range1d

    drawn.x_range = Range1d(*across)
    drawn.y_range = Range1d(*up)


def _drawn(curve: Curve) -> Figure:
    """Return a curve with its band, its dots and what they say under the pointer."""
    drawn = axes_of(curve)
    source = _source(curve)
    safe = curve.safe_side
    if is_wide(curve.points):
        drawn.varea("at", "lower", "upper", source=source, name=BAND, fill_alpha=0.25)
    line = drawn.line("at", safe, source=source, name=LINE, line_width=2)
    drawn.scatter("at", safe, source=source, name=DOTS, size=DOT_SIZE)
    if curve.mark is not None:
        at, value = curve.mark
        drawn.scatter([at * curve.scale], [value * curve.scale], name=MARK, size=MARK_SIZE)
    add_tooltip(drawn, curve, line)
    return drawn


def axes_of(curve: Curve) -> Figure:
    """Return the axes of a curve."""
    from bokeh.plotting import figure

    drawn = figure(
        height=HEIGHT,
        sizing_mode="stretch_width",
        min_width=200,
        min_border_right=24,
        toolbar_location=None,
        tools="",
        x_axis_label=curve.across,
        y_axis_label=curve.up,
        x_axis_type="log" if curve.log_across else "linear",
        y_axis_type="log" if curve.log_up else "linear",
        background_fill_alpha=0.0,
        border_fill_alpha=0.0,
        outline_line_alpha=0.0,
    )
    if not curve.log_up:
        drawn.y_range.start = 0.0
    if not curve.log_across:
        drawn.x_range.start = 0.0
    for axis in (*drawn.xaxis, *drawn.yaxis):
        axis.axis_label_text_font = _FONT
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_font_size = "14px"
        axis.major_label_text_font = _FONT
        axis.major_label_text_font_size = "13px"
        axis.minor_tick_line_alpha = 0.0
    return drawn


def _source(curve: Curve) -> ColumnDataSource:
    """Return the points of a curve as what Bokeh draws from."""
    from bokeh.models import ColumnDataSource

    return ColumnDataSource(columns(curve))


def columns(curve: Curve) -> dict[str, list[Any]]:
    """Return the points of a curve, as numbers to draw and as texts that are rounded outward."""
    scale = curve.scale
    written = per_cent if curve.are_rates else str
    return {
        "at": [one.at * scale for one in curve.points],
        "lower": [one.lower * scale for one in curve.points],
        "upper": [one.upper * scale for one in curve.points],
        "place": [written(plain(one.at)) for one in curve.points],
        "least": [written(at_least(one.lower)) for one in curve.points],
        "most": [written(at_most(one.upper)) for one in curve.points],
    }


def add_tooltip(
    drawn: Figure, curve: Curve, line: Any, ends: Sequence[str] = ("≥ @least", "≤ @most")
) -> None:
    """Show the proven ends of the nearest dot under the pointer, narrow enough for a phone."""
    from bokeh.models import HoverTool

    lines = (f"{curve.across_name} @place", *(f"{curve.up_name} {end}" for end in ends))
    style = f"font: 13px {_FONT}; color: #16202c; white-space: nowrap"
    text = "".join(f'<div style="{style}">{line}</div>' for line in lines)
    # Only a line knows its nearest point; a dot would have to be hit.
    drawn.add_tools(HoverTool(renderers=[line], mode="vline", line_policy="nearest", tooltips=text))


def embedded(drawn: Figure, name: str) -> Item:
    """Return a figure as JSON, with numbers for the names that differ from run to run."""
    from bokeh.embed import json_item

    drawn.tags = [f"figure-{name}"]
    item = json_item(drawn, drawn.tags[0])
    numbers: dict[str, str] = {}
    count = itertools.count(1)

    def renamed(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {own: renamed(one, own) for own, one in value.items()}
        if isinstance(value, list):
            return [renamed(one) for one in value]
        if key in ("id", "root_id"):
            return numbers.setdefault(value, f"{name}-{next(count)}")
        return value

    # The document first: the root's name follows from it.
    document = renamed(item["doc"])
    return {**item, "doc": document, "root_id": numbers[str(item["root_id"])]}
