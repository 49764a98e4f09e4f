"""How many steps of a plan have been released, counted before the noise of each is drawn."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any, Final, NoReturn, final

import hockeystick as hs
from hockeystick.errors import BudgetExhausted, IncompatibleError, ParameterError
from hockeystick.release.journal import Counting, OpensJournal, fingerprint, opened

VERSION: Final = 2
_FIELDS: Final = frozenset({"kind", "version", "plan", "not_private", "arithmetic", "run", "steps"})
_KIND: Final = "hockeystick.adapters.torch"
First = Callable[[int], hs.mechanisms.Mechanism]


def first_steps(plan: hs.DPSGD, steps: int) -> hs.DPSGD:
    """Return the plan of the first steps of a plan, of whole epochs where it goes by epochs.

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


def affordable(first: First, most: int, budget: hs.ApproxDP | None) -> int:
    """Return how many first parts of a plan a budget provably covers, by bisection.

    No data are looked at, so that the number is fixed in advance as the plan is.

    Args:
        first: From a number of parts to the plan of so many.
        most: How many the plan has.
        budget: What may be spent; None for all of the plan.
    """
    if budget is None or _fits(first(most), budget):
        return most
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _fits(first(middle), budget) else (low, middle)
    return low


def _fits(plan: hs.mechanisms.Mechanism, budget: hs.ApproxDP) -> bool:
    """Return whether the budget provably covers a plan."""
    return hs.epsilon(plan, budget.delta).upper <= budget.epsilon


def refusal(
    first: First, counted: int, most: int, budget: hs.ApproxDP | None, unit: str
) -> BudgetExhausted:
    """Return the error that says what one part more of a plan would come to."""
    what = f"{counted + 1} {unit} of {first(most)}"
    nothing = hs.PureDP(0)
    if budget is None or counted >= most:
        more = f"more {unit} than the {most} that are planned"
        return BudgetExhausted(more, first(counted), nothing, what)
    now, then = (hs.epsilon(first(n), budget.delta).upper for n in (counted, counted + 1))
    asked, spent = hs.ApproxDP(then, budget.delta), hs.ApproxDP(now, budget.delta)
    return BudgetExhausted(asked, spent, nothing, what)


@final
class Account:
    """The steps that were or may have been released, of a plan and within a budget.

    It belongs to one run, which has a name of its own, and to one process: a second process would
    count the same steps once more. With a journal, the run is that of the file.
    """

    __slots__ = (
        "_closed",
        "_journal",
        "_lock",
        "_most",
        "_process",
        "arithmetic",
        "budget",
        "counted",
        "limit",
        "not_private",
        "plan",
        "run",
    )

    def __init__(
        self,
        plan: hs.DPSGD,
        budget: hs.ApproxDP | None = None,
        journal: str | os.PathLike[str] | OpensJournal | None = None,
        *,
        not_private: bool = False,
        arithmetic: str = "exact",
    ) -> None:
        if not isinstance(arithmetic, str) or not arithmetic.isprintable():
            raise ParameterError("arithmetic", arithmetic, "a text that can be printed")
        self.plan, self.budget, self.not_private = plan, budget, not_private
        self.arithmetic = arithmetic
        length = plan.steps_per_epoch or 1
        epochs = affordable(
            lambda parts: first_steps(plan, parts * length), -(-plan.total_steps // length), budget
        )
        self._most = plan.total_steps
        self.limit = min(epochs * length, self._most)
        self.counted = 0
        self._process, self._closed, self._lock = os.getpid(), False, Lock()
        self._journal: Counting | None = None
        self.run = secrets.token_hex(16)
        if journal is not None:
            told = ("-not-private" if not_private else "") + _told(arithmetic)
            title = f"{_KIND}{told} {VERSION} {fingerprint(plan)}"
            self._journal = opened(journal, title, partial(first_steps, plan), self.limit)
            self.run = self._journal.run
            self._most = first_steps(plan, self._journal.most).total_steps
            self.limit = min(self.limit, self._most)
            self._go_on(min(self._journal.counted, plan.total_steps), self._journal.counted)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be copied or pickled."""
        raise IncompatibleError(
            "a private loop is not copied or pickled: each copy would count its own steps alone; "
            "copy the model, or save a state_dict"
        )

    @property
    def released(self) -> hs.DPSGD:
        """The plan of what was released so far."""
        return first_steps(self.plan, self.counted)

    def check(self) -> None:
        """Raise where the next step is not covered, or another process counts."""
        self._check_open()
        if self.counted >= self.limit:
            raise refusal(
                partial(first_steps, self.plan),
                self.counted,
                self._most,
                self.budget,
                "steps",
            )

    def _check_open(self) -> None:
        """Raise where another process counts, or nobody does."""
        if os.getpid() != self._process:
            raise IncompatibleError(
                f"this process was forked from {self._process}, which goes on with the same steps: "
                "each would count its own alone; make a loop where it is to train"
            )
        if self._closed:
            raise IncompatibleError("this loop is closed: no step is counted any more")

    def count(self) -> None:
        """Count a step that is about to be released, in the journal first, for any thread."""
        self._check_open()  # first: a fork may have the lock as another thread held it
        with self._lock:
            self.check()
            if self._journal is not None:
                self._journal.add(1)
            self.counted += 1

    def close(self, *, final: bool = True) -> None:
        """Count no more, and leave the journal to others.

        Args:
            final: False where another process is to go on with the run, for whose reservation in a
                ledger nothing is committed then.
        """
        if os.getpid() == self._process:
            with self._lock:
                self._closed = True
        if self._journal is not None:
            if final:
                self._journal.finish()
            self._journal.close()

    def state(self) -> dict[str, Any]:
        """Return plan, run and count, ready for JSON."""
        return {
            "kind": _KIND,
            "version": VERSION,
            "plan": fingerprint(self.plan),
            "not_private": self.not_private,
            "arithmetic": self.arithmetic,
            "run": self.run,
            "steps": self.counted,
        }

    def load(self, state: object) -> None:
        """Take over the count of an earlier state of this run unless more was released, or raise.

        Of another run, nobody here knows what was released after the state was taken.
        """
        self._check_open()
        if isinstance(state, Mapping):
            state = {"arithmetic": "real"} | dict(state)  # as all was before it was said
        if not isinstance(state, Mapping) or set(state) != _FIELDS or state["kind"] != _KIND:
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
        steps = state["steps"]
        if type(steps) is not int or not 0 <= steps <= self.plan.total_steps:
            allowed = f"an integer from 0 to {self.plan.total_steps}"
            raise ParameterError("steps", steps, allowed)
        if state["run"] != self.run:
            allowed = (
                "that of the run which the state is of, as steps that ran after it are counted "
                "nowhere else (give make_private a journal or checkpoint from the start)"
            )
            path = None if self._journal is None else self._journal.path
            raise ParameterError("journal", path, allowed)
        with self._lock:
            self._check_open()
            self._go_on(steps, self.counted)

    def _go_on(self, steps: int, written: int) -> None:
        """Count from a number of steps on, and never from less than before.

        The rest of an epoch is left out, as its batches are lost.
        """
        length = self.plan.steps_per_epoch or 1
        self.counted = max(self.counted, -(-steps // length) * length)
        if self._journal is not None:
            self._journal.add(self.counted - written)


def _told(arithmetic: str) -> str:
    """Return what a journal says of the arithmetic; nothing of floats, as before there was more."""
    return "" if arithmetic == "real" else f"-{arithmetic}"
