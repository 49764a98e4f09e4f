"""Randomized response."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.mechanisms.base import AnyAdjacency
from hockeystick.mechanisms.registry import registered
from hockeystick.mechanisms.scope import EVERYBODY_REPORTS, Fact
from hockeystick.numerics.numerals import plain

_CATEGORIES: Final = whole_numbers("K", 2, (2, 1000))


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class RandomizedResponse(AnyAdjacency):
    """One of K categories, reported truthfully e^epsilon times as often as each other one.

    The true category has the probability ``e^epsilon / (e^epsilon + K - 1)`` and each other one
    ``1 / (e^epsilon + K - 1)``. It is epsilon-DP, for the person who answers.

    Guarantees:
        Exact: any two categories differ by the same loss. With K = 2 it is the worst of all
        epsilon-DP releases, and costs what ``PureDP(epsilon)`` does.

    Edge cases:
        Epsilon 0 reports nothing; inf reports the category itself.

    Args:
        epsilon: Logarithm of the ratio of the probabilities, in [0, inf].
        categories: How many categories there are, an integer from 2 to 10^15.

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Warner 1965; Kairouz, Oh and Viswanath, "Extremal Mechanisms for Local Differential
        Privacy", NeurIPS 2014 (K categories).

    Example:
        >>> import hockeystick as hs
        >>> answer = hs.delta(hs.RandomizedResponse(epsilon=1, categories=10), epsilon=0.5)
        >>> round(answer.upper, 12)
        0.091272814003
    """

    rises_with = ("epsilon",)
    falls_with = ("categories",)

    epsilon: float
    categories: int = 2

    def __init__(self, epsilon: float, categories: int = 2) -> None:
        object.__setattr__(self, "epsilon", _validate.real("epsilon", epsilon))
        object.__setattr__(
            self, "categories", _validate.count("categories", categories, _CATEGORIES)
        )

    @property
    def scope(self) -> tuple[Fact, ...]:
        """That everybody reports: neighbours are two answers of one person."""
        return (EVERYBODY_REPORTS,)

    @property
    def assumptions(self) -> tuple[str, ...]:
        truth = 1.0 / (1.0 + (self.categories - 1) * math.exp(-self.epsilon))
        return (
            "Each report is the answer of one person; neighbours are any two answers of theirs.",
            f"Every report of a category is drawn afresh, the true one with probability {truth:g}, "
            f"which is e^{plain(self.epsilon)} times that of each other one.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "randomized response", (f"epsilon {self.epsilon:g}", f"{self.categories} categories")
