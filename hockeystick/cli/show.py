"""How answers are shown and written: a few facts, with -v all that is known; strict JSON; files."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

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
from hockeystick.cli.plans import OfGroup
from hockeystick.errors import ParameterError
from hockeystick.io import PlanFile
from hockeystick.numerics import numerals

if TYPE_CHECKING:
    from hockeystick.verifier import Verdict

_LABEL_WIDTH: Final = 10
_WIDEST: Final = 100
_NARROWEST: Final = 20
KIND_STYLES: Final = {"exact": "green", "bound": "yellow", "approximation": "red"}


class Sheet:
    """The facts of one answer, and what else is known of it.

    Args:
        title: What the answer is about, shown with -v.
    """

    def __init__(self, title: str | None = None) -> None:
        self.is_verbose = options.is_given("verbose")
        self._blocks: list[RenderableType] = []
        if title and self.is_verbose:
            self.block(one_line(title, "bold"))

    def fact(self, label: str, text: str | Text) -> None:
        """Add a fact."""
        facts = self._blocks[-1] if self._blocks else None
        if not isinstance(facts, _Facts):
            facts = _Facts()
            self._blocks.append(facts)
        facts.add_row(label, one_line(text) if isinstance(text, str) else text)

    def more(self, label: str, text: str | Text | None) -> None:
        """Add a fact that only -v shows, unless it is empty."""
        if text and self.is_verbose:
            self.fact(label, text)

    def block(self, *blocks: RenderableType) -> None:
        """Add a table, or lines."""
        self._blocks += blocks

    def cautions(self, found: Iterable[Caution]) -> None:
        """Add cautions: what is merely unusual with -v alone."""
        for one in found:
            if self.is_verbose or not one.is_mild:
                self.fact("caution", Text(one.text, style="yellow"))

    def plan(self, file: PlanFile, adjacency: str | None, accountant: str | None = None) -> None:
        """Add the plan, with -v all that is said of it, the neighbours and who answered."""
        words = in_words(file.plan)
        if self.is_verbose:
            for label, text in [("plan", words[0]), *(("and", one) for one in words[1:])]:
                self.fact(label, text)
            for rule in steps_rules(file.plan):
                self.fact("steps", rule.removeprefix("steps = "))
            self.more("source", file.source)
            self.more("notes", file.notes)
        else:
            self.fact("plan", Text("; ".join(words), no_wrap=True, overflow="ellipsis"))
        by = "" if accountant is None else f"; accountant {accountant}"
        self.fact("adjacency", f"{adjacency or 'any'}{by}")

    def holds_if(self, assumptions: Sequence[str], heading: str = "holds if") -> None:
        """Add under how many assumptions the answer holds; with -v, which."""
        if assumptions and self.is_verbose:
            self.bullets(heading, assumptions)
        elif assumptions:
            many = len(assumptions)
            met = "1 assumption is" if many == 1 else f"{many} assumptions are"
            self.fact(heading, f"{met} met: -v lists them")

    def bullets(self, heading: str, sentences: Iterable[str]) -> None:
        """Add sentences as a list under a heading."""
        found = Table.grid(padding=(0, 1))
        found.add_column(no_wrap=True, style="dim")
        found.add_column(overflow="fold")
        for sentence in sentences:
            found.add_row("-", one_line(sentence))
        self.block(Text(f"\n{heading}", style="bold"), found)

    def more_of(self, heading: str, sentences: Sequence[str]) -> None:
        """Add a list that only -v shows, unless it is empty."""
        if sentences and self.is_verbose:
            self.bullets(heading, sentences)

    def show(self) -> None:
        """Print it for whatever standard output is: in its own encoding, without trailing blanks.

        What was not given, and taken from elsewhere, is said below.
        """
        console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
        console.width = max(_NARROWEST, min(console.width, _WIDEST))
        with console.capture() as captured:
            for index, block in enumerate(self._blocks):
                if index and isinstance(block, Table) and block.show_header:
                    console.print()
                console.print(block)
            for line in options.default_lines():
                console.print(one_line(line))
        text = "\n".join(line.rstrip() for line in captured.get().splitlines())
        click.echo(text.encode(console.encoding, "replace").decode(console.encoding), color=True)


class _Facts(Table):
    """Labels and what they stand for."""

    def __init__(self) -> None:
        super().__init__(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
        self.add_column(style="dim", min_width=_LABEL_WIDTH, no_wrap=True)
        self.add_column(overflow="fold")


def table(*headings: str) -> Table:
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


def one_line(text: str, style: str = "") -> Text:
    """Return a text on one line, without what could steer a terminal."""
    words = " ".join(text.split())
    return Text("".join(letter for letter in words if letter.isprintable()), style=style)


def show(told: Callable[[], Mapping[str, Any]], sheet: Callable[[], Sheet]) -> None:
    """Print an answer: what is told for programs where --json is given, or else the sheet."""
    if options.is_given("json"):
        print_json(told())
    else:
        sheet().show()


def print_json(told: Mapping[str, Any]) -> None:
    """Print strict JSON in ASCII, which every locale can show, with what was not given."""
    taken = options.defaults()
    besides = {"defaults": taken} if taken else {}
    click.echo(json.dumps({**told, **besides}, indent=2, allow_nan=False))


def print_short(number: str, *lines: str) -> None:
    """Print a number alone, and on standard error what was not given, and lines besides."""
    click.echo(number)
    for line in [*options.default_lines(), *lines]:
        click.echo(f"hockeystick: {line}", err=True)


def heading(file: PlanFile, **more: Any) -> dict[str, Any]:
    """Return the plan and what its file says of it, ready for JSON."""
    about = {"title": file.title, "source": file.source, "notes": file.notes}
    group = {"group": file.plan.size} if isinstance(file.plan, OfGroup) else {}
    description = describe(file.plan)
    return {"version": __version__, **about, "description": description, **group, **more}


def listed(found: Iterable[Caution | Source]) -> list[dict[str, str]]:
    """Return cautions or sources, ready for JSON."""
    return [
        {"about": one.about, "text": one.text}
        if isinstance(one, Caution)
        else {"of": one.of, "text": one.text}
        for one in found
    ]


def verdict_fields(verdict: Verdict) -> dict[str, Any]:
    """Return the verifier's verdict, ready for JSON."""
    checks = [{"claim": one.claim, "ball": one.ball, "holds": one.holds} for one in verdict.checks]
    return {"status": verdict.status, "reason": verdict.reason or None, "checks": checks}


def out_path(out: str, endings: Collection[str], force: bool, name: str = "out") -> Path:
    """Return where a file goes, or raise before anything takes its time."""
    path = Path(out)
    if path.suffix.lower() not in endings or "\0" in out:
        raise ParameterError(name, out, f"a file name that ends in {' or '.join(endings)}")
    reason = ""
    if path.is_dir():
        reason = "Is a directory"
    elif _followed(path).is_symlink():
        reason = "Too many levels of symbolic links"
    elif not path.parent.is_dir() or not _followed(path).parent.is_dir():
        reason = "No such file or directory"
    if reason:
        raise click.ClickException(f"cannot write {out}: {reason}")
    _refuse_existing(path, force)
    return path


def write_whole(path: Path, text: str, force: bool) -> None:
    """Write a text all at once."""
    with whole(path, force) as part, open(part, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)


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


def _followed(path: Path) -> Path:
    """Return the file that a path leads to, through symbolic links; it need not be there."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _refuse_existing(path: Path, force: bool) -> None:
    """Raise where a file would be replaced that nobody said may be."""
    if path.exists() and not force:
        raise click.UsageError(f"{path} is there already; give --force to replace it")
