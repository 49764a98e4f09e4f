"""How answers are shown and written: a few facts, with -v all that is known; strict JSON; files."""

from __future__ import annotations

import errno
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
from hockeystick.cli.command import on_one_line
from hockeystick.cli.plans import OfGroup
from hockeystick.errors import ParameterError
from hockeystick.io import PlanFile
from hockeystick.numerics import numerals
from hockeystick.numerics.numerals import jsonable

if TYPE_CHECKING:
    from hockeystick.verifier import Verdict

_LABEL_WIDTH: Final = 10
_WIDEST: Final = 100
_NARROWEST: Final = 20


class Sheet:
    """What is printed of an answer: facts under their labels, and tables; a title with -v."""

    def __init__(self, title: str | None = None) -> None:
        self.is_verbose = options.is_given("verbose")
        self._blocks: list[RenderableType] = []
        self.more("about", title)

    def fact(self, label: str, *texts: str | Text) -> None:
        """Add a fact, each text on lines of its own."""
        facts = self._blocks[-1] if self._blocks else None
        if not isinstance(facts, Table) or facts.show_header:
            facts = Table.grid(padding=(0, 2, 0, 0))
            facts.add_column(style="dim", min_width=_LABEL_WIDTH, no_wrap=True)
            facts.add_column(overflow="fold")
            self.block(facts)
        for text in texts:
            facts.add_row(label, one_line(text) if isinstance(text, str) else text)
            label = ""

    def more(self, label: str, *texts: str | Text | None) -> None:
        """Add a fact that only -v shows, without what is empty."""
        shown = [text for text in texts if text]
        if shown and self.is_verbose:
            self.fact(label, *shown)

    def block(self, *blocks: RenderableType) -> None:
        """Add tables, or lines."""
        self._blocks += blocks

    def show(self) -> None:
        """Print it in the encoding of standard output; below, what was not given but taken."""
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
    return Text(on_one_line(text), style)


def show(told: Callable[[], Mapping[str, Any]], sheet: Callable[[], Sheet]) -> None:
    """Print an answer: what is told for programs where --json is given, or else the sheet."""
    if options.is_given("json"):
        print_json(told())
    else:
        sheet().show()


def answer(
    told: Mapping[str, Any],
    file: PlanFile | None,
    facts: Iterable[tuple[str, str | Text]],
    found: Table | None = None,
    *,
    more: Mapping[str, Sequence[str]] | None = None,
    assumptions: Sequence[str] | None = None,
) -> None:
    """Print an answer: what is told for programs, or for people its facts and its plan.

    Cautions, sources and assumptions are those that are told; ``more`` is shown with -v alone.
    """
    if options.is_given("json"):
        print_json(told)
        return
    sheet = Sheet(told.get("title"))
    for label, text in facts:
        sheet.fact(label, text)
    if file is not None:
        _add_plan(sheet, file, told.get("accountant"))
    for one in told.get("cautions", ()):
        add = sheet.more if one.is_mild else sheet.fact
        add("caution", Text(one.text, "yellow"))
    if found is not None:
        sheet.block(found)
    for label, texts in (more or {}).items():
        sheet.more(label, *texts)
    met = told.get("assumptions", ()) if assumptions is None else assumptions
    sheet.more("holds if", *met)
    if met and not sheet.is_verbose:
        many = "1 assumption is" if len(met) == 1 else f"{len(met)} assumptions are"
        sheet.fact("holds if", f"{many} met: -v lists them")
    sheet.more("sources", *(f"{one.of}: {one.text}" for one in told.get("sources", ())))
    sheet.show()


def _add_plan(sheet: Sheet, file: PlanFile, accountant: str | None) -> None:
    """Add the plan, with -v all that is said of it, the neighbours and who answered."""
    words = in_words(file.plan)
    if sheet.is_verbose:
        sheet.fact("plan", *words)
        sheet.more("steps", *(one.removeprefix("steps = ") for one in steps_rules(file.plan)))
        sheet.more("source", file.source)
        sheet.more("notes", file.notes)
    else:
        sheet.fact("plan", Text("; ".join(words), no_wrap=True, overflow="ellipsis"))
    by = "" if accountant is None else f"; accountant {accountant}"
    sheet.fact("adjacency", f"{file.plan.adjacency or 'any'}{by}")


def print_json(told: Mapping[str, Any]) -> None:
    """Print strict JSON in ASCII, which every locale can show, with what was not given."""
    taken = options.taken()
    besides = {"defaults": taken} if taken else {}
    click.echo(json.dumps(as_json({**told, **besides}), indent=2, allow_nan=False))


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
            return jsonable(value)
        case _:
            return value


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
    found_as_json: list[dict[str, str]] = as_json(list(found))
    return found_as_json


def verdict_fields(verdict: Verdict) -> dict[str, Any]:
    """Return the verifier's verdict, ready for JSON."""
    checks = [{"claim": one.claim, "ball": one.ball, "holds": one.holds} for one in verdict.checks]
    return {"status": verdict.status, "reason": verdict.reason or None, "checks": checks}


def out_path(out: str, endings: Collection[str], force: bool, name: str = "out") -> Path:
    """Return where a file goes, or raise before anything takes its time."""
    path = Path(out)
    if path.suffix.lower() not in endings or "\0" in out:
        raise ParameterError(name, out, f"a file name that ends in {' or '.join(endings)}")
    there = Path(os.path.realpath(path))
    if there.is_symlink() or not there.parent.is_dir():
        reason = os.strerror(errno.ELOOP if there.is_symlink() else errno.ENOENT)
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


def _refuse_existing(path: Path, force: bool) -> None:
    """Raise where a file would be replaced that nobody said may be."""
    if path.is_dir():
        raise click.ClickException(f"cannot write {path}: Is a directory")
    if path.exists() and not force:
        raise click.UsageError(f"{path} is there already; give --force to replace it")
