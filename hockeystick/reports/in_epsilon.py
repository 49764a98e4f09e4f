"""What a dataset of a ledger has spent in epsilon at one delta, and by how much that may rise.

A budget and what is spent of it are guarantees, of which an (epsilon, delta) one follows. Of a
budget that has a delta it is read at that one: what is spent has at most that delta as long as the
budget is kept, and what is (epsilon, delta)-DP is so at each larger delta. Of the others
``hs.convert`` proves an epsilon at a delta that somebody names. What is left is the epsilon of the
budget minus that of what is spent: by how much epsilon of all releases together, as a plan, may
rise. It is not the epsilon of one more release, since costs do not add up in epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from hockeystick.conversions import convert
from hockeystick.ledger import LedgerStatus
from hockeystick.notions import ApproxDP, Notion, PureDP
from hockeystick.numerics import decimal, float_below


@final
@dataclass(frozen=True, slots=True)
class InEpsilon:
    """A budget in epsilon.

    Args:
        delta: At which delta.
        budget: The epsilon that the budget allows, rounded up.
        spent: The epsilon of all that is charged, as a plan fixed in advance, rounded up.
        left: What is left of the one beside the other, rounded down.
    """

    delta: float
    budget: float
    spent: float
    left: float

    def as_dict(self) -> dict[str, float]:
        """Return the same, ready for JSON."""
        return {"delta": self.delta, "budget": self.budget, "spent": self.spent, "left": self.left}


def in_epsilon(status: LedgerStatus, delta: float | None) -> InEpsilon | None:
    """Return a budget in epsilon; None where no delta is known, or no finite epsilon is proven.

    Args:
        status: The budget and what is spent.
        delta: At which delta, for a budget that has none of its own.

    Example:
        >>> import hockeystick as hs
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from hockeystick.reports.in_epsilon import in_epsilon
        >>> with TemporaryDirectory() as folder:
        ...     ledger = hs.Ledger(Path(folder) / "ledger.db", "census", hs.GDP(1.0))
        ...     ledger.step(hs.Gaussian(2.0))
        ...     told = in_epsilon(ledger.status, delta=1e-5)
        >>> told.budget, told.spent, told.left
        (4.377178095681225, 1.9930914044151198, 2.384086691266105)
    """
    budget, at = status.budget, delta_shown(status.budget, delta)
    if at is None:
        return None
    most, spent = epsilon_at(budget, at), epsilon_at(status.spent, at)
    if most is None or spent is None:
        return None
    left = max(decimal(most) - decimal(spent), Fraction(0))
    return InEpsilon(at, most, spent, float_below(left))


def delta_shown(budget: Notion, delta: float | None) -> float | None:
    """Return at which delta a budget is shown in epsilon: its own, or else the one named."""
    if isinstance(budget, PureDP):
        return 0.0
    return budget.delta if isinstance(budget, ApproxDP) else delta


def epsilon_at(notion: Notion, delta: float) -> float | None:
    """Return an epsilon that a guarantee proves at a delta, None where that is none or infinite."""
    if isinstance(notion, PureDP):
        epsilon = notion.epsilon
    elif isinstance(notion, ApproxDP):
        epsilon = notion.epsilon if notion.delta <= delta else math.inf
    else:
        epsilon = convert(notion, ApproxDP, delta=delta).epsilon
    return epsilon if epsilon < math.inf else None
