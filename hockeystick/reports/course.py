"""The stages of a plan: what has been released of it after some of its epochs, rounds or runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import final

from hockeystick.mechanisms import DPSGD, Composed, Mechanism, Repeated
from hockeystick.mechanisms.federated import FedAlphaCDP, FedCDP, FedSDP, PriFedSync
from hockeystick.release.counting import first, length_of


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


def course_of(plan: Mechanism, most: int) -> Course | None:
    """Return at most so many stages of a plan, None where it has fewer than two.

    A prefix of a composition is a composition of its first releases, so that each stage is a plan
    of its own and what it costs has been spent by then. The last one costs what the plan does. A
    schedule is cut, not rescaled: the noise of a step is what it is in the whole plan.

    Edge cases:
        One release has no stages. Of several releases together, the longest one's stages are
        taken, and the others are counted in full from the start. What is not released step by
        step, as a matrix factorization's sums are not accounted that way, has none.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.reports import course_of
        >>> course = course_of(hs.Gaussian(noise_multiplier=4) ** 10, 5)
        >>> course.unit, [after for after, _ in course.stages]
        ('runs', [1, 3, 6, 9, 10])
    """
    if isinstance(plan, Composed):
        return _of_parts(plan.parts, most)
    besides = ""
    if isinstance(plan, DPSGD):
        unit, after = _of_training(plan, most)
        besides = "" if plan.extra is None else str(plan.extra)
    elif isinstance(plan, Repeated | FedSDP | FedCDP | FedAlphaCDP | PriFedSync):
        unit = "runs" if isinstance(plan, Repeated) else "rounds"
        after = {k: k for k in _spread(length_of(plan), most)}
    else:
        return None
    stages = tuple((k, first(plan, steps)) for k, steps in after.items())
    return Course(unit, stages, besides) if len(stages) > 1 else None


def _of_parts(parts: Sequence[Mechanism], most: int) -> Course | None:
    courses = [course_of(part, most) for part in parts]
    known = [(index, one) for index, one in enumerate(courses) if one is not None]
    if not known:
        return None
    longest, course = max(known, key=lambda one: one[1].stages[-1][0])
    others = [part for index, part in enumerate(parts) if index != longest]
    stages = tuple((after, Composed((stage, *others))) for after, stage in course.stages)
    return Course(course.unit, stages, "; ".join(filter(None, (course.besides, *map(str, others)))))


def _of_training(plan: DPSGD, most: int) -> tuple[str, dict[int, int]]:
    epochs = _whole_epochs(plan)
    if epochs > 1:
        return "epochs", {k: _steps_of(plan, k) for k in _spread(epochs, most)}
    length = plan.steps_per_epoch or 1
    steps = [k * length for k in _spread(plan.total_steps // length, most)]
    return "steps", dict(zip(steps, steps, strict=True))


def _spread(last: int, most: int) -> list[int]:
    """Return at most a number of whole numbers from 1 to the last one, the others round."""
    rounds = (digit * 10**power for power in count() for digit in (1, 2, 3, 4, 5, 6, 8))
    step = 1 if last <= most else next(one for one in rounds if one * (most - 1) >= last)
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
    bare = replace(plan, epochs=epochs, steps=None, schedule=None, batch_schedule=None)
    return bare.total_steps
