"""What every accountant says of a plan, side by side."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, final

from hockeystick._tables import Rows, aligned, as_html, cells_of, columns_of
from hockeystick.accountants.ask import Answer, answers_by, asked
from hockeystick.accountants.auto import Auto
from hockeystick.accountants.base import Accountant, Kind
from hockeystick.accountants.registry import ACCOUNTANTS
from hockeystick.errors import UnsupportedError
from hockeystick.mechanisms import Mechanism
from hockeystick.mechanisms.base import checked
from hockeystick.results import Quantity


@final
@dataclass(frozen=True, slots=True)
class Row:
    """What one accountant says of a plan: an answer, or the reason why it has none."""

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
class Comparison(Rows[Row]):
    """What every accountant says of a plan: a tuple of rows, printed and shown as a table.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.compare(hs.Gaussian(2), delta=1e-5))
        accountant    kind           answer     proof
        closed-form   exact          1.99310    proven in [1.993091..., 1.993091...]
        ...
        gdp           approximation  ~ 1.99309  approximation, no guarantee
        ...
    """

    __slots__ = ()

    def __str__(self) -> str:
        """Return the rows as lines, below headings."""
        return aligned(self._cells)

    def __repr__(self) -> str:
        """Return the same lines: a row has all that is known of it."""
        return str(self)

    def _repr_html_(self) -> str:
        """Return the rows for a notebook."""
        return as_html(self._cells)

    @property
    def _cells(self) -> list[dict[str, str]]:
        """The rows as texts."""
        return [
            {"accountant": row.accountant, "kind": row.kind}
            | dict(zip(("answer", "proof"), cells_of(row.answer, row.reason), strict=True))
            for row in self
        ]


def compare(
    plan: Mechanism, *, delta: float | None = None, epsilon: float | None = None
) -> Comparison:
    """Return what every accountant says of a plan, side by side.

    Args:
        plan: A mechanism or plan.
        delta: Where to ask for epsilon, in [0, 1]; or
        epsilon: where to ask for delta, in [0, inf]: exactly one of the two.

    Returns:
        One row per accountant other than "auto", each with its kind: "exact" (a narrow proven
        interval), "bound" or "approximation". The rows are a tuple that prints as a table, and
        ``to_dataframe()`` hands them to pandas.

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
    name, value = asked(delta, epsilon)
    checked("plan", plan)
    others = [one for one in ACCOUNTANTS.values() if not isinstance(one, Auto)]
    return Comparison(_row(plan, name, value, one) for one in others)


def _row(plan: Mechanism, quantity: Quantity, value: float, accountant: Accountant) -> Row:
    """Return one accountant's row."""
    start = time.perf_counter()
    answer: Answer | None = None
    reason = ""
    try:
        answer = answers_by(plan, quantity, (value,), accountant, None)[0]
    except UnsupportedError as error:
        reason = error.reason
    return Row(accountant.name, accountant.kind, answer, reason, time.perf_counter() - start)
