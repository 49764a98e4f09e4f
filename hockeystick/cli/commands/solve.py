"""The command ``solve``: which value of one parameter just meets a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

import hockeystick as hs
from hockeystick.accountants.registry import ACCOUNTANTS
from hockeystick.answers import document, require_verifier
from hockeystick.calibration.solve.calibrate import TOLERANCE
from hockeystick.calibration.solve.targets import Target
from hockeystick.cli.commands.verify import end_with, verdict_of
from hockeystick.cli.describe import fields
from hockeystick.cli.flags import asking, defaults, of_group, options
from hockeystick.cli.flags.once import Once
from hockeystick.cli.flags.out_file import out_flags, out_path, write_whole
from hockeystick.cli.flags.source import load
from hockeystick.cli.flags.unknown import unknown_of
from hockeystick.cli.results.solution import AsPlanned, Solution
from hockeystick.cli.terminal.waiting import waiting
from hockeystick.errors import ParameterError
from hockeystick.io import parse
from hockeystick.io.plan_file import PlanFile, plan_text

if TYPE_CHECKING:
    from hockeystick.verifier import Verdict

# What each kind of target is made of: the flag that asks for it, those it needs, and how.
_KINDS: Final[Mapping[str, tuple[tuple[str, ...], Callable[..., Target]]]] = {
    "epsilon": (("delta",), hs.ApproxDP),
    "mu": ((), hs.GDP),
    "rho": ((), hs.ZCDP),
    "divergence": (("order",), lambda divergence, order: hs.RenyiDP({order: divergence})),
    "advantage": ((), hs.calibration.Advantage),
    "tpr": (("fpr",), hs.calibration.TruePositiveRate),
    "bayes_error": (("prior",), hs.calibration.BayesError),
    "reconstruction": (("baseline",), hs.calibration.Reconstruction),
}
_TARGET_FLAGS: Final = {
    "epsilon": ("E", "Meet this epsilon, at --delta; by default the plan file's."),
    "delta": ("D", "The delta of --epsilon; 0 for pure differential privacy."),
    "mu": ("MU", "Meet mu-Gaussian differential privacy."),
    "rho": ("RHO", "Meet rho-zero-concentrated differential privacy."),
    "divergence": ("D", "Meet this Renyi divergence, of --order."),
    "order": ("A", "The order of --divergence."),
    "advantage": ("A", "Meet this membership advantage: true less false positive rate."),
    "tpr": ("P", "Meet this true positive rate of membership tests, at --fpr."),
    "fpr": ("P", "The false positive rate of --tpr."),
    "bayes_error": ("P", "Meet at least this error of guessing membership, at --prior."),
    "prior": ("P", "The prior probability of --bayes-error."),
    "reconstruction": ("P", "Meet this chance of reconstruction, at --baseline."),
    "baseline": ("P", "The chance without the release of --reconstruction."),
}
_ENDING: Final = ".toml"
# How the targets name what the flags give.
_ARGUMENTS: Final = {
    "advantage": "value",
    "tpr": "rate",
    "bayes_error": "value",
    "reconstruction": "probability",
}
_HELP: Final = """Print the value of one parameter with which a plan just meets a target.

