"""Pictures of trade-off functions; the only file that knows matplotlib."""

from __future__ import annotations

import io
import os
import textwrap
import warnings
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from hockeystick._validate import Domain, real
from hockeystick.errors import HockeystickError, ParameterError
from hockeystick.tradeoffs.attack_words import MORE_THAN, at_fpr, percent_at_most
from hockeystick.tradeoffs.base import TradeOff
from hockeystick.tradeoffs.profiles.profile import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
_GUESSING: Final[dict[str, Any]] = {"color": _GREY, "linewidth": 1, "linestyle": (0, (3, 3))}
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
        some hundred rates, joined by straight lines. Where the upper end of f is visibly above, a
        band shows the gap. The percentages are ``f.power(fpr)``, rounded up. The same arguments
        give the same file, byte for byte, with the same matplotlib.

    Args:
        f: The first trade-off function.
        others: More of them, drawn over it.
        labels: One text per function, cut after 60 letters; by default f and g or f1, f2, ...
        path: Where to write the picture: a file name that ends in .svg, .png or .pdf.
        fpr: The false positive rate to read off in words, in [0, 1].
        title: A heading, cut after two lines.

    Returns:
        The ``matplotlib.figure.Figure``, whose ``axes[0]`` has the curves; the user's settings
        neither matter nor change.

    Raises:
        HockeystickError: If matplotlib is missing.
        OSError: If the file cannot be written.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.tradeoffs.attack_words import attack_in_words
        >>> print(attack_in_words(0.01, hs.tradeoffs.GaussianTradeOff(1.0).power(0.01)))
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
    kind = None if path is None else _kind_of(path)
    require_matplotlib()
    from matplotlib import style

    curves = [
        _Curve(name, *one.bounds(_EVERYWHERE), one.power(_LOW), one.power(rate))
        for one, name in zip(functions, names, strict=True)
    ]
    with style.context(["default", _STYLE]), warnings.catch_warnings():
        # A label may be in a script that the font does not have; its letters show as boxes.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        figure = _figure(curves, rate, title)
        if kind is not None and path is not None:
            Path(path).write_bytes(_rendered(figure, kind))
    return figure


class _Curve(NamedTuple):
    label: str
    lower: Array
    upper: Array
    power: Array
    at_rate: float


def _kind_of(path: str | os.PathLike[str]) -> str:
    try:
        ending = Path(path).suffix.lower()
    except TypeError:
        ending = ""
    if ending not in FORMATS or "\0" in str(path):
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


def _names(labels: object, count: int) -> list[str]:
    if labels is None:
        return ["f", "g"][:count] if count <= 2 else [f"f{i}" for i in range(1, count + 1)]
    given = labels if isinstance(labels, Sequence) and not isinstance(labels, str) else ()
    if len(given) != count or not all(isinstance(one, str) for one in given):
        raise ParameterError("labels", labels, f"a list of texts, as many as functions: {count}")
    return [" ".join(one.split())[:_LONGEST_LABEL] for one in given]


def _rendered(figure: Figure, kind: str) -> bytes:
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
    axes.plot([0, 1], [1, 0], **_GUESSING)
    for index, curve in enumerate(curves):
        look = _style_of(index)
        axes.plot(_EVERYWHERE, curve.lower, **look, clip_on=False, zorder=3)
        if np.max(curve.upper - curve.lower) > _VISIBLE:
            band = {"color": look["color"], "alpha": 0.2, "linewidth": 0}
            axes.fill_between(_EVERYWHERE, curve.lower, curve.upper, **band)
    _add_low_rates(axes, curves, fpr)
    _add_legend(figure, curves, fpr, has_bands=bool(axes.collections))
    # What a notebook asks for that was not told of matplotlib.
    vars(figure)["_repr_png_"] = partial(_rendered, figure, ".png")
    return figure


def _style_of(index: int) -> dict[str, Any]:
    return {
        "color": _COLOURS[index % len(_COLOURS)],
        "linestyle": _DASHES[index % len(_DASHES)],
        "linewidth": 1.6,
    }


def _add_low_rates(axes: Axes, curves: Sequence[_Curve], fpr: float) -> None:
    """Add the inset: true positives over false positives, both on logarithmic scales."""
    inset = axes.inset_axes(_INSET)
    inset.set(xscale="log", yscale="log", xlim=(_LOWEST, 1.0), ylim=(_LOWEST, 1.4))
    inset.plot([_LOWEST, 1], [_LOWEST, 1], **_GUESSING)
    for index, curve in enumerate(curves):
        inset.plot(_LOW, curve.power, **{**_style_of(index), "linewidth": 1.2})
    if fpr >= _LOWEST:
        inset.axvline(fpr, color=_GREY, linewidth=0.6)
        for index, curve in enumerate(curves):
            inset.plot([fpr], [curve.at_rate], "o", color=_style_of(index)["color"], markersize=3.5)
    ticks = [1e-6, 1e-4, 1e-2, 1.0]
    inset.set_xticks(ticks)
    inset.set_yticks(ticks)
    inset.minorticks_off()
    inset.tick_params(labelsize=7, length=2.5, pad=2)
    inset.set_xlabel("false positive rate", fontsize=7, labelpad=1)
    inset.set_ylabel("largest true positive rate", fontsize=7, labelpad=1)


def _add_legend(figure: Figure, curves: Sequence[_Curve], fpr: float, *, has_bands: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [Line2D([], [], **_style_of(index)) for index in range(len(curves))]
    texts = [f"{percent_at_most(one.at_rate)} of the members: {one.label}" for one in curves]
    if has_bands:
        handles.append(Patch(color=_GREY, alpha=0.2, linewidth=0))
        texts.append("between the proven ends")
    handles.append(Line2D([], [], **_GUESSING))
    texts.append("1 − false positive rate: no attack does better than guessing")
    legend = figure.legend(
        handles,
        texts,
        loc="outside lower left",
        title=f"{at_fpr(fpr)}, {MORE_THAN}",
        alignment="left",
        frameon=False,
        fontsize=8,
        title_fontsize=9,
        handlelength=3,
    )
    for place in legend.get_texts():
        place.set_parse_math(False)
