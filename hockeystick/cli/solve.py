"""The command ``solve``: which value of one parameter just meets a target."""

from __future__ import annotations

import ast
from contextlib import suppress
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, Final, final

import click
from rich.text import Text

import hockeystick as hs
from hockeystick.answers import Caution, Decision, cautions, document, require_verifier
from hockeystick.calibration import Calibrated
from hockeystick.calibration.solve.calibrate import TOLERANCE
from hockeystick.calibration.solve.fields import (
    locate,
    name_of,
    numeric_paths,
    owner_of,
    spelled,
    value_at,
)
from hockeystick.calibration.solve.targets import Target, constraint_of
from hockeystick.cli import options, plans
from hockeystick.cli.command import command
from hockeystick.cli.plans import OfGroup, for_group, for_one
from hockeystick.cli.progress import progress
from hockeystick.cli.show import (
    Sheet,
    between,
    heading,
    listed,
    out_path,
    print_short,
    show,
    verdict_fields,
    write_whole,
)
from hockeystick.cli.verify import end_with, verdict_of
from hockeystick.errors import HockeystickError
from hockeystick.io import PlanFile
from hockeystick.io.plan_file import plan_text
from hockeystick.io.vocabulary import ALTERNATIVES, Blanks
from hockeystick.mechanisms import DPSGD, Mechanism, assumptions_of
from hockeystick.notions import ApproxDP
from hockeystick.numerics.numerals import jsonable
from hockeystick.results import Certified

_ATTACKS: Final = {
    name: getattr(hs.calibration, name)
    for name in ("Advantage", "TruePositiveRate", "BayesError", "Reconstruction")
}
_STYLES: Final = {"tight": "green", "bound": "yellow", "end of domain": "yellow"}


@command(
    "hockeystick solve 'Laplace()**10 @ Gaussian(4)' --epsilon 2 --delta 1e-6",
    "hockeystick solve rate=0.004 steps=14000 --epsilon 2 --delta 1e-5",
    "hockeystick solve plan.toml --parameter epochs --whole --epsilon 2 -o shorter.toml",
    takes="PLAN parameter epsilon delta target whole group tolerance accountant out force "
    "verify short json verbose",
    epsilon="Meet this epsilon; by default the plan file's.",
    delta="The delta of --epsilon; by default the plan file's.",
    out="Write the solved plan: a new .toml file.",
)
def solve(
    words: tuple[str, ...],
    parameter: str | None,
    group: Any,
    out: str | None,
    force: bool,
    verify: bool,
    tolerance: Any,
    accountant: str,
    whole: bool,
    **aim: Any,
) -> None:
    """Print the value of one parameter that just meets a target.

    It is on the safe side: the plan with it meets the target by a proven bound, and the next value,
    one tolerance step on, provably does not unless the answer says otherwise. By default the number
    is the one that the plan leaves out.
    """
    options.refuse_beside_short(verify)
    if verify:
        require_verifier()
    path = None if out is None else out_path(out, (".toml",), force)
    file, name, is_given = _unknown_of(words, parameter, group)
    if verify and isinstance(file.plan, OfGroup):
        raise click.UsageError("--verify does not know what is solved for a group: leave it out")
    if path is not None:
        plan_text(for_one(file))  # what no file can hold is refused before the work
    target = _aim(file, **aim)
    width = TOLERANCE if tolerance is None else tolerance
    how: dict[str, Any] = {"tolerance": width, "accountant": accountant, "whole": whole}
    is_short = options.is_given("short")
    with progress(f"solving for {name}"):
        found = hs.calibrate(file.plan, name, target, **how)
        planned = None
        if is_given and not is_short:
            planned = _as_planned(file.plan, name, target, accountant)
    solution = _Solution(file, name, target, found, out, planned)
    verdict = verdict_of(found) if verify else None
    if path is not None:
        write_whole(path, plan_text(for_one(solution.solved)), force)
    if is_short:
        # Whatever digits were left out, the plan would be another one than the one that is proven.
        print_short(repr(found.value))
    else:
        besides = {"verification": verdict_fields(verdict)} if verdict else {}
        show(lambda: {**solution.as_dict(), **besides}, lambda: _sheet(solution))
    end_with(verdict)


def _aim(file: PlanFile, epsilon: Any, delta: Any, target: str | None) -> Target:
    """Return the one target of the flags, or the plan file's epsilon."""
    if target is not None:
        if epsilon is not None or delta is not None:
            raise click.UsageError("give --target, or --epsilon and --delta; not both")
        attack = target.partition("(")[0].strip()
        stated: Any = plans.notion
        return _attack(attack, target) if attack in _ATTACKS else stated(target)
    wanted: Any = file.epsilon if epsilon is None else epsilon
    if wanted is None:
        raise click.UsageError("Give one target: --epsilon with --delta, or --target")
    at = options.question("delta", delta, file).value
    if at == 1:
        raise click.UsageError("delta must be below 1 to be a target; at 1, every plan meets it")
    return hs.ApproxDP(wanted, at)


def _attack(name: str, text: str) -> Target:
    """Return the bound on attacks that a text writes out, or raise."""
    try:
        call: Any = ast.parse(text.strip(), mode="eval").body
        given = [ast.literal_eval(one) for one in call.args]
        named = {one.arg: ast.literal_eval(one.value) for one in call.keywords}
        made: Target = _ATTACKS[name](*given, **named)
    except HockeystickError as error:
        raise click.UsageError(f"--target {text!r}: {error}") from None
    except (SyntaxError, TypeError, ValueError, AttributeError):
        wanted = ", ".join(signature(_ATTACKS[name]).parameters)
        raise click.UsageError(f"--target {text!r}: write {name}({wanted})") from None
    return made