The value is on the safe side: the plan with it meets the target by a proven bound, and the next
value, one tolerance step on, provably does not unless the answer says otherwise. What is solved for
is the number that the plan leaves out, or --parameter.
"""


def _target_flags(command: Any) -> Any:
    """Add the flags that say what is to be met."""
    for name, (metavar, text) in reversed(_TARGET_FLAGS.items()):
        command = click.option("--" + name.replace("_", "-"), name, metavar=metavar, help=text)(
            command
        )
    return command


@click.command(cls=Once, help=_HELP)
@options.plan_flags
@of_group.group_flag
@click.option(
    "--parameter",
    metavar="NAME",
    help="What to solve for: a number in the plan by name, or by its path, as parts[1].epsilon; by "
    "default the one that the plan leaves out.",
)
@_target_flags
@click.option("--spent", metavar="PLAN", help="What already ran on the same data.")
@click.option("--whole", is_flag=True, help="Let only whole values count: whole epochs, say.")
@click.option(
    "--tolerance",
    metavar="TOL",
    help=f"Relative width to which a real value is proven; {TOLERANCE:g} by default.",
)
@click.option(
    "--accountant",
    default="auto",
    metavar="NAME",
    help="One of " + ", ".join(n for n, a in ACCOUNTANTS.items() if a.kind != "approximation"),
)
@out_flags("Write the solved plan: a new .toml file.")
@options.verify_flag
@options.short_flag
@options.json_flag
def solve(
    plan_file: str | None,
    parameter: str | None,
    spent: str | None,
    whole: bool,
    tolerance: str | None,
    accountant: str,
    out: str | None,
    force: bool,
    verify: bool,
    short: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Print the value of one parameter with which a plan just meets a target."""
    asked = {name: flags.pop(name) for name in _TARGET_FLAGS}
    options.refuse_beside_short(short, verify=verify, as_json=as_json)
    if verify:
        require_verifier()
    path = None if out is None else out_path(out, (_ENDING,), force)
    file, name, is_given = unknown_of(
        plan_file, defaults.with_adjacency(plan_file, flags), parameter
    )
    if verify and isinstance(file.plan, of_group.OfGroup):
        size = file.plan.size
        raise click.UsageError(
            f"--verify does not know what is solved for a group: write the plan with -o FILE.toml, "
            f"and then hockeystick verify FILE.toml --group {size}"
        )
    if path is not None:
        plan_text(of_group.for_one(file))
    before = None if spent is None else of_group.for_group(load(spent), flags[of_group.NAME])
    target = _target(asked, file)
    width: Any = TOLERANCE if tolerance is None else parse(tolerance)
    with waiting(f"solving for {name}"):
        found = hs.calibrate(
            file.plan,
            name,
            target,
            spent=None if before is None else before.plan,
            tolerance=width,
            accountant=accountant,
            whole=whole,
        )
        # What is printed alone has no room for it.
        planned = None
        if is_given and not short:
            ran = None if before is None else before.plan
            planned = AsPlanned.of(file.plan, name, target, ran, accountant)
    solution = Solution(file, name, target, before, found, out, spent, planned)
    verdict = verdict_of(found) if verify else None
    if path is not None:
        write_whole(path, plan_text(of_group.for_one(solution.solved)), force)
    if short:
        # Whatever digits were left out, the plan would be another one than the one that is proven.
        click.echo(repr(found.value))
        defaults.tell()
    elif as_json:
        click.echo(_json(solution, verdict))
    else:
        from hockeystick.cli.panels import render, solution_panel

        render.print_plainly(solution_panel.panel(solution))
    end_with(verdict, as_json)


def _target(asked: Mapping[str, str | None], file: PlanFile) -> Target:
    """Return the one target of the flags, or the plan file's epsilon."""
    given = {name: parse(text) for name, text in asked.items() if text is not None}
    kinds = [name for name in _KINDS if name in given]
    if not kinds and file.epsilon is not None:
        kinds, given["epsilon"] = ["epsilon"], file.epsilon
    if len(kinds) != 1:
        names = " or ".join(f"--{name.replace('_', '-')}" for name in kinds or _KINDS)
        raise click.UsageError(f"Give one target: {names}")
    needed, make = _KINDS[kinds[0]]
    if needed == ("delta",) and "delta" not in given and file.delta is not None:
        given["delta"] = file.delta
    elif needed == ("delta",) and "delta" not in given:
        delta = defaults.default("delta")
        given |= {} if delta is None else {"delta": delta}
    if needed == ("delta",) and "delta" not in given:
        asking.question("delta", None, file)
    wrong = [name for name in needed if name not in given]
    wrong += [name for name in given if name not in (kinds[0], *needed)]
    if wrong:
        needs = " and ".join(f"--{name.replace('_', '-')}" for name in (kinds[0], *needed))
        raise click.UsageError(f"A target of {needs}: give all of that, and no other target")
    if kinds == ["epsilon"] and given["delta"] == 1:
        raise click.UsageError(
            "at delta = 1 every plan is (epsilon, delta)-DP: are --epsilon and --delta swapped?"
        )
    arguments = {_ARGUMENTS.get(name, name): name for name in given}
    try:
        return make(**{argument: given[name] for argument, name in arguments.items()})
    except ParameterError as error:
        name = arguments.get(error.name, error.name)
        raise ParameterError(name, error.value, error.allowed) from None


def _document(solution: Solution) -> dict[str, Any]:
    """Return the answer as a document; of a group, one that says of itself that it is none."""
    told = document(solution.found)
    is_checkable = not isinstance(solution.file.plan, of_group.OfGroup)
    return told if is_checkable else {**told, "schema": None}


def _json(solution: Solution, verdict: Verdict | None) -> str:
    """Return the answer as strict JSON in ASCII, a document to check."""
    from hockeystick.cli import as_json as programs

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
