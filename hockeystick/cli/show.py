"""How answers are shown and written: a few facts, with -v all that is known; strict JSON; files.

Signs of life, unless HOCKEYSTICK_PROGRESS is off, go to standard error: wiped out, or a few lines.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

import click
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from hockeystick import _files
from hockeystick._version import __version__
from hockeystick.answers import Caution, Source, in_words, steps_rules
from hockeystick.calibration import describe
from hockeystick.cli import options
from hockeystick.cli.command import on_one_line
from hockeystick.errors import ParameterError
from hockeystick.io import PlanFile
from hockeystick.kernels.compiled import COMPILATIONS
from hockeystick.numerics import numerals

if TYPE_CHECKING:
    from hockeystick.verifier import Verdict

# What is said, under a label: that of the line before is not repeated.
Fact: TypeAlias = tuple[str, str | Text]

_VERDICTS: Final = {
    "verified": ("bold green", "a second program finds that its numbers hold; it reads no text"),
    "refuted": ("bold red", "do not rely on it: it was edited, or is a bug to report"),
    "not covered": ("bold yellow", "the second program says nothing about this answer"),
}


def answer(
    told: Mapping[str, Any],
    facts: Iterable[Fact],
    table: Table | None = None,
    *,
    file: PlanFile | None = None,
    cautions: Iterable[Caution] = (),
    more: Iterable[Fact] = (),
    assumptions: Sequence[str] | None = None,
    verdict: Verdict | None = None,
    status: int = 0,
) -> NoReturn:
    """Print an answer and end the command, with the verdict's exit status or else the one given.

    It is what is told for programs, or for people facts, the plan, cautions, a table, and with -v
    what is known ``more``. Assumptions are those that are told, unless given.
    """
    if options.is_given("json"):
        if verdict is not None and "checks" not in told:
            told = {**told, "verification": verdict_fields(verdict)}
        print_json(told)
    else:
        is_verbose = options.is_given("verbose")
        above = [("about", told.get("title") or "")] if is_verbose else []
        above += facts
        if file is not None:
            above += _plan(file, told.get("accountant"), is_verbose)
        shown = (one for one in cautions if is_verbose or not one.is_mild)
        above += [("caution", Text(one.text, "yellow")) for one in shown]
        held = told.get("assumptions", ()) if assumptions is None else assumptions
        below = [*more, *(("holds if", text) for text in held)]
        below += [("sources", f"{one.of}: {one.text}") for one in told.get("sources", ())]
        if not is_verbose:
            many = "1 assumption is" if len(held) == 1 else f"{len(held)} assumptions are"
            below = [("holds if", f"{many} met: -v lists them")] if held else []
        if verdict is not None:
            below += _verdict(verdict, is_verbose)
        _print(above, table, below)
    click.get_current_context().exit((0 if verdict is None else verdict.exit_status) or status)


def _plan(file: PlanFile, accountant: str | None, is_verbose: bool) -> Iterator[Fact]:
    words = in_words(file.plan)
    if is_verbose:
        yield from (("plan", text) for text in words)
        yield from (("steps", rule.removeprefix("steps = ")) for rule in steps_rules(file.plan))
        yield from (("source", file.source or ""), ("notes", file.notes or ""))
    else:
        # Two lines, the shortest part first: what is cut off is the end of one, not another part.
        yield "plan", shorten("; ".join(sorted(words, key=len)), 130, placeholder=" …")
    by = "" if accountant is None else f"; accountant {accountant}"
    yield "adjacency", f"{file.plan.adjacency or 'any'}{by}"


def _verdict(verdict: Verdict, is_verbose: bool) -> Iterator[Fact]:
    for one in verdict.checks if is_verbose else ():
        yield "claim", f"{one.claim}: {'holds' if one.holds else 'is false'}, {one.ball}"
    style, meaning = _VERDICTS[verdict.status]
    yield "verdict", Text.assemble((verdict.status, style), f": {meaning}")
    yield "reason", verdict.reason


def _print(above: Sequence[Fact], table: Table | None, below: Sequence[Fact]) -> None:
    """Print in the encoding of standard output."""
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    console.width = max(20, min(console.width, 100))
    blocks: list[RenderableType] = [_grid([*above, *below])]
    if table is not None:
        blocks = [_grid(above), "", table, "", _grid(below)]
    with console.capture() as captured:
        for block in blocks:
            console.print(block)
    text = "\n".join(line.rstrip() for line in captured.get().strip("\n").splitlines())
    click.echo(text.encode(console.encoding, "replace").decode(console.encoding), color=True)


def _grid(facts: Sequence[Fact]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", min_width=10, no_wrap=True)
    grid.add_column(overflow="fold")
    shown = [(label, text) for label, text in facts if text]
    for (before, _), (label, text) in pairwise([("", ""), *shown]):
        said = Text(on_one_line(text)) if isinstance(text, str) else text
        grid.add_row("" if label == before else label, said)
    return grid


def empty_table(*headings: str) -> Table:
    """Return an empty table; a heading that begins with ">" is that of a column of numbers."""
    found = Table(box=box.SIMPLE_HEAD, show_edge=False, header_style="bold", pad_edge=False)
    for heading in headings:
        justify: Any = "right" if heading.startswith(">") else "left"
        found.add_column(heading.removeprefix(">"), justify=justify, overflow="fold")
    return found


def between(low: float, high: float) -> str:
    """Return an interval in words, rounded outward."""
    lower, upper = numerals.interval(low, high)
    return f"exactly {lower}" if lower == upper else f"from {lower} to {upper}"


def print_json(told: Mapping[str, Any]) -> None:
    """Print strict JSON in ASCII, which every locale can show."""
    click.echo(json.dumps(as_json(told), indent=2, allow_nan=False))


def as_json(value: Any) -> Any:
    """Return a value ready for JSON: cautions and sources as objects, infinity as a text."""
    match value:
        case dict():
            return {key: as_json(one) for key, one in value.items()}
        case list() | tuple():
            return [as_json(one) for one in value]
        case Caution():
            return {"about": value.about, "text": value.text}
        case Source():
            return {"of": value.of, "text": value.text}
        case float():
            return numerals.jsonable(value)
        case _:
            return value


def print_short(number: str, *lines: str, status: int = 0) -> NoReturn:
    """Print a number alone, and lines besides on standard error."""
    click.echo(number)
    for line in lines:
        click.echo(f"hockeystick: {line}", err=True)
    click.get_current_context().exit(status)


def heading(file: PlanFile, **more: Any) -> dict[str, Any]:
    """Return the plan and what its file says of it, ready for JSON."""
    about = {"title": file.title, "source": file.source, "notes": file.notes}
    group = {"group": file.plan.size} if isinstance(file.plan, options.OfGroup) else {}
    description = {"description": describe(file.plan)}
    return {"version": __version__, **about, **description, **group, **more}


def verdict_fields(verdict: Verdict) -> dict[str, Any]:
    """Return the verifier's verdict, ready for JSON."""
    checks = [{"claim": one.claim, "ball": one.ball, "holds": one.holds} for one in verdict.checks]
    return {"status": verdict.status, "reason": verdict.reason or None, "checks": checks}


