"""What became of a sweep, for people."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from hockeystick.cli.durations import seconds
from hockeystick.cli.panels import render
from hockeystick.cli.results.swept import Swept
from hockeystick.numerics import numerals as numerals


def panel(done: Swept) -> RenderableType:
    """Return the panel: what was asked, and where the answers are."""
    facts, file = render.facts_table(), done.file
    facts.add_row("file", render.one_line(done.out, "bold green"))
    facts.add_row("rows", Text(f"{done.rows:,}{_beginning(done)}"))
    if done.errors:
        facts.add_row("no answer", Text(f"in {done.errors:,} of them", style="yellow"))
        facts.add_row("", render.one_line(f"first: {done.first_error}"))
    if done.first_caution is not None:
        many = f"in {done.cautions:,} of {done.rows:,} rows, in the first of these:"
        facts.add_row("caution", Text(f"{many} {done.first_caution}", style="yellow"))
    places = [f"{name} = {numerals.plain(value)}" for name, value in file.question.at.items()]
    at = f" at {', '.join(places)}" if places else ""
    facts.add_row("found", render.one_line(file.question.find + at))
    for index, (name, values) in enumerate(file.grid.items()):
        many = f"{len(values)} values, {values[0]} to {values[-1]}"
        shown = ", ".join(map(str, values)) if len(values) <= 4 else many
        facts.add_row("" if index else "grid", render.one_line(f"{name}: {shown}"))
    for told in file.replaced:
        facts.add_row("", render.one_line(told))
    facts.add_row("time", Text(_time(done)))
    return render.framed(file.title, facts)


def _beginning(done: Swept) -> str:
    """Return the number of answers found in the file, if any."""
    return f", {done.resumed:,} of them answered before" if done.resumed else ""


def _time(done: Swept) -> str:
    """Return how long it took, and how many answers a second that is."""
    if done.resumed == done.rows:
        return seconds(done.seconds)
    return f"{seconds(done.seconds)}: {done.rate:,.3g} answers a second"
