"""The staircase mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.registry import registered
from hockeystick.numerics.numerals import plain

_GAMMA: Final = Domain(symbol="gamma", low=0, high=1, low_open=True, typical=(0.05, 0.95))


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class Staircase(Mechanism):
    """A number plus staircase noise, which among all that is epsilon-DP errs the least.

    The density of the noise is ``a`` where ``|x| < gamma``, in units of the query's sensitivity,
    and falls by the factor ``e^-epsilon`` at gamma, 1 + gamma, 2 + gamma, ..., with
    ``a = (1 - e^-epsilon) / (2 (gamma + e^-epsilon (1 - gamma)))``. It is epsilon-DP.

    Guarantees:
        Exact for a scalar query that reaches its sensitivity: neighbours at that distance cost the
        most at every epsilon. Its cost is below that of randomized response with the same epsilon,
        unless gamma is 1/2, where the two are the same.

    Edge cases:
        Epsilon 0 releases nothing. With epsilon inf the noise is uniform between -gamma and gamma;
        by default it is none.

    Args:
        epsilon: Logarithm of the ratio of two neighbouring steps, in [0, inf].
        gamma: Half the width of the highest step, in (0, 1]; None for ``1/(1 + e^(epsilon/2))``,
            with which the mean absolute error is the least.

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Geng and Viswanath, "The Optimal Mechanism in Differential Privacy", ISIT 2014 (definition
        and, for the absolute error, gamma).

    Example:
        >>> import hockeystick as hs
        >>> print(f"{hs.delta(hs.mechanisms.Staircase(epsilon=2.0), epsilon=1).upper:.12f}")
        0.515848479861
    """

    rises_with = ("epsilon",)
    unordered = ("gamma",)

    epsilon: float
    gamma: float | None = None

    def __init__(self, epsilon: float, gamma: float | None = None) -> None:
        object.__setattr__(self, "epsilon", _validate.real("epsilon", epsilon))
        given = None if gamma is None else _validate.real("gamma", gamma, _GAMMA)
        object.__setattr__(self, "gamma", given)

    @property
    def adjacency(self) -> None:
        """None: the description holds for whichever adjacency the sensitivity was taken under."""
        return None

    @property
    def assumptions(self) -> tuple[str, ...]:
        steps = "1/(1 + e^(epsilon/2))" if self.gamma is None else plain(self.gamma)
        return (
            f"Fresh staircase noise (epsilon {plain(self.epsilon)}, gamma {steps}) is added, in "
            "units of the scalar query's sensitivity.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        shape = () if self.gamma is None else (f"gamma {self.gamma:g}",)
        return "staircase", (f"epsilon {self.epsilon:g}", *shape)
