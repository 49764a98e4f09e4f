"""The commands ``tradeoff`` and ``audit``: what attackers could learn, and what they did."""

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
from hockeystick.cli import plans
from hockeystick.cli.command import command
from hockeystick.cli.plans import for_group
from hockeystick.cli.progress import progress
from hockeystick.cli.show import (
    Sheet,
    fields,
    heading,
    one_line,
    out_path,
    show,
    table,
    whole,
    write_whole,
)
from hockeystick.io import PlanFile, parse
from hockeystick.io.call_text import is_call_text
from hockeystick.mechanisms import assumptions_of
from hockeystick.numerics import numerals
from hockeystick.reports.audit import Audit, Audited, audited
from hockeystick.tradeoffs.plot import FORMATS, FPR, plot, require_matplotlib
from hockeystick.tradeoffs.reading import is_promise, reading

_RATES: Final = (0.1, 0.05, 1e-2, 1e-3, 1e-4, 1e-5)
# Those of a curve: twenty for each power of ten, then every hundredth.
_CURVE: Final = (0.0, *(10 ** (k / 20 - 6) for k in range(100)), *(k / 100 for k in range(10, 101)))
_READ_AT: Final = 0.01
_PRIOR: Final = 0.5
_TABLE: Final = ".csv"


@final
@dataclass(frozen=True, slots=True)
class _Attack:
    """What an attacker could learn of one plan: proven ends, all on the attacker's side."""

    label: str
    file: PlanFile
    f: hs.tradeoffs.TradeOff
    rates: tuple[float, ...]
    read_at: float

    @property
    def rows(self) -> list[tuple[float, float, float]]:
        """At each rate, the largest true positive and the smallest false negative rate."""
        most, least = self.f.power(self.rates).tolist(), self.f(self.rates).tolist()
        return list(zip(self.rates, most, least, strict=True))

    @property
    def reading(self) -> str:
        """What holds at one false positive rate, in words."""
        return reading(self.read_at, self.f.power(self.read_at))

    def as_dict(self) -> dict[str, Any]:
        """Return the same, ready for JSON."""
        _, *about = heading(self.file).items()
        return {
            "label": self.label,
            **dict(about),
            "adjacency": self.file.plan.adjacency,
            "assumptions": list(assumptions_of(self.file.plan)),
            "rates": [
                {"fpr": fpr, "tpr_upper": found, "fnr_lower": missed}
                for fpr, found, missed in self.rows
            ],
            "advantage_upper": float(self.f.advantage),
            "bayes_error_lower": float(self.f.bayes_error(_PRIOR)),
            "prior": _PRIOR,
            "reading": self.reading,
        }


@command(
    "hockeystick tradeoff 'Gaussian(4)' --fpr 0.01",
    "hockeystick tradeoff plan.toml 'Gaussian(1)'",
    takes="PLANS fpr group out force json verbose",
    out="A new .csv file for the numbers, or .svg, .png or .pdf for the curves.",
)
def tradeoff(
    words: tuple[str, ...], fpr: str | None, group: Any, out: str | None, force: bool
) -> None:
    """Print what an attacker could learn of plans.

    At each false positive rate, the largest true positive rate of any attack that tells whether a
    record was used, and the smallest false negative rate; all proven.
    """
    texts = [] if fpr is None else [one.strip() for one in fpr.split(",")]
    asked = tuple(dict.fromkeys(_validate.real("fpr", parse(text), FPR) for text in texts))
    rates, read_at = asked or _RATES, (*asked, _READ_AT)[0]
    path = None if out is None else out_path(out, (_TABLE, *FORMATS), force)
    is_picture = path is not None and path.suffix.lower() != _TABLE
    if is_picture:
        require_matplotlib()
    names, values = plans.split(words)
    sources = [plans.Source.of(name) for name in names]
    files = [for_group(plans.plan_file(one, values), group) for one in sources or (None,)]
    with progress("computing the trade-off function" + "s" * (len(files) > 1)):
        attacks = [
            _Attack(label, file, hs.tradeoff(file.plan), rates, read_at)
            for label, file in zip(_labels(files, names), files, strict=True)
        ]
        told = [one.as_dict() for one in attacks]
        if path is not None and is_picture:
            _draw(attacks, path, force)
        elif path is not None:
            write_whole(path, _csv(attacks, asked or _CURVE), force)
    written = {"plot": out if is_picture else None, "out": None if is_picture else out}
    show(
        lambda: {"version": hs.__version__, "plans": told, **written}, lambda: _sheet(attacks, out)
    )


def _labels(files: Sequence[PlanFile], names: Sequence[str]) -> list[str]:
    """Return a label for each plan: its title or its file's name, with the path where shared."""
    if not names:
        return ["DP-SGD"]
    plain = [name if is_call_text(name) else os.path.basename(name) for name in names]
    short = [file.title or name for file, name in zip(files, plain, strict=True)]
    return [
        label if short.count(label) == 1 else f"{label} ({name})"
        for label, name in zip(short, names, strict=True)
    ]


