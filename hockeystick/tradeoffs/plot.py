"""Pictures of trade-off functions; the only file that knows matplotlib."""

from __future__ import annotations

import io
import os
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from hockeystick._validate import Domain, real
from hockeystick.errors import HockeystickError, ParameterError
from hockeystick.tradeoffs.base import TradeOff
from hockeystick.tradeoffs.profiles.profile import Array
from hockeystick.tradeoffs.reading import MORE_THAN, at_fpr, percent_at_most, reading

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

FPR: Final = Domain(symbol="alpha", low=0, high=1, typical=(1e-5, 0.1))

# What a file name may end in, and the metadata that would make two runs differ.
FORMATS: Final[dict[str, dict[str, None]]] = {
    ".svg": {"Date": None},
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None},
}
# The palette of Okabe and Ito, distinct to colour-blind readers; the dashes serve grey paper.
_COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_DASHES: Final = ("-", (0, (6, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))
_GREY: Final = "#767676"
_STYLE: Final[dict[str, Any]] = {
    "svg.hashsalt": "hockeystick",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
}
_DOTS_PER_INCH: Final = 200
_INCHES: Final = (6.0, 5.0)
_INCHES_PER_LINE: Final = 0.16
_LINES_FREE: Final = 3
_LONGEST_LABEL: Final = 60
_TITLE_LETTERS: Final = 68
_TITLE_LINES: Final = 2

_LOWEST: Final = 1e-6
_EVERYWHERE: Final[Array] = np.concatenate(
    ([0.0], np.geomspace(1e-9, 0.1, 72)[:-1], np.linspace(0.1, 1.0, 64))
)
_LOW: Final[Array] = np.append(np.geomspace(_LOWEST, 1.0, 72, endpoint=False), 1.0)
# Left, bottom, width and height in units of the axes: above 1 - alpha, where no curve can be.
_INSET: Final = (0.6, 0.59, 0.4, 0.4)
# A gap between the proven ends that is about as wide as a line is visible.
_VISIBLE: Final = 0.004


def plot(
    f: TradeOff,
    *others: TradeOff,
    labels: Sequence[str] | None = None,
    path: str | os.PathLike[str] | None = None,
    fpr: float = 0.01,
    title: str | None = None,
) -> Figure:
    """Draw trade-off functions against ``1 - alpha``, what guessing achieves.

    The inset has the largest true positive rate over low false positive rates on logarithmic
    scales; the legend says in words what holds at one of them.

    Guarantees:
        The lines are proven LOWER ends of f, and proven upper ends of ``1 - f`` in the inset, at
        some hundred rates; between those they are joined by straight lines. Where the upper end of
        f is visibly above, a band shows the gap. The percentages are ``f.power(fpr)``, rounded up.
        The same arguments give the same file, byte for byte, with the same matplotlib.

    Args:
        f: The first trade-off function.
        others: More of them, drawn over it.
        labels: One text per function, cut after 60 letters; by default f and g or f1, f2, ...
        path: Where to write the picture: a file name that ends in .svg, .png or .pdf. One that is
            there already is replaced.
        fpr: The false positive rate to read off in words, in [0, 1].
        title: A heading, cut after two lines.

    Returns:
        The ``matplotlib.figure.Figure``, whose ``axes[0]`` has the curves; ``matplotlib.pyplot``
        does not know it, and the user's settings neither matter nor change.

    Raises:
        HockeystickError: If matplotlib is missing.
        OSError: If the file cannot be written.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.tradeoffs.reading import reading
        >>> print(reading(0.01, hs.tradeoffs.GaussianTradeOff(1.0).power(0.01)))
        At FPR 1 %, no attack finds more than 9.24 % of the members
    """
    rate = real("fpr", fpr, FPR)
    functions = (f, *others)
    for one in functions:
        if not isinstance(one, TradeOff):
            raise ParameterError("f", one, "a trade-off function")
    names = _names(labels, len(functions))
    if title is not None and not isinstance(title, str):
        raise ParameterError("title", title, "a text")
    kind = None if path is None else kind_of(path)
    require_matplotlib()
    curves = [_Curve.of(*pair, rate) for pair in zip(functions, names, strict=True)]
    with styled():
        figure = _figure(curves, rate, None if title is None else _printable(title))
        if kind is not None and path is not None:
            Path(path).write_bytes(rendered(figure, kind))
    return figure


def kind_of(path: str | os.PathLike[str]) -> str:
    """Return what a file name ends in, if pictures can be of that kind, or raise."""
    try:
        name = os.fspath(path)
    except TypeError:
        name = ""
    ending = Path(name).suffix.lower() if isinstance(name, str) else ""
    if ending not in FORMATS or "\0" in name:
        *first, last = FORMATS
        allowed = f"a file name that ends in {', '.join(first)} or {last}"
        raise ParameterError("path", path, allowed)
    return ending


def require_matplotlib() -> None:
    """Raise where matplotlib is missing, and say how to install it."""
    try:
        import_module("matplotlib.figure")
    except ImportError:
        message = "pictures need matplotlib: install hockeystick[plot]"
        raise HockeystickError(message) from None


@final
@dataclass(frozen=True, slots=True)
class _Curve:
    """One function, evaluated where it is drawn."""

    label: str
    lower: Array
    upper: Array
    power: Array
    reading: float

    @classmethod
    def of(cls, f: TradeOff, label: str, fpr: float) -> _Curve:
        lower, upper = f.bounds(_EVERYWHERE)
        # Both are proven; where f itself says more than its interval, so does the line.
        proven = np.maximum(lower, f(_EVERYWHERE))
        return cls(label, proven, upper, f.power(_LOW), f.power(fpr))

    @property
    def is_wide(self) -> bool:
        """Whether the gap between the proven ends can be seen."""
        return bool(np.max(self.upper - self.lower) > _VISIBLE)


def _names(labels: object, count: int) -> list[str]:
    """Return one label per function, or raise."""
    if labels is None:
        return ["f", "g"][:count] if count <= 2 else [f"f{i}" for i in range(1, count + 1)]
    given = labels if isinstance(labels, Sequence) and not isinstance(labels, str) else ()
    if len(given) != count or not all(isinstance(one, str) for one in given):
        allowed = f"{count} texts" if count > 1 else "a list of one text"
        raise ParameterError("labels", labels, allowed)
    texts = map(_printable, given)
    return [one if len(one) <= _LONGEST_LABEL else f"{one[: _LONGEST_LABEL - 1]}…" for one in texts]


def _printable(text: str) -> str:
    """Return a text on one line, without what has no picture."""
    return "".join(letter for letter in " ".join(text.split()) if letter.isprintable())


@contextmanager
def styled() -> Iterator[None]:
    """Draw by the library's own settings, whatever the user's are, which come back at the end."""
    from matplotlib import style

    with style.context(["default", _STYLE]), warnings.catch_warnings():
        # A label may be in a script that the font does not have; its letters show as boxes.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        yield


def rendered(figure: Figure, kind: str) -> bytes:
    """Return a figure as the content of a file, all at once, so that no half of one is written."""
    content = io.BytesIO()
    figure.savefig(content, format=kind[1:], metadata=FORMATS[kind], dpi=_DOTS_PER_INCH)
    return content.getvalue()


def _figure(curves: Sequence[_Curve], fpr: float, title: str | None) -> Figure:
    from matplotlib.figure import Figure

    width, height = _INCHES
    height += _INCHES_PER_LINE * max(0, len(curves) - _LINES_FREE)
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    if title is not None:
        lines = textwrap.wrap(title, _TITLE_LETTERS, max_lines=_TITLE_LINES, placeholder=" …")
        axes.set_title("\n".join(lines), loc="left", fontsize=10, parse_math=False)
    axes.set(xlim=(0, 1), ylim=(0, 1.005))
    axes.set_xlabel("false positive rate (type I error)")
    axes.set_ylabel("least false negative rate (type II error)")
    axes.plot([0, 1], [1, 0], color=_GREY, linewidth=1, linestyle=(0, (3, 3)))
    for index, curve in enumerate(curves):
        look = style_of(index)
        axes.plot(_EVERYWHERE, curve.lower, **look, clip_on=False, zorder=3)
        if curve.is_wide:
            band = {"color": look["color"], "alpha": 0.2, "linewidth": 0}
            axes.fill_between(_EVERYWHERE, curve.lower, curve.upper, **band)
    _add_low_rates(axes, curves, fpr)
    _add_legend(figure, axes, curves, fpr)
    # What a notebook asks for that was not told of matplotlib.
    vars(figure)["_repr_png_"] = partial(rendered, figure, ".png")
    return figure


def style_of(index: int) -> dict[str, Any]:
    """Return how the line of one curve looks."""
    return {
        "color": _COLOURS[index % len(_COLOURS)],
        "linestyle": _DASHES[index % len(_DASHES)],
        "linewidth": 1.6,
    }


def _add_low_rates(axes: Axes, curves: Sequence[_Curve], fpr: float) -> None:
    """Add the inset: true positives over false positives, both on logarithmic scales."""
    inset = axes.inset_axes(_INSET)
    inset.set(xscale="log", yscale="log", xlim=(_LOWEST, 1.0), ylim=(_LOWEST, 1.4))
    inset.plot([_LOWEST, 1], [_LOWEST, 1], color=_GREY, linewidth=0.8, linestyle=(0, (3, 3)))
    for index, curve in enumerate(curves):
        inset.plot(_LOW, curve.power, **{**style_of(index), "linewidth": 1.2})
    if fpr >= _LOWEST:
        inset.axvline(fpr, color=_GREY, linewidth=0.6)
        for index, curve in enumerate(curves):
            inset.plot([fpr], [curve.reading], "o", color=style_of(index)["color"], markersize=3.5)
    ticks = [1e-6, 1e-4, 1e-2, 1.0]
    inset.set_xticks(ticks)
    inset.set_yticks(ticks)
    inset.minorticks_off()
    inset.tick_params(labelsize=7, length=2.5, pad=2)
    inset.set_xlabel("false positive rate", fontsize=7, labelpad=1)
    inset.set_ylabel("largest true positive rate", fontsize=7, labelpad=1)


def _add_legend(figure: Figure, axes: Axes, curves: Sequence[_Curve], fpr: float) -> Legend:
    """Add what the lines are, under the curves, with the reading in words as the heading."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    one = len(curves) == 1
    handles: list[Any] = [Line2D([], [], **style_of(index)) for index in range(len(curves))]
    if one:
        heading = reading(fpr, curves[0].reading)
        texts = [f"{curves[0].label}: the errors of no attack lie below this line"]
    else:
        heading = f"{at_fpr(fpr)}, {MORE_THAN}"
        texts = [
            f"{percent_at_most(curve.reading)} of the members: {curve.label}" for curve in curves
        ]
    wide = [index for index, curve in enumerate(curves) if curve.is_wide]
    if wide:
        colour = style_of(wide[0])["color"] if one else _GREY
        handles.append(Patch(color=colour, alpha=0.2, linewidth=0))
        texts.append("between the proven ends")
    handles.append(Line2D([], [], color=_GREY, linewidth=1, linestyle=(0, (3, 3))))
    texts.append("1 − false positive rate: no attack does better than guessing")
    blank = [" "] * len(texts)
    legend = figure.legend(
        handles,
        blank,
        loc="outside lower left",
        title=heading,
        alignment="left",
        frameon=False,
        fontsize=8,
        title_fontsize=9,
        handlelength=3,
    )
    # Set afterwards: the legend would leave out a label that starts with an underscore.
    for place, text in zip(legend.get_texts(), texts, strict=True):
        place.set(text=text, parse_math=False)
    return legend
