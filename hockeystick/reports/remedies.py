"""What would meet a budget that a plan misses: one of its numbers changed, the others kept."""

from __future__ import annotations

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
    plan: Mechanism, *, epsilon: float, delta: float, quick: bool, group: int = 1
) -> tuple[str, ...]:
    """Return what would meet a budget, a sentence each: for training, with values.

    Guarantees:
        A value is rounded to its safe side: the plan with it meets the budget, provably.

    Args:
        plan: What misses the budget.
        epsilon: The budget's epsilon.
        delta: Its delta.
        quick: Whether an answer for the plan takes so little that many may be asked for.
        group: How many records together are to meet the budget: of several, a command says how.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.reports.remedies import remedies
        >>> plan = hs.DPSGD(rate=0.01, steps=1000, noise_multiplier=1)
        >>> for one in remedies(plan, epsilon=1, delta=1e-5, quick=True):
        ...     print(one)
        With noise_multiplier 1.41462 or more in place of 1 it meets that budget.
        With steps 254 or fewer in place of 1000 it meets that budget.
    """
    found = tuple(_values(plan, ApproxDP(epsilon, delta))) if quick and group == 1 else ()
    return found or _command(plan, epsilon, delta, group)


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


def _command(plan: Mechanism, epsilon: float, delta: float, group: int) -> tuple[str, ...]:
    """Return the command that finds what meets a budget; nothing where no number may change."""
    names = [spelled(path) for path in numeric_paths(plan)]
    if not names:
        return ()
    which = "" if len(names) == 1 else f", NAME being one of {', '.join(names[:_MOST_NAMED])}"
    parameter = names[0] if len(names) == 1 else "NAME"
    together = "" if group == 1 else f"--group {group} "
    asked = f"{together}--parameter {parameter} --epsilon {plain(epsilon)} --delta {plain(delta)}"
    return (f"hockeystick solve plan.toml {asked} finds what meets that budget{which}.",)
