"""Sampling that an adversary sees."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from hockeystick import _validate
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.base import Mechanism, checked
from hockeystick.mechanisms.registry import registered

_SMALLEST_RATE: Final = 1e-300


@dataclass(frozen=True, slots=True, init=False)
class OnRevealedSample(Mechanism):
    """Runs that a record takes part in with some probability, and all see whether it does."""

    rises_with = ("rate",)

    inner: Mechanism
    rate: float | Fraction

    def __init__(self, inner: Mechanism, rate: float | Fraction) -> None:
        object.__setattr__(self, "inner", checked("inner", inner))
        chance = _validate.probability("rate", rate)
        if 0 < chance < _SMALLEST_RATE:
            raise ParameterError("rate", rate, f"0, or a number from {_SMALLEST_RATE:g} to 1")
        object.__setattr__(self, "rate", chance)

    @property
    def adjacency(self) -> Adjacency | None:
        return self.inner.adjacency

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (self._drawn(), *self.inner.assumptions)

    @abstractmethod
    def _drawn(self) -> str:
        """Return how a record is drawn, as a sentence."""


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class RevealedSample(OnRevealedSample):
    """A mechanism that a record takes part in with some probability, and all see whether it does.

    With probability ``rate``, independently in each run, the record that differs is used and its
    pair is that of the inner mechanism; otherwise the run tells nothing, and which it was is known:

        delta(eps) = rate * delta_inner(eps),  and over n runs a mean over K ~ Bin(n, rate) hits.

    Nothing is amplified but by chance. It is what an adversary faces who learns the batches, each
    drawn afresh and independently of the others: of a fixed size m among N examples, rate = m/N.
    Of a Gaussian, n runs have the profile ``E_K delta_G(eps; sqrt(K) / noise_multiplier)``.

    Guarantees:
        Exact for such an adversary where the inner mechanism's pair is; an upper bound for one who
        does not see the batches.

    Edge cases:
        Rate 0 releases nothing about the data; rate 1 is the inner mechanism itself.

    Args:
        inner: The mechanism that the record is used by, for the change that it makes there: under
            replace-one, noise in units of twice the clipping norm.
        rate: Probability of a record to be used in one run, 0 or from 1e-300 to 1; a ``Fraction``
            is kept exact.

    Raises:
        ParameterError: If a parameter is outside its domain.
        IncompatibleError: If the inner mechanism is described for a stated number of examples.

    References:
        van Dijk, Nguyen, Nguyen and Nguyen, "Generalizing DP-SGD with shuffling and batch
        clipping", 2022, for its adversary A1.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.mechanisms.RevealedSample(hs.Gaussian(3.0), rate=0.01) ** 1000)
        Gaussian on a revealed sample (noise multiplier 3, rate 0.01) x 1000
    """

    def __init__(self, inner: Mechanism, rate: float | Fraction) -> None:
        if checked("inner", inner)._of_stated_size:
            raise IncompatibleError(
                f"{inner} is described for a stated number of examples, which a random sample "
                "does not have; sample once, by one of the two"
            )
        OnRevealedSample.__init__(self, inner, rate)

    def _drawn(self) -> str:
        return (
            f"Each example is used in each run with probability {float(self.rate):g}, independently"
            " of the other runs; who is used may be known."
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        """Return the inner mechanism's words with the sampling added."""
        name, details = self.inner._words()
        inside = name if details else f"[{name}]"
        return f"{inside} on a revealed sample", (*details, f"rate {float(self.rate):g}")
