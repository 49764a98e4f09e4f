"""What every accountant says of a plan, side by side."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import partial
from itertools import product
from typing import Any, Final, Literal, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.accountants.ask import Answer, answers_by, asked
from hockeystick.accountants.auto import ACCOUNTANTS, AUTO
from hockeystick.accountants.base import Accountant, Kind
from hockeystick.accountants.tradeoff import tradeoff
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError, UnsupportedError
from hockeystick.mechanisms import DPSGD, Mechanism, Sampling, assumptions_of
from hockeystick.mechanisms.base import checked
from hockeystick.numerics.numerals import plain
from hockeystick.results import Certified, Quantity, Rows, cells_of
from hockeystick.tradeoffs.base import Bounds
from hockeystick.tradeoffs.operations.gaussian_fit import least_mu, regret

# A full batch has another size, and so no place beside the others.
_COMPARED: Final = tuple(one for one in Sampling if one is not Sampling.FULL_BATCH)


@dataclass(frozen=True, slots=True)
class _Row:
    """An answer, or the reason why there is none, and what it is of."""

    def as_dict(self) -> dict[str, Any]:
        """Return the row as columns; of an approximation only the estimate is known."""
        found: dict[str, Any] = {}
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if name == "answer":
                found |= {end: getattr(value, end, None) for end in ("lower", "estimate", "upper")}
                found["estimate"] = getattr(value, "value", found["estimate"])
            else:
                found[name] = str(value) if isinstance(value, StrEnum) else value
        return found


@final
@dataclass(frozen=True, slots=True)
class SamplingRow(_Row):
    """What a plan costs with one sampling under one adjacency, or why nothing is known."""

    sampling: Sampling
    adjacency: Adjacency
    answer: Certified | None
    reason: str
    seconds: float


def _timed(
    make: Callable[[], Mechanism], quantity: Quantity, value: float, accountant: Accountant
) -> tuple[Any, str, float]:
    start = time.perf_counter()
    answer, reason = None, ""
    try:
        answer = answers_by(make(), quantity, (value,), accountant)[0]
    except IncompatibleError as error:
        reason = str(error)
    except UnsupportedError as error:
        reason = error.reason
    return answer, reason, time.perf_counter() - start


def compare_samplings(
    plan: DPSGD, *, delta: float | None = None, epsilon: float | None = None
) -> Rows[SamplingRow]:
    """Return what a DP-SGD plan would cost with every sampling, under every adjacency.

    All rows have the same noise, batch size and number of steps. The adjacencies protect different
    things: compare samplings within one of them. Of a fixed size, a batch without an example has
    another one in its place, so that the sum moves by up to twice the clipping norm: it costs more
    than Poisson batches, of which such a one is only smaller.

    Args:
        plan: A DP-SGD plan with its batch size and number of examples.
        delta: Where to ask for epsilon, in [0, 1]; or
        epsilon: where to ask for delta, in [0, inf]: exactly one of the two.

    Returns:
        One row per adjacency and sampling, a certified answer or the reason why there is none;
        ``to_dataframe()`` hands them to pandas.

    Raises:
        ParameterError: If the plan is not a DP-SGD plan, a parameter is outside its domain, or not
            exactly one is given.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.DPSGD(examples=100, batch_size=10, epochs=1, noise_multiplier=4.0)
        >>> for row in hs.accountants.compare_samplings(plan, delta=1e-5):
        ...     if row.answer and row.adjacency == "add-remove":
        ...         print(row.sampling, f"{row.answer.upper:.2f}")
        poisson 0.30
        fixed-size 0.80
        random-allocation 0.27
    """
    name, value = asked(delta, epsilon)
    if not isinstance(plan, DPSGD):
        raise ParameterError("plan", plan, "a DP-SGD plan")
    rows: list[SamplingRow] = []
    for adjacency, sampling in product(Adjacency, _COMPARED):
        make = partial(replace, plan, sampling=sampling, adjacency=adjacency)
        rows.append(SamplingRow(sampling, adjacency, *_timed(make, name, value, AUTO)))
    return Rows(rows)


LEAST_RATE: Final = 1e-12
_RATE: Final = Domain(symbol="alpha_0", low=1e-15, high=0.5, high_open=True, typical=(1e-12, 1e-3))
_NAME: Final = "f-dp"


@final
@dataclass(frozen=True, slots=True)
class GaussianSummary:
    """The Gaussian trade-off function that says what a plan costs, and what it says too much.

    Args:
        mu: The least mu with ``G_mu <= f`` wherever both error rates are at least ``least_rate``.
        regret: How far f is above ``G_mu`` for the upper end of mu: the least kappa with
            ``f(alpha + kappa) - kappa <= G_mu(alpha)`` for all alpha.
        least_rate: The least error rate at which mu holds.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.accountants.gaussian_summary(hs.Laplace(2), least_rate=0.01))
        mu = 0.561765 (proven in [0.56176432..., 0.56176432...]; f-dp) at error rates >= 0.01
        regret = 0.0271905 (proven in [0.0271903..., 0.0271904...]; f-dp)
    """

    mu: Certified
    regret: Certified
    least_rate: float

    def as_dict(self) -> dict[str, Any]:
        """Return the summary ready for JSON."""
        fits = {"mu": self.mu.as_dict(), "regret": self.regret.as_dict()}
        return {"least_rate": self.least_rate, **fits}

    def __str__(self) -> str:
        return f"{self.mu} at error rates >= {plain(self.least_rate)}\n{self.regret}"


def gaussian_summary(plan: Mechanism, least_rate: float = LEAST_RATE) -> GaussianSummary:
    """Return the mu that sums a plan up, and the regret of doing so, as proven intervals.

    With f the plan's trade-off function,

        mu = sup { Phi^-1(1 - f(alpha)) - Phi^-1(alpha) : alpha >= least_rate <= f(alpha) },
        regret = inf { kappa >= 0 : f(alpha + kappa) - kappa <= G_mu(alpha) for all alpha }.

    Guarantees:
        ``lower <= truth <= upper`` with rounding included: G is convex, so that it is below f on
        an interval of rates where it is below a line under f at both ends. ``regret`` is that of
        the upper end of mu, the one to report. The plan is NOT mu-GDP: at smaller rates nothing
        follows but that it is (epsilon, delta_mu(epsilon) + e^epsilon least_rate)-DP for every
        epsilon >= 0. For what holds at all rates, ``hs.convert(plan, hs.GDP)``, a sampled plan pays
        the price of its largest losses.

    Edge cases:
        A Gaussian mechanism has its own mu and regret 0; a plan that releases nothing has 0 and 0.
        mu is inf where f falls below the diagonal before ``least_rate``, that is where
        ``delta(0) > 1 - 2 least_rate``, as it does without noise.

    Args:
        plan: A mechanism or plan; ``hs.FDP(f)`` for a trade-off function.
        least_rate: The least false positive and false negative rate that matters, from 1e-15 to
            below 1/2.

    Returns:
        A ``GaussianSummary``.

    Raises:
        UnsupportedError: If no privacy loss is known for a part of the plan.

    References:
        Gomez, Kulynych, Kaissis, du Pin Calmon, Hayes, Balle and Honkela, "Gaussian DP for
        reporting differential privacy guarantees in machine learning", SaTML 2026.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.DPSGD(examples=60_000, batch_size=256, epochs=60, noise_multiplier=1.1)
        >>> summary = hs.accountants.gaussian_summary(plan)
        >>> print(f"{summary.mu:.5f} {summary.regret:.5f}")
        0.59770 0.00524
    """
    rate = _validate.real("least_rate", least_rate, _RATE)
    known = checked("plan", plan)
    f = tradeoff(known)
    mu = least_mu(f, rate)
    said: Any = {"accountant": _NAME, "adjacency": known.adjacency}
    said |= {"assumptions": assumptions_of(known)}

    def certified(quantity: Literal["mu", "regret"], found: Bounds) -> Certified:
        # The upper end is the estimate, as for a bound.
        return Certified(found.lower, found.upper, found.upper, quantity=quantity, **said)

    return GaussianSummary(
        mu=certified("mu", mu), regret=certified("regret", regret(f, mu.upper)), least_rate=rate
    )


_INVISIBLE: Final = 1e-6
# Upper over lower end from which an answer of an exact accountant counts as a bound.
_FAR_APART: Final = 1.01


@final
@dataclass(frozen=True, slots=True)
class Row(_Row):
    """What one accountant says of a plan: an answer, or the reason why it has none.

    The ``kind`` is that of the answer: "bound" where an exact accountant has an interval whose
    ends are far apart, and that of the accountant where it has no answer.
    """

    accountant: str
    kind: Kind
    answer: Answer | None
    reason: str
    seconds: float


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

    def beside(self, answer: Answer) -> str:
        """Return where an answer's number is, beside the truth, in words."""
        value = quoted(answer)
        ratio = self.ratio(value)
        if ratio == math.inf:
            return "no bound"
        times = "" if ratio is None else f"{ratio:.4g} times"
        if value < self.lower:
            return f"{'just' if times == '1 times' else times} below the truth".strip()
        if value <= self.upper and self.is_known:
            return "the truth"
        if value <= self.upper:
            return "best proven" if isinstance(answer, Certified) else "between the proven ends"
        return "the same to 4 digits" if times == "1 times" else times or "above"


