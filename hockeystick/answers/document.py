"""Answers as documents, which say all that a check needs, and decisions by them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hockeystick import _validate
from hockeystick._validate import WordEnum
from hockeystick._version import __version__
from hockeystick.calibration import Advantage, Calibrated, describe
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import Composed, Mechanism, assumptions_of
from hockeystick.notions import ApproxDP, PureDP
from hockeystick.numerics.numerals import jsonable
from hockeystick.results import Certified


class Decision(WordEnum):
    """Whether what a plan costs is within a budget.

    - ``MEETS`` ("meets"): the proven upper end is at most the budget.
    - ``MISSES`` ("misses"): the proven lower end is above it.
    - ``UNDECIDED`` ("undecided"): the budget lies inside the proven interval, which releases no
      plan either.
    """

    MEETS = "meets"
    MISSES = "misses"
    UNDECIDED = "undecided"


def decide(answer: Certified, at_most: float) -> Decision:
    """Return whether an answer is within a budget of the same quantity; both ways it is proven.

    Args:
        answer: What ``epsilon`` or ``delta`` returned. An ``Approximate`` decides nothing.
        at_most: The budget: the largest value that is allowed, itself included.

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


SCHEMA: Final = "hockeystick-answer/1"


def document(
    answer: Certified | Calibrated,
    plan: Mechanism | None = None,
    *,
    delta: float | None = None,
    epsilon: float | None = None,
) -> dict[str, Any]:
    """Return an answer as a document: what ``hockeystick epsilon``, ``delta``, ``solve`` print.

    Guarantees:
        It is strict JSON. Floats are exact, inf is "inf", further digits texts rounded outwards.

    Args:
        answer: A ``Certified``, or a ``Calibrated``, which knows its plan and its target.
        plan: What a ``Certified`` is of.
        delta: Where an epsilon was asked; by default where it says that it was.
        epsilon: Where a delta was asked; by default where it says that it was.

    Raises:
        ParameterError: If the answer is none, or only an approximation; if what it is of is
            missing, is given where the answer knows it, or cannot be described in JSON.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.answers import document
        >>> plan = hs.Gaussian(2.0)
        >>> found = document(hs.epsilon(plan, delta=1e-5), plan)
        >>> found["schema"], found["description"]
        ('hockeystick-answer/1', {'type': 'Gaussian', 'noise_multiplier': 2.0})
    """
    given = {"plan": plan, "delta": delta, "epsilon": epsilon}
    match answer:
        case Certified():
            claims = _of_certified(answer, given)
        case Calibrated():
            _refuse("a Calibrated", given)
            claims = _of_calibrated(answer)
        case _:
            raise ParameterError("answer", answer, "a Certified or a Calibrated, which are proven")
    return {"schema": SCHEMA, "version": __version__, **claims}


def _of_certified(answer: Certified, given: Mapping[str, Any]) -> dict[str, Any]:
    kind = f"a Certified {answer.quantity}"
    name = {"epsilon": "delta", "delta": "epsilon"}.get(answer.quantity)
    if name is None:
        raise ParameterError("answer", answer, "of an epsilon or a delta, which can be checked")
    _refuse(kind, {answer.quantity: given[answer.quantity]})
    at = given[name] if given[name] is not None else answer.at
    at = _validate.real(name, _needed(kind, name, at))
    return {
        **answer.as_dict(),
        "at": {name: jsonable(at)},
        "description": describe(_needed(kind, "plan", given["plan"])),
    }


def _of_calibrated(answer: Calibrated) -> dict[str, Any]:
    whole, achieved = _whole(answer, answer.plan), answer.achieved
    before = () if answer.spent is None else assumptions_of(answer.spent)
    return {
        "parameter": answer.parameter,
        "extreme": answer.extreme,
        "target": str(answer.target),
        "budget": _budget(answer.target),
        "value": jsonable(answer.value),
        "status": str(answer.status),
        "bracket": [jsonable(end) for end in answer.bracket],
        "achieved": {
            "quantity": achieved.quantity,
            "lower": jsonable(achieved.lower),
            "upper": jsonable(achieved.upper),
        },
        "evaluations": answer.evaluations,
        "adjacency": None if whole.adjacency is None else str(whole.adjacency),
        "assumptions": list(dict.fromkeys((*assumptions_of(answer.plan), *before))),
        "description": describe(whole),
        "misses": None if answer.misses is None else describe(_whole(answer, answer.misses)),
    }


def _whole(answer: Calibrated, plan: Mechanism) -> Mechanism:
    return plan if answer.spent is None else Composed((answer.spent, plan))


def _budget(target: object) -> dict[str, Any] | None:
    """Return the one epsilon and delta that a target is, None where it is something else."""
    match target:
        case ApproxDP():
            return {"epsilon": jsonable(target.epsilon), "delta": target.delta}
        case PureDP():
            return {"epsilon": jsonable(target.epsilon), "delta": 0.0}
        case Advantage():
            return {"epsilon": 0.0, "delta": target.value}
        case _:
            return None


def _needed(kind: str, name: str, value: Any) -> Any:
    if value is None:
        raise ParameterError(name, value, f"given beside {kind}, which does not know it")
    return value


def _refuse(kind: str, given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        if value is not None:
            raise ParameterError(name, value, f"left out beside {kind}")
