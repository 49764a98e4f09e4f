"""What a budget buys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hockeystick.calibration.sweeps.frontier import FrontierPoint
from hockeystick.mechanisms import DPSGD, assumptions_of
from hockeystick.notions import ApproxDP
from hockeystick.numerics.numerals import plain


@final
@dataclass(frozen=True, slots=True)
class Planned:
    """A budget, and what it buys.

    Args:
        base: The plan, without the noise, the length and the batch size.
        target: The budget.
        points: The least noise by batch size and length.
        plot: Where the picture is, if there is one.
    """

    base: DPSGD
    target: ApproxDP
    points: tuple[FrontierPoint, ...]
    plot: str | None

    @property
    def batch_sizes(self) -> list[int]:
        """The batch sizes, each once."""
        return list(dict.fromkeys(one.batch_size for one in self.points))

    @property
    def epochs(self) -> list[float]:
        """The lengths, each once."""
        return list(dict.fromkeys(one.epochs for one in self.points))

    @property
    def title(self) -> str:
        """The budget in words."""
        budget = f"epsilon {plain(self.target.epsilon)} at delta {plain(self.target.delta)}"
        return f"What {budget} buys on {self.base.examples:,} examples"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for every plan."""
        plans = [one.plan for one in self.points if one.plan is not None]
        if not plans:
            return ()
        first, *others = (assumptions_of(plan) for plan in plans)
        return tuple(text for text in first if all(text in other for other in others))
