"""The command ``solve``: which value of one parameter just meets a target."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from inspect import signature
from typing import Any, Final, cast

import click
from rich.text import Text

import hockeystick as hs
from hockeystick.answers import Caution, Decision, cautions, document
from hockeystick.calibration import Calibrated
from hockeystick.calibration.solve import fields
from hockeystick.calibration.solve.targets import Target, constraint_of
from hockeystick.cli import options, plans, show
from hockeystick.cli.asking import verdict_of
from hockeystick.cli.command import command
from hockeystick.cli.plans import OfGroup, Source, for_one
from hockeystick.cli.progress import progress
from hockeystick.errors import HockeystickError
from hockeystick.io import PlanFile
from hockeystick.io.plan_file import plan_text
from hockeystick.io.vocabulary import Blanks
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import ApproxDP
from hockeystick.results import Certified

_ATTACKS: Final = {
    name: getattr(hs.calibration, name)
    for name in ("Advantage", "TruePositiveRate", "BayesError", "Reconstruction")
}


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
    given: Source,
    parameter: str | None,
    out: str | None,
    force: bool,
    verify: bool,
    epsilon: Any,
    delta: Any,
    target: str | None,
    **how: Any,
) -> None:
    """Print the value of one parameter that just meets a target.

    It is on the safe side: the plan with it meets the target by a proven bound, and the next value,
    one tolerance step on, provably does not unless the answer says otherwise. By default the number
    is the one that the plan leaves out.
    """
    options.check_forms(verify)
    path = None if out is None else show.out_path(out, (".toml",), force)
    file, name, is_given = _unknown_of(given, parameter)
    is_group, is_short = isinstance(file.plan, OfGroup), options.is_given("short")
    if verify and is_group:
        raise click.UsageError("--verify does not know what is solved for a group: leave it out")
    if path is not None:
        plan_text(for_one(file))  # what no file can hold is refused before the work
    aim, planned = _aim(file, epsilon, delta, target), None
    with progress(f"solving for {name}"):
        asked = {name: value for name, value in how.items() if value is not None}
        found = hs.calibrate(file.plan, name, aim, **asked)
        if is_given and not is_short:
            planned = _as_planned(file.plan, name, aim, how["accountant"])
    verdict = verdict_of(found) if verify else None
    stated = aim if isinstance(aim, ApproxDP) else None
    solved = replace(file, plan=found.plan, delta=stated.delta if stated else file.delta)
    if path is not None:
        show.write_whole(path, plan_text(for_one(solved)), force)
    if is_short:
        # Whatever digits were left out, the plan would be another one than the one that is proven.
        show.print_short(repr(found.value))
    told = {**document(found), **show.heading(solved), "out": out, "as_planned": planned}
    told |= {"schema": None} if is_group else {}
    warned: tuple[Caution, ...] = ()
    if stated and isinstance(found.achieved, Certified):
        warned = cautions(found.achieved, found.plan, delta=stated.delta)
    told |= {"cautions": warned}
    told |= {} if verdict is None else {"verification": show.verdict_fields(verdict)}
    facts, more = _facts(name, found, out), _more(name, found, planned)
    show.answer(told, facts, file=solved, cautions=warned, more=more, verdict=verdict)


def _aim(file: PlanFile, epsilon: Any, delta: Any, target: str | None) -> Target:
    """Return the one target of the flags, or the plan file's epsilon."""
    if target is not None:
        if epsilon is not None or delta is not None:
            raise click.UsageError("give --target, or --epsilon and --delta; not both")
        attack = target.partition("(")[0].strip()
        aim: Any = _attack(attack, target) if attack in _ATTACKS else plans.notion(target)
        return cast(Target, aim)
    wanted: Any = file.epsilon if epsilon is None else epsilon
    if wanted is None:
        raise click.UsageError("Give one target: --epsilon with --delta, or --target")
    at = options.question(file, delta=delta).value
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
    except (SyntaxError, TypeError, ValueError, AttributeError) as error:
        wanted = ", ".join(signature(_ATTACKS[name]).parameters)
        raise click.UsageError(f"--target {text!r}: {error}; write {name}({wanted})") from None
    return made


def _as_planned(plan: Mechanism, parameter: str, target: Target, by: str) -> dict[str, Any] | None:
    """Return what a plan has with its own value, ready for JSON; None where no accountant says."""
    constraint = constraint_of(target, by)
    try:
        found = constraint.evaluate(plan)
    except HockeystickError:
        return None
    misses = Decision.MISSES if constraint.violates(found) else Decision.UNDECIDED
    return {
        "value": fields.value_at(plan, fields.locate(plan, parameter)),
        "achieved": {"quantity": found.quantity, "lower": found.lower, "upper": found.upper},
        "decision": str(Decision.MEETS if constraint.meets(found) else misses),
    }


def _facts(name: str, found: Calibrated, out: str | None) -> Iterator[show.Fact]:
    """Yield the value, and what it achieves."""
    value, achieved = (repr(found.value), "bold green"), found.achieved
    yield "solved", Text.assemble(f"{found.extreme} {name} ", value, f" ({found.status})")
    yield "target", str(found.target)
    yield "achieved", f"{achieved.quantity} {show.between(achieved.lower, achieved.upper)}"
    yield "written to", out or ""


def _more(name: str, found: Calibrated, planned: dict[str, Any] | None) -> Iterator[show.Fact]:
    """Yield what is proven of the next value, and what the plan has with its own."""
    yield str(found.status), found.status.meaning
    yield "bracket", "from {!r} to {!r}".format(*found.bracket)
    if planned is not None:
        ends = show.between(planned["achieved"]["lower"], planned["achieved"]["upper"])
        own = f"{name} {planned['value']}, {found.achieved.quantity} {ends}"
        yield "as planned", f"{own}: {planned['decision']}"


def _unknown_of(given: Source, parameter: str | None) -> tuple[PlanFile, str, bool]:
    """Return a plan, what to solve for, and whether the plan gives that itself.

    In place of a number that it leaves out it has one to begin with.
    """
    wanted = parameter and parameter.replace("-", "_")
    blanks = Blanks(wanted)
    file = given.file(blanks)
    left_out = [name for name in blanks.names if name not in given.values]
    if len(left_out) > 1:
        several = " and ".join(left_out)
        raise click.UsageError(f"The plan leaves out {several}; give all but the one to solve for")
    # The size of a group is given, and no number of the plan.
    plan = file.plan.plan if isinstance(file.plan, OfGroup) else file.plan
    if wanted is not None:
        fields.locate(plan, wanted)
    elif not left_out:
        paths = ", ".join(map(fields.spelled, fields.numeric_paths(plan)))
        raise click.UsageError(f"Say --parameter, the number to solve for, one of {paths}")
    if not left_out:
        return file, str(wanted), True
    (name,) = left_out
    named = [x for x in fields.numeric_paths(file.plan) if fields.name_of(x) == name]
    own = [x for x in named if any(fields.owner_of(file.plan, x) is one for one in blanks.owners)]
    found = named if len(named) == 1 else own
    if len(found) != 1:
        paths = ", ".join(map(fields.spelled, named))
        raise click.UsageError(f"Give {name} a number, and say --parameter, one of {paths}")
    if wanted is not None and fields.locate(file.plan, wanted) != found[0]:
        raise click.UsageError(f"The plan leaves out {name}, and --parameter is {wanted}")
    return file, wanted or (name if len(named) == 1 else fields.spelled(found[0])), False
