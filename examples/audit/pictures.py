"""Figures of what attacks found beside what was proven."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hockeystick.audit import attacks
from hockeystick.tradeoffs.plot import kind_of, rendered, require_matplotlib, styled

# The palette of Okabe and Ito, distinct to colour-blind readers, and marks for grey paper.
COLOURS = ("#0072B2", "#D55E00", "#E69F00", "#009E73", "#CC79A7", "#56B4E9")
MARKS = ("o", "s", "^", "D", "v", "P")
GREY = "#767676"
LOWEST = 0.02


@contextmanager
def drawing(path: str, inches: tuple[float, float]) -> Any:
    """Give an empty figure, which is written to a file at the end."""
    kind = kind_of(path)
    require_matplotlib()
    from matplotlib.figure import Figure

    with styled():
        figure = Figure(figsize=inches, layout="constrained")
        yield figure
        Path(path).write_bytes(rendered(figure, kind))


def draw_membership(found: Sequence[Any], path: str, noise: float = 2.5) -> None:
    """Draw bounds beside certified epsilons, the curves at one noise, and the noise levels."""
    private = [one for one in found if one.noise is not None]
    shown = next(one for one in private if one.noise == noise)
    with drawing(path, (13.0, 4.6)) as figure:
        bounds, curves, levels = figure.subplots(1, 3)
        draw_bounds(bounds, private)
        draw_curves(curves, shown)
        draw_levels(levels, found)
        handles, names = bounds.get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)


def draw_bounds(axes: Any, private: Sequence[Any]) -> None:
    """Draw the lower bound of each attack over the certified epsilon."""
    certified = [one.certified for one in private]
    ends = np.array([0.25, 12.0])
    axes.fill_between(ends, ends, 20.0, color=GREY, alpha=0.15, linewidth=0)
    axes.plot(ends, ends, color="black", label="certified")
    for place, one in enumerate(private[0].found):
        proven = [max(setting.found[place].bound, LOWEST) for setting in private]
        axes.plot(
            certified,
            proven,
            color=COLOURS[place],
            marker=MARKS[place],
            markersize=5,
            linewidth=1,
            label=one.attack,
        )
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=(0.9 * LOWEST, 12.0))
    axes.set(xlabel="certified epsilon (upper end)", ylabel="epsilon at least, at this confidence")
    axes.set_xticks([0.3, 1, 3, 10], ["0.3", "1", "3", "10"])
    axes.set_yticks([LOWEST, 0.1, 0.3, 1, 3, 10], ["0", "0.1", "0.3", "1", "3", "10"])
    axes.minorticks_off()
    axes.text(0.3, 5.5, "would refute the account", color=GREY)
    axes.set_title("Lower bounds against the account")


def draw_curves(axes: Any, shown: Any) -> None:
    """Draw each attack's rates at one noise, below the certified curve."""
    rates = np.geomspace(1e-4, 1.0, 100)
    power = shown.curve.power(rates)
    axes.fill_between(rates, power, 1.0, color=GREY, alpha=0.15, linewidth=0)
    axes.plot(rates, power, color="black")
    axes.plot(rates, rates, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)))
    for place, one in enumerate(shown.found):
        curve = attacks.roc(one.scores_in, one.scores_out)
        some = curve.fpr > 0
        axes.plot(curve.fpr[some], curve.tpr[some], color=COLOURS[place], linewidth=1.2)
    axes.set(xscale="log", yscale="log", xlim=(1e-4, 1.0), ylim=(1e-4, 1.0))
    axes.set(xlabel="false positive rate", ylabel="true positive rate")
    axes.text(1.3e-4, 0.55, "no attack comes here (certified)", color=GREY)
    axes.text(0.012, 0.006, "guessing", color=GREY, rotation=40)
    axes.set_title(f"Noise multiplier {shown.noise:g}: epsilon <= {shown.certified:.3g}")


def draw_levels(axes: Any, found: Sequence[Any]) -> None:
    """Draw the AUC of noisy neighbours over the noise that is added to inputs."""
    from membership import DEVIATIONS

    for place, one in enumerate(found):
        told = "none" if one.noise is None else f"{one.noise:g}"
        axes.plot(
            DEVIATIONS,
            one.scan,
            color=COLOURS[place],
            marker=MARKS[place],
            markersize=4,
            label=told,
        )
    axes.axhline(0.5, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set(xscale="log", xlabel="deviation of the neighbours' pixels", ylabel="AUC")
    axes.set_xticks(DEVIATIONS, [f"{one:g}" for one in DEVIATIONS])
    axes.minorticks_off()
    axes.set_ylim(0.47, 0.87)
    axes.legend(title="noise in training", frameon=False, fontsize=8, loc="upper left", ncols=3)
    axes.set_title("Noisy neighbours, on shadow models")
