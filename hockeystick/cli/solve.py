"""The command ``solve``: which value of one parameter just meets a target."""

from __future__ import annotations

import ast
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, final

import click
from rich.text import Text

import hockeystick as hs
from hockeystick.answers import Caution, Decision, cautions, document, in_words, require_verifier
from hockeystick.calibration import Calibrated
from hockeystick.calibration.solve.calibrate import TOLERANCE
from hockeystick.calibration.solve.fields import (
    Path,
    locate,
    name_of,
    numeric_paths,
    owner_of,
    spelled,
    value_at,
)
from hockeystick.calibration.solve.targets import Achieved, BayesError, Target, constraint_of
from hockeystick.cli import as_json as programs
from hockeystick.cli import command, flags, layout, of_group, plans
from hockeystick.cli.as_json import fields
from hockeystick.cli.layout import Sheet
from hockeystick.cli.of_group import OfGroup
from hockeystick.cli.out_file import out_flags, out_path, write_whole
from hockeystick.cli.progress import waiting
from hockeystick.cli.verify import end_with, verdict_of
from hockeystick.errors import HockeystickError, ParameterError
from hockeystick.io import parse
from hockeystick.io.building import Blanks
from hockeystick.io.plan_file import PlanFile, plan_text
from hockeystick.io.vocabulary import ALTERNATIVES
from hockeystick.mechanisms import DPSGD, Composed, Mechanism, assumptions_of
from hockeystick.notions import ApproxDP
from hockeystick.numerics import numerals as numerals
from hockeystick.numerics.numerals import jsonable
from hockeystick.results import Certified

if TYPE_CHECKING:
    from hockeystick.verifier import Verdict

_ATTACKS: Final = {
    one.__name__: one
    for one in (
        hs.calibration.Advantage,
        hs.calibration.TruePositiveRate,
        hs.calibration.BayesError,
        hs.calibration.Reconstruction,
    )
}
_ENDING: Final = ".toml"
_PARAMETER: Final = (
    "What to solve for, by name or path, as parts[1].epsilon; by default what the plan leaves out."
)
_TARGET: Final = (
    "Another target: a notion as 'GDP(mu=1)', or a bound on attacks as "
    "'TruePositiveRate(0.1, fpr=0.01)'."
)


@click.command(cls=command.Command)
@plans.plan_words
@of_group.group_flag
@click.option("--parameter", metavar="NAME", help=_PARAMETER)
@click.option("--epsilon", metavar="E", help="Meet this epsilon; by default the plan file's.")
@click.option("--delta", metavar="D", help="The delta of --epsilon; by default the plan file's.")
@click.option("--target", metavar="TARGET", help=_TARGET)
@click.option("--spent", metavar="PLAN", help="What already ran on the same data.")
@click.option("--whole", is_flag=True, help="Let only whole values count: whole epochs, say.")
@flags.tolerance_flag(TOLERANCE)
@flags.accountant_flag(proven=True)
@out_flags("Write the solved plan: a new .toml file.")
@flags.verify_flag
@flags.short_flag
@flags.json_flag
@flags.verbose_flag
def solve(
    words: tuple[str, ...],
    group: str | None,
    parameter: str | None,
    epsilon: str | None,
    delta: str | None,
    target: str | None,
    spent: str | None,
    whole: bool,
    tolerance: str | None,
    accountant: str,
    out: str | None,
    force: bool,
    verify: bool,
    short: bool,
    as_json: bool,
) -> None:
    """Print the value of one parameter that just meets a target.

    The value is on the safe side: the plan with it meets the target by a proven bound, and the next
    value, one tolerance step on, provably does not unless the answer says otherwise.
    """
    flags.refuse_beside_short(short, verify=verify, as_json=as_json)
    if verify:
        require_verifier()
    path = None if out is None else out_path(out, (_ENDING,), force)
    file, name, is_given = _unknown_of(plans.words_of(words), parameter, group)
    if verify and isinstance(file.plan, OfGroup):
        raise click.UsageError(
            f"--verify does not know what is solved for a group: write the plan with -o FILE.toml, "
            f"and then hockeystick verify FILE.toml --group {file.plan.size}"
        )
    if path is not None:
        plan_text(of_group.for_one(file))
    before = None if spent is None else of_group.for_group(plans.load(spent), group)
    aim = _aim(epsilon, delta, target, file)
    width: Any = TOLERANCE if tolerance is None else parse(tolerance)
    ran = None if before is None else before.plan
    with waiting(f"solving for {name}"):
        how: dict[str, Any] = {"tolerance": width, "accountant": accountant, "whole": whole}
        found = hs.calibrate(file.plan, name, aim, spent=ran, **how)
        # What is printed alone has no room for it.
        planned = None
        if is_given and not short:
            planned = AsPlanned.of(file.plan, name, aim, ran, accountant)
    solution = Solution(file, name, aim, before, found, out, spent, planned)
    verdict = verdict_of(found) if verify else None
    if path is not None:
        write_whole(path, plan_text(of_group.for_one(solution.solved)), force)
    if short:
        # Whatever digits were left out, the plan would be another one than the one that is proven.
        click.echo(repr(found.value))
        flags.tell()
    elif as_json:
        click.echo(_json(solution, verdict))
    else:
        _sheet(solution).show()
    end_with(verdict, as_json)


