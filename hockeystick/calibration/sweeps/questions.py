"""Questions to ask at each cell of a grid, which can be sent to other processes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, final

from hockeystick import _validate
from hockeystick.accountants import delta as delta_of
from hockeystick.accountants import epsilon as epsilon_of
from hockeystick.accountants.base import TOLERANCE
from hockeystick.calibration.solve.calibrate import TOLERANCE as CALIBRATION_TOLERANCE
from hockeystick.calibration.solve.calibrate import Calibrated, calibrate
from hockeystick.calibration.solve.fields import locate, rebuilt
from hockeystick.calibration.solve.targets import Target, constraint_of
from hockeystick.errors import ParameterError
from hockeystick.io.codec import ALTERNATIVES
from hockeystick.mechanisms import DPSGD, Mechanism
from hockeystick.mechanisms.base import checked

ACCOUNTANT: Final = "accountant"
_ONCE: Final = "given once: leave it out of the question, or out of the grid"


def with_fields(plan: Mechanism, values: Mapping[str, Any]) -> Mechanism:
    """Return a plan with other values: of its own fields, then of those that paths lead to."""
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


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about a plan, of which the grid sets fields."""

    plan: Mechanism
    # Where it asks: the question says so, or the grid.
    asked_at: ClassVar[str] = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "plan", checked("plan", self.plan))
        if self.asked_at and getattr(self, self.asked_at) is not None:
            _validate.real(self.asked_at, getattr(self, self.asked_at))

    def refuse_unknown(self, cell: Mapping[str, Any]) -> None:
        """Raise where a cell has a parameter that neither the plan nor the question has."""
        if any(isinstance(value, Mechanism) for value in cell.values()):
            return
        plan: Any = self.plan
        fields = {field.name for field in dataclasses.fields(plan)}
        for name in self._parted(cell)[1].keys() - fields:
            try:
                locate(self.plan, name)
            except ParameterError:
                if name == self.asked_at:
                    raise ParameterError(name, getattr(self, name), _ONCE) from None
                raise

    def _parted(self, cell: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        given: Any = self
        if ACCOUNTANT in cell and given.accountant != "auto":
            raise ParameterError(ACCOUNTANT, given.accountant, _ONCE)
        own = {ACCOUNTANT} | self._open()
        said = {name: value for name, value in cell.items() if name in own}
        return said, {name: value for name, value in cell.items() if name not in own}

    def _open(self) -> set[str]:
        """Return what the grid may say of the question besides the accountant."""
        return {self.asked_at} if getattr(self, self.asked_at) is None else set()

    def __call__(self, **parameters: Any) -> Any:
        given: Any = self
        own, fields = self._parted(parameters)
        at = own.get(self.asked_at, getattr(self, self.asked_at))
        if at is None:
            raise ParameterError(self.asked_at, None, "given, by the question or by the grid")
        ask: Any = epsilon_of if self.asked_at == "delta" else delta_of
        how = {ACCOUNTANT: own.get(ACCOUNTANT, given.accountant), "tolerance": given.tolerance}
        return ask(with_fields(self.plan, fields), **{self.asked_at: float(at)}, **how)


@final
@dataclass(frozen=True, slots=True)
class AskEpsilon(Question):
    """The epsilon of a plan, of which the grid sets fields.

    Called with parameters, it returns ``hs.epsilon`` of the plan with these fields, or with these
    numbers where paths lead ("inner.scale", "parts[1].epsilon"). A parameter ``delta`` is where to
    ask, unless the question has its own; a parameter ``accountant`` is which one answers. In a
    ``DPSGD``, setting ``epochs`` takes ``steps`` away, and ``rate`` takes ``batch_size``, and the
    other way round.

    Args:
        plan: A mechanism or plan.
        delta: In [0, 1]; None where the grid has it.
        accountant: As for ``hs.epsilon``, as is ``tolerance``.

    Example:
        >>> import hockeystick as hs
        >>> ask = hs.calibration.AskEpsilon(hs.Gaussian(1.0), delta=1e-5)
        >>> ask(noise_multiplier=2.0) == hs.epsilon(hs.Gaussian(2.0), delta=1e-5)
        True
    """

    delta: float | None = None
    accountant: str = "auto"
    tolerance: float = TOLERANCE
    asked_at: ClassVar[str] = "delta"


@final
@dataclass(frozen=True, slots=True)
class AskDelta(Question):
    """The delta of a plan, of which the grid sets fields.

    Called with parameters, it returns ``hs.delta`` of the plan with these fields. A parameter
    ``epsilon``, in [0, inf], is where to ask, unless the question has its own; the rest is as for
    ``AskEpsilon``.

    Example:
        >>> import hockeystick as hs
        >>> ask = hs.calibration.AskDelta(hs.Gaussian(1.0), epsilon=1.0)
        >>> ask(noise_multiplier=2.0) == hs.delta(hs.Gaussian(2.0), epsilon=1.0)
        True
    """

    epsilon: float | None = None
    accountant: str = "auto"
    tolerance: float = TOLERANCE
    asked_at: ClassVar[str] = "epsilon"


@final
@dataclass(frozen=True, slots=True)
class Solve(Question):
    """The value of one parameter that meets a target; the grid sets fields of plan and target.

    Called with parameters, it returns ``hs.calibrate`` of the plan with these fields. A parameter
    that is named as a field of the target is the target's; the rest is as for ``AskEpsilon``.

    Arguments, errors and the guarantee are those of ``hs.calibrate``.

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

    parameter: str
    target: Target
    spent: Mechanism | None = None
    tolerance: float = CALIBRATION_TOLERANCE
    accountant: str = "auto"

    def __post_init__(self) -> None:
        Question.__post_init__(self)
        constraint_of(self.target, self.accountant)
        if self.spent is not None:
            object.__setattr__(self, "spent", checked("spent", self.spent))

    def _open(self) -> set[str]:
        target: Any = self.target
        return {one.name for one in dataclasses.fields(target) if one.init}

    def __call__(self, **parameters: Any) -> Calibrated:
        own, fields = self._parted(parameters)
        accountant = own.pop(ACCOUNTANT, self.accountant)
        return calibrate(
            with_fields(self.plan, fields),
            self.parameter,
            dataclasses.replace(self.target, **own),
            spent=self.spent,
            tolerance=self.tolerance,
            accountant=accountant,
        )
