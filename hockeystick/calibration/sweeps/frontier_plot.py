"""The picture of a frontier: noise against length, one line for each batch size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hockeystick.calibration.sweeps.frontier import FrontierPoint
from hockeystick.numerics.numerals import plain
from hockeystick.tradeoffs.plot import kind_of, rendered, style_of, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INCHES: Final = (7.2, 3.8)
_MOST_TICKS: Final = 8
_ON_SUM: Final = "noise multiplier: on the sum of a batch"
_ON_MEAN: Final = "noise on the mean of a batch, in clipping norms"


def draw(points: Sequence[FrontierPoint], path: str, title: str) -> None:
    """Write the picture: on the left the noise on a batch's sum, on the right that on its mean."""
    from matplotlib.figure import Figure

    kind = kind_of(path)
    with styled():
        figure = Figure(figsize=_INCHES, layout="constrained")
        left, right = figure.subplots(1, 2)
        figure.suptitle(title, x=0.01, ha="left", fontsize=10, parse_math=False)
        there = [one for one in points if one.epochs > 0 and (one.noise_multiplier or 0.0) > 0.0]
        sizes = list(dict.fromkeys(one.batch_size for one in there))
        for index, size in enumerate(sizes):
            own = [one for one in there if one.batch_size == size]
            lengths = [one.epochs for one in own]
            look = {**style_of(index), "marker": "o", "markersize": 3, "label": f"{size:,}"}
            left.plot(lengths, [one.noise_multiplier for one in own], **look)
            right.plot(lengths, [one.noise_on_mean for one in own], **look)
        epochs = list(dict.fromkeys(one.epochs for one in there))
        _axes(left, _ON_SUM, epochs)
        _axes(right, _ON_MEAN, epochs)
        handles, labels = left.get_legend_handles_labels()
        figure.legend(
            handles,
            labels,
            title="batch size",
            loc="outside lower left",
            alignment="left",
            ncols=min(max(1, len(sizes)), 6),
            frameon=False,
            fontsize=8,
            title_fontsize=9,
            handlelength=3,
        )
        Path(path).write_bytes(rendered(figure, kind))


def _axes(axes: Axes, label: str, epochs: Sequence[float]) -> None:
    """Set the scales of one side, and what it shows."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator

    axes.set(xscale="log", yscale="log", xlabel="epochs")
    ticks = epochs if len(epochs) <= _MOST_TICKS else [min(epochs), max(epochs)]
    axes.set_xticks(ticks, [plain(one) for one in ticks])
    axes.minorticks_off()
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FormatStrFormatter("%g"))
    axes.set_title(label, loc="left", fontsize=8)
    axes.grid(visible=True, which="major", linewidth=0.4, alpha=0.5)