def _aim(epsilon: str | None, delta: str | None, target: str | None, file: PlanFile) -> Target:
    """Return the one target of the flags, or the plan file's epsilon."""
    if target is not None:
        if epsilon is not None or delta is not None:
            raise click.UsageError("give --target, or --epsilon and --delta; not both")
        stated: Any = plans.notion
        return _attack(target) or stated(target)
    wanted = file.epsilon if epsilon is None else parse(epsilon)
    if wanted is None:
        raise click.UsageError("Give one target: --epsilon with --delta, or --target")
    at = flags.question("delta", delta, file).value
    if at == 1:
        raise click.UsageError(
            "at delta = 1 every plan is (epsilon, delta)-DP: are --epsilon and --delta swapped?"
        )
    number: Any = wanted
    return hs.ApproxDP(number, at)


def _attack(text: str) -> Target | None:
    """Return the bound on attacks that a text writes out, None where it is something else."""
    name = text.partition("(")[0].strip()
    if name not in _ATTACKS:
        return None
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if not isinstance(call, ast.Call):
            raise ValueError(text)
        given = [ast.literal_eval(one) for one in call.args]
        named = {one.arg or "": ast.literal_eval(one.value) for one in call.keywords}
        return _ATTACKS[name](*given, **named)
    except (SyntaxError, TypeError, ValueError):
        wanted = ", ".join(signature(_ATTACKS[name]).parameters)
        raise click.UsageError(f"--target {text!r}: write {name}({wanted})") from None


def _document(solution: Solution) -> dict[str, Any]:
    """Return the answer as a document; of a group, one that says of itself that it is none."""
    told = document(solution.found)
    is_checkable = not isinstance(solution.file.plan, OfGroup)
    return told if is_checkable else {**told, "schema": None}


def _json(solution: Solution, verdict: Verdict | None) -> str:
    """Return the answer as strict JSON in ASCII, a document to check."""
    file, found, before = solution.file, solution.found, solution.spent
    told = {
        **_document(solution),
        "out": solution.out,
        "title": file.title,
        "source": file.source,
        "notes": file.notes,
        "plan": fields(found.plan),
        "cautions": [{"about": one.about, "text": one.text} for one in solution.cautions],
        "spent": None if before is None else fields(before.plan),
        "as_planned": None if solution.as_planned is None else solution.as_planned.as_dict(),
    }
    return programs.dumped({**told, **programs.verification(verdict)})


