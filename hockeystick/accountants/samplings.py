"""What each way of drawing batches would cost, for the same batch size and noise."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final, final

from hockeystick._tables import Rows, columns_of
from hockeystick.accountants.ask import asked, delta, epsilon
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError, UnsupportedError
from hockeystick.mechanisms import DPSGD, Sampling
from hockeystick.results import Certified

# A full batch has another size, and so no place beside the others.
_COMPARED: Final = tuple(one for one in Sampling if one is not Sampling.FULL_BATCH)


@final
@dataclass(frozen=True, slots=True)
class SamplingRow:
    """What a plan costs with one sampling under one adjacency, or why nothing is known."""

    sampling: Sampling
    adjacency: Adjacency
    answer: Certified | None
    reason: str
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Return the row as columns."""
        return {
            "sampling": str(self.sampling),
            "adjacency": str(self.adjacency),
            **columns_of(self.answer),
            "reason": self.reason,
            "seconds": self.seconds,
        }


def compare_samplings(
    plan: DPSGD,
    *,
    delta: float | None = None,
    epsilon: float | None = None,
    progress: Callable[[int, int, str], None] | None = None,
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
        progress: Called before each row with how many are answered, of how many, and which is next.

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
    every = list(product(Adjacency, _COMPARED))
    rows: list[SamplingRow] = []
    for adjacency, sampling in every:
        if progress is not None:
            progress(len(rows), len(every), f"{sampling}, {adjacency}")
        rows.append(_row(plan, sampling, adjacency, name, value))
    return Rows(rows)


def _row(
    plan: DPSGD, sampling: Sampling, adjacency: Adjacency, quantity: str, value: float
) -> SamplingRow:
    """Return one row."""
    start = time.perf_counter()
    answer: Certified | None = None
    reason = ""
    ask: Any = epsilon if quantity == "epsilon" else delta
    at = {"delta" if quantity == "epsilon" else "epsilon": value}
    try:
        answer = ask(replace(plan, sampling=sampling, adjacency=adjacency), **at)
    except IncompatibleError as error:
        reason = str(error)
    except UnsupportedError as error:
        reason = error.reason
    return SamplingRow(sampling, adjacency, answer, reason, time.perf_counter() - start)
