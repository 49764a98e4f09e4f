"""Plans in words, as people read them."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import singledispatch
from typing import Final

from hockeystick.mechanisms import DPSGD, Composed, Mechanism, Sampling, assumptions_of
from hockeystick.numerics.numerals import plain

_NEIGHBOURS: Final = ("What is protected", "Neighbouring data sets")
# Rates that differ by less have answers that do, too.
_NOTABLE: Final = Fraction(1, 100)


def in_words(plan: Mechanism) -> tuple[str, ...]:
    """Return a plan in words, one line for each part.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.DPSGD(examples=50_000, batch_size=500, epochs=3, noise_multiplier=1)
        >>> for line in hs.answers.in_words(plan @ hs.Laplace(2)):
        ...     print(line)
        DP-SGD on 50,000 examples: Poisson batches of 500 on average (rate 0.01), noise ...
        Laplace (scale 2)
    """
    return tuple(_words(part) for part in _parts(plan))


def titled(plan: Mechanism) -> str:
    """Return what to call a plan that has no title: its first part in words.

    Example:
        >>> import hockeystick as hs
        >>> hs.answers.titled(hs.Gaussian(3) @ hs.Laplace(2))
        'Gaussian (noise multiplier 3), and 1 more'
    """
    first, *others = in_words(plan)
    return f"{first}, and {len(others)} more" if others else first


def steps_rules(plan: Mechanism) -> tuple[str, ...]:
    """Return, for each training run in a plan, its number of steps and where it comes from.

    Example:
        >>> import hockeystick as hs
        >>> hs.answers.steps_rules(hs.DPSGD(rate=0.01, steps=9, noise_multiplier=1))
        ('steps = 9, as planned',)
    """
    return tuple(part.steps_rule for part in _parts(plan) if isinstance(part, DPSGD))


def loader_notes(plan: Mechanism, *, solved: bool = False) -> tuple[str, ...]:
    """Return, for each Poisson training in a plan, the rate of a loader with batches of its size.

    Opacus samples at rate 1 / len(loader), and a loader has a whole number of batches. Nothing is
    told where that is the plan's rate, or within a hundredth of it.

    Args:
        plan: The plan.
        solved: Whether its sizes were solved for: the least difference is told, and that the rate
            is for another question.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.answers.wording import loader_notes
        >>> plan = hs.DPSGD(examples=50_000, batch_size=4096, epochs=9, noise_multiplier=1)
        >>> print(*loader_notes(plan))
        a loader with batches of 4,096 (Opacus) has ceil(50000 / 4096) = 13 of them: for it give \
rate=1/13, or with drop_last rate=1/12
    """
    trainings = (part for part in _parts(plan) if isinstance(part, DPSGD))
    least = 0 if solved else _NOTABLE
    return tuple(_loader_note(part, solved) for part in trainings if _rounding(part) > least)


def _rounding(plan: DPSGD) -> Fraction:
    """Return by what share the batches of a loader are more or fewer than one over the rate."""
    is_plain = plan.batch_schedule is None and plan.batch_cap is None
    if plan.sampling is not Sampling.POISSON or plan.batch_size is None or not is_plain:
        return Fraction(0)
    batches = Fraction(plan.examples or 0, plan.batch_size)
    return max(math.ceil(batches) / batches, batches / math.floor(batches)) - 1


def _loader_note(plan: DPSGD, solved: bool) -> str:
    """Return which rate a loader has whose batches do not divide the examples."""
    examples, size = int(plan.examples or 0), int(plan.batch_size or 1)
    batches = math.ceil(Fraction(examples, size))
    has = (
        f"a loader with batches of {size:,} (Opacus) has ceil({examples} / {size}) = {batches} of "
        "them"
    )
    rate, dropped = f"rate=1/{batches}", f"with drop_last rate=1/{batches - 1}"
    if not solved:
        return f"{has}: for it give {rate}, or {dropped}"
    # The sizes with as many batches, unless it is the only one.
    low, high = -(-examples // batches), -(-examples // (batches - 1)) - 1
    alike = f", as with {low:,} to {high:,}" if low < high else ""
    return f"{has}{alike}: for it ask hockeystick epsilon with {rate}, or {dropped}"


def protected(plan: Mechanism) -> str:
    """Return whose data a plan protects, as its assumptions or its adjacency say it.

    Example:
        >>> import hockeystick as hs
        >>> hs.answers.protected(hs.DPSGD(rate=0.01, steps=9, noise_multiplier=1))
        'Neighbouring data sets differ by one example added or removed.'
    """
    said = (text for text in assumptions_of(plan) if text.startswith(_NEIGHBOURS))
    adjacency = plan.adjacency
    general = (
        "The plan is described for any two data sets between which its numbers hold."
        if adjacency is None
        else adjacency.meaning
    )
    return next(said, general)


def _parts(plan: Mechanism) -> tuple[Mechanism, ...]:
    """Return what a plan is made of, one after the other."""
    return plan.parts if isinstance(plan, Composed) else (plan,)


@singledispatch
def _words(mechanism: Mechanism) -> str:
    """Return a mechanism in words."""
    return str(mechanism)


@_words.register
def _(plan: DPSGD) -> str:
    units = "example" if plan.examples == 1 else "examples"
    on = "" if plan.examples is None else f" on {plan.examples:,} {units}"
    if plan.examples_per_user > 1:
        on += f", up to {plan.examples_per_user:,} of one user"
    mean = " on average" if plan.sampling is Sampling.POISSON else ""
    size = "" if plan.batch_size is None else f" of {plan.batch_size:,}{mean}"
    batches = f"{plan.sampling.capitalize()} batches{size} (rate {plan.sampling_rate:.6g})"
    if plan.drop_last:
        batches += ", the rest dropped"
    extra = "" if plan.extra is None else f"; besides, {plan.extra}"
    noise = f"noise multiplier {plain(plan.noise_multiplier)}"
    return f"DP-SGD{on}: {batches}, {noise}, {_length(plan)}{_schedules(plan)}{extra}"


def _length(plan: DPSGD) -> str:
    """Return the number of steps or epochs as a plan gives it."""
    if plan.epochs is None:
        return "1 step" if plan.steps == 1 else f"{plan.steps:,} steps"
    return "1 epoch" if plan.epochs == 1 else f"{plain(plan.epochs)} epochs"


def _schedules(plan: DPSGD) -> str:
    """Return what changes from step to step, by the name of how it does."""
    changing = {"noise": plan.schedule, "batch": plan.batch_schedule}
    return "".join(
        f", {type(schedule).__name__.lower()} {name} schedule"
        for name, schedule in changing.items()
        if schedule is not None
    )