def quoted(answer: Answer) -> float:
    """Return the number that a reader would take from an answer."""
    return float(answer) if isinstance(answer, Certified) else float(answer.value)


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
    """

    __slots__ = ()

    @property
    def tightest(self) -> Row | None:
        """The row of the narrowest certified answer; None where nothing is certified."""
        proven: list[Any] = [row for row in self if isinstance(row.answer, Certified)]
        return min(proven, key=lambda row: row.answer.width, default=None)

    def _cells(self) -> list[dict[str, str]]:
        truth, rows = Truth.of(self), []
        for row in sorted(self, key=lambda row: row.answer is None):
            answer, proof = cells_of(row.answer, row.reason)
            beside = "" if row.answer is None else truth.beside(row.answer)
            cells = {"accountant": row.accountant, "kind": row.kind, "answer": answer}
            rows.append(cells | {"next to truth": beside, "proof": proof})
        return rows


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
        >>> rows = hs.compare(hs.Gaussian(2) ** 10, delta=1e-5)
        >>> [row.accountant for row in rows if row.answer is None]
        ['selection', 'parts', 'advanced', 'basic']
    """
    name, value = asked(delta, epsilon)
    known = checked("plan", plan)
    others = [one for one in ACCOUNTANTS.values() if one is not AUTO]
    return Comparison(_row(known, name, value, one) for one in others)


def _row(plan: Mechanism, quantity: Quantity, value: float, accountant: Accountant) -> Row:
    """Return one accountant's row: an answer whose ends are far apart is a bound."""
    answer, reason, seconds = _timed(lambda: plan, quantity, value, accountant)
    far_apart = isinstance(answer, Certified) and answer.upper > _FAR_APART * answer.lower
    kind = "bound" if far_apart else accountant.kind
    return Row(accountant.name, kind, answer, reason, seconds)
