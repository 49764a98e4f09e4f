"""Questions to ask at each cell of a grid, which can be sent to other processes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from hockeystick import _validate
from hockeystick.accountants import delta as delta_of
from hockeystick.accountants import epsilon as epsilon_of
from hockeystick.accountants.ask import Answer
from hockeystick.accountants.base import TOLERANCE
from hockeystick.calibration.solve.calibrate import TOLERANCE as CALIBRATION_TOLERANCE
from hockeystick.calibration.solve.calibrate import Calibrated, calibrate
from hockeystick.calibration.solve.constraints import Target, constraint_of
from hockeystick.calibration.solve.fields import locate, rebuilt
from hockeystick.calibration.sweeps.cells import ACCOUNTANT
from hockeystick.errors import ParameterError
from hockeystick.io.vocabulary import ALTERNATIVES
from hockeystick.mechanisms import DPSGD, Mechanism
from hockeystick.mechanisms.base import checked

_AUTO: Final = "auto"
_ONCE: Final = "given once: leave it out of the question, or out of the grid"


@final
@dataclass(frozen=True, slots=True)
class AskEpsilon:
    """The epsilon of a plan, of which the grid sets fields.

    Called with parameters, it returns ``hs.epsilon`` of the plan with these fields, or with these
    numbers where paths lead ("inner.scale", "parts[1].epsilon"). A parameter ``delta`` is where to
    ask, unless the question has its own; a parameter ``accountant`` is which one answers. In a
    ``DPSGD``, setting ``epochs`` takes ``steps`` away, and ``rate`` takes ``batch_size``, and the
    other way round.

    Guarantees:
        Those of ``hs.epsilon``: a ``Certified`` holds the truth between its ends.

    Args:
        plan: A mechanism or plan.
        delta: In [0, 1]; None where the grid has it.
        accountant: As for ``hs.epsilon``.
        tolerance: As for ``hs.epsilon``.

    Raises:
        ParameterError: If an argument is outside its domain; when called, if a parameter is no
            field of the plan, outside its domain, or given by question and grid.

    Example:
        >>> import hockeystick as hs
        >>> ask = hs.calibration.AskEpsilon(hs.Gaussian(1.0), delta=1e-5)
        >>> ask(noise_multiplier=2.0) == hs.epsilon(hs.Gaussian(2.0), delta=1e-5)
        True
    """

    plan: Mechanism
    delta: float | None = None
    accountant: str = "auto"
    tolerance: float = TOLERANCE

    def __post_init__(self) -> None:
        """Check what is given."""
        object.__setattr__(self, "plan", checked("plan", self.plan))
        if self.delta is not None:
            _validate.real("delta", self.delta)

    def __call__(self, **parameters: Any) -> Answer:
        """Return the epsilon of the plan with these fields."""
        at = _asked_at("delta", self.delta, parameters)
        accountant = _answered_by(self.accountant, parameters)
        plan = with_fields(self.plan, parameters)
        return epsilon_of(plan, at, accountant=accountant, tolerance=self.tolerance)


@final
@dataclass(frozen=True, slots=True)
class AskDelta:
    """The delta of a plan, of which the grid sets fields.

    Called with parameters, it returns ``hs.delta`` of the plan with these fields. A parameter
    ``epsilon`` is where to ask, unless the question has its own; the rest is as for
    ``AskEpsilon``.

    Guarantees:
        Those of ``hs.delta``: a ``Certified`` holds the truth between its ends.

    Args:
        plan: A mechanism or plan.
        epsilon: In [0, inf]; None where the grid has it.
        accountant: As for ``hs.delta``.
        tolerance: As for ``hs.delta``.

    Raises:
        ParameterError: If an argument is outside its domain; when called, if a parameter is no
            field of the plan, outside its domain, or given by question and grid.

    Example:
        >>> import hockeystick as hs
        >>> ask = hs.calibration.AskDelta(hs.Gaussian(1.0), epsilon=1.0)
        >>> ask(noise_multiplier=2.0) == hs.delta(hs.Gaussian(2.0), epsilon=1.0)
        True
    """

    plan: Mechanism
    epsilon: float | None = None
    accountant: str = "auto"
    tolerance: float = TOLERANCE

    def __post_init__(self) -> None:
        """Check what is given."""
        object.__setattr__(self, "plan", checked("plan", self.plan))
        if self.epsilon is not None:
            _validate.real("epsilon", self.epsilon)

    def __call__(self, **parameters: Any) -> Answer:
        """Return the delta of the plan with these fields."""
        at = _asked_at("epsilon", self.epsilon, parameters)
        accountant = _answered_by(self.accountant, parameters)
        plan = with_fields(self.plan, parameters)
        return delta_of(plan, epsilon=at, accountant=accountant, tolerance=self.tolerance)


@final
@dataclass(frozen=True, slots=True)
class Solve:
    """The value of one parameter that meets a target; the grid sets fields of plan and target.

    Called with parameters, it returns ``hs.calibrate`` of the plan with these fields. A parameter
    that is named as a field of the target is the target's; the rest is as for ``AskEpsilon``.

    Guarantees:
        Those of ``hs.calibrate``: the plan with the value meets the target, provably.

    Args:
        plan: A mechanism or plan.
        parameter: What to solve for, as for ``hs.calibrate``.
        target: What to meet, as for ``hs.calibrate``.
        spent: A plan that already ran on the same data; both together meet the target.
        tolerance: As for ``hs.calibrate``.
        accountant: As for ``hs.calibrate``.

    Raises:
        ParameterError: If the plan, the target or what was spent is none; when called, as
            ``hs.calibrate`` does.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.DPSGD(noise_multiplier=1, examples=60_000, batch_size=256, epochs=10)
        >>> ask = hs.calibration.Solve(plan, "noise_multiplier", hs.ApproxDP(epsilon=2, delta=1e-5))
        >>> for row in hs.sweep({"epsilon": [1, 2], "epochs": [10, 20]}, ask):
        ...     print(row["epsilon"], row["epochs"], row["value"])
        1 10 1.0502...
        1 20 1.3063...
        2 10 0.7860...
        2 20 0.8895...
    """

    plan: Mechanism
    parameter: str
    target: Target
    spent: Mechanism | None = None
    tolerance: float = CALIBRATION_TOLERANCE
    accountant: str = "auto"

    def __post_init__(self) -> None:
        """Check what is given."""
        object.__setattr__(self, "plan", checked("plan", self.plan))
        constraint_of(self.target, self.accountant)
        if self.spent is not None:
            object.__setattr__(self, "spent", checked("spent", self.spent))

    def __call__(self, **parameters: Any) -> Calibrated:
        """Return the value for the plan and the target with these fields."""
        target: Any = self.target
        named = {one.name for one in dataclasses.fields(target) if one.init} & parameters.keys()
        target = dataclasses.replace(target, **{name: parameters.pop(name) for name in named})
        accountant = _answered_by(self.accountant, parameters)
        return calibrate(
            with_fields(self.plan, parameters),
            self.parameter,
            target,
            spent=self.spent,
            tolerance=self.tolerance,
            accountant=accountant,
        )


def refuse_unknown(ask: object, cell: Mapping[str, object]) -> None:
    """Raise where a question about a plan has a parameter that the plan does not have.

    Where the grid sets a mechanism, what the plan has is seen only when it is asked.
    """
    if not isinstance(ask, AskEpsilon | AskDelta | Solve):
        return
    if any(isinstance(value, Mechanism) for value in cell.values()):
        return
    plan: Any = ask.plan
    known = {field.name for field in dataclasses.fields(plan)} | _asked_for(ask)
    _answered_by(ask.accountant, dict(cell))
    for name in cell:
        if name not in known:
            _locate(ask, name)


def _locate(ask: AskEpsilon | AskDelta | Solve, name: str) -> None:
    """Raise unless a plan has a parameter; where the question has it itself, for that reason."""
    try:
        locate(ask.plan, name)
    except ParameterError:
        own = {AskEpsilon: "delta", AskDelta: "epsilon"}.get(type(ask))
        if name == own:
            raise ParameterError(name, getattr(ask, name), _ONCE) from None
        raise


def _asked_for(ask: AskEpsilon | AskDelta | Solve) -> set[str]:
    """Return the parameters of a question that are none of the plan's."""
    if isinstance(ask, Solve):
        target: Any = ask.target
        return {ACCOUNTANT, *(field.name for field in dataclasses.fields(target))}
    if isinstance(ask, AskEpsilon):
        return {ACCOUNTANT, "delta"} if ask.delta is None else {ACCOUNTANT}
    return {ACCOUNTANT, "epsilon"} if ask.epsilon is None else {ACCOUNTANT}


