"""The curves of a report as SVG, in the colours of the page that they stand in."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from hockeystick.reports.findings import Attack, Findings, Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE: Final = (4.9, 3.4)
_PER_CENT: Final = 100.0
_DECADE: Final = 10.0
# A gap between the proven ends that is wider than a line is visible: a share of the whole axis.
_VISIBLE: Final = 0.006
_RATE_TICKS: Final = {1e-6: "0.0001 %", 1e-4: "0.01 %", 1e-2: "1 %", 1.0: "100 %"}
_FOUND: Final = "the squares bound the audited attack"
# What is drawn in one of these colours has the one that the page's styles give it.
_COLOURS: Final = {"#000001": "ink", "#000002": "rule", "#000003": "accent", "#000004": "mark"}
_INK, _RULE, _LINE, _MARK = _COLOURS
_STYLE: Final = {
    "svg.fonttype": "none",
    "svg.hashsalt": "hockeystick",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _RULE,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": _RULE,
    "grid.linewidth": 0.6,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "xtick.minor.visible": False,
    "ytick.minor.visible": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 3.2,
}
# Names of groups that nothing refers to, and which every picture has.
_GROUPS: Final = re.compile(r' id="[\w.]+_\d+"')
# The page has a font of its own.
_FONT: Final = re.compile(r" font-family: [^;]*;")


def figures(findings: Findings) -> dict[str, str]:
    """Return the curves of a report by name, each as an SVG that may stand in a page.

    Guarantees:
        The same findings give the same text.

    Args:
        findings: What the report says.

    Returns:
        A text for each of "epsilon-of-delta", "delta-of-epsilon", "course", "trade-off" and
        "low-rates" that has something to show.
    """
    import matplotlib as mpl

    with mpl.rc_context({**mpl.rcParamsDefault, "backend": "svg", **_STYLE}):
        drawn = {
            "epsilon-of-delta": _epsilon_of_delta(findings),
            "delta-of-epsilon": _delta_of_epsilon(findings),
            "course": _course(findings),
        }
        if findings.attack is not None:
            drawn["trade-off"] = _trade_off(findings.attack, findings)
            drawn["low-rates"] = _low_rates(findings.attack)
        return {name: _svg(axes) for name, axes in drawn.items() if axes is not None}


def is_wide(points: Sequence[Point]) -> bool:
    """Return whether the gap between the proven ends can be seen."""
    highest = max((one.upper for one in points), default=0.0)
    return any(one.upper - one.lower > _VISIBLE * highest for one in points)


def _shown(points: Sequence[Point], *, log: bool = False) -> list[Point]:
    """Return the points that a picture can hold: finite, and above 0 on a logarithmic axis."""
    return [one for one in points if one.upper < math.inf and (one.upper > 0.0 or not log)]


def _epsilon_of_delta(findings: Findings) -> Axes | None:
    """Return epsilon over delta."""
    points = _shown(findings.by_delta)
    axes = _drawn(points, "delta (probability, log scale)", "epsilon (nats)")
    if axes is not None:
        axes.set(xscale="log", ylim=(0.0, None))
        _quote(axes, findings, findings.subject.delta, findings.answer.upper)
    return axes


def _delta_of_epsilon(findings: Findings) -> Axes | None:
    """Return delta over epsilon."""
    points = _shown(findings.by_epsilon, log=True)
    steep = bool(points) and points[0].upper > _DECADE * points[-1].upper
    scale = ", log scale" if steep else ""
    axes = _drawn(points, "epsilon (nats)", f"delta (probability{scale})")
    if axes is not None:
        axes.set(xlim=(0.0, None), **({"yscale": "log"} if steep else {"ylim": (0.0, None)}))
        _quote(axes, findings, findings.answer.upper, findings.subject.delta)
    return axes


def _course(findings: Findings) -> Axes | None:
    """Return epsilon over the stages of the plan."""
    unit = "" if findings.course is None else findings.course.unit
    points = _shown(findings.spent)
    axes = _drawn(points, unit, "epsilon (nats)")
    if axes is not None:
        axes.set(xlim=(0.0, None), ylim=(0.0, None))
        axes.plot(points[-1].at, points[-1].upper, "o", color=_MARK, markersize=9)
    return axes


def _trade_off(attack: Attack, findings: Findings) -> Axes | None:
    """Return the least false negative rate over the false positive rate, in per cent."""
    points = [
        Point(_PER_CENT * one.at, _PER_CENT * one.lower, _PER_CENT * one.upper)
        for one in attack.misses
    ]
    across, up = "false positive rate (%)", "least false negative rate (%)"
    axes = _drawn(points, across, up, safe_side="lower")
    if axes is not None:
        axes.plot([0, 100], [100, 0], "--", color=_INK, linewidth=1)
        axes.set(xlim=(0, 100), ylim=(0, 101))
        for one in () if findings.audited is None else findings.audited.points:
            place = _PER_CENT * one.fpr, _PER_CENT * (1.0 - one.tpr)
            axes.plot(*place, "s", color=_MARK, markersize=5)
    return axes


def _low_rates(attack: Attack) -> Axes | None:
    """Return the largest true positive rate over low false positive rates."""
    lowest = attack.finds[0].at
    across = "false positive rate (log scale)"
    axes = _drawn(attack.finds, across, "largest true positive rate (log scale)")
    if axes is not None:
        axes.plot([lowest, 1.0], [lowest, 1.0], "--", color=_INK, linewidth=1)
        axes.plot(*attack.headline, "o", color=_MARK, markersize=9)
        axes.set(xscale="log", yscale="log", xlim=(lowest, 1.0), ylim=(lowest, 1.3))
        axes.set_xticks([*_RATE_TICKS], [*_RATE_TICKS.values()])
        axes.set_yticks([*_RATE_TICKS], [*_RATE_TICKS.values()])
        axes.minorticks_off()
    return axes


def _drawn(
    points: Sequence[Point], across: str, up: str, *, safe_side: str = "upper"
) -> Axes | None:
    """Return a curve of the safe ends, dots and band; None for fewer than two points."""
    from matplotlib.figure import Figure

    if len(points) < 2:
        return None
    axes = Figure(figsize=_SIZE, layout="constrained").subplots()
    at = [one.at for one in points]
    if is_wide(points):
        ends = [one.lower for one in points], [one.upper for one in points]
        axes.fill_between(at, *ends, color=_LINE, alpha=0.25, linewidth=0)
    axes.plot(at, [getattr(one, safe_side) for one in points], "o-", color=_LINE)
    axes.set(xlabel=across, ylabel=up)
    return axes


def _quote(axes: Axes, findings: Findings, across: float, up: float) -> None:
    """Draw the eye to the headline, where it has a place on a logarithmic axis."""
    if 0.0 < findings.subject.delta < 1.0 and findings.answer.upper < math.inf:
        axes.plot(across, up, "o", color=_MARK, markersize=9)


def _svg(axes: Any) -> str:
    """Return a figure as SVG without what only files need, its colours named by the page."""
    written = io.StringIO()
    axes.figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    text = written.getvalue()
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = _FONT.sub("", _GROUPS.sub("", text))
    for colour, name in _COLOURS.items():
        text = text.replace(colour, f"var(--{name})")
    return text
