"""Figures of what attacks found beside what was proven."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hockeystick import audit
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
    with drawing(path, (8.6, 7.6)) as figure:
        (bounds, curves), (levels, key) = figure.subplots(2, 2)
        draw_bounds(bounds, private)
        draw_curves(curves, shown)
        draw_levels(levels, found)
        handles, names = bounds.get_legend_handles_labels()
        key.axis("off")
        key.legend(handles, names, loc="center left", frameon=False, title="In the upper two:")


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
    """Draw each attack's observed rates at one noise, and as marks those that are proven."""
    rates = np.geomspace(1e-4, 1.0, 100)
    power = shown.curve.power(rates)
    axes.fill_between(rates, power, 1.0, color=GREY, alpha=0.15, linewidth=0)
    axes.plot(rates, power, color="black")
    axes.plot(rates, rates, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)))
    for place, one in enumerate(shown.found):
        curve = attacks.roc(one.scores_in, one.scores_out)
        some = curve.fpr > 0
        axes.plot(curve.fpr[some], curve.tpr[some], color=COLOURS[place], linewidth=1.2)
        points = audit.lower_curve(one.trials_in, one.trials_out)
        fpr, tpr = np.array([(point.fpr, point.tpr) for point in points]).T
        axes.plot(
            fpr,
            tpr,
            color=COLOURS[place],
            marker=MARKS[place],
            markersize=3,
            linewidth=0,
            alpha=0.7,
        )
    axes.set(xscale="log", yscale="log", xlim=(1e-4, 1.0), ylim=(1e-4, 1.0))
    axes.set(xlabel="false positive rate", ylabel="true positive rate")
    axes.text(1.3e-4, 0.55, "no attack's rates are here (certified)", color=GREY)
    axes.text(0.012, 0.006, "guessing", color=GREY, rotation=40)
    axes.set_title(f"Rates at noise {shown.noise:g} (marks: proven)")


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


def draw_types(batch: Any, types: Any, faint: Any, small: float, path: str) -> None:
    """Draw three digits rebuilt from each type of leak, by systems, at noise 1 and at little."""
    rows = [("noise multiplier 1", types), (f"noise multiplier {small:g}", faint)]
    kinds = ("type 0: at the server", "type 1: sent by the client", "type 2: one record's gradient")
    with drawing(path, (9.4, 8.4)) as figure:
        upper, lower = figure.subfigures(2, 1)
        for part, (told, found) in zip((upper, lower), rows, strict=True):
            part.suptitle(told, fontsize=11)
            grid = part.subplots(len(found), 12)
            for line, (name, pictures) in zip(grid, found.items(), strict=True):
                for place, image in enumerate(batch.pixels):
                    picture(line[place], image)
                for kind, (images, error) in enumerate(pictures):
                    cells = line[3 * (kind + 1) : 3 * (kind + 2)]
                    for cell, image in zip(cells, images, strict=True):
                        picture(cell, image)
                    cells[1].set_xlabel(f"RMSE {error:.3f}", fontsize=8)
                line[0].set_ylabel(name, rotation=0, ha="right", va="center")
            for place, kind in enumerate(("the client's digits", *kinds)):
                grid[0][3 * place + 1].set_title(kind, fontsize=9)


def draw_noises(batch: Any, found: Sequence[Any], path: str) -> None:
    """Draw a digit rebuilt from one gradient under noise, and how often it is named."""
    with drawing(path, (9.0, 6.4)) as figure:
        upper, lower = figure.subfigures(2, 1, height_ratios=(1.0, 1.1))
        grid = upper.subplots(2, len(found) + 1)
        titles = ("searched for", "read off the first layer")
        for line, told in zip(grid, titles, strict=True):
            picture(line[0], batch.pixels[0])
            line[0].set_ylabel(told, rotation=0, ha="right", va="center")
        grid[0][0].set_title("the digit", fontsize=9)
        for place, (noise, searched, read) in enumerate(found, start=1):
            picture(grid[0][place], searched)
            picture(grid[1][place], np.clip(read, 0.0, 1.0))
            grid[0][place].set_title("clipped" if noise == 0 else f"noise {noise:g}", fontsize=9)
        draw_named(lower.subplots(), [noise for noise, _, _ in found if noise > 0])


def draw_named(axes: Any, noises: Sequence[float]) -> None:
    """Draw how often a record is named among candidates, below what is proven."""
    from leakage import most_named, named

    fine = np.geomspace(noises[0], noises[-1], 60)
    bounds = [most_named(float(one)) for one in fine]
    axes.fill_between(fine, bounds, 1.05, color=GREY, alpha=0.15, linewidth=0)
    axes.plot(fine, bounds, color="black", label="certified: no attack names more")
    shares = [named(float(one)) for one in fine]
    told = "named: the nearest of 100 gradients"
    axes.plot(fine, shares, color=COLOURS[1], label=told)
    axes.axhline(0.01, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), label="guessing")
    axes.set(xscale="log", ylim=(0.0, 1.05), xlabel="noise multiplier", ylabel="share named")
    axes.set_xticks(noises, [f"{one:g}" for one in noises])
    axes.minorticks_off()
    axes.legend(frameon=False, loc="lower left")


def draw_decays(batch: Any, found: Any, by_round: Any, path: str) -> None:
    """Draw a digit rebuilt in some rounds of each schedule, and how often each round names it."""
    from leakage import CONSTANT, SHOWN_ROUNDS

    with drawing(path, (8.0, 9.6)) as figure:
        upper, lower = figure.subfigures(2, 1, height_ratios=(1.25, 1.0))
        grid = upper.subplots(len(found), len(SHOWN_ROUNDS) + 1)
        grid[0][0].set_title("the digit", fontsize=9)
        for line, (name, pictures) in zip(grid, found.items(), strict=True):
            picture(line[0], batch.pixels[0])
            line[0].set_ylabel(name, rotation=0, ha="right", va="center")
            for cell, (noise, image) in zip(line[1:], pictures, strict=True):
                picture(cell, image)
                cell.set_xlabel(f"noise {noise:.3f}", fontsize=7)
        for cell, index in zip(grid[0][1:], SHOWN_ROUNDS, strict=True):
            cell.set_title(f"round {index + 1}", fontsize=9)
        axes = lower.subplots()
        for place, (name, (shares, bounds)) in enumerate(by_round.items()):
            rounds = np.arange(1, len(shares) + 1)
            axes.plot(rounds, bounds, color=COLOURS[place], linewidth=1.2, label=name)
            axes.plot(
                rounds, shares, color=COLOURS[place], marker=MARKS[place], markersize=3, linewidth=0
            )
        axes.axhline(0.01, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)))
        axes.set(xlabel="round", ylabel="share named of 100 candidates", ylim=(0.0, 1.0))
        axes.set_title(
            f"Lines: certified; marks: found. Constant noise {CONSTANT:g}, others at its cost"
        )
        axes.legend(frameon=False)


def picture(cell: Any, image: Any) -> None:
    """Draw one digit, dark on light, without axes."""
    cell.imshow(np.asarray(image).reshape(8, 8), cmap="gray_r", vmin=0.0, vmax=1.0)
    cell.set(xticks=[], yticks=[])
    for side in cell.spines.values():
        side.set_visible(True)
        side.set_linewidth(0.4)
