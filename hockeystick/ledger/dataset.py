"""A dataset: its budget, in which measure that is kept, for which neighbours, protecting what."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, final

from hockeystick import _validate
from hockeystick.adjacency import Adjacency
from hockeystick.calibration import describe, read_description
from hockeystick.calibration.filters.filter import (
    checked_budget,
    checked_options,
    chosen_by,
    is_sampled,
    measure_of,
)
from hockeystick.calibration.filters.measures import AdditiveMeasure, Rule
from hockeystick.calibration.session.runs import EVALUATING
from hockeystick.errors import BudgetExhausted, HockeystickError, IncompatibleError, LedgerError
from hockeystick.ledger.amounts import Costs, amount, costs_of, plus, storable, upward
from hockeystick.ledger.entries import Entry, EntryKind
from hockeystick.mechanisms import Mechanism, runs_of
from hockeystick.mechanisms.scope import Described, Fact, refuse_disagreement, states_more
from hockeystick.notions import TCDP, Notion, PureDP, RenyiDP
from hockeystick.numerics.numerals import plain

if TYPE_CHECKING:
    from hockeystick.ledger.database import Transaction

_REMEMBERED: Final = 1024
_UNAMPLIFIED: Final = (
    "sampling does not count here: open a new dataset with a budget ApproxDP(epsilon, delta) and "
    "an expected plan (--expected PLAN)"
)


@final
@dataclass(frozen=True, slots=True)
class Terms:
    """What is fixed in advance about a dataset, and the prices that follow from it.

    ``order`` is the Renyi order where a plan was expected, ``opening`` the hash of the first entry.
    The limits are as they were when the dataset was opened, or lower where less is proven now.
    """

    # Beside mechanisms, terms state for whom the budget is kept.
    scope: ClassVar[tuple[Fact, ...]] = ()

    budget: Notion
    adjacency: Adjacency
    slack: float | None
    rule: Rule | None
    order: float | None
    within: str | None
    measure: AdditiveMeasure
    opening: str = ""

    def price(self, mechanism: Mechanism) -> Costs:
        """Return what a mechanism costs, rounded up, or raise."""
        if mechanism.adjacency not in (None, self.adjacency):
            raise IncompatibleError(
                f"the budget is kept for {self.adjacency} neighbours, and a {mechanism} is "
                f"described for {mechanism.adjacency} ones"
            )
        total = self.nothing
        with EVALUATING:
            for part, count in runs_of(mechanism):
                total = plus(total, [cost * count for cost in _price_of_part(self.measure, part)])
        return total

    @property
    def nothing(self) -> Costs:
        """The price of a release of nothing."""
        with EVALUATING:
            return _price_of_part(self.measure, PureDP(0))

    def guarantee(self, spent: Costs) -> Notion:
        """Return sums of prices as a guarantee, rounded up."""
        with EVALUATING:
            return self.measure.guarantee(spent)

    def remaining(self, spent: Costs) -> Notion:
        """Return the largest guarantee that one more release may have, rounded down."""
        with EVALUATING:
            return self.measure.remaining(spent)

    def __str__(self) -> str:
        return f"the budget, for {self.adjacency} neighbours"

    def refusal(
        self, price: Costs, spent: Costs, step: str, mechanism: Mechanism
    ) -> BudgetExhausted:
        """Return the error that says what was asked for, what there is, and what would help."""
        asked, had = self.guarantee(price), self.guarantee(spent)
        whole = self.guarantee(plus(spent, price))
        told = (
            f"with it all would cost {amount(whole, upward)}, of which {amount(had, upward)} is "
            f"spent, and the budget is {amount(self.budget, plain)}"
        )
        at_orders = self.order is not None or isinstance(self.budget, RenyiDP | TCDP)
        if is_sampled(mechanism) and not at_orders:
            told += f"; {_UNAMPLIFIED}"
        return BudgetExhausted(asked, had, self.remaining(spent), step, told)

    def document(self) -> str:
        """Return the terms as JSON."""
        told = {"budget": describe(self.budget), "adjacency": self.adjacency, "slack": self.slack}
        return json.dumps({**told, "rule": self.rule, "order": self.order, "within": self.within})


def agreed(
    budget: object,
    adjacency: object,
    slack: object,
    rule: Rule | str | None,
    expected: object,
    within: str | None,
) -> Terms:
    """Return the terms that a dataset is to be opened with, or raise."""
    neighbours = _validate.choice("adjacency", adjacency, Adjacency)
    kept, order = checked_budget(budget), None
    part, known = checked_options(kept, slack, rule)
    with EVALUATING:
        if expected is not None:
            (part, order), known = chosen_by(expected, kept, part, rule), None
        measure = measure_of(kept, part, known, order)
    return Terms(kept, neighbours, part, known, order, within, measure)


def terms_of(first: Entry) -> Terms:
    """Return the terms that the first entry of a chain says, with limits no higher; or raise."""
    try:
        if first.kind != EntryKind.OPEN or first.digest() != first.hash:
            raise ValueError(first.kind)
        found: Any = json.loads(first.content)
        budget = checked_budget(read_description(found["budget"]))
        part, rule = checked_options(budget, found["slack"], found["rule"])
        order = found["order"]
        known = None if order is not None else rule
        with EVALUATING:
            measure = measure_of(budget, part, known, order).lowered(costs_of(first.price))
        neighbours, within = Adjacency(found["adjacency"]), found["within"]
        return Terms(budget, neighbours, part, known, order, within, measure, first.hash)
    except (ValueError, KeyError, TypeError, HockeystickError) as error:
        by = f"written by hockeystick {first.version}, or damaged ({error})"
        raise LedgerError(f"the terms of dataset {first.dataset!r} cannot be read: {by}") from error


@lru_cache(maxsize=_REMEMBERED)
def _price_of_part(measure: AdditiveMeasure, part: Mechanism) -> tuple[Fraction, ...]:
    return tuple(storable(cost) for cost in measure.cost(part))


@final
class Scope:
    """What a dataset's reservations state, read as far as its chain went when it was last asked."""

    def __init__(self, terms: Terms) -> None:
        self._terms, self._entries = terms, 0
        self._stating: list[Described] = [terms]

    def check(self, rows: Transaction, end: Entry, mechanisms: Sequence[Mechanism]) -> None:
        """Raise where a mechanism states something else than one before it, or than what counts."""
        pending: list[Described] = []
        for mechanism in (one for one in mechanisms if one.scope):
            self._learn(rows.counting_contents(end.dataset, self._entries))
            self._entries = end.seq + 1
            if states_more(mechanism, [*self._stating, *pending]):
                # What was released since counts no more.
                self._stating = [self._terms]
                self._learn(rows.counting_contents(end.dataset))
                stating = (*self._stating, *pending, mechanism)
                refuse_disagreement(stating, f"dataset {end.dataset!r}")
                pending.append(mechanism)

    def _learn(self, contents: Iterable[str]) -> None:
        for stated in map(_stated, contents):
            if states_more(stated, self._stating):
                self._stating.append(stated)


@lru_cache(maxsize=_REMEMBERED)
def _stated(content: str) -> Mechanism:
    try:
        return read_description(json.loads(content))
    except (ValueError, HockeystickError) as error:
        raise LedgerError(f"an earlier reservation cannot be read: {error}") from error
