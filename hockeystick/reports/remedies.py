"""What would meet a budget that a plan misses: one of its numbers changed, the others kept."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from hockeystick.calibration import calibrate
from hockeystick.calibration.solve.fields import Path, name_of, numeric_paths, owner_of, spelled
from hockeystick.errors import HockeystickError
from hockeystick.mechanisms import DPSGD, Mechanism, Repeated
from hockeystick.notions import ApproxDP
from hockeystick.numerics.numerals import plain

_MOST_NAMED: Final = 6


def remedies(
    plan: Mechanism,
    *,
    epsilon: float,
    delta: float,
    quick: bool,
    asked: Sequence[str] = (),
    has_file: bool = False,
) -> tuple[str, ...]:
    """Return what would meet a budget, a sentence each: for training, with values.

    Guarantees:
        A value is rounded to its safe side: the plan with it meets the budget, provably.

    Args:
        plan: What misses the budget.
        epsilon: The budget's epsilon.
        delta: Its delta.
        quick: Whether an answer for the plan takes so little that many may be asked for.
        asked: The command that asks for epsilon, with file and flags, first; empty where none does.
        has_file: Whether the plan is in a file, whose keys are named where they are others.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.reports.remedies import remedies
        >>> plan = hs.DPSGD(rate=0.01, steps=1000, noise_multiplier=1)
        >>> for one in remedies(plan, epsilon=1, delta=1e-5, quick=True):
        ...     print(one)
        With noise_multiplier 1.41462 or more in place of 1 it meets that budget.
        With steps 254 or fewer in place of 1000 it meets that budget.
    """
    found = tuple(_values(plan, ApproxDP(epsilon, delta))) if quick else ()
    return found or _command(plan, epsilon, delta, asked, has_file)


def _values(plan: Mechanism, target: ApproxDP) -> list[str]:
    """Return with which noise or which length training meets a target, as far as that is found."""
    told: list[str] = []
    if not isinstance(plan, DPSGD):
        return told
    length = "steps" if plan.steps is not None else "epochs"
    for name, side in (("noise_multiplier", "or more"), (length, "or fewer")):
        with suppress(HockeystickError):
            found = calibrate(plan, name, target)
            value = f"{found:.0f}" if name == "steps" else f"{found:.6g}"
            given = plain(float(getattr(plan, name)))
            told.append(f"With {name} {value} {side} in place of {given} it meets that budget.")
    return told


def _command(
    plan: Mechanism, epsilon: float, delta: float, asked: Sequence[str], has_file: bool
) -> tuple[str, ...]:
    """Return what finds what meets a budget; nothing where no number may change.

    A command is the one that asked for epsilon with another name, so that it has file and flags.
    """
    paths = numeric_paths(plan)
    if not paths:
        return ()
    names = [_shortest(plan, path) for path in paths]
    in_file = [_in_file(plan, path) if has_file else "" for path in paths]
    told = [f"{name}{besides}" for name, besides in zip(names, in_file, strict=True)]
    which = "" if len(names) == 1 else f", NAME being one of {', '.join(told[:_MOST_NAMED])}"
    parameter = names[0] if len(names) == 1 else "NAME"
    if asked:
        line = ["solve", *shlex.split(asked[0])[2:], "--parameter", parameter]
        call = shlex.join(["hockeystick", *line, "--epsilon", plain(epsilon)])
    else:
        target = f"hs.ApproxDP({plain(epsilon)}, {plain(delta)})"
        call = f'hs.calibrate(plan, "{parameter}", {target})'
    return (f"{call} finds what meets that budget{which}.",)


def _in_file(plan: Mechanism, path: Path) -> str:
    """Return how a plan file calls a number that is called otherwise there."""
    is_repeat = isinstance(owner_of(plan, path), Repeated) and name_of(path) == "count"
    return " (repeat in the file)" if is_repeat else ""


def _shortest(plan: Mechanism, path: Path) -> str:
    """Return the name of a number where only one has it, and else its path."""
    alike = [one for one in numeric_paths(plan) if name_of(one) == name_of(path)]
    return name_of(path) if len(alike) == 1 else spelled(path)