@final
@dataclass(frozen=True, slots=True)
class AsPlanned:
    """The value that a plan gives itself, and what the plan has with it.

    Args:
        value: That of the parameter.
        achieved: What the plan has, what was spent before included.
        decision: Whether that meets the target, by proof.
    """

    value: float
    achieved: Achieved
    decision: Decision

    @classmethod
    def of(
        cls, plan: Mechanism, parameter: str, target: Target, spent: Mechanism | None, by: str
    ) -> AsPlanned | None:
        """Return what a plan has as it is, None where no accountant says.

        Args:
            plan: The plan.
            parameter: A number in it.
            target: What is to be met.
            spent: What ran before, None for nothing.
            by: The name of the accountant.
        """
        constraint = constraint_of(target, by)
        with suppress(HockeystickError):
            found = constraint.evaluate(plan if spent is None else Composed((spent, plan)))
            if constraint.meets(found):
                decision = Decision.MEETS
            else:
                missed = constraint.violates(found)
                decision = Decision.MISSES if missed else Decision.UNDECIDED
            return cls(value_at(plan, locate(plan, parameter)), found, decision)
        return None

    def as_dict(self) -> dict[str, Any]:
        """Return the same, ready for JSON."""
        found = self.achieved
        ends = {"lower": jsonable(found.lower), "upper": jsonable(found.upper)}
        achieved = {"quantity": found.quantity, **ends}
        told = {"value": jsonable(self.value), "achieved": achieved}
        return {**told, "decision": str(self.decision)}


