"""What is solved for in a plan: the number that is named, or the one that the plan leaves out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import click

from hockeystick.calibration.solve.fields import (
    Path,
    locate,
    name_of,
    numeric_paths,
    owner_of,
    spelled,
)
from hockeystick.cli.flags import options
from hockeystick.cli.flags.of_group import OfGroup
from hockeystick.errors import ParameterError
from hockeystick.io.building import Blanks
from hockeystick.io.plan_file import PlanFile
from hockeystick.io.vocabulary import ALTERNATIVES
from hockeystick.mechanisms import DPSGD, Mechanism

# What a plan is found to have, and no number in it: the notion that says it.
_NOTIONS: Final = {"mu": "GDP", "rho": "ZCDP"}


def unknown_of(
    plan: str | None, flags: Mapping[str, Any], parameter: str | None
) -> tuple[PlanFile, str, bool]:
    """Return a plan, what to solve for, and whether the plan gives that itself.

    In place of a number that it leaves out it has one to begin with.
    """
    wanted = None if parameter is None else parameter.replace("-", "_")
    blanks = Blanks(wanted)
    file = options.plan_of(plan, flags, blanks)
    left_out = blanks.names
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
