"""The stages of a plan: what has been released of it after some of its epochs, rounds or runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Final, final

from hockeystick.mechanisms import (
    DPSGD,
    Composed,
    FedAlphaCDP,
    FedCDP,
    FedSDP,
    Mechanism,
    PriFedSync,
    Repeated,
)
from hockeystick.release.counting import first

# Fewer epochs than these are shown by their steps.
_FEWEST_EPOCHS: Final = 2


@final
@dataclass(frozen=True, slots=True)
class Course:
    """A plan, stage by stage.

    Args:
        unit: What the stages are counted in, in the plural: "epochs", "steps", "rounds", "runs".
        stages: After how many of these, and all that has been released by then, as a plan.
        besides: What is counted in full from the start, in words; empty for nothing.
    """

    unit: str
    stages: tuple[tuple[int, Mechanism], ...]
    besides: str = ""


@singledispatch
def course_of(plan: Mechanism, most: int) -> Course | None:
    """Return the stages of a plan, None where it has none.

    A prefix of a composition is a composition of its first releases, so that each stage is a plan
    of its own and what it costs has been spent by then. A schedule is cut, not rescaled: the noise
    of a step is what it is in the whole plan.

    Edge cases:
        One release has no stages. Of several releases together, the longest one's stages are
        taken, and the others are counted in full from the start. What is not released step by
        step, as a matrix factorization's sums are not accounted that way, has none.

    Args:
        plan: A mechanism or plan.
        most: The largest number of stages, at least 1.

    Returns:
        The stages, the last of which costs what the plan does; None where there are fewer than 2.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.reports import course_of
        >>> course = course_of(hs.Gaussian(noise_multiplier=4) ** 10, 5)
        >>> course.unit, [after for after, _ in course.stages]
        ('runs', [1, 3, 6, 9, 10])
    """
    return None


@course_of.register
def _(plan: Repeated, most: int) -> Course | None:
    return _course("runs", [(k, first(plan, k)) for k in _spread(plan.count, most)])


@course_of.register
def _(plan: Composed, most: int) -> Course | None:
    courses = [course_of(part, most) for part in plan.parts]
    known = [(index, one) for index, one in enumerate(courses) if one is not None]
    if not known:
        return None
    longest, course = max(known, key=lambda one: one[1].stages[-1][0])
    others = [part for index, part in enumerate(plan.parts) if index != longest]
    stages = tuple((after, Composed((stage, *others))) for after, stage in course.stages)
    words = "; ".join(filter(None, (course.besides, *map(str, others))))
    return Course(course.unit, stages, words)


@course_of.register
def _(plan: DPSGD, most: int) -> Course | None:
    besides = "" if plan.extra is None else str(plan.extra)
    length = plan.steps_per_epoch or 1
    epochs = _whole_epochs(plan)
    if epochs >= _FEWEST_EPOCHS:
        unit, counts = "epochs", {k: _steps_of(plan, k) for k in _spread(epochs, most)}
    else:
        unit = "steps"
        counts = {k * length: k * length for k in _spread(plan.total_steps // length, most)}
    stages = [(after, first(plan, steps)) for after, steps in counts.items()]
    return _course(unit, stages, besides)


@course_of.register(FedSDP)
@course_of.register(FedCDP)
@course_of.register(FedAlphaCDP)
@course_of.register(PriFedSync)
def _(plan: FedSDP | FedCDP | FedAlphaCDP | PriFedSync, most: int) -> Course | None:
    return _course("rounds", [(k, first(plan, k)) for k in _spread(plan.rounds, most)])


def _course(unit: str, stages: Sequence[tuple[int, Mechanism]], besides: str = "") -> Course | None:
    """Return a course of at least two stages, None where there are fewer."""
    return Course(unit, tuple(stages), besides) if len(stages) > 1 else None


def _spread(last: int, most: int) -> list[int]:
    """Return at most a number of whole numbers from 1 to the last one, the others round."""
    step, power = 1, 1
    while step * (most - 1) < last and last > most:
        # The next round number: 2, 3, 4, 5, 6, 8, 10, 20, ...
        digit = step // power
        step = (digit + (2 if digit in (6, 8) else 1)) * power
        power = 10 * power if step == 10 * power else power
    return sorted({1, *range(step, last + 1, step), last} if last > 0 else set())


def _whole_epochs(plan: DPSGD) -> int:
    """Return how many whole epochs a training run has, 0 where its end is not one of them."""
    if plan.epochs is not None:
        return int(plan.epochs) if plan.epochs == int(plan.epochs) else 0
    if not plan.sampling_rate:
        return 0
    epochs = round(plan.total_steps * plan.sampling_rate)
    ends_there = epochs and _steps_of(plan, epochs) == plan.total_steps
    return epochs if ends_there else 0


def _steps_of(plan: DPSGD, epochs: int) -> int:
    """Return the number of steps of a number of epochs, as the plan counts them."""
    bare = replace(plan, epochs=epochs, steps=None, schedule=None, batch_schedule=None)
    return bare.total_steps
