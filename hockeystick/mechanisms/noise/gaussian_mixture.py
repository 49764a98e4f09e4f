"""Gaussian noise on a query that a record changes by a random amount."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.adjacency import Adjacency
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.registry import registered
from hockeystick.numerics import decimal
from hockeystick.numerics.numerals import plain

_SENSITIVITY: Final = Domain(symbol="c", low=0, high=math.inf, high_open=True, typical=(0.1, 10))
_PROBABILITY: Final = Domain(symbol="w", low=0, high=1, typical=(0.01, 0.99))
_MOST_OFF: Final = Fraction(1, 10**9)


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class GaussianMixture(Mechanism):
    """A query's answer plus Gaussian noise, where a record moves the answer by a random amount.

    With the record in the data the output is distributed as ``sum_k w_k N(c_k, s^2)``, and without
    it as ``N(0, s^2)``; s is the noise multiplier, ``c_k >= 0`` the sensitivities and w_k their
    probabilities. ``(0, 1)`` with ``(1 - q, q)`` is Poisson sampling at the rate q.

    Guarantees:
        Under add-remove and zero-out, for a scalar query that the record moves by exactly c_k with
        probability w_k, independently of all else: exact. It is an upper bound where it moves a
        vector by at most c_k in L2 norm.

    Edge cases:
        Noise multiplier 0 has infinity mass unless all sensitivities are 0; inf releases nothing.

    Args:
        noise_multiplier: Standard deviation of the noise, in units of the sensitivities, in
            [0, inf].
        sensitivities: The amounts c_k, finite numbers >= 0.
        probabilities: As many numbers w_k from 0 to 1. They are divided by their sum, which must
            be 1 to within 1e-9; each is read as the decimal that it prints as.

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Choquette-Choo, Ganesh, Steinke and Thakurta, "Privacy Amplification for Matrix
        Mechanisms", ICLR 2024, section 4 (mixture of Gaussians).

    Example:
        >>> import hockeystick as hs
        >>> print(
        ...     hs.mechanisms.GaussianMixture(
        ...         2, sensitivities=(0, 1, 2), probabilities=(0.9, 0.09, 0.01)
        ...     )
        ... )
        Gaussian with random sensitivity (noise multiplier 2, 0 at 0.9, 1 at 0.09, 2 at 0.01)
    """

    falls_with = ("noise_multiplier",)

    noise_multiplier: float
    sensitivities: tuple[float, ...]
    probabilities: tuple[float, ...]

    def __init__(
        self,
        noise_multiplier: float,
        sensitivities: Sequence[float],
        probabilities: Sequence[float],
    ) -> None:
        noise = _validate.real("noise_multiplier", noise_multiplier)
        object.__setattr__(self, "noise_multiplier", noise)
        moves = _numbers("sensitivities", sensitivities, _SENSITIVITY)
        object.__setattr__(self, "sensitivities", moves)
        chances = _numbers("probabilities", probabilities, _PROBABILITY)
        object.__setattr__(self, "probabilities", chances)
        if len(chances) != len(moves):
            allowed = f"as many numbers as there are sensitivities, {len(moves)}"
            raise ParameterError("probabilities", probabilities, allowed)
        total = sum((decimal(chance) for chance in chances), Fraction(0))
        if not 1 - _MOST_OFF <= total <= 1 + _MOST_OFF:
            raise ParameterError("probabilities", probabilities, "numbers that add up to 1")

    @property
    def adjacency(self) -> Adjacency:
        """Add-remove: one of the two data sets lacks the record."""
        return Adjacency.ADD_REMOVE

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            self.adjacency.meaning,
            "Fresh Gaussian noise is added; its standard deviation is "
            f"{plain(self.noise_multiplier)} in units of the sensitivities.",
            "How far a record moves the query's answer is random as stated, independently of the "
            "noise and of all else, and is kept secret.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        """Return the name, the noise multiplier and the sensitivities."""
        pairs = zip(self.sensitivities, self.probabilities, strict=True)
        moves = (f"{move:g} at {chance:g}" for move, chance in pairs)
        return "Gaussian with random sensitivity", (
            f"noise multiplier {self.noise_multiplier:g}",
            *moves,
        )


def _numbers(name: str, values: Sequence[float], domain: Domain) -> tuple[float, ...]:
    """Return a sequence of numbers of a domain as floats, or raise."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence) or not values:
        raise ParameterError(name, values, "a sequence of one number or more")
    return tuple(_validate.real(name, value, domain) for value in values)
