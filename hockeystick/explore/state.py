"""What the page shows: a plan and the delta it is asked at, and what moves them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, final

from hockeystick import _validate
from hockeystick.errors import ParameterError
from hockeystick.io import PlanFile
from hockeystick.mechanisms import DPSGD, Composed, Mechanism, Sampling

USUAL: Final = PlanFile(
    plan=DPSGD(examples=60_000, batch_size=256, epochs=60, noise_multiplier=1.1),
    title="A plan to play with",
    delta=1e-5,
)
_USUAL_DELTA: Final = 1e-5
_QUESTION: Final = "delta"
_MOVABLE: Final = (
    "noise_multiplier",
    "examples",
    "batch_size",
    "rate",
    "epochs",
    "steps",
    "sampling",
    "adjacency",
)


@final
@dataclass(frozen=True, slots=True)
class State:
    """A plan, what its file says about it, and the delta at which epsilon is asked for.

    Args:
        file: The plan with its title and the like; the delta is always given.

    Example:
        >>> from hockeystick.explore import State, moved
        >>> from hockeystick.explore.state import USUAL
        >>> moved(State(USUAL), {"noise_multiplier": 2, "delta": 1e-6}).training.noise_multiplier
        2.0
    """

    file: PlanFile

    def __post_init__(self) -> None:
        if self.file.delta is None:
            object.__setattr__(self, "file", replace(self.file, delta=_USUAL_DELTA))

    @property
    def plan(self) -> Mechanism:
        """The plan."""
        return self.file.plan

    @property
    def delta(self) -> float:
        """Where epsilon is asked for."""
        return _USUAL_DELTA if self.file.delta is None else self.file.delta

    @property
    def place(self) -> int | None:
        """Where the one training run is among the parts of the plan; None without such a run."""
        places = [at for at, part in enumerate(parts_of(self.plan)) if isinstance(part, DPSGD)]
        return places[0] if len(places) == 1 else None

    @property
    def training(self) -> DPSGD | None:
        """The one training run whose numbers the page moves; None for a plan without such a run."""
        found = None if self.place is None else parts_of(self.plan)[self.place]
        return found if isinstance(found, DPSGD) else None


def parts_of(plan: Mechanism) -> tuple[Mechanism, ...]:
    """Return the parts of a composition, a single mechanism as the one part."""
    return plan.parts if isinstance(plan, Composed) else (plan,)


def moved(state: State, values: Mapping[str, Any]) -> State:
    """Return a state with other numbers: those of its training run, and delta.

    Edge cases:
        A full batch holds every example, so that its size follows from the sampling.

    Args:
        state: What was shown.
        values: The numbers and names by the names that ``DPSGD`` has for them, and ``delta``.

    Returns:
        What is to be shown.

    Raises:
        ParameterError: If a value is outside its domain, or the plan has no such number.
        IncompatibleError: If the values do not go together, as shuffled batches and
            add-remove.
    """
    asked = dict(values)
    delta = _validate.real(_QUESTION, asked.pop(_QUESTION, state.delta))
    for name in asked:
        if state.training is None or name not in _MOVABLE:
            known = _MOVABLE if state.training is not None else ()
            raise ParameterError("name", name, f"one of {', '.join((*known, _QUESTION))}")
    plan = state.plan if not asked else with_training(state, _whole(state.training, asked))
    return State(replace(state.file, plan=plan, delta=delta))


def with_training(state: State, training: DPSGD) -> Mechanism:
    """Return the plan with another training run in the place of its own."""
    parts = list(parts_of(state.plan))
    if state.place is None:
        return state.plan
    parts[state.place] = training
    return parts[0] if len(parts) == 1 else Composed(parts)


def _whole(training: DPSGD | None, values: dict[str, Any]) -> DPSGD:
    """Return a training run with other numbers; a full batch holds all examples."""
    if training is None:
        raise ParameterError("plan", None, "one with a training run")
    sampling = values.get("sampling", training.sampling)
    if sampling == Sampling.FULL_BATCH and training.rate is None:
        values["batch_size"] = values.get("examples", training.examples)
    elif sampling == Sampling.FULL_BATCH:
        values["rate"] = 1.0
    return replace(training, **values)
