"""How many steps of a plan have been released, counted before the noise of each is drawn."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final, TypeVar, final

import hockeystick as hs
from hockeystick.errors import BudgetExhausted, ParameterError
from hockeystick.release.counting import Counter, OpensJournal, fingerprint, first, length_of

PlanT = TypeVar("PlanT", bound=hs.mechanisms.Mechanism)
KIND: Final = "hockeystick.adapters.torch"
VERSION: Final = 2
_FIELDS: Final = frozenset({"kind", "version", "plan", "not_private", "arithmetic", "run", "steps"})


def affordable(plan: hs.mechanisms.Mechanism, budget: hs.ApproxDP | None) -> int:
    """Return how many first steps or rounds of a plan a budget provably covers, by bisection.

    No data are looked at, so that the number is fixed in advance as the plan is.

    Args:
        plan: The plan of all.
        budget: What may be spent; None for all of the plan.
    """
    length = getattr(plan, "steps_per_epoch", None) or 1
    most = length_of(plan)
    if budget is None or _price(plan, budget) <= budget.epsilon:
        return most
    low, high = 0, -(-most // length)
    while high - low > 1:
        middle = (low + high) // 2
        fits = _price(first(plan, middle * length), budget) <= budget.epsilon
        low, high = (middle, high) if fits else (low, middle)
    return low * length


def _price(plan: hs.mechanisms.Mechanism, budget: hs.ApproxDP) -> float:
    return hs.epsilon(plan, budget.delta).upper


def refusal(
    plan: hs.mechanisms.Mechanism, counted: int, limit: int, budget: hs.ApproxDP | None, unit: str
) -> BudgetExhausted:
    """Return the error that says what one step or round more of a plan would come to."""
    nothing, what = hs.PureDP(0), f"{counted + 1} {unit} of {plan}"
    now, then = first(plan, counted), first(plan, counted + 1)
    if budget is None or _price(then, budget) <= budget.epsilon:
        more = f"more {unit} than the {limit} that are planned"
        return BudgetExhausted(more, now, nothing, what)
    spent, asked = (hs.ApproxDP(_price(one, budget), budget.delta) for one in (now, then))
    return BudgetExhausted(asked, spent, nothing, what)


@final
class Account(Counter[PlanT]):
    """The steps that were or may have been released, of a plan and within a budget.

    It belongs to one run, which has a name of its own, and to one process: a second process would
    count the same steps once more. With a journal, the run is that of the file.
    """

    __slots__ = ("arithmetic", "budget", "not_private")

    def __init__(
        self,
        plan: PlanT,
        budget: hs.ApproxDP | None = None,
        journal: str | os.PathLike[str] | OpensJournal | None = None,
        *,
        not_private: bool = False,
        arithmetic: str = "exact",
    ) -> None:
        if not isinstance(arithmetic, str) or not arithmetic.isprintable():
            raise ParameterError("arithmetic", arithmetic, "a text that can be printed")
        self.budget, self.not_private, self.arithmetic = budget, not_private, arithmetic
        private = "-not-private" if not_private else ""
        text = "" if journal is None else fingerprint(plan)
        titles = [f"{KIND}{private}{_told(arithmetic)} {VERSION} {text}"]
        if not isinstance(plan, hs.DPSGD):
            titles.append(f"hockeystick-correlated{private} {text}")  # as it was called before
        super().__init__(plan, journal, *titles, limit=affordable(plan, budget))
        self._go_on(self.counted)

    def _refusal(self) -> BudgetExhausted:
        return refusal(self.plan, self.counted, self.limit, self.budget, "steps")

    def state(self) -> dict[str, Any]:
        """Return plan, run and count, ready for JSON."""
        return {
            "kind": KIND,
            "version": VERSION,
            "plan": fingerprint(self.plan),
            "not_private": self.not_private,
            "arithmetic": self.arithmetic,
            "run": self.run,
            "steps": self.counted,
        }

    def load(self, state: object, *, exactly: bool = False) -> None:
        """Take over the count of an earlier state of this run unless more was released, or raise.

        Of another run, nobody here knows what was released after the state was taken.

        Args:
            state: What ``state`` returned.
            exactly: Whether nothing may have been released after it, as where noise is correlated.
        """
        self._check_open()
        if isinstance(state, Mapping):
            state = {"arithmetic": "real"} | dict(state)  # as all was before it was said
        if not isinstance(state, Mapping) or set(state) != _FIELDS or state["kind"] != KIND:
            raise ParameterError("state", state, "what state_dict returned")
        if state["version"] != VERSION:
            raise ParameterError("version", state["version"], f"{VERSION}")
        if state["not_private"] is not self.not_private:
            allowed = f"{self.not_private}, as for this loop: a seed makes a run not private"
            raise ParameterError("not_private", state["not_private"], allowed)
        if state["arithmetic"] != self.arithmetic:
            allowed = f"{self.arithmetic!r}, as for this loop: one account is of one arithmetic"
            raise ParameterError("arithmetic", state["arithmetic"], allowed)
        if state["plan"] != fingerprint(self.plan):
            raise ParameterError("plan", state["plan"], "that of the state: plans differ")
        steps, most = state["steps"], length_of(self.plan)
        if type(steps) is not int or not 0 <= steps <= most:
            raise ParameterError("steps", steps, f"an integer from 0 to {most}")
        if state["run"] != self.run:
            allowed = (
                "that of the run which the state is of, as steps that ran after it are counted "
                "nowhere else (give make_private a journal or checkpoint from the start)"
            )
            raise ParameterError("journal", self._journal.path, allowed)
        if exactly and steps != self.counted:
            allowed = (
                f"{self.counted}, as here: from an older state, past noise would be used for other "
                "steps as well"
            )
            raise ParameterError("steps", steps, allowed)
        with self._lock:
            self._check_open()
            self._go_on(steps)

    def _go_on(self, steps: int) -> None:
        """Count from a number of steps on, and never from less than before.

        The rest of an epoch is left out, as its batches are lost.
        """
        length = getattr(self.plan, "steps_per_epoch", None) or 1
        self._rise(max(self.counted, -(-steps // length) * length))


def _told(arithmetic: str) -> str:
    """Return what a journal says of the arithmetic; nothing of floats, as before there was more."""
    return "" if arithmetic == "real" else f"-{arithmetic}"
