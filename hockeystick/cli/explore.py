"""The command ``explore``: a page on this machine, to play with a plan's numbers."""

from __future__ import annotations

import asyncio
import webbrowser
from typing import Final

import click

from hockeystick.cli import command, plans
from hockeystick.errors import ParameterError
from hockeystick.io import parse

_LARGEST_PORT: Final = 65_535
_NEEDED: Final = ("bokeh.embed", "jinja2", "tornado.web")
_A_PORT: Final = f"an integer from 0 to {_LARGEST_PORT}"

_HELP: Final = """Serve a page to play with a plan.

The page shows epsilon, what an attacker could learn, how the budget is spent, and the cost at other
noises; it solves for a target, compares pinned plans, and saves the plan file and the report. It is
served to this machine alone, and its link opens it once, in one browser. Ctrl-C ends it.
"""


@click.command(cls=command.Command, help=_HELP)
@plans.plan_words
@click.option("--port", metavar="N", default="0", help="Where it is served; by default anywhere.")
@click.option("--no-browser", is_flag=True, help="Print the link, and open no browser.")
def explore(words: tuple[str, ...], port: str, no_browser: bool) -> None:
    """Serve the page until it is interrupted."""
    number = _port(port)
    file = plans.words_of(words).file() if words else None
    from hockeystick.reports import require_libraries

    require_libraries("the page needs Bokeh, Jinja2 and Tornado", _NEEDED)
    from hockeystick.explore.server import serve
    from hockeystick.explore.service import Service
    from hockeystick.explore.state import USUAL, State

    state = State(USUAL if file is None else file)

    def opened(url: str) -> None:
        click.echo(f"{url}\nThe link opens the page once, in one browser; Ctrl-C ends it.")
        if not no_browser:
            webbrowser.open(url)

    try:
        asyncio.run(serve(lambda: Service(state), number, opened))
    except OSError as error:
        raise click.ClickException(f"cannot serve at port {number}: {error.strerror}") from None


def _port(text: str) -> int:
    """Return a port, or raise."""
    number = parse(text)
    if not isinstance(number, int) or not 0 <= number <= _LARGEST_PORT:
        raise ParameterError("port", number, _A_PORT)
    return number
