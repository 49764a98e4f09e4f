"""The commands ``tradeoff`` and ``audit``: what attackers could learn, and what they did."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any, Final

import click
from rich.text import Text

import hockeystick as hs
from hockeystick import _validate
from hockeystick.cli import plans, show
from hockeystick.cli.command import command
from hockeystick.cli.progress import progress
from hockeystick.io import PlanFile, parse
from hockeystick.mechanisms import assumptions_of
from hockeystick.numerics.numerals import at_least, at_most, plain
from hockeystick.reports.audit import Audit, audited
from hockeystick.tradeoffs import TradeOff
from hockeystick.tradeoffs.plot import FORMATS, FPR, plot, require_matplotlib
from hockeystick.tradeoffs.reading import reading

_RATES: Final = (0.1, 0.05, 1e-2, 1e-3, 1e-4, 1e-5)
# Those of a curve: twenty for each power of ten, then every hundredth.
_CURVE: Final = (0.0, *(10 ** (k / 20 - 6) for k in range(100)), *(k / 100 for k in range(10, 101)))
_READ_AT: Final = 0.01
_PRIOR: Final = 0.5
_TABLE: Final = ".csv"
# What audit says without -v.
_SHOWN: Final = {"found", "claimed", "rates"}


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
    texts = fpr.replace("%", "/100").split(",") if fpr else []
    asked = tuple(dict.fromkeys(_validate.real("fpr", parse(one.strip()), FPR) for one in texts))
    rates, read_at = asked or _RATES, (*asked, _READ_AT)[0]
    path = None if out is None else show.out_path(out, (_TABLE, *FORMATS), force)
    is_picture = path is not None and path.suffix.lower() != _TABLE
    if is_picture:
        require_matplotlib()
    given = plans.sources(words, group)
    files = [one.file() for one in given]
    titles = [file.title or one.name for file, one in zip(files, given, strict=True)]
    labels = titles if len({*titles}) == len(titles) else [one.name for one in given]
    with progress("computing the trade-off"):
        curves = [hs.tradeoff(file.plan) for file in files]
        known = list(zip(labels, files, curves, strict=True))
        told = [_told(*one, rates, read_at) for one in known]
        if path is not None and is_picture:
            title = files[0].title if len(files) == 1 else None
            with show.whole(path, force) as part:
                plot(*curves, labels=labels, path=part, fpr=read_at, title=title)
        elif path is not None:
            drawn = [_told(*one, asked or _CURVE, read_at) for one in known]
            show.write_whole(path, _csv(drawn), force)
    facts: list[show.Fact] = []
    first = ["plan"] if len(files) > 1 else []
    found = show.table(*first, ">at FPR", ">TPR at most", ">FNR at least")
    for one in told:
        label = [one["label"]] if first else []
        facts += [("plan", text) for text in label]
        error = f"Bayes error at least {at_least(one['bayes_error_lower'])} at prior 1/2"
        facts += [("reading", f"{one['reading']}.")]
        facts += [("advantage", f"at most {at_most(one['advantage_upper'])}; {error}")]
        for row in one["rates"]:
            numbers = plain(row["fpr"]), at_most(row["tpr_upper"]), at_least(row["fnr_lower"])
            found.add_row(*map(show.one_line, (*label, *numbers)))
    facts += [("written to", out or "")]
    written = {"plot": out if is_picture else None, "out": None if is_picture else out}
    show.answer(
        {"version": hs.__version__, "plans": told, **written},
        facts,
        found,
        file=None if first else files[0],
        assumptions=list(dict.fromkeys(text for one in told for text in one["assumptions"])),
    )


def _told(
    label: str, file: PlanFile, f: TradeOff, rates: Sequence[float], read_at: float
) -> dict[str, Any]:
    _, *about = show.heading(file).items()
    ends = zip(rates, f.power(rates).tolist(), f(rates).tolist(), strict=True)
    return {
        "label": label,
        **dict(about),
        "adjacency": file.plan.adjacency,
        "assumptions": list(assumptions_of(file.plan)),
        "rates": [{"fpr": fpr, "tpr_upper": tpr, "fnr_lower": fnr} for fpr, tpr, fnr in ends],
        "advantage_upper": float(f.advantage),
        "bayes_error_lower": float(f.bayes_error(_PRIOR)),
        "prior": _PRIOR,
        "reading": reading(read_at, f.power(read_at)),
    }


def _csv(told: Sequence[dict[str, Any]]) -> str:
    """Return the curves as CSV: every float with all its digits, and what each row is of."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("plan", "fpr", "tpr_upper", "fnr_lower", "adjacency", "version"))
    for one in told:
        about = one["adjacency"], hs.__version__
        rows.writerows((one["label"], *row.values(), *about) for row in one["rates"])
    return text.getvalue()


@command(
    r"printf 'score,included\n2.1,1\n0.3,0\n1.7,1\n0.2,0\n' > scores.csv",
    "hockeystick audit scores.csv plan.toml",
    "hockeystick audit scores.csv --delta 1e-5 --confidence 0.99",
    takes="SCORES [PLAN] delta confidence one_run json verbose",
)
def audit(
    scores: str, given: plans.Source | None, delta: Any, confidence: Any, one_run: bool
) -> None:
    """Print what the scores of an attack prove, and whether they contradict a plan.

    SCORES has one row for each trial: the score, larger where the attack is surer that the record
    took part, and whether it did. A .csv file has columns score and included (1 or 0); an .npz file
    has arrays scores_in and scores_out; an .npy file has shape (m, 2). Each score comes from a run
    of its own; with --one-run, all from one for which each record was included by a coin.

    Exit status 0: no contradiction, which is no proof of privacy; or no plan was given. 1: refuted.
    """
    file = given and given.file()
    at = delta if delta is not None else file and file.delta
    if file is None and at is None:
        allowed = _validate.PARAMETERS["delta"].allowed
        raise click.UsageError(f"Give a plan, --delta, or both; delta must be {allowed}")
    at = None if at is None else _validate.real("delta", at)
    asked: dict[str, Any] = {"confidence": confidence, "in_one_run": one_run}
    attack = Audit(name=scores, scores=hs.audit.load_scores(scores), **asked)
    with progress("auditing"):
        found = audited(attack, plan=file and file.plan, delta=at)
    about: dict[str, Any] = {}
    if file is not None:
        about = {"title": file.title, "description": hs.calibration.describe(file.plan)}
    style = "bold red" if found.is_refuted else "bold green"
    verdict = Text.assemble((found.word, style), f" {found.sure}") if found.word else ""
    show.answer(
        {"version": hs.__version__, **about, **found.as_dict()},
        [("verdict", verdict), *(fact for fact in found.facts if fact[0] in _SHOWN)],
        file=file,
        more=[("meaning", found.meaning), *(x for x in found.facts if x[0] not in _SHOWN)],
        assumptions=found.said.assumptions,
        status=int(found.is_refuted),
    )
