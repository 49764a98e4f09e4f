"""The curves of a report as SVG, in the colours of the page that they stand in."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from hockeystick.reports.findings import Findings, Point

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIZE: Final = (4.9, 3.4)
# A gap between the proven ends that is wider than a line is visible: a share of the whole axis.
_VISIBLE: Final = 0.006
_RATES: Final = (1e-6, 1e-4, 1e-2, 1.0)
_RATE_LABELS: Final = ("0.0001 %", "0.01 %", "1 %", "100 %")
_FROM_0: Final = (0.0, None)
# What is drawn in one of these colours has the one that the page's styles give it.
_COLOURS: Final = {"#000001": "ink", "#000002": "rule", "#000003": "accent", "#000004": "mark"}
_INK, _RULE, _LINE, _MARK = _COLOURS
# Names of groups that nothing refers to, and which every picture has.
_GROUPS: Final = re.compile(r' id="[\w.]+_\d+"')
# The page has a font of its own.
_FONT: Final = re.compile(r" font-family: [^;]*;")


def figures(findings: Findings) -> dict[str, str]:
    """Return the curves that have something to show, by name, as SVG: the same for the same."""
    import matplotlib as mpl

    style = resources.files("hockeystick.reports") / "templates" / "report.mplstyle"
    own = mpl.rc_params_from_file(str(style), use_default_template=False)
    with mpl.rc_context({**mpl.rcParamsDefault, "backend": "svg", **own}):
        found = {**_of_plan(findings), **(_of_attack(findings) if findings.attack else {})}
        return {name: _svg(figure) for name, figure in found.items() if figure is not None}


def is_wide(points: Sequence[Point]) -> bool:
    """Return whether the gap between the proven ends can be seen."""
    highest = max((one.upper for one in points), default=0.0)
    return any(one.upper - one.lower > _VISIBLE * highest for one in points)


def _of_plan(findings: Findings) -> dict[str, Figure | None]:
    delta, epsilon = findings.subject.delta, findings.answer.upper
    has_place = 0.0 < delta < 1.0 and epsilon < math.inf
    by_epsilon = [one for one in findings.by_epsilon if one.upper > 0.0]
    steep = bool(by_epsilon) and by_epsilon[0].upper > 10.0 * by_epsilon[-1].upper
    up = "delta (probability, log scale)" if steep else "delta (probability)"
    scale: dict[str, Any] = {"yscale": "log"} if steep else {"ylim": _FROM_0}
    unit, spent = findings.course.unit if findings.course else "", findings.spent[-1:]
    return {
        "epsilon-of-delta": _drawn(
            findings.by_delta,
            ("delta (probability, log scale)", "epsilon (nats)"),
            marks=[(delta, epsilon)] * has_place,
            xscale="log",
            ylim=_FROM_0,
        ),
        "delta-of-epsilon": _drawn(
            by_epsilon,
            ("epsilon (nats)", up),
            marks=[(epsilon, delta)] * has_place,
            xlim=_FROM_0,
            **scale,
        ),
        "course": _drawn(
            findings.spent,
            (unit, "epsilon (nats)"),
            marks=[(one.at, one.upper) for one in spent if one.upper < math.inf],
            xlim=_FROM_0,
            ylim=_FROM_0,
        ),
    }


def _of_attack(findings: Findings) -> dict[str, Figure | None]:
    assert findings.attack is not None
    attack, whole = findings.attack, 100.0
    points = [Point(whole * a.at, whole * a.lower, whole * a.upper) for a in attack.misses]
    audit = () if findings.audited is None else findings.audited.points
    low = attack.finds[0].at
    return {
        "trade-off": _drawn(
            points,
            ("false positive rate (%)", "least false negative rate (%)"),
            safe_side="lower",
            guess=([0, whole], [whole, 0]),
            squares=[(whole * one.fpr, whole * (1.0 - one.tpr)) for one in audit],
            xlim=(0, whole),
            ylim=(0, whole + 1),
        ),
        "low-rates": _drawn(
            attack.finds,
            ("false positive rate (log scale)", "largest true positive rate (log scale)"),
            guess=([low, 1.0], [low, 1.0]),
            marks=[attack.headline],
            xscale="log",
            yscale="log",
            xlim=(low, 1.0),
            ylim=(low, 1.3),
            xticks=_RATES,
            yticks=_RATES,
            xticklabels=_RATE_LABELS,
            yticklabels=_RATE_LABELS,
        ),
    }


def _drawn(
    points: Sequence[Point],
    labels: tuple[str, str],
    *,
    safe_side: str = "upper",
    guess: tuple[Sequence[float], Sequence[float]] = ((), ()),
    marks: Sequence[tuple[float, float]] = (),
    squares: Sequence[tuple[float, float]] = (),
    **axes: Any,
) -> Figure | None:
    """Return a curve of the finite safe ends, dots and band; None for fewer than two points."""
    from matplotlib.figure import Figure

    points = [one for one in points if one.upper < math.inf]
    if len(points) < 2:
        return None
    figure = Figure(figsize=_SIZE, layout="constrained")
    drawn = figure.subplots()
    at = [one.at for one in points]
    if is_wide(points):
        ends = [one.lower for one in points], [one.upper for one in points]
        drawn.fill_between(at, *ends, color=_LINE, alpha=0.25, linewidth=0)
    drawn.plot(*guess, "--", color=_INK, linewidth=1)
    drawn.plot(at, [getattr(one, safe_side) for one in points], "o-", color=_LINE)
    for place in squares:
        drawn.plot(*place, "s", color=_MARK, markersize=5)
    for place in marks:
        drawn.plot(*place, "o", color=_MARK, markersize=9)
    drawn.set(xlabel=labels[0], ylabel=labels[1], **axes)
    drawn.minorticks_off()
    return figure


def _svg(figure: Figure) -> str:
    written = io.StringIO()
    figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    text = written.getvalue()
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = _FONT.sub("", _GROUPS.sub("", text))
    for colour, name in _COLOURS.items():
        text = text.replace(colour, f"var(--{name})")
    return text
