"""The page as HTML: its controls, the empty pictures, and the scripts that fill them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any, Final

from hockeystick.answers import titled
from hockeystick.explore.controls import choices_of, sliders_of
from hockeystick.explore.figures import CURVES, PINS, items
from hockeystick.explore.state import State
from hockeystick.numerics.numerals import plain
from hockeystick.reports.page import bokeh_script, embeddable, environment, template_text, unbroken

_TEMPLATES: Final = "templates"
# Nothing is loaded from anywhere else; BokehJS makes styles of its own.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TITLES: Final = {
    "trade-off": (
        "Trade-off curve",
        "The least share of members that any attack misses, over its false positive rate. "
        "Guessing is the dashed straight line.",
    ),
    "course": ("Budget over the run", "Epsilon that is spent by then; the large dot is the end."),
    "noise": (
        "Cost against noise",
        "Epsilon of the same plan at other noise multipliers; the large dot is this plan.",
    ),
}


def _own(name: str) -> str:
    """Return a file of this room's templates."""
    return resources.files("hockeystick.explore").joinpath(_TEMPLATES, name).read_text("utf-8")


STATIC: Final[Mapping[str, Callable[[], str]]] = {
    "bokeh.js": bokeh_script,
    "paint.js": lambda: template_text("paint.js"),
    "explore.js": lambda: _own("explore.js"),
}


def document(state: State) -> str:
    """Return the page that begins with a state.

    Guarantees:
        What a plan file says is escaped. The page loads nothing but its scripts, from where it
        itself is.

    Args:
        state: What it begins with.

    Raises:
        HockeystickError: If Bokeh or Jinja2 is missing.
    """
    names = [name for name in CURVES if name != "noise" or state.training is not None]
    sliders = sliders_of(state)
    training = state.training
    config: dict[str, Any] = {
        "sliders": {one.name: {"values": one.values, "texts": one.texts} for one in sliders},
        "figures": items(names),
        "pins": PINS,
    }
    text: str = (
        environment(_own)
        .get_template("explore.html")
        .render(
            title=state.file.title or titled(state.file.plan),
            sliders=[(one, plain(one.value), one.values.index(one.value)) for one in sliders],
            choices=choices_of(state),
            examples=None if training is None else training.examples,
            length=None if training is None else ("steps" if training.epochs is None else "epochs"),
            is_fixed=training is None,
            target=plain(state.file.epsilon or 2.0),
            names=names,
            titles=_TITLES,
            config=embeddable(config),
            style=template_text("report.css") + _own("explore.css"),
        )
    )
    return unbroken(text)
