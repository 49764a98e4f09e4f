"""A dataset: its budget, in which measure that is kept, for which neighbours, protecting what."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, final

from hockeystick import _validate
from hockeystick.adjacency import Adjacency
from hockeystick.calibration import describe, read_description
from hockeystick.calibration.filters.filter import checked_budget, checked_options, is_sampled
from hockeystick.calibration.filters.measures import (
    AdditiveMeasure,
    Rule,
    additive_measure,
    expected_order,
    one_order_measure,
)
from hockeystick.calibration.session.runs import EVALUATING
from hockeystick.errors import (
    BudgetExhausted,
    HockeystickError,
    IncompatibleError,
    LedgerError,
    ParameterError,
)
from hockeystick.ledger.amounts import Costs, amount, costs_of, plus, storable, upward
from hockeystick.ledger.entries import Chain, Entry, EntryKind
from hockeystick.mechanisms import Mechanism, runs_of
from hockeystick.mechanisms.base import checked
from hockeystick.mechanisms.scope import Described, Fact, refuse_disagreement, states_more
from hockeystick.notions import TCDP, ApproxDP, Notion, PureDP, RenyiDP
from hockeystick.numerics.numerals import plain

if TYPE_CHECKING:
    from hockeystick.ledger.database import Transaction

_REMEMBERED: Final = 1024
_ROUNDED: Final = 1 + Fraction(1, 10**12)
_UNAMPLIFIED: Final = (
    "this budget prices sampled training without its amplification: open a new dataset with a "
    "budget ApproxDP(epsilon, delta) and an expected plan (--expected PLAN)"
)
_LESS: Final = (
    "fewer runs or more noise are charged less, and what was reserved and never ran can be released"
)


@final
@dataclass(frozen=True, slots=True)
class Terms:
    """What is fixed in advance about a dataset, and the prices that follow from it.

    ``order`` is the Renyi order of an (epsilon, delta) budget for which a plan was expected,
    ``within`` the dataset of which this one is a cap, and ``opening`` the hash of the first entry,
    "" before there is one. The limits of ``measure`` are as they were when the dataset was opened,
    or lower where this library proves less.
    """

    budget: Notion
    adjacency: Adjacency
    slack: float | None
    rule: Rule | None
    order: float | None
    within: str | None
    measure: AdditiveMeasure
    opening: str = ""

    def price(self, mechanism: Mechanism) -> Costs:
        """Return what a mechanism costs, exactly or rounded up, or raise."""
        if mechanism.adjacency not in (None, self.adjacency):
            raise IncompatibleError(
                f"the budget is kept for {self.adjacency} neighbours, and a {mechanism} is "
                f"described for {mechanism.adjacency} ones"
            )
        total = self.nothing
        with EVALUATING:
            for part, count in runs_of(mechanism):
                one = _price_of_part(self.measure, part)
                total = plus(total, tuple(cost * count for cost in one))
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

    def refusal(
        self, price: Costs, spent: Costs, step: str, mechanism: Mechanism
    ) -> BudgetExhausted:
        """Return the error that says what was asked for, what there is, and what would help."""
        asked, had, total = self.guarantee(price), self.guarantee(spent), plus(spent, price)
        at_orders = self.order is not None or isinstance(self.budget, RenyiDP | TCDP)
        unamplified = is_sampled(mechanism) and not at_orders
        found = [amount(self._at_delta(one), upward) for one in (self.guarantee(total), had)]
        told = (
            f"with it all would cost {found[0]}, of which {found[1]} is spent, and the budget is "
            f"{amount(self.budget, plain)}; {_UNAMPLIFIED if unamplified else _LESS}"
        )
        error = BudgetExhausted(asked, had, self.remaining(spent), step, told)
        pairs = zip(total, self.measure.limits, strict=False)
        if all(one <= most * _ROUNDED for one, most in pairs):
            error.add_note("the excess is below 1e-12 of the budget, which round-off explains")
        return error

    def _at_delta(self, spent: Notion) -> Notion:
        """Return what is spent at the budget's delta, where that is no smaller than its own."""
        budget = self.budget
        if isinstance(spent, ApproxDP) and isinstance(budget, ApproxDP):
            return replace(spent, delta=max(spent.delta, budget.delta))
        return spent

    def document(self) -> str:
        """Return the terms as text in JSON."""
        rule = None if self.rule is None else str(self.rule)
        told = {"budget": describe(self.budget), "adjacency": str(self.adjacency)}
        options = {"slack": self.slack, "rule": rule, "order": self.order}
        return json.dumps({**told, **options, "within": self.within})


