"""The answer of ``solve`` for people: one panel."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from hockeystick.answers import Decision, in_words
from hockeystick.calibration.solve.targets import BayesError
from hockeystick.cli.panels import render
from hockeystick.cli.results.solution import AsPlanned, Solution
from hockeystick.numerics import numerals as numerals

# What a loader rounds.
_SIZES: Final = ("batch_size", "examples")
_DECISIONS: Final = {
    Decision.MEETS: ("meets", "green"),
    Decision.MISSES: ("misses", "red"),
    Decision.UNDECIDED: ("is not shown to meet", "yellow"),
}
_STYLES: Final = {"tight": "green", "bound": "yellow", "end of domain": "yellow"}


def panel(solution: Solution) -> RenderableType:
    """Return the panel: the value, what it achieves, and what is proven of the next one."""
    file, found = solution.file, solution.found
    facts = render.facts_table()
    value = Text.assemble(f"{found.extreme} {solution.parameter} ", (_value(found.value), "bold"))
    facts.add_row("solved", value)
    if solution.parameter.endswith("epochs") and not isinstance(found.value, int):
        facts.add_row("", Text("--whole solves for whole epochs", style="dim"))
    facts.add_row("target", Text(str(solution.target)))
    facts.add_row("achieved", _achieved(solution))
    if solution.as_planned is not None:
        facts.add_row("as planned", _planned(solution, solution.as_planned))
    for caution in solution.cautions:
        facts.add_row("caution", Text(caution.text, style="yellow"))
    style = _STYLES[found.status]
    facts.add_row("proven", Text.assemble((found.status, style), f": {found.status.meaning}"))
    if found.bracket[0] != found.bracket[1]:
        low, high = found.bracket
        facts.add_row("bracket", Text(f"from {_value(low)}\nto   {_value(high)}"))
    solved_size = solution.parameter.endswith(_SIZES)
    render.add_plan(facts, replace(file, plan=found.plan), solved_size=solved_size)
    for index, line in enumerate(in_words(solution.spent.plan) if solution.spent else ()):
        facts.add_row("and" if index else "spent", Text(line))
    facts.add_row("adjacency", found.plan.adjacency or render.ANY_ADJACENCY)
    render.add_about(facts, file)
    if solution.out is not None:
        facts.add_row("written to", render.one_line(solution.out))
    rests = render.listed(render.HOLDS_IF, solution.assumptions)
    return render.framed(file.title, facts, *rests)


def _planned(solution: Solution, planned: AsPlanned) -> Text:
    """Return what the plan has as it is, by the end that decides, and whether that is enough."""
    found, decision = planned.achieved, planned.decision
    has_least = isinstance(solution.target, BayesError)
    is_missed = decision is Decision.MISSES
    if is_missed == has_least:
        end = f"at most {numerals.at_most(found.upper)}"
    else:
        end = f"at least {numerals.at_least(found.lower)}"
    words, style = _DECISIONS[decision]
    value = _value(planned.value).removesuffix(".0")
    about = f"{solution.parameter} {value}, {found.quantity} {end}: "
    return Text.assemble(about, (words, style), " the target")


def _value(value: float) -> str:
    """Return a value with all its digits, so that it can be copied."""
    return repr(value)


def _achieved(solution: Solution) -> Text:
    """Return what the plan has, rounded outward."""
    achieved = solution.found.achieved
    lower, upper = numerals.interval(achieved.lower, achieved.upper)
    if lower == upper:
        return Text(f"{achieved.quantity}: exactly {lower}")
    return Text(f"{achieved.quantity}\nat least {lower}\nat most  {upper}")
