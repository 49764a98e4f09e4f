"""How many steps of a plan have been released, counted before the noise of each is drawn."""

from __future__ import annotations

import hashlib
import json
import os
import weakref
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, final

import hockeystick as hs
from hockeystick.errors import BudgetExhausted, ParameterError

VERSION: Final = 1
_FIELDS: Final = frozenset({"kind", "version", "plan", "steps"})
_KIND: Final = "hockeystick.adapters.torch"


def first_steps(plan: hs.DPSGD, steps: int) -> hs.DPSGD:
    """Return the plan of so many first steps of a plan, of whole epochs where it goes by epochs.

    Part of an epoch is seen by whoever sees all of it, so that it costs no more.
    """
    length = plan.steps_per_epoch or 1
    whole = min(-(-steps // length) * length, plan.total_steps)
    if whole == plan.total_steps:
        return plan
    return replace(
        plan,
        epochs=None,
        steps=whole,
        schedule=_cut(plan.schedule, plan.total_steps, whole),
        batch_schedule=_cut(plan.batch_schedule, plan.total_steps, whole),
    )


def _cut(
    schedule: hs.schedules.Schedule | None, steps: int, first: int
) -> hs.schedules.Schedule | None:
    """Return the first factors of a schedule."""
    if schedule is None or first == 0:
        return None
    return hs.schedules.Values(schedule.factors(steps)[:first].tolist())


def affordable(plan: hs.DPSGD, budget: hs.ApproxDP | None) -> int:
    """Return how many first steps of a plan a budget covers by the proven upper end.

    No data are looked at, so that the number is fixed in advance as the plan is.
    """
    if budget is None or _fits(plan, budget, plan.total_steps):
        return plan.total_steps
    length = plan.steps_per_epoch or 1
    low, high = 0, plan.total_steps // length
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _fits(plan, budget, middle * length) else (low, middle)
    return low * length


def _fits(plan: hs.DPSGD, budget: hs.ApproxDP, steps: int) -> bool:
    """Return whether the budget provably covers so many first steps."""
    return hs.epsilon(first_steps(plan, steps), budget.delta).upper <= budget.epsilon


@final
class Account:
    """The steps that were or may have been released, of a plan and within a budget.

    With a journal, a file that gets one byte before each step's noise is drawn, a process that is
    killed at any moment leaves behind a count that is never below what it released.
    """

    __slots__ = ("__weakref__", "_journal", "budget", "counted", "limit", "plan")

    def __init__(
        self, plan: hs.DPSGD, budget: hs.ApproxDP | None, journal: str | os.PathLike[str] | None
    ) -> None:
        self.plan, self.budget = plan, budget
        self.limit = affordable(plan, budget)
        self.counted = 0
        self._journal = None if journal is None else self._open(journal)

    @property
    def released(self) -> hs.DPSGD:
        """The plan of what was released so far."""
        return first_steps(self.plan, self.counted)

    def check(self) -> None:
        """Raise where the next step is not covered."""
        if self.counted >= self.limit:
            raise self._refusal()

    def count(self) -> None:
        """Count a step that is about to be released, in the journal first."""
        self.check()
        if self._journal is not None:
            os.write(self._journal, b".")
        self.counted += 1

    def state(self) -> dict[str, Any]:
        """Return plan and count, ready for JSON."""
        return {
            "kind": _KIND,
            "version": VERSION,
            "plan": fingerprint(self.plan),
            "steps": self.counted,
        }

    def load(self, state: object) -> None:
        """Take over a state's count unless more has been released already, or raise."""
        if not isinstance(state, Mapping) or set(state) != _FIELDS or state["kind"] != _KIND:
            raise ParameterError("state", state, "what state_dict returned")
        if state["version"] != VERSION:
            raise ParameterError("version", state["version"], f"{VERSION}")
        if state["plan"] != fingerprint(self.plan):
            raise ParameterError("plan", state["plan"], "that of the state: plans differ")
        steps = state["steps"]
        if type(steps) is not int or not 0 <= steps <= self.plan.total_steps:
            allowed = f"an integer from 0 to {self.plan.total_steps}"
            raise ParameterError("steps", steps, allowed)
        missing = self._resumed(steps) - self.counted
        if missing > 0:
            if self._journal is not None:
                os.write(self._journal, b"." * missing)
            self.counted += missing

    def _resumed(self, steps: int) -> int:
        """Return where a run goes on: the rest of an epoch whose batches are lost is left out."""
        length = self.plan.steps_per_epoch or 1
        return -(-steps // length) * length

    def _open(self, path: str | os.PathLike[str]) -> int:
        """Open a journal, take over its count, and return its descriptor; or raise."""
        header = f"{_KIND} {VERSION} {fingerprint(self.plan)}\n".encode()
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        opened = os.open(path, flags, 0o600)
        weakref.finalize(self, os.close, opened)
        with os.fdopen(os.dup(opened), "rb") as file:
            file.seek(0)
            found = file.read()
        if not found:
            os.write(opened, header)
            return opened
        dots = found.removeprefix(header)
        if dots == found or dots.strip(b"."):
            raise ParameterError("journal", os.fspath(path), "an account of this very plan")
        steps = min(len(dots), self.plan.total_steps)
        self.counted = self._resumed(steps)
        os.write(opened, b"." * (self.counted - len(dots)))
        return opened

    def _refusal(self) -> BudgetExhausted:
        """Return the error that says what one step more would come to."""
        what = f"{self.counted + 1} steps of {self.plan}"
        nothing = hs.PureDP(0)
        if self.budget is None or self.counted >= self.plan.total_steps:
            more = f"more steps than the {self.plan.total_steps} that are planned"
            return BudgetExhausted(more, self.released, nothing, what)
        delta = self.budget.delta
        now = hs.ApproxDP(hs.epsilon(self.released, delta).upper, delta)
        then = hs.epsilon(first_steps(self.plan, self.counted + 1), delta).upper
        return BudgetExhausted(hs.ApproxDP(then, delta), now, nothing, what)


def fingerprint(plan: hs.DPSGD) -> str:
    """Return a text that differs for plans that differ."""
    accountant = hs.Accountant()
    accountant.step(plan)
    text = json.dumps(accountant.state_dict(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
