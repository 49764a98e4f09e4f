"""The pictures, as SVG."""

from __future__ import annotations

from collections.abc import Callable
from math import log10
from pathlib import Path
from typing import Any, Final

from benchmarks.reporting.measured import Measured
from benchmarks.reporting.sides import SIDES
from benchmarks.reporting.timing import CURVES, POINTS

SECONDS: Final = "seconds of the processor"
MARKERS: Final = "osDv^<>PXp"
COLOURS: Final = (
    *("#000000", "#0072b2", "#56b4e9", "#d55e00", "#e69f00", "#009e73", "#cc79a7"),
    *("#999999", "#7f3c8d", "#8c564b"),
)
STYLES: Final = {
    side.name: {"color": colour, "marker": marker, "markersize": 5}
    for side, colour, marker in zip(SIDES, COLOURS, MARKERS, strict=True)
} | {
    name: {"color": colour, "marker": marker, "markersize": 5}
    for name, colour, marker in zip(CURVES, (*COLOURS[:2], *COLOURS[3:5]), MARKERS, strict=False)
}


def draw(name: str, found: Measured, path: Path) -> None:
    """Draw a picture into a file."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # Without these the same figures give another file each time.
    with mpl.rc_context(
        {
            "svg.hashsalt": "hockeystick",
            "font.size": 9,
            "axes.grid": True,
            "grid.alpha": 0.3,
            "axes.axisbelow": True,
        }
    ):
        figure = PICTURES[name](Figure, found)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=110)


def speed(figure_of: Any, found: Measured) -> Any:
    """Draw the seconds of the usual plans."""
    figure = figure_of(figsize=(9, 4), layout="constrained")
    axes = figure.add_subplot()
    names = list(next(iter(found.usual.values())))
    for plan, marker in zip(found.usual, MARKERS, strict=False):
        answered = {name: one for name, one in found.usual[plan].items() if not one.failure}
        places = [names.index(name) for name in answered]
        axes.plot([one.seconds for one in answered.values()], places, marker, label=plan, alpha=0.8)
    axes.set(xscale="log", xlabel=SECONDS, yticks=range(len(names)), title="Epsilon of usual plans")
    axes.set_yticklabels(names)
    axes.invert_yaxis()
    _outside(axes, "plan")
    return figure


def soundness(figure_of: Any, found: Measured) -> Any:
    """Draw printed epsilons over the truth, a panel for each side."""
    columns = 3
    rows = -(-len(found.judged) // columns)
    figure = figure_of(figsize=(10, 2.7 * rows + 0.4), layout="constrained")
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for panel, (name, ones) in zip(panels, found.judged.items(), strict=False):
        answered = [one for one in ones if one.answered]
        for small, colour in ((False, "#0072b2"), (True, "#d55e00")):
            part = [one for one in answered if one.too_small is small]
            panel.scatter(
                [one.case.question.delta for one in part],
                [one.ratio for one in part],
                s=14,
                color=colour,
                marker="v" if small else "o",
                alpha=0.8,
                label="below the truth" if small else "not below",
            )
        panel.axhline(1.0, color="black", linewidth=0.8)
        panel.set(xscale="log", yscale="log")
        panel.set_title(f"{name}: {len(answered)} of {len(ones)} answered", fontsize=9)
    for panel in panels[len(found.judged) :]:
        panel.set_visible(False)
    figure.supxlabel("delta")
    figure.supylabel("printed epsilon / truth")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2)
    return figure


def width(figure_of: Any, found: Measured) -> Any:
    """Draw the share of plans whose printed epsilon is so close above the truth."""
    figure = figure_of(figsize=(9, 4.2), layout="constrained")
    axes = figure.add_subplot()
    smallest, largest = 1e-16, 1e3
    for k, (name, ones) in enumerate(found.judged.items()):
        above = sorted(
            min(max(one.excess, smallest), largest)
            for one in ones
            if one.answered and not one.too_small
        )
        shares = [100.0 * (rank + 1) / len(ones) for rank in range(len(above))]
        # Lines that lie on each other show through.
        style = {"color": STYLES[name]["color"], "linestyle": ("-", "--", ":")[k % 3]}
        places, heights = [smallest, *above, largest], [0.0, *shares, max([0.0, *shares])]
        axes.step(places, heights, where="post", label=name, **style)
    axes.set(xscale="log", ylim=(0.0, 102.0), xlabel="(printed epsilon − truth) / truth")
    axes.set(ylabel="share of plans in %", title="Printed epsilons that are not too small")
    _outside(axes, "accountant")
    return figure


def growth(figure_of: Any, found: Measured) -> Any:
    """Draw how cost grows, a panel for each axis."""
    from matplotlib.ticker import MaxNLocator

    figure = figure_of(figsize=(10, 7.6), layout="constrained")
    panels = figure.subplots(2, 2).ravel()
    for panel, curve in zip(panels, found.growth, strict=True):
        for name, sizes in curve.found.items():
            answered = {log10(size): one.seconds for size, one in sizes.items() if not one.failure}
            panel.plot(answered.keys(), answered.values(), label=name, **STYLES[name])
        # No axis of matplotlib's own reaches 1e300: the logarithms are drawn.
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.xaxis.set_major_formatter("$10^{{{x:.0f}}}$")
        panel.set(yscale="log", xlabel=curve.axis, ylabel=SECONDS)
        if curve.axis == POINTS:
            lowest, highest = panel.get_ylim()
            panel.set_ylim(lowest, 10.0 * highest)
            panel.legend(fontsize=7, loc="upper left")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return figure


def _outside(axes: Any, title: str) -> None:
    axes.legend(title=title, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


PICTURES: Final[dict[str, Callable[[Any, Measured], Any]]] = {
    "speed": speed,
    "soundness": soundness,
    "width": width,
    "growth": growth,
}
