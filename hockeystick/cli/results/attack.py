"""What an attacker could learn of a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import hockeystick as hs
from hockeystick.io.plan_file import PlanFile
from hockeystick.mechanisms import assumptions_of

PRIOR: Final = 0.5


@final
@dataclass(frozen=True, slots=True)
class Attack:
    """What an attacker could learn of one plan: proven ends, all on the attacker's side.

    Args:
        label: What to call the plan beside others.
        file: The plan.
        tradeoff: Its trade-off function.
        rates: False positive rates.
        most_found: The largest true positive rate of any attack at each.
        least_missed: The smallest false negative rate of any attack at each.
        advantage: The most that true and false positive rate can differ.
        bayes_error: The least error of guessing at equal odds.
        reading: What holds at one false positive rate, in words.
        promises: Whether that says anything.
        assumptions: What must hold for all that.
    """

    label: str
    file: PlanFile
    tradeoff: hs.tradeoffs.TradeOff
    rates: tuple[float, ...]
    most_found: tuple[float, ...]
    least_missed: tuple[float, ...]
    advantage: float
    bayes_error: float
    reading: str
    promises: bool
    assumptions: tuple[str, ...]

    @classmethod
    def on(cls, file: PlanFile, label: str, rates: tuple[float, ...], read_at: float) -> Attack:
        """Return what an attacker could learn of a plan."""
        from hockeystick.tradeoffs.reading import is_promise, reading

        f = hs.tradeoff(file.plan)
        return cls(
            label=label,
            file=file,
            tradeoff=f,
            rates=rates,
            most_found=tuple(f.power(rates).tolist()),
            least_missed=tuple(f(rates).tolist()),
            advantage=float(f.advantage),
            bayes_error=float(f.bayes_error(PRIOR)),
            reading=reading(read_at, f.power(read_at)),
            promises=is_promise(f.power(read_at)),
            assumptions=assumptions_of(file.plan),
        )
