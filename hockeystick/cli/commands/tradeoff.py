"""The command ``tradeoff``: what an attacker could learn of a plan, in numbers and as a picture."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

import hockeystick as hs
from hockeystick import _validate
from hockeystick.cli.as_json import dumped
from hockeystick.cli.describe import fields
from hockeystick.cli.flags import defaults, of_group, options
from hockeystick.cli.flags.once import Once
from hockeystick.cli.flags.out_file import out_path, picture_path, plot_flags, whole, write_whole
from hockeystick.cli.results.attack import PRIOR, Attack
from hockeystick.cli.terminal.waiting import waiting
from hockeystick.io import parse
from hockeystick.io.call_text import is_call_text
from hockeystick.io.plan_file import PlanFile

_RATES: Final = (0.1, 0.05, 1e-2, 1e-3, 1e-4, 1e-5)
# Those of a curve: twenty for each power of ten, then every hundredth.
_CURVE: Final = (0.0, *(10 ** (k / 20 - 6) for k in range(100)), *(k / 100 for k in range(10, 101)))
_READ_AT: Final = 0.01
_NAMELESS: Final = "the plan of the flags"


@click.command(cls=Once)
@options.plan_flags
@of_group.group_flag
@click.argument("more", metavar="[PLAN]...", nargs=-1)
@click.option(
    "--fpr",
    "--alpha",
    "--type-1",
    "--type-i",
    "fpr",
    multiple=True,
    metavar="P",
    help="Ask at this false positive rate (alpha, the type I error); several: 0.01,0.1. The first "
    "is read in words.",
)
@click.option(
    "-o",
    "--out",
    metavar="FILE",
    help="Write the numbers: a new .csv file with a row per rate, of --fpr or all from 0 to 1.",
)
@plot_flags("the curves")
@options.json_flag
def tradeoff(
    plan_file: str | None,
    more: tuple[str, ...],
    fpr: tuple[str, ...],
    out: str | None,
    plot: str | None,
    force: bool,
    as_json: bool,
    **flags: str | None,
) -> None:
    """Print what an attacker could learn of a plan, or of several side by side.

    At each false positive rate, the largest true positive rate of any attack that tells whether a
    record was used, and the smallest false negative rate; all proven. Flags override the [dpsgd]
    table of every plan file.
    """
    rates, read_at = _rates_of(fpr)
    picture = picture_path(plot, force)
    table = None if out is None else out_path(out, (".csv",), force)
    paths = (plan_file, *more) if plan_file is not None else ()
    known = defaults.with_adjacency(plan_file, flags)
    files = [options.plan_of(path, known) for path in paths or (None,)]
    with waiting("computing the trade-off function" + "s" * (len(files) > 1)):
        attacks = [
            Attack.on(file, label, rates, read_at)
            for file, label in zip(files, _labels(files, paths), strict=True)
        ]
        if picture is not None:
            _draw(attacks, picture, read_at, force)
        if table is not None:
            write_whole(table, _csv(attacks, rates if fpr else _CURVE), force)
    if as_json:
        click.echo(_json(attacks, plot, out))
    else:
        from hockeystick.cli.panels import render, tradeoff_table

        render.print_plainly(tradeoff_table.panel(attacks, plot, out))


def _rates_of(given: Sequence[str]) -> tuple[tuple[float, ...], float]:
    """Return the false positive rates to ask at, and the one to read in words."""
    from hockeystick.tradeoffs.plot import FPR

    texts = [part.strip() for text in given for part in text.split(",")]
    asked = dict.fromkeys(_validate.real("fpr", parse(text), FPR) for text in texts)
    return (tuple(asked), next(iter(asked))) if asked else (_RATES, _READ_AT)


def _labels(files: Sequence[PlanFile], paths: Sequence[str]) -> list[str]:
    """Return a label for each plan: its title or its file's name, with the path where shared."""
    if not paths:
        return [_NAMELESS]
    names = [path if is_call_text(path) else os.path.basename(path) for path in paths]
    short = [file.title or name for file, name in zip(files, names, strict=True)]
    return [
        label if short.count(label) == 1 else f"{label} ({path})"
        for label, path in zip(short, paths, strict=True)
    ]


def _draw(attacks: Sequence[Attack], path: Path, fpr: float, force: bool) -> None:
    """Write the picture of all curves."""
    from hockeystick.tradeoffs.plot import plot

    title = attacks[0].file.title if len(attacks) == 1 else None
    functions = [one.tradeoff for one in attacks]
    labels = [one.label for one in attacks]
    with whole(path, force) as part:
        plot(*functions, labels=labels, path=part, fpr=fpr, title=title)


def _csv(attacks: Sequence[Attack], rates: Sequence[float]) -> str:
    """Return the curves as CSV: every float with all its digits, and what each row is of."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("plan", "fpr", "tpr_upper", "fnr_lower", "adjacency", "version"))
    for one in attacks:
        found, missed = one.tradeoff.power(rates).tolist(), one.tradeoff(rates).tolist()
        about = one.file.plan.adjacency, hs.__version__
        rows.writerows((one.label, *row, *about) for row in zip(rates, found, missed, strict=True))
    return text.getvalue()


def _json(attacks: Sequence[Attack], plot: str | None, out: str | None) -> str:
    """Return what an attacker could learn as strict JSON in ASCII."""
    told = {
        "version": hs.__version__,
        "plans": [_told(one) for one in attacks],
        "plot": plot,
        "out": out,
    }
    return dumped(told)


def _told(attack: Attack) -> dict[str, Any]:
    """Return what an attacker could learn of one plan, ready for JSON."""
    file = attack.file
    return {
        "label": attack.label,
        "title": file.title,
        "source": file.source,
        "notes": file.notes,
        "plan": fields(file.plan),
        "adjacency": file.plan.adjacency,
        "assumptions": list(attack.assumptions),
        "rates": [
            {"fpr": fpr, "tpr_upper": found, "fnr_lower": missed}
            for fpr, found, missed in zip(
                attack.rates, attack.most_found, attack.least_missed, strict=True
            )
        ],
        "advantage_upper": attack.advantage,
        "bayes_error_lower": attack.bayes_error,
        "prior": PRIOR,
        "reading": attack.reading,
    }