@final
@dataclass(frozen=True, slots=True)
class Solution:
    """One answer, and what it is an answer to.

    Args:
        file: The plan that was given.
        parameter: What was solved for, as it was given.
        target: What had to be met.
        spent: What ran before on the same data, None for nothing.
        spent_as: What was given for it.
        as_planned: What the plan has with the value that it gives itself, None where it gives none.
        found: The answer.
        out: The file into which the solved plan goes, None for none.
    """

    file: PlanFile
    parameter: str
    target: Target
    spent: PlanFile | None
    found: Calibrated
    out: str | None = None
    spent_as: str | None = None
    as_planned: AsPlanned | None = None

    @property
    def solved(self) -> PlanFile:
        """The plan with the value in place, to be asked at the target's delta."""
        delta = self.target.delta if isinstance(self.target, ApproxDP) else self.file.delta
        return replace(self.file, plan=self.found.plan, delta=delta, notes=self._notes)

    @property
    def _notes(self) -> str | None:
        """What a reader of the solved plan should know: of what ran before it, too."""
        if self.spent is None:
            return self.file.notes
        before = f"solved beside what was spent before, {self.spent_as}"
        told = f"{before}: both together meet {self.target}, this plan alone is less"
        return told if self.file.notes is None else f"{self.file.notes} ({told})"

    @property
    def cautions(self) -> tuple[Caution, ...]:
        """What whoever decides by it should know besides, of an epsilon at a delta."""
        achieved = self.found.achieved
        if not isinstance(self.target, ApproxDP) or not isinstance(achieved, Certified):
            return ()
        plan = self.found.plan if self.spent is None else self.spent.plan @ self.found.plan
        return cautions(achieved, plan, delta=self.target.delta)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the answer to apply."""
        before = () if self.spent is None else assumptions_of(self.spent.plan)
        return tuple(dict.fromkeys((*assumptions_of(self.found.plan), *before)))


# What a loader rounds.
_SIZES: Final = ("batch_size", "examples")
_DECISIONS: Final = {
    Decision.MEETS: ("meets", "green"),
    Decision.MISSES: ("misses", "red"),
    Decision.UNDECIDED: ("is not shown to meet", "yellow"),
}
_STYLES: Final = {"tight": "green", "bound": "yellow", "end of domain": "yellow"}


def _sheet(solution: Solution) -> Sheet:
    """Return the answer for people: the value, what it achieves, what is proven of the next one."""
    file, found = solution.file, solution.found
    sheet, style = Sheet(file.title), _STYLES[found.status]
    name = f"{found.extreme} {solution.parameter} "
    value = Text.assemble(name, (_value(found.value), "bold green"), " (", (found.status, style))
    sheet.fact("solved", value.append(")"))
    sheet.fact("target", str(solution.target))
    achieved = found.achieved
    ends = layout.between(achieved.lower, achieved.upper)
    sheet.fact("achieved", f"{achieved.quantity} {ends}")
    if solution.as_planned is not None:
        sheet.more("as planned", _planned(solution, solution.as_planned))
    sheet.more(str(found.status), found.status.meaning)
    if found.bracket[0] != found.bracket[1]:
        low, high = map(_value, found.bracket)
        sheet.more("bracket", f"from {low} to {high}")
    solved_size = solution.parameter.endswith(_SIZES)
    sheet.plan(replace(file, plan=found.plan), solved_size=solved_size)
    for line in in_words(solution.spent.plan) if solution.spent else ():
        sheet.fact("spent", line)
    sheet.setting(found.plan.adjacency)
    if solution.out is not None:
        sheet.fact("written to", solution.out)
    sheet.cautions(solution.cautions)
    sheet.holds_if(solution.assumptions)
    return sheet


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


# What a plan is found to have, and no number in it: the notion that says it.
_NOTIONS: Final = {"mu": "GDP", "rho": "ZCDP"}


def _unknown_of(
    words: plans.Words, parameter: str | None, group: str | None
) -> tuple[PlanFile, str, bool]:
    """Return a plan, what to solve for, and whether the plan gives that itself.

    In place of a number that it leaves out it has one to begin with.
    """
    wanted = None if parameter is None else parameter.replace("-", "_")
    blanks = Blanks(wanted)
    file = words.file(blanks, group=group)
    left_out = [name for name in blanks.names if name not in words.values]
    if len(left_out) > 1:
        places = Counter(left_out).items()
        several = " and ".join(
            f"{name} in {times} places" if times > 1 else name for name, times in places
        )
        raise click.UsageError(f"The plan leaves out {several}; give all but the one to solve for")
    # The size of a group is given, and no number of the plan.
    plan_itself = file.plan.plan if isinstance(file.plan, OfGroup) else file.plan
    if wanted is not None:
        _refuse_unknown(wanted, plan_itself)
    if not left_out:
        return file, wanted if wanted is not None else _asked_for(plan_itself), True
    path = _path_of(blanks, file.plan)
    if wanted is not None and locate(file.plan, wanted) != path:
        raise click.UsageError(f"The plan leaves out {left_out[0]}, and --parameter is {wanted}")
    return file, wanted or _shortest(file.plan, path), False


def _asked_for(plan: Mechanism) -> str:
    """Raise, since nobody says what to solve for."""
    paths = ", ".join(spelled(path) for path in numeric_paths(plan))
    first = "noise_multiplier" if "noise_multiplier" in paths.split(", ") else None
    example = "" if first is None else f"; say which may change, such as --parameter {first}"
    raise click.UsageError(f"Missing --parameter: the plan gives all its numbers, {paths}{example}")


def _path_of(blanks: Blanks, plan: Mechanism) -> Path:
    """Return where the number stands that is in place of what a plan leaves out."""
    (name,) = blanks.names
    found = [path for path in numeric_paths(plan) if name_of(path) == name]
    if len(found) > 1:
        owners = blanks.owners
        found = [path for path in found if any(owner_of(plan, path) is one for one in owners)]
    if len(found) != 1:
        paths = ", ".join(spelled(path) for path in found)
        raise click.UsageError(f"Give {name} a number, and say --parameter, one of {paths}")
    return found[0]


def _shortest(plan: Mechanism, path: Path) -> str:
    """Return the name of a number where only one has it, and else its path."""
    alike = [one for one in numeric_paths(plan) if name_of(one) == name_of(path)]
    return name_of(path) if len(alike) == 1 else spelled(path)


def _refuse_unknown(parameter: str, plan: Mechanism) -> None:
    """Raise where no number of the plan has the name, with a guess at the one that was meant."""
    other = ALTERNATIVES.get(parameter)
    made: Any = plan
    if isinstance(plan, DPSGD) and other is not None and getattr(made, other) is not None:
        given = getattr(made, parameter)
        if given is None:
            raise click.UsageError(f"The plan gives {other}, not {parameter}: --parameter {other}")
    try:
        locate(plan, parameter)
    except ParameterError as error:
        hint = ""
        if parameter in _NOTIONS:
            convert = f"hockeystick convert PLAN --to {_NOTIONS[parameter]}"
            hint = f"; for the least {parameter}: {convert}"
        raise click.UsageError(f"{error}{hint}") from None
