"""The command ``tradeoff``: what an attacker could learn of a plan, in numbers and as a picture."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import click
from rich.text import Text

import hockeystick as hs
from hockeystick import _validate
from hockeystick.cli import command, flags, layout, of_group, plans
from hockeystick.cli.as_json import dumped, fields
from hockeystick.cli.layout import Sheet
from hockeystick.cli.out_file import out_path, picture_path, plot_flags, whole, write_whole
from hockeystick.cli.progress import waiting
from hockeystick.io import parse
from hockeystick.io.call_text import is_call_text
from hockeystick.io.plan_file import PlanFile
from hockeystick.mechanisms import assumptions_of
from hockeystick.numerics import numerals as numerals

_RATES: Final = (0.1, 0.05, 1e-2, 1e-3, 1e-4, 1e-5)
# Those of a curve: twenty for each power of ten, then every hundredth.
_CURVE: Final = (0.0, *(10 ** (k / 20 - 6) for k in range(100)), *(k / 100 for k in range(10, 101)))
_READ_AT: Final = 0.01
_NAMELESS: Final = "DP-SGD"
_FPR_HELP: Final = "False positive rates (alpha, type I error); the first is read in words."


@click.command(cls=command.Command)
@click.argument("words", metavar="[PLAN]... [NAME=VALUE]...", nargs=-1)
@of_group.group_flag
@click.option("--fpr", metavar="P,...", help=_FPR_HELP)
@click.option("-o", "--out", metavar="FILE", help="Write the numbers: a new .csv file.")
@plot_flags("the curves")
@flags.json_flag
@flags.verbose_flag
def tradeoff(
    words: tuple[str, ...],
    group: str | None,
    fpr: str | None,
    out: str | None,
    plot: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Print what an attacker could learn of plans.

    At each false positive rate, the largest true positive rate of any attack that tells whether a
    record was used, and the smallest false negative rate; all proven.
    """
    rates, read_at = _rates_of(fpr)
    picture = picture_path(plot, force)
    table = None if out is None else out_path(out, (".csv",), force)
    paths, values = plans.split(words)
    files = [plans.Words(path, values).file(group=group) for path in paths or (None,)]
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
        _sheet(attacks, plot, out).show()


def _rates_of(given: str | None) -> tuple[tuple[float, ...], float]:
    """Return the false positive rates to ask at, and the one to read in words."""
    from hockeystick.tradeoffs.plot import FPR

    texts = [] if given is None else [one.strip() for one in given.split(",")]
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


PRIOR: Final = 0.5


@final
@dataclass(frozen=True, slots=True)
class Attack:
    """What an attacker could learn of one plan: proven ends, all on the attacker's side.

    Args:
        label: What to call the plan beside others.
        file: The plan.
        tradeoff: Its trade-off function.
        rates: False positive rates.
        most_found: The largest true positive rate of any attack at each.
        least_missed: The smallest false negative rate of any attack at each.
        advantage: The most that true and false positive rate can differ.
        bayes_error: The least error of guessing at equal odds.
        reading: What holds at one false positive rate, in words.
        promises: Whether that says anything.
        assumptions: What must hold for all that.
    """

    label: str
    file: PlanFile
    tradeoff: hs.tradeoffs.TradeOff
    rates: tuple[float, ...]
    most_found: tuple[float, ...]
    least_missed: tuple[float, ...]
    advantage: float
    bayes_error: float
    reading: str
    promises: bool
    assumptions: tuple[str, ...]

    @classmethod
    def on(cls, file: PlanFile, label: str, rates: tuple[float, ...], read_at: float) -> Attack:
        """Return what an attacker could learn of a plan."""
        from hockeystick.tradeoffs.reading import is_promise, reading

        f = hs.tradeoff(file.plan)
        return cls(
            label=label,
            file=file,
            tradeoff=f,
            rates=rates,
            most_found=tuple(f.power(rates).tolist()),
            least_missed=tuple(f(rates).tolist()),
            advantage=float(f.advantage),
            bayes_error=float(f.bayes_error(PRIOR)),
            reading=reading(read_at, f.power(read_at)),
            promises=is_promise(f.power(read_at)),
            assumptions=assumptions_of(file.plan),
        )


_LEGEND: Final = (
    "FPR: false positive rate, the share that is accused of those whose records were not used. "
    "TPR: true positive rate (power), the share of the members that are found. "
    "FNR: false negative rate (beta, the type II error), the share that is missed: 1 - TPR."
)


def _sheet(attacks: Sequence[Attack], plot: str | None, out: str | None) -> Sheet:
    """Return the answer for people: facts of each plan, and a table of all."""
    alone = len(attacks) == 1
    sheet = Sheet(attacks[0].file.title if alone else None)
    for attack in attacks:
        if not alone:
            sheet.fact("plan", layout.one_line(attack.label, "bold"))
        style = "bold green" if attack.promises else "bold red"
        sheet.fact("reading", Text(f"{attack.reading}.", style=style))
        error = f"Bayes error at least {numerals.at_least(attack.bayes_error)} at prior 1/2"
        sheet.fact("advantage", f"at most {numerals.at_most(attack.advantage)}; {error}")
        if alone or sheet.is_verbose:
            sheet.plan(attack.file)
            sheet.setting(attack.file.plan.adjacency)
    several = [] if alone else ["plan"]
    table = layout.table(*several, ">at FPR", ">TPR at most", ">FNR at least")
    for attack in attacks:
        label = [] if alone else [layout.one_line(attack.label)]
        for fpr, found, missed in zip(
            attack.rates, attack.most_found, attack.least_missed, strict=True
        ):
            most = Text(numerals.at_most(found), style="bold")
            table.add_row(*label, numerals.plain(fpr), most, numerals.at_least(missed))
    sheet.block(table)
    sheet.more_block(Text(f"\n{_LEGEND}", style="dim"))
    for what, path in (("plot", plot), ("numbers", out)):
        if path is not None:
            sheet.fact(what, path)
    for attack in attacks:
        sheet.holds_if(attack.assumptions, "holds if" if alone else f"{attack.label} holds if")
    return sheet
