"""A stateful accountant, for loops that release as they go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, Self, Unpack, final, overload

from hockeystick import accountants
from hockeystick.accountants import Answer
from hockeystick.accountants.ask import Precision, Proving
from hockeystick.accountants.tradeoff import tradeoff
from hockeystick.calibration.session.runs import EVALUATING, Recorder, Runs, unrolled
from hockeystick.mechanisms import Mechanism
from hockeystick.results import Certified
from hockeystick.tradeoffs import TradeOff

PLANNED: Final = (
    "Which mechanisms run, with which privacy parameters and how often, does not depend on what "
    "was released before; where it does, only a Filter bounds what is spent."
)


@final
class Accountant(Recorder):
    """What a program has released so far, and what that costs; for training loops.

    Each ``step`` records runs of a mechanism. Equal mechanisms are counted together, so that a
    million equal steps are one entry, and a question costs what it costs of the plan

        M_1 ** n_1 @ M_2 ** n_2 @ ...

    Guarantees:
        Those of ``hs.epsilon``, ``hs.delta`` and ``hs.tradeoff`` of ``accountant.plan``. They hold
        for *planned* releases: each mechanism may depend on all earlier outputs (on the model so
        far, say), but its privacy parameters and the number of runs may not. Noise, rates or a
        number of steps that are chosen by looking at released outputs, early stopping among them,
        are *adaptive*: no plan is then fixed of which the answer could be true, and
        ``hs.calibration.Filter`` is what bounds them. Each answer says so among its assumptions.

    Edge cases:
        Any number of threads may record and ask at the same time. A copy, also that of a forked or
        another process, records for itself.

    References:
        Rogers, Roth, Ullman and Vadhan, "Privacy Odometers and Filters: Pay-as-you-Go
        Composition", NIPS 2016 (why adaptive parameters need a filter).

    Example:
        >>> import hockeystick as hs
        >>> accountant = hs.Accountant()
        >>> step = hs.PoissonSubsampled(hs.Gaussian(1.1), rate=256 / 60_000)
        >>> for _ in range(1000):
        ...     accountant.step(step)
        >>> print(accountant.plan)
        Poisson-subsampled Gaussian (noise multiplier 1.1, rate 0.00426667) x 1000
        >>> print(f"{accountant.epsilon(delta=1e-5):.3f}")
        0.599
        >>> hs.Accountant.from_state_dict(accountant.state_dict()).plan == accountant.plan
        True
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(Runs())

    def step(self, mechanism: Mechanism, count: float = 1) -> None:
        """Record that a mechanism has run, or is about to.

        Args:
            mechanism: What runs; a repetition counts as that number of runs of its inside.
            count: How many runs, an integer from 0 to 10^15.

        Raises:
            IncompatibleError: If it is described under another adjacency than what has run.
        """
        once, runs = unrolled(mechanism, count)
        with self._lock:
            self._runs.add(once, runs)

    @property
    def plan(self) -> Mechanism:
        """The composition of all that is recorded; a release of nothing where there is none."""
        return self._snapshot().plan

    def __repr__(self) -> str:
        return f"<Accountant of {len(self)} runs: {self.plan}>"

    @overload
    def epsilon(
        self, delta: float, *, accountant: Proving = ..., **how: Unpack[Precision]
    ) -> Certified: ...
    @overload
    def epsilon(self, delta: float, *, accountant: str, **how: Unpack[Precision]) -> Answer: ...
    def epsilon(self, delta: float, **how: Any) -> Answer:
        """Return the epsilon of what is recorded at a delta, as ``hs.epsilon`` does.

        Its assumptions say that the releases were planned.
        """
        return self._ask(accountants.epsilon, delta, **how)

    @overload
    def delta(
        self, epsilon: float, *, accountant: Proving = ..., **how: Unpack[Precision]
    ) -> Certified: ...
    @overload
    def delta(self, epsilon: float, *, accountant: str, **how: Unpack[Precision]) -> Answer: ...
    def delta(self, epsilon: float, **how: Any) -> Answer:
        """Return the delta of what is recorded at an epsilon, as ``hs.delta`` does."""
        return self._ask(accountants.delta, epsilon, **how)

    def _ask(self, ask: Callable[..., Answer], at: float, **how: Any) -> Answer:
        plan = self.plan
        with EVALUATING:
            found = ask(plan, at, **how)
        return replace(found, assumptions=(*found.assumptions, PLANNED))

    def tradeoff(self) -> TradeOff:
        """Return the trade-off function of what is recorded, if it was planned."""
        plan = self.plan
        with EVALUATING:
            return tradeoff(plan)

    @classmethod
    def _with_terms(cls, terms: Mapping[str, Any]) -> Self:
        return cls()

    def _take_over(self, runs: Runs) -> None:
        self._runs = runs
