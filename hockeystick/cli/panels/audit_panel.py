"""What the scores of an attack prove, for people."""

from __future__ import annotations

from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hockeystick.audit import Consistent, LowerBound, OperatingPoint, Refuted
from hockeystick.cli.panels import render
from hockeystick.cli.results.audited import Audited
from hockeystick.numerics import numerals as numerals

_DIGITS: Final = 4
_NOTHING: Final = "This attack found nothing, which does not show that there is nothing to find."
_AT_LEAST: Final = "What ran has at least this epsilon; how much more, an attack cannot show."
_REFUTED: Final = (
    "The scores contradict the plan. The plan, its implementation, the neighbouring data of the "
    "trials or an assumption below is wrong; which, they do not say."
)
_CONSISTENT: Final = (
    "The scores do not contradict the plan. This is no proof of privacy: a stronger attack, or "
    "more trials, may."
)


def panel(audited: Audited) -> RenderableType:
    """Return the panel: the verdict, what was found and claimed, and what that supposes."""
    facts = render.facts_table()
    verdict, bound = audited.verdict, audited.bound
    if verdict is not None:
        facts.add_row("verdict", _verdict(verdict))
    if bound is not None:
        facts.add_row("found", _found(bound))
    if verdict is not None and verdict.claimed_epsilon is not None:
        most = numerals.at_most(verdict.claimed_epsilon.upper)
        facts.add_row("claimed", Text(f"epsilon at most {most}, proven of the plan"))
    said = verdict or bound
    point = None if said is None else said.point
    if point is not None:
        _add_point(facts, point, None if verdict is None else verdict.claimed_tpr)
    sizes = f"{audited.scores.scores_in.size:,} in, {audited.scores.scores_out.size:,} out"
    facts.add_row("scores", render.one_line(f"{audited.name}: {sizes}"))
    if audited.file is not None:
        render.add_plan(facts, audited.file)
    if said is not None:
        facts.add_row("theorem", Text(said.theorem))
    blocks: list[RenderableType] = [facts, Text(), Text(_meaning(audited), style="dim")]
    if said is not None:
        blocks += render.listed(render.HOLDS_IF, said.assumptions)
    return render.framed(None if audited.file is None else audited.file.title, *blocks)


def _verdict(verdict: Refuted | Consistent) -> Text:
    """Return the verdict and its confidence."""
    confidence = numerals.plain(verdict.confidence)
    if isinstance(verdict, Refuted):
        return Text.assemble(("refuted", "bold red"), f"  with confidence {confidence}")
    return Text.assemble(("consistent", "bold green"), f"  at confidence {confidence}")


def _found(bound: LowerBound) -> Text:
    """Return the lower bound on epsilon."""
    least = numerals.at_least(bound.value)
    at = "" if bound.delta is None else f"  at delta = {numerals.plain(bound.delta)}"
    sure = f", with confidence {numerals.plain(bound.confidence)}"
    return Text.assemble("epsilon at least ", (least, "bold"), at, sure)


def _add_point(facts: Table, point: OperatingPoint, claimed: float | None) -> None:
    """Add the test that decides, and what the plan allows there."""
    counts = (
        f"{point.true_positives:,} of {point.in_trials:,} in, "
        f"{point.false_positives:,} of {point.out_trials:,} out called members"
    )
    facts.add_row("test", render.one_line(f"{point.rule}: {counts}"))
    rates = (
        f"TPR at least {numerals.at_least(point.tpr, _DIGITS)} "
        f"at FPR at most {numerals.at_most(point.fpr, _DIGITS)}"
    )
    if claimed is not None:
        rates += f"; the plan allows {numerals.at_most(claimed, _DIGITS)}"
    facts.add_row("rates", Text(rates))


def _meaning(audited: Audited) -> str:
    """Return what the result means and what it does not."""
    if audited.verdict is None:
        return _NOTHING if not audited.bound or not audited.bound.value else _AT_LEAST
    return _REFUTED if audited.is_refuted else _CONSISTENT