def _as_planned(plan: Mechanism, parameter: str, target: Target, by: str) -> dict[str, Any] | None:
    """Return what a plan has with its own value, ready for JSON; None where no accountant says."""
    constraint = constraint_of(target, by)
    with suppress(HockeystickError):
        found = constraint.evaluate(plan)
        decision = Decision.UNDECIDED
        if constraint.meets(found):
            decision = Decision.MEETS
        elif constraint.violates(found):
            decision = Decision.MISSES
        ends = {"lower": jsonable(found.lower), "upper": jsonable(found.upper)}
        return {
            "value": jsonable(value_at(plan, locate(plan, parameter))),
            "achieved": {"quantity": found.quantity, **ends},
            "decision": str(decision),
        }
    return None


@final
@dataclass(frozen=True, slots=True)
class _Solution:
    """One answer, and what it is an answer to."""

    file: PlanFile
    parameter: str
    target: Target
    found: Calibrated
    out: str | None
    as_planned: dict[str, Any] | None

    @property
    def solved(self) -> PlanFile:
        """The plan with the value in place, to be asked at the target's delta."""
        delta = self.target.delta if isinstance(self.target, ApproxDP) else self.file.delta
        return replace(self.file, plan=self.found.plan, delta=delta)

    @property
    def cautions(self) -> tuple[Caution, ...]:
        """What whoever decides by it should know besides, of an epsilon at a delta."""
        achieved = self.found.achieved
        if not isinstance(self.target, ApproxDP) or not isinstance(achieved, Certified):
            return ()
        return cautions(achieved, self.found.plan, delta=self.target.delta)

    def as_dict(self) -> dict[str, Any]:
        """Return the same ready for JSON, a document to check; of a group, one that is none."""
        told = document(self.found)
        if isinstance(self.file.plan, OfGroup):
            told["schema"] = None
        return {
            **told,
            "out": self.out,
            **heading(replace(self.file, plan=self.found.plan)),
            "cautions": listed(self.cautions),
            "as_planned": self.as_planned,
        }


def _sheet(solution: _Solution) -> Sheet:
    """Return the answer for people: the value, what it achieves, what is proven of the next one."""
    file, found, planned = solution.file, solution.found, solution.as_planned
    sheet, style = Sheet(file.title), _STYLES[found.status]
    name = f"{found.extreme} {solution.parameter} "
    value = Text.assemble(name, (repr(found.value), "bold green"), " (", (found.status, style), ")")
    sheet.fact("solved", value)
    achieved = f"{found.achieved.quantity} {between(found.achieved.lower, found.achieved.upper)}"
    sheet.fact("target", str(solution.target))
    sheet.fact("achieved", achieved)
    if planned is not None:
        ends = between(float(planned["achieved"]["lower"]), float(planned["achieved"]["upper"]))
        own = f"{solution.parameter} {planned['value']}, {planned['achieved']['quantity']} {ends}"
        sheet.more("as planned", f"{own}: {planned['decision']}")
    sheet.more(str(found.status), found.status.meaning)
    if found.bracket[0] != found.bracket[1]:
        sheet.more("bracket", "from {!r} to {!r}".format(*found.bracket))
    sheet.plan(replace(file, plan=found.plan), found.plan.adjacency)
    if solution.out is not None:
        sheet.fact("written to", solution.out)
    sheet.cautions(solution.cautions)
    sheet.holds_if(assumptions_of(found.plan))
    return sheet


def _unknown_of(
    words: tuple[str, ...], parameter: str | None, group: str | None
) -> tuple[PlanFile, str, bool]:
    """Return a plan, what to solve for, and whether the plan gives that itself.

    In place of a number that it leaves out it has one to begin with.
    """
    wanted = None if parameter is None else parameter.replace("-", "_")
    blanks = Blanks(wanted)
    source, values = plans.read(words)
    file = for_group(plans.plan_file(source, values, blanks), group)
    left_out = [name for name in blanks.names if name not in values]
    if len(left_out) > 1:
        several = " and ".join(left_out)
        raise click.UsageError(f"The plan leaves out {several}; give all but the one to solve for")
    # The size of a group is given, and no number of the plan.
    plan = file.plan.plan if isinstance(file.plan, OfGroup) else file.plan
    if wanted is not None:
        _refuse_alternative(wanted, plan)
        locate(plan, wanted)
    elif not left_out:
        paths = ", ".join(spelled(path) for path in numeric_paths(plan))
        raise click.UsageError(f"Missing --parameter: the plan gives all its numbers, {paths}")
    if not left_out:
        return file, str(wanted), True
    named = [path for path in numeric_paths(file.plan) if name_of(path) == left_out[0]]
    found = [
        path
        for path in named
        if len(named) == 1 or any(owner_of(file.plan, path) is one for one in blanks.owners)
    ]
    if len(found) != 1:
        paths = ", ".join(spelled(path) for path in named)
        raise click.UsageError(f"Give {left_out[0]} a number, and say --parameter, one of {paths}")
    if wanted is not None and locate(file.plan, wanted) != found[0]:
        raise click.UsageError(f"The plan leaves out {left_out[0]}, and --parameter is {wanted}")
    return file, wanted or (left_out[0] if len(named) == 1 else spelled(found[0])), False


def _refuse_alternative(parameter: str, plan: Mechanism) -> None:
    """Raise where training gives epochs and steps are asked for, or the like."""
    other = ALTERNATIVES.get(parameter)
    made: Any = plan
    is_other = isinstance(plan, DPSGD) and other is not None and getattr(made, other) is not None
    if is_other and getattr(made, parameter) is None:
        raise click.UsageError(f"The plan gives {other}, not {parameter}: --parameter {other}")