def _draw(attacks: Sequence[_Attack], path: Path, force: bool) -> None:
    """Write the picture of all curves."""
    title = attacks[0].file.title if len(attacks) == 1 else None
    labels = [one.label for one in attacks]
    with whole(path, force) as part:
        functions = [one.f for one in attacks]
        plot(*functions, labels=labels, path=part, fpr=attacks[0].read_at, title=title)


def _csv(attacks: Sequence[_Attack], rates: Sequence[float]) -> str:
    """Return the curves as CSV: every float with all its digits, and what each row is of."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("plan", "fpr", "tpr_upper", "fnr_lower", "adjacency", "version"))
    for one in attacks:
        found, missed = one.f.power(rates).tolist(), one.f(rates).tolist()
        about = one.file.plan.adjacency, hs.__version__
        rows.writerows((one.label, *row, *about) for row in zip(rates, found, missed, strict=True))
    return text.getvalue()


def _sheet(attacks: Sequence[_Attack], out: str | None) -> Sheet:
    """Return the answer for people: facts of each plan, and a table of all."""
    sheet, is_alone = Sheet(attacks[0].file.title), len(attacks) == 1
    found = table(*[] if is_alone else ["plan"], ">at FPR", ">TPR at most", ">FNR at least")
    for one in attacks:
        style = "bold green" if is_promise(one.f.power(one.read_at)) else "bold red"
        if not is_alone:
            sheet.fact("plan", one_line(one.label, "bold"))
        sheet.fact("reading", Text(f"{one.reading}.", style=style))
        error = f"Bayes error at least {numerals.at_least(float(one.f.bayes_error(_PRIOR)))}"
        advantage = numerals.at_most(float(one.f.advantage))
        sheet.fact("advantage", f"at most {advantage}; {error} at prior 1/2")
        if is_alone or sheet.is_verbose:
            sheet.plan(one.file, one.file.plan.adjacency)
        for fpr, most, least in one.rows:
            numbers = numerals.plain(fpr), numerals.at_most(most), numerals.at_least(least)
            found.add_row(*[] if is_alone else [one_line(one.label)], *numbers)
    sheet.block(found)
    if out is not None:
        sheet.fact("written to", out)
    for one in attacks:
        label = "holds if" if is_alone else f"{one.label} holds if"
        sheet.holds_if(assumptions_of(one.file.plan), label)
    return sheet


REFUTED: Final = 1


@command(
    r"printf 'score,included\n2.1,1\n0.3,0\n1.7,1\n0.2,0\n' > scores.csv",
    "hockeystick audit scores.csv plan.toml",
    "hockeystick audit scores.csv --delta 1e-5 --confidence 0.99",
    takes="SCORES PLAN delta confidence one_run json verbose",
)
def audit(scores: str, words: tuple[str, ...], delta: Any, confidence: Any, one_run: bool) -> None:
    """Print what the scores of an attack prove, and whether they contradict a plan.

    SCORES has one row for each trial: the score, larger where the attack is surer that the record
    took part, and whether it did. A .csv file has columns score and included (1 or 0); an .npz file
    has arrays scores_in and scores_out; an .npy file has shape (m, 2). Each score comes from a run
    of its own; with --one-run, all from one for which each record was included by a coin.

    Exit status 0: no contradiction, which is no proof of privacy; or no plan was given. 1: refuted.
    """
    file = plans.plan_of(words) if words else None
    at = _delta_of(delta, file)
    asked: dict[str, Any] = {"confidence": confidence, "in_one_run": one_run}
    given = Audit(name=scores, scores=hs.audit.load_scores(scores), **asked)
    with progress("auditing"):
        found = audited(given, plan=None if file is None else file.plan, delta=at)
    about = {} if file is None else {"title": file.title, "plan": fields(file.plan)}
    show(
        lambda: {"version": hs.__version__, **about, **found.as_dict()},
        lambda: _verdict(found, file),
    )
    if found.is_refuted:
        click.get_current_context().exit(REFUTED)


def _delta_of(given: Any, file: PlanFile | None) -> float | None:
    """Return where epsilon is asked for: at the flag's delta, or else at the plan file's."""
    value = given if given is not None else None if file is None else file.delta
    if value is None and file is None:
        allowed = _validate.PARAMETERS["delta"].allowed
        raise click.UsageError(f"Give a plan, --delta, or both; delta must be {allowed}")
    return None if value is None else _validate.real("delta", value)


def _verdict(found: Audited, file: PlanFile | None) -> Sheet:
    """Return the answer for people: the verdict, what was found and claimed."""
    sheet = Sheet(None if file is None else file.title)
    if found.word:
        style = "bold red" if found.is_refuted else "bold green"
        sheet.fact("verdict", Text.assemble((found.word, style), f" {found.sure}"))
    for label, text in found.facts:
        sheet.fact(label, text)
    if file is not None:
        sheet.plan(file, file.plan.adjacency)
    sheet.more("meaning", found.meaning)
    sheet.holds_if(found.said.assumptions)
    return sheet