def out_path(out: str, endings: Collection[str], force: bool, name: str = "out") -> Path:
    """Return where a file goes, or raise before anything takes its time."""
    path = Path(out)
    if path.suffix.lower() not in endings or "\0" in out:
        raise ParameterError(name, out, f"a file name that ends in {' or '.join(endings)}")
    if not Path(os.path.realpath(path)).parent.is_dir():
        raise click.ClickException(f"cannot write {out}: {os.strerror(errno.ENOENT)}")
    _refuse_existing(path, force)
    return path


def write_whole(path: Path, text: str, force: bool) -> None:
    """Write a text all at once."""
    with whole(path, force) as part:
        part.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def whole(path: Path, force: bool) -> Iterator[Path]:
    """Yield where to write a file that then is there all at once: until it is whole, it is not.

    A symbolic link stays one: the file that it leads to is written.
    """
    try:
        with _files.replacing(path) as part:
            yield Path(part)
            _refuse_existing(path, force)
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}") from None


def _refuse_existing(path: Path, force: bool) -> None:
    if path.is_dir():
        raise click.ClickException(f"cannot write {path}: Is a directory")
    if path.exists() and not force:
        raise click.UsageError(f"{path} is there already; give --force to replace it")


@dataclass(slots=True)
class Progress:
    """What is under way, and how many of how many are done; called to say so."""

    what: str
    now: str = ""
    done: int = 0
    total: int = 0

    def __call__(self, done: int, total: int, now: str = "", /) -> None:
        self.done, self.total, self.now = done, total, now

    def __str__(self) -> str:
        now = f": {self.now}" if self.now else ""
        many = f", {self.done:,} of {self.total:,} done" if self.total else ""
        compiling = ", compiling (only the first time)" if COMPILATIONS.under_way else ""
        return f"{self.what}{now}{many}{compiling}"


@contextmanager
def progress(what: str) -> Iterator[Progress]:
    """Yield what to tell how many of how many are done; show it once the patience is over."""
    state, ended = Progress(what), threading.Event()
    if sys.stderr is None:
        yield state
        return
    shown = _bar if sys.stderr.isatty() else _lines
    sign = threading.Thread(target=shown, args=(state, ended), daemon=True)
    sign.start()
    try:
        yield state
    finally:
        ended.set()
        sign.join()


def _bar(state: Progress, ended: threading.Event) -> None:
    """Wait out the patience, then show what is under way until all is done."""
    if ended.wait(2.0):
        return
    with Console(stderr=True).status("") as sign:
        while not ended.wait(0.1):
            sign.update(f"{state} (Ctrl-C stops)")


def _lines(state: Progress, ended: threading.Event) -> None:
    """Say ever more rarely how far things are; where nobody reads it, it does not matter."""
    began, after = time.monotonic(), 30.0
    while not ended.wait(began + after - time.monotonic()):
        after *= 2.0
        if os.environ.get("HOCKEYSTICK_PROGRESS", "").strip().lower() != "off":
            spent = time.monotonic() - began
            with suppress(OSError, ValueError):
                click.echo(f"hockeystick: {state}, after {spent:.0f} s", err=True)
