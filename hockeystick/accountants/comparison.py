"""What every accountant says of a plan, side by side."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, final

from hockeystick._tables import Rows, aligned, as_html, cells_of, columns_of
from hockeystick.accountants.ask import Answer, answers_by, asked, refuse_swapped
from hockeystick.accountants.auto import Auto
from hockeystick.accountants.base import Accountant, Kind
from hockeystick.accountants.registry import ACCOUNTANTS
from hockeystick.errors import UnsupportedError
from hockeystick.mechanisms import Mechanism
from hockeystick.mechanisms.base import checked
from hockeystick.results import Certified, Quantity, is_wide

_INVISIBLE: Final = 1e-6


@final
@dataclass(frozen=True, slots=True)
class Row:
    """What one accountant says of a plan: an answer, or the reason why it has none.

    The ``kind`` is that of the answer: "bound" where an exact accountant has an interval whose
    ends are far apart, and that of the accountant where it has no answer.
    """

    accountant: str
    kind: Kind
    answer: Answer | None
    reason: str
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Return the row as columns; of an approximation only the estimate is known."""
        return {
            "accountant": self.accountant,
            "kind": self.kind,
            **columns_of(self.answer),
            "reason": self.reason,
            "seconds": self.seconds,
        }


@final
@dataclass(frozen=True, slots=True)
class Truth:
    """What is proven of a plan by all certified answers together."""

    lower: float
    upper: float

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Truth:
        """Return the intersection of the certified answers' intervals."""
        proven = [row.answer for row in rows if isinstance(row.answer, Certified)]
        lower = max((answer.lower for answer in proven), default=0.0)
        return cls(lower, min((answer.upper for answer in proven), default=math.inf))

    @property
    def is_known(self) -> bool:
        """Return whether the two ends agree for all that a reader can see."""
        return self.upper == self.lower or self.upper - self.lower <= _INVISIBLE * self.upper

    def ratio(self, value: float) -> float | None:
        """Return the value over the proven upper end, None where that says nothing."""
        return value / self.upper if 0 < self.upper < math.inf else None

    def is_above(self, value: float) -> bool:
        """Return whether the value is too low to be the truth."""
        return value < self.lower

    def looks_equal(self, value: float) -> bool:
        """Return whether the value and the proven upper end have the same four digits."""
        ratio = self.ratio(value)
        return ratio is not None and f"{ratio:.4g}" == "1"

    def beside(self, answer: Answer) -> str:
        """Return where an answer's number is, beside the truth, in words.

        An approximation proves nothing: by chance it may lie between the proven ends.
        """
        value = quoted(answer)
        ratio = self.ratio(value)
        if ratio == math.inf:
            return "no bound"
        times = "" if ratio is None else f"{ratio:.4g} times"
        if self.is_above(value):
            above = "just" if self.looks_equal(value) else times
            return f"{above} below the truth".strip()
        if value <= self.upper and self.is_known:
            return "the truth"
        if value <= self.upper:
            return "best proven" if isinstance(answer, Certified) else "between the proven ends"
        return "the same to 4 digits" if self.looks_equal(value) else times or "above"


def quoted(answer: Answer) -> float:
    """Return the number that a reader would take from an answer."""
    return float(answer) if isinstance(answer, Certified) else float(answer.value)


def _cells(row: Row, truth: Truth) -> dict[str, str]:
    """Return a row as texts."""
    answer, proof = cells_of(row.answer, row.reason)
    return {
        "accountant": row.accountant,
        "kind": row.kind,
        "answer": answer,
        "next to truth": "" if row.answer is None else truth.beside(row.answer),
        "proof": proof,
    }


def _width(row: Row) -> float:
    """Return the width of a certified answer."""
    return row.answer.width if isinstance(row.answer, Certified) else math.inf


@final
class Comparison(Rows[Row]):
    """What every accountant says of a plan: a tuple of rows, printed and shown as a table.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.compare(hs.Gaussian(2), delta=1e-5))
        accountant    kind           answer     next to truth         proof
        closed-form   exact          1.99310    the truth             proven in [1.993091..., ...]
        ...
        gdp           approximation  ~ 1.99309  the truth             approximation, no guarantee
        ...
        >>> hs.compare(hs.Gaussian(2), 1e-5).tightest.accountant
        'closed-form'
    """

    __slots__ = ()

    @property
    def tightest(self) -> Row | None:
        """The row of the narrowest certified answer; None where nothing is certified."""
        proven = [row for row in self if isinstance(row.answer, Certified)]
        return min(proven, key=_width, default=None)

    def __str__(self) -> str:
        """Return the rows as lines, below headings."""
        return aligned(self._cells)

    def __repr__(self) -> str:
        """Return the same lines: a row has all that is known of it."""
        return str(self)

    def _repr_html_(self) -> str:
        return as_html(self._cells)

    @property
    def _cells(self) -> list[dict[str, str]]:
        """The rows as texts, those without an answer last."""
        truth = Truth.of(self)
        return [_cells(row, truth) for row in sorted(self, key=lambda row: row.answer is None)]


def compare(
    plan: Mechanism, delta: float | None = None, *, epsilon: float | None = None
) -> Comparison:
    """Return what every accountant says of a plan, side by side.

    Args:
        plan: A mechanism or plan.
        delta: Where to ask for epsilon, in [0, 1]; or
        epsilon: where to ask for delta, in [0, inf]: exactly one of the two.

    Returns:
        One row per accountant other than "auto", each with its kind: "exact" (a proven interval
        of at most 1 %), "bound" or "approximation". The rows are a tuple that prints as a table,
        and ``to_dataframe()`` hands them to pandas.

    Raises:
        ParameterError: If a parameter is outside its domain, or not exactly one is given.

    Example:
        >>> import hockeystick as hs
        >>> for row in hs.compare(hs.Gaussian(2) ** 10, delta=1e-5):
        ...     print(row.accountant, row.kind, row.answer is not None)
        closed-form exact True
        contour exact True
        prv exact True
        selection exact False
        parts bound False
        rdp bound True
        zcdp bound True
        moments bound True
        advanced bound False
        basic bound False
        berry-esseen bound True
        gdp approximation True
        edgeworth approximation True
    """
    refuse_swapped(plan, "delta", delta)
    name, value = asked(delta, epsilon)
    known = checked("plan", plan)
    others = [one for one in ACCOUNTANTS.values() if not isinstance(one, Auto)]
    return Comparison(_row(known, name, value, one) for one in others)


def _row(plan: Mechanism, quantity: Quantity, value: float, accountant: Accountant) -> Row:
    """Return one accountant's row."""
    start = time.perf_counter()
    answer: Answer | None = None
    reason = ""
    try:
        answer = answers_by(plan, quantity, (value,), accountant, None)[0]
    except UnsupportedError as error:
        reason = error.reason
    kind = _kind(accountant, answer)
    return Row(accountant.name, kind, answer, reason, time.perf_counter() - start)


def _kind(accountant: Accountant, answer: Answer | None) -> Kind:
    """Return the kind of an accountant's answer: ends that are far apart are a bound."""
    far_apart = isinstance(answer, Certified) and is_wide(answer)
    return "bound" if far_apart else accountant.kind
