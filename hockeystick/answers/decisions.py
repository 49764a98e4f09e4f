"""Whether an answer meets a budget."""

from __future__ import annotations

from typing import Any

from hockeystick import _validate
from hockeystick._validate import WordEnum
from hockeystick.errors import ParameterError
from hockeystick.results import Certified


class Decision(WordEnum):
    """Whether what a plan costs is within a budget.

    - ``MEETS`` ("meets"): the proven upper end is at most the budget.
    - ``MISSES`` ("misses"): the proven lower end is above it.
    - ``UNDECIDED`` ("undecided"): the budget lies inside the proven interval. A plan is not to be
      released by such an answer either.
    """

    MEETS = "meets"
    MISSES = "misses"
    UNDECIDED = "undecided"


def decide(answer: Certified, at_most: float) -> Decision:
    """Return whether an answer is within a budget of the same quantity.

    Guarantees:
        ``MEETS`` and ``MISSES`` are proven, as the ends of the answer are.

    Args:
        answer: What ``epsilon`` or ``delta`` returned. An ``Approximate`` decides nothing.
        at_most: The budget: the largest value that is allowed, itself included.

    Returns:
        The decision.

    Raises:
        ParameterError: If the answer is not proven, or the budget is outside the domain of what
            was asked.

    Example:
        >>> import hockeystick as hs
        >>> answer = hs.epsilon(hs.Gaussian(2), delta=1e-5)
        >>> print(hs.answers.decide(answer, at_most=3))
        meets
        >>> print(hs.answers.decide(answer, at_most=1))
        misses
    """
    given: Any = answer
    if not isinstance(given, Certified):
        raise ParameterError("answer", given, "a proven one: an approximation decides nothing")
    budget = _validate.real("at_most", at_most, _validate.PARAMETERS[answer.quantity])
    if answer.upper <= budget:
        return Decision.MEETS
    return Decision.MISSES if answer.lower > budget else Decision.UNDECIDED