def agreed(
    budget: object,
    *,
    adjacency: object,
    slack: object,
    rule: object,
    expected: object,
    within: str | None,
) -> Terms:
    """Return the terms that a dataset is to be opened with, or raise."""
    neighbours = _validate.choice("adjacency", adjacency, Adjacency)
    kept = checked_budget(budget)
    part, known = checked_options(kept, slack, rule)
    order = None
    if expected is not None:
        if not isinstance(kept, ApproxDP) or rule is not None:
            allowed = "left out: only an ApproxDP budget without a rule has an order"
            raise ParameterError("expected", expected, allowed)
        with EVALUATING:
            order = expected_order(checked("expected", expected), kept, part or 0.0)
        known = None
    measure = _measure(kept, part, known, order)
    return Terms(kept, neighbours, part, known, order, within, measure)


def terms_of(first: Entry) -> Terms:
    """Return the terms that the first entry of a chain says, with the limits of then or lower ones.

    Raises:
        LedgerError: If it does not open a dataset, was changed, or cannot be read.
    """
    try:
        if first.kind != EntryKind.OPEN or first.digest() != first.hash:
            raise ValueError(first.kind)
        found: Any = json.loads(first.content)
        budget = checked_budget(read_description(found["budget"]))
        part, rule = checked_options(budget, found["slack"], found["rule"])
        order = found["order"]
        known = None if order is not None else rule
        measure = _measure(budget, part, known, order).lowered(costs_of(first.price))
        neighbours, within = Adjacency(found["adjacency"]), found["within"]
        return Terms(budget, neighbours, part, known, order, within, measure, first.hash)
    except (ValueError, KeyError, TypeError, HockeystickError) as error:
        raise LedgerError(
            f"the terms of dataset {first.dataset!r} cannot be read: they were written by "
            f"hockeystick {first.version}, or are damaged ({error})"
        ) from error


def _measure(
    budget: Notion, slack: float | None, rule: Rule | None, order: float | None
) -> AdditiveMeasure:
    with EVALUATING:
        if order is not None and isinstance(budget, ApproxDP):
            return one_order_measure(budget, slack or 0.0, order)
        return additive_measure(budget, slack, rule)


@lru_cache(maxsize=_REMEMBERED)
def _price_of_part(measure: AdditiveMeasure, part: Mechanism) -> tuple[Fraction, ...]:
    return tuple(storable(cost) for cost in measure.cost(part))


@final
@dataclass(frozen=True, slots=True)
class _Neighbours:
    """Those for which a budget is kept."""

    adjacency: Adjacency
    scope: tuple[Fact, ...] = ()

    def __str__(self) -> str:
        return f"the budget, for {self.adjacency} neighbours"


@final
class Scope:
    """What a dataset's reservations state, read as far as its chain went when it was last asked."""

    __slots__ = ("_entries", "_neighbours", "_stating")

    def __init__(self, adjacency: Adjacency) -> None:
        self._neighbours, self._entries = _Neighbours(adjacency), 0
        self._stating: list[Described] = [self._neighbours]

    def check(self, rows: Transaction, end: Chain, mechanisms: Sequence[Mechanism]) -> None:
        """Raise where a mechanism states something else than one before it, or than what counts."""
        pending: list[Described] = []
        for mechanism in (one for one in mechanisms if one.scope):
            self._learn(rows.reserved_contents(end.dataset, self._entries))
            self._entries = end.entries
            if states_more(mechanism, [*self._stating, *pending]):
                # What was released since counts no more.
                self._stating = [self._neighbours]
                self._learn(rows.counting_contents(end.dataset))
                stating = (*self._stating, *pending, mechanism)
                refuse_disagreement(stating, f"dataset {end.dataset!r}")
                pending.append(mechanism)

    def _learn(self, contents: Iterable[str]) -> None:
        """Take over what further reservations state."""
        for stated in map(_stated, contents):
            if states_more(stated, self._stating):
                self._stating.append(stated)


@lru_cache(maxsize=_REMEMBERED)
def _stated(content: str) -> Mechanism:
    """Return the mechanism of an entry, or raise."""
    try:
        return read_description(json.loads(content))
    except (ValueError, HockeystickError) as error:
        raise LedgerError(
            "an earlier reservation cannot be read, so that nobody knows whether it protects the "
            f"same: it was written by another version of hockeystick, or is damaged ({error})"
        ) from error
