"""The command ``sweep``: one question at every cell of a grid, into a file."""

from __future__ import annotations

import time
from math import prod
from pathlib import Path
from typing import Any, Final

import click

import hockeystick as hs
from hockeystick import _validate
from hockeystick.calibration.sweeps.sweep import CAUTION, ENDINGS, journal_of, kept_for
from hockeystick.cli.as_json import dumped
from hockeystick.cli.flags import options
from hockeystick.cli.flags.grid_file import ASK_KEYS, GRID_KEYS, GRID_VALUES, GridFile, load_grid
from hockeystick.cli.flags.once import Once
from hockeystick.cli.flags.out_file import out_flags, out_path
from hockeystick.cli.results.swept import Swept
from hockeystick.cli.terminal.progress import bar
from hockeystick.cli.terminal.workers import WORKERS, processes
from hockeystick.io import parse

_KEYS: Final = {
    "Keys of [grid], in which the last changes fastest": GRID_KEYS,
    "Values of each": GRID_VALUES,
    "Keys of [ask]": ASK_KEYS,
}


class _WithKeys(Once):
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
@options.json_flag
def sweep(grid_file: str, out: str | None, force: bool, workers: str | None, as_json: bool) -> None:
    """Ask one question at every cell of a grid, and write the answers to a file.

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
        from hockeystick.cli.panels import render, sweep_panel

        render.print_plainly(sweep_panel.panel(done))


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
