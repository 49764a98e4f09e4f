"""The command ``explore``: a page on this machine, to play with a plan's numbers."""

from __future__ import annotations

import webbrowser
from dataclasses import replace
from typing import Final

import click

from hockeystick._validate import real
from hockeystick.cli.flags import options
from hockeystick.cli.flags.once import Once
from hockeystick.errors import HockeystickError, ParameterError
from hockeystick.io import parse

_LARGEST_PORT: Final = 65_535
_A_PORT: Final = f"an integer from 0 to {_LARGEST_PORT}"

_HELP: Final = """Serve a page to play with a plan: sliders, and what is proven while they move.

The page shows epsilon, what an attacker could learn, how the budget is spent, and the cost at other
noises; it solves for a target, and shows the plan as a file. It is served to this machine alone,
and to whoever has its link. Ctrl-C ends it.
"""


@click.command(cls=Once, help=_HELP)
@options.plan_flags
@click.option("--delta", metavar="D", help="Where the page begins; by default the plan file's.")
@click.option("--port", metavar="N", default="0", help="Where it is served; by default anywhere.")
@click.option("--no-browser", is_flag=True, help="Print the link, and open no browser.")
def explore(
    plan_file: str | None, delta: str | None, port: str, no_browser: bool, **flags: str | None
) -> None:
    """Serve the page until it is interrupted."""
    number = _port(port)
    given = plan_file is not None or bool(options.written(flags))
    file = options.plan_of(plan_file, flags) if given else None
    try:
        from hockeystick.explore.page import USUAL, serve
    except ModuleNotFoundError:
        message = "the page needs Bokeh: pip install 'hockeystick[explore]'"
        raise HockeystickError(message) from None
    shown = USUAL if file is None else file
    if delta is not None:
        shown = replace(shown, delta=real("delta", parse(delta)))

    def opened(url: str) -> None:
        click.echo(
            f"{url}\nWhoever has this link can open the page, on this machine; Ctrl-C ends it."
        )
        if not no_browser:
            webbrowser.open(url)

    try:
        serve(shown, number, opened)
    except OSError as error:
        raise click.ClickException(f"cannot serve at port {number}: {error.strerror}") from None


def _port(text: str) -> int:
    """Return a port, or raise."""
    number = parse(text)
    if not isinstance(number, int) or not 0 <= number <= _LARGEST_PORT:
        raise ParameterError("port", number, _A_PORT)
    return number