def with_fields(plan: Mechanism, values: Mapping[str, Any]) -> Mechanism:
    """Return a plan with other values: of its own fields, then of those that paths lead to.

    Raises:
        ParameterError: If there is no such field, or the value is outside its domain.
    """
    made: Any = plan
    own = {field.name for field in dataclasses.fields(made) if field.init}
    changes = {name: value for name, value in values.items() if name in own}
    if isinstance(plan, DPSGD):
        dropped = {ALTERNATIVES[name] for name in values if name in ALTERNATIVES}
        changes = dict.fromkeys(dropped - values.keys()) | changes
    made = dataclasses.replace(made, **changes)
    for name, value in values.items():
        if name not in own:
            made = rebuilt(made, locate(made, name), value)
    changed: Mechanism = made
    return changed


def _asked_at(name: str, given: float | None, parameters: dict[str, Any]) -> float:
    """Return where to ask: the cell's own, which it then no longer has, or else the question's."""
    if given is None and name not in parameters:
        raise ParameterError(name, None, "given, by the question or by the grid")
    return given if given is not None else float(parameters.pop(name))


def _answered_by(given: str, parameters: dict[str, Any]) -> str:
    """Return the accountant: the cell's own, which it then no longer has, or the question's."""
    if ACCOUNTANT not in parameters:
        return given
    if given != _AUTO:
        raise ParameterError(ACCOUNTANT, given, _ONCE)
    own: str = parameters.pop(ACCOUNTANT)
    return own
