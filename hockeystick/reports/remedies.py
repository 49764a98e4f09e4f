"""What would meet a budget that a plan misses: one of its numbers changed, the others kept."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from hockeystick.calibration import calibrate
from hockeystick.calibration.solve.fields import numeric_paths, spelled
from hockeystick.errors import HockeystickError
from hockeystick.mechanisms import DPSGD, Mechanism
from hockeystick.notions import ApproxDP
from hockeystick.numerics.numerals import plain

_MOST_NAMED: Final = 6


def remedies(
    plan: Mechanism, *, epsilon: float, delta: float, quick: bool, asked: Sequence[str] = ()
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
    """
    found = tuple(_values(plan, ApproxDP(epsilon, delta))) if quick else ()
    return found or _command(plan, epsilon, delta, asked)


def _values(plan: Mechanism, target: ApproxDP) -> Iterator[str]:
    """Yield with which noise or which length training meets a target, as far as that is found."""
    if not isinstance(plan, DPSGD):
        return
    length = "steps" if plan.steps is not None else "epochs"
    for name, side in (("noise_multiplier", "or more"), (length, "or fewer")):
        with suppress(HockeystickError):
            found = calibrate(plan, name, target)
            value = f"{found:.0f}" if name == "steps" else f"{found:.6g}"
            given = plain(float(getattr(plan, name)))
            yield f"With {name} {value} {side} in place of {given} it meets that budget."


def _command(
    plan: Mechanism, epsilon: float, delta: float, asked: Sequence[str]
) -> tuple[str, ...]:
    """Return what finds what meets a budget; nothing where no number may change.

    A command is the one that asked for epsilon with another name, so that it has file and flags.
    """
    names = [spelled(path) for path in numeric_paths(plan)]
    if not names:
        return ()
    which = "" if len(names) == 1 else f", NAME being one of {', '.join(names[:_MOST_NAMED])}"
    name = names[0] if len(names) == 1 else "NAME"
    call = f'hs.calibrate(plan, "{name}", hs.ApproxDP({plain(epsilon)}, {plain(delta)}))'
    if asked:
        line = ["hockeystick", "solve", *shlex.split(asked[0])[2:], "--parameter", name]
        call = shlex.join([*line, "--epsilon", plain(epsilon)])
    return (f"{call} finds what meets that budget{which}.",)
