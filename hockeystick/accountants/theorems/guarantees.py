"""Plans of (epsilon, delta) guarantees and nothing else, for the composition theorems on these."""

from __future__ import annotations

from contextlib import suppress
from typing import Final, TypeAlias

from hockeystick.accountants.base import Accountant
from hockeystick.accountants.closed_forms.closed_form import ClosedForm
from hockeystick.errors import UnsupportedError
from hockeystick.privacy_loss import Composition, RandomizedResponsePairLoss

Guarantees: TypeAlias = list[tuple[RandomizedResponsePairLoss, int]]

_REASON: Final = (
    "it composes (epsilon, delta) guarantees only; state one for each part (PureDP, ApproxDP), or "
    "use accountant='auto'"
)


def guarantees(accountant: Accountant, composition: Composition) -> Guarantees:
    """Return the guarantees with their counts, or raise where a part is anything else."""
    terms = composition.removing
    found = [(loss, count) for loss, count in terms if isinstance(loss, RandomizedResponsePairLoss)]
    if len(found) < len(terms) or composition.adding != terms:
        raise accountant.refuse("the plan", _REASON)
    return found


def exact_epsilon(composition: Composition, delta: float) -> float:
    """Return a lower end of epsilon: that of the exact composition, 0 where it takes too long."""
    with suppress(UnsupportedError):
        return ClosedForm().epsilon(composition, delta).lower
    return 0.0


def exact_delta(composition: Composition, epsilon: float) -> float:
    """Return a lower end of delta: that of the exact composition, 0 where it takes too long."""
    with suppress(UnsupportedError):
        return ClosedForm().delta(composition, epsilon).lower
    return 0.0
