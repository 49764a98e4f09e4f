"""The command ``sweep``: one question at every cell of a grid, into a file."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Final, final

import click
from rich.text import Text

import hockeystick as hs
from hockeystick import _validate
from hockeystick.calibration.sweeps.sweep import CAUTION, ENDINGS, journal_of, kept_for
from hockeystick.cli import command, flags, layout
from hockeystick.cli.as_json import dumped
from hockeystick.cli.grid_file import ASK_KEYS, GRID_KEYS, GRID_VALUES, GridFile, load_grid
from hockeystick.cli.layout import Sheet
from hockeystick.cli.out_file import out_flags, out_path
from hockeystick.cli.progress import WORKERS, bar, processes, seconds
from hockeystick.io import parse
from hockeystick.numerics import numerals as numerals

_KEYS: Final = {
    "Keys of [grid], in which the last changes fastest": GRID_KEYS,
    "Values of each": GRID_VALUES,
    "Keys of [ask]": ASK_KEYS,
}


class _WithKeys(command.Command):
    """A command whose help lists what its file has."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, keys in _KEYS.items():
            with formatter.section(heading):
                formatter.write_dl(list(keys.items()))
        super().format_epilog(ctx, formatter)


@click.command(cls=_WithKeys)
@click.argument("grid_file", metavar="GRID.toml")
@out_flags("Where the rows go: a new .csv or .jsonl file.")
@click.option("--workers", metavar="N", help="Ask in N processes; by default in this one.")
@flags.json_flag
@flags.verbose_flag
def sweep(grid_file: str, out: str | None, force: bool, workers: str | None, as_json: bool) -> None:
    """Ask one question at every cell of a grid.

    GRID.toml is a plan file with a table [grid] of arrays and ranges, and a table [ask] that says
    what to find: epsilon, delta, or the name of a parameter; see the keys below. A cell that is
    refused is a row with an error. What is interrupted, or killed, goes on where it was when the
    same command is given again; until all is there, the answers are in FILE.journal. A FILE that
    is there already is replaced with --force alone, at the end; so is, at once, the FILE.journal of
    another grid or question.
    """
    if out is None:
        raise click.UsageError("Missing -o FILE, where the rows go: .csv or .jsonl")
    given: Any = "1" if workers is None else workers
    count = _validate.count("workers", parse(given), WORKERS)
    path = out_path(out, ENDINGS, force or journal_of(Path(out)).exists())
    file = load_grid(grid_file)
    try:
        done = _swept(file, str(path), count, force)
    except OSError as error:
        raise click.ClickException(f"cannot write {out}: {error.strerror}") from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt(*_what_stays(path, file)) from None
    if as_json:
        click.echo(_json(done))
    else:
        _sheet(done).show()


def _what_stays(path: Path, file: GridFile) -> list[str]:
    """Return what an interrupt leaves, in words; nothing where no sweep was begun."""
    kept, cells = kept_for(path), prod(map(len, file.grid.values()))
    if kept is None:
        return []
    if not kept:
        return ["interrupted: stopped before the first answer; run again to begin anew"]
    return [f"interrupted: {kept:,} of {cells:,} kept in {journal_of(path)}; run again to go on"]


def _swept(file: GridFile, out: str, workers: int, force: bool) -> Swept:
    """Sweep, and return what became of it."""
    errors, told = [], []
    resumed: list[int] = []
    rows = 0
    start = time.perf_counter()
    with bar("sweeping") as tell, processes(workers) as executor:

        def progress(answered: int, cells: int) -> None:
            if not resumed:
                resumed.append(answered)
            tell(answered, cells)

        in_flight = None if executor is None else 2 * workers
        how: dict[str, Any] = {"in_flight": in_flight, "replace": force}
        for row in hs.sweep(file.grid, file.question, executor, out=out, progress=progress, **how):
            rows += 1
            if row["error"] is not None:
                errors.append(str(row["error"]))
            if row.get(CAUTION) is not None:
                told.append(str(row[CAUTION]))
    seconds = time.perf_counter() - start
    why, caution = (next(iter(one), None) for one in (errors, told))
    return Swept(file, out, rows, len(errors), why, len(told), caution, resumed[0], seconds)


def _json(done: Swept) -> str:
    """Return what became of a sweep as strict JSON in ASCII."""
    told = {
        "version": hs.__version__,
        "title": done.file.title,
        "find": done.file.question.find,
        "at": dict(done.file.question.at),
        "grid": {name: list(values) for name, values in done.file.grid.items()},
        "out": done.out,
        "rows": done.rows,
        "errors": done.errors,
        "first_error": done.first_error,
        "cautions": done.cautions,
        "first_caution": done.first_caution,
        "resumed": done.resumed,
        "seconds": done.seconds,
    }
    return dumped(told)


@final
@dataclass(frozen=True, slots=True)
class Swept:
    """What became of a sweep.

    Args:
        file: The grid and the question.
        out: The file that was written.
        rows: How many rows it has.
        errors: How many of them have no answer.
        first_error: Why the first of these has none.
        cautions: How many answers come with a caution.
        first_caution: The first of these.
        resumed: How many were answered before.
        seconds: What the others took.
    """

    file: GridFile
    out: str
    rows: int
    errors: int
    first_error: str | None
    cautions: int
    first_caution: str | None
    resumed: int
    seconds: float

    @property
    def rate(self) -> float:
        """Answers a second."""
        return (self.rows - self.resumed) / self.seconds


def _sheet(done: Swept) -> Sheet:
    """Return what was asked, and where the answers are."""
    sheet, file = Sheet(done.file.title), done.file
    sheet.fact("file", layout.one_line(done.out, "bold green"))
    sheet.fact("rows", f"{done.rows:,}{_beginning(done)}, in {_time(done)}")
    if done.errors:
        sheet.fact("no answer", f"in {done.errors:,} rows; first: {done.first_error}")
    if done.first_caution is not None:
        many = f"in {done.cautions:,} of {done.rows:,} rows, in the first of these:"
        sheet.fact("caution", Text(f"{many} {done.first_caution}", style="yellow"))
    places = [f"{name} = {numerals.plain(value)}" for name, value in file.question.at.items()]
    at = f" at {', '.join(places)}" if places else ""
    sheet.fact("found", file.question.find + at)
    for name, values in file.grid.items():
        many = f"{len(values)} values, {values[0]} to {values[-1]}"
        shown = ", ".join(map(str, values)) if len(values) <= 4 else many
        sheet.more("grid", f"{name}: {shown}")
    for told in file.replaced:
        sheet.fact("", told)
    return sheet


def _beginning(done: Swept) -> str:
    """Return the number of answers found in the file, if any."""
    return f", {done.resumed:,} of them answered before" if done.resumed else ""


def _time(done: Swept) -> str:
    """Return how long it took, and how many answers a second that is."""
    if done.resumed == done.rows:
        return seconds(done.seconds)
    return f"{seconds(done.seconds)}: {done.rate:,.3g} answers a second"
