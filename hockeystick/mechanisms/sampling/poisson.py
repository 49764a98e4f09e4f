"""Poisson subsampling."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from hockeystick import _validate
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms.base import Mechanism, checked
from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.mechanisms.registry import registered


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class PoissonSubsampled(Mechanism):
    """A mechanism run on a random part of the data that holds each example independently.

    M(D) = inner(S), where each example of D is in S with probability ``rate``, independently of
    the others, and S is kept secret. One S serves one run of the inner mechanism, all rounds of a
    tree or a matrix factorization included: it does not describe batches that each of those rounds
    draws afresh.

    Guarantees:
        Under add-remove and zero-out, the mixture (1 - rate) inner(D') + rate inner(D) against
        inner(D') and its reverse dominate every pair of neighbours. Under replace-one, for the
        Gaussian mechanism, two opposite examples do, and data sets attain it: the mixtures of
        N(0, 1) with N(1/z, 1) and with N(-1/z, 1), z the noise multiplier. By Kahane's inequality
        no two examples cost more.

    Edge cases:
        Rate 0 releases nothing about the data; rate 1 is the inner mechanism itself.

    Args:
        inner: The mechanism that is run on the sample.
        rate: Probability of each example to be in the sample, in [0, 1]; a ``Fraction`` is kept
            exact.
        adjacency: "add-remove", "zero-out", or for a ``Gaussian`` "replace-one". Under all of them
            a Gaussian's noise multiplier counts in units of the largest contribution of one
            example.

    Raises:
        ParameterError: If a parameter is outside its domain.
        IncompatibleError: Under replace-one unless the inner mechanism is a ``Gaussian``, or if
            the inner mechanism has another adjacency or is described for a stated number of
            examples, which a Poisson sample does not have.

    References:
        Zhu, Dong and Wang, "Optimal Accounting of Differential Privacy via Characteristic
        Function", AISTATS 2022, theorem 11.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.PoissonSubsampled(hs.Gaussian(1.1), rate=256 / 60_000))
        Poisson-subsampled Gaussian (noise multiplier 1.1, rate 0.00426667)
    """

    rises_with = ("rate",)

    inner: Mechanism
    rate: float | Fraction
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __init__(
        self,
        inner: Mechanism,
        rate: float | Fraction,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    ) -> None:
        object.__setattr__(self, "inner", checked("inner", inner))
        object.__setattr__(self, "rate", _validate.probability("rate", rate))
        neighbours = _validate.choice("adjacency", adjacency, Adjacency)
        object.__setattr__(self, "adjacency", neighbours)
        if neighbours is Adjacency.REPLACE_ONE and not isinstance(inner, Gaussian):
            raise IncompatibleError(
                "under replace-one, Poisson sampling is analysed for the Gaussian mechanism, not "
                f"for {inner}; use add-remove or zero-out"
            )
        if inner._of_stated_size:
            raise IncompatibleError(
                f"{inner} is described for a stated number of examples, which a Poisson sample "
                "does not have; sample once, by one of the two"
            )
        refuse_other_adjacency(inner, neighbours)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the sampling to be as described."""
        sampling = (
            f"Each example is in each sample independently with probability {float(self.rate):g}, "
            "and the sample, one for a whole run of the inner mechanism, is kept secret."
        )
        return (self.adjacency.meaning, sampling, *self.inner.assumptions)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        """Return the inner mechanism's words with the sampling added."""
        name, details = self.inner._words()
        default = self.adjacency is Adjacency.ADD_REMOVE
        own = (
            (f"rate {float(self.rate):g}",)
            if default
            else (f"rate {float(self.rate):g}", self.adjacency)
        )
        inside = name if details else f"[{name}]"
        return f"Poisson-subsampled {inside}", (*details, *own)


def refuse_other_adjacency(inner: Mechanism, neighbours: Adjacency) -> None:
    """Raise where an inner mechanism is described under another adjacency than its sample is."""
    if inner.adjacency not in (None, neighbours):
        raise IncompatibleError(
            f"the inner mechanism, {inner}, is described under {inner.adjacency} and cannot be "
            f"accounted under {neighbours}; give both the same adjacency"
        )
