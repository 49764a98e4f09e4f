"""Samples of a fixed size, drawn without replacement."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from hockeystick import _validate
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms._fixed_sizes import refuse_other_adjacency, sampled_words, set_batch
from hockeystick.mechanisms.base import Mechanism, checked

_ZERO_OUT = (
    "no dominating pair is known here for samples of a fixed size under zero-out; use replace-one"
)


@final
@dataclass(frozen=True, slots=True, init=False)
class FixedSizeSubsampled(Mechanism):
    """A mechanism run on a random sample of a fixed size, drawn without replacement.

    M(D) = inner(S), where S is one of the sets of ``batch_size`` examples of D, all equally likely,
    and is kept secret. In a sample of a fixed size another example takes the place of a missing
    one: ``inner`` is described for samples in which one example is replaced, also under add-remove.

    Guarantees:
        Under add-remove exact: ``(1-q) inner(S') + q inner(S)`` against ``inner(S')`` and its
        reverse, q = batch_size / examples, dominate and are attained. Under replace-one a single
        run is exact; of several the upper end composes ``C_q(f)``, the worst of both directions in
        each run, and the lower end the direction that costs most throughout.

    Edge cases:
        A sample of all examples is the inner mechanism itself.

    Args:
        inner: The mechanism that is run on the sample, the same in both directions of a
            replacement, as noise is; a Gaussian's noise multiplier is the standard deviation over
            the most that replacing one example moves the result.
        batch_size: Size of a sample, an integer from 1 to examples.
        examples: Size of the (larger) data set, an integer >= 1.
        adjacency: "replace-one" or "add-remove".

    Raises:
        ParameterError: If a parameter is outside its domain.
        IncompatibleError: Under zero-out, or if the inner mechanism has another adjacency.

    References:
        Dong, Roth and Su, JRSS B 2022, theorem 4.2; Zhu, Dong and Wang, AISTATS 2022, theorem 11;
        Lebeda, Regehr, Kamath and Steinke, "Avoiding pitfalls for privacy accounting of subsampled
        mechanisms under composition", SaTML 2025, for why directions are composed apart.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.FixedSizeSubsampled(hs.Gaussian(1.1), batch_size=256, examples=60_000))
        fixed-size-subsampled Gaussian (noise multiplier 1.1, 256 of 60000, replace-one)
    """

    inner: Mechanism
    batch_size: int
    examples: int
    adjacency: Adjacency = Adjacency.REPLACE_ONE

    def __init__(
        self,
        inner: Mechanism,
        batch_size: float,
        examples: float,
        adjacency: Adjacency | str = Adjacency.REPLACE_ONE,
    ) -> None:
        object.__setattr__(self, "inner", checked("inner", inner))
        set_batch(self, batch_size, examples)
        if self.batch_size > self.examples:
            allowed = f"at most the number of examples, {self.examples}"
            raise ParameterError("batch_size", batch_size, allowed)
        neighbours = _validate.choice("adjacency", adjacency, Adjacency)
        object.__setattr__(self, "adjacency", neighbours)
        if neighbours is Adjacency.ZERO_OUT:
            raise IncompatibleError(_ZERO_OUT)
        refuse_other_adjacency(inner, Adjacency.REPLACE_ONE)

    @property
    def rate(self) -> Fraction:
        """The chance of an example to be in the sample."""
        return Fraction(self.batch_size, self.examples)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the sampling to be as described."""
        sampling = (
            f"Each sample is one of all sets of {self.batch_size:,} of {self.examples:,} examples, "
            "equally likely, and kept secret."
        )
        return (self.adjacency.meaning, sampling, *self.inner.assumptions)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        """Return the inner mechanism's words with the sampling added."""
        return sampled_words("fixed-size-subsampled", self)
