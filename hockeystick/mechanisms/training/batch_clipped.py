"""Sums of batches that are clipped as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from hockeystick import _validate
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms.base import Mechanism, checked
from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.mechanisms.registry import registered
from hockeystick.mechanisms.sampling.poisson import PoissonSubsampled
from hockeystick.mechanisms.sampling.random_allocation import RandomAllocation


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class BatchClipped(Mechanism):
    """Gaussian noise on the sums of random batches, each sum clipped as a whole to the norm C.

    M(D) = clip(sum of g_i over a batch, C) + N(0, (noise_multiplier C)^2 I) for each batch that
    ``inner`` draws. How long one example's g_i is does not matter: in a batch with others it turns
    the sum from one end of the ball of radius C to the other, by 2C; alone, from 0, by C.

    Guarantees:
        An upper end for data sets of any size: an example moves the sum of its batch by at most 2C.
        A lower end by data sets of exactly ``examples`` records, in which all others point one way.
        Under Poisson sampling with rate p the batch has the sum -C if it holds another one, else 0,
        and +C with the example that differs:

            Q = (1 - e) N(-C) + e N(0),  P = (1 - p) Q + p N(C),  e = (1 - p)^(examples - 1).

        Under random allocation it is the pair of batches that all hold another one, each of its
        distributions mixed with whatever the rest may be: that happens with probability at least
        ``1 - t (1 - k/t)^(examples - 1)``, and of all such mixtures those with a likelihood ratio
        cut at both ends cost least. Or, if that costs more, all others contribute nothing.

    Edge cases:
        Of one example, that is zeroed, the release is ``inner`` itself.

    Args:
        inner: ``PoissonSubsampled(Gaussian(z), rate)`` or ``RandomAllocation(Gaussian(z), steps)``
            under add-remove or zero-out, with z the standard deviation of the noise over C.
        examples: Size of the (larger) data set, an integer >= 1.

    Raises:
        ParameterError: If a parameter is outside its domain.
        IncompatibleError: If the inner mechanism is another one, or under replace-one.

    References:
        Huber, "A robust version of the probability ratio test", 1965, for the mixtures.

    Example:
        >>> import hockeystick as hs
        >>> batches = hs.PoissonSubsampled(hs.Gaussian(1.1), rate=0.01, adjacency="zero-out")
        >>> print(hs.mechanisms.BatchClipped(batches, examples=1000))
        batch-clipped Poisson-subsampled Gaussian \
(noise multiplier 1.1, rate 0.01, zero-out, 1000 examples)
    """

    falls_with = ("examples",)

    _of_stated_size: ClassVar[bool] = True

    inner: PoissonSubsampled | RandomAllocation
    examples: int

    def __init__(self, inner: Mechanism, examples: float) -> None:
        object.__setattr__(self, "inner", _batches(checked("inner", inner)))
        object.__setattr__(self, "examples", _validate.count("examples", examples))
        if self.adjacency is Adjacency.REPLACE_ONE:
            raise IncompatibleError(
                "clipping of random batches as a whole has no analysis under replace-one; use "
                "add-remove or zero-out"
            )

    @property
    def adjacency(self) -> Adjacency:
        return self.inner.adjacency

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold in the training code for the release to be as described."""
        return (
            *self.inner.assumptions,
            "The sum of each batch is clipped as a whole to the clipping norm in L2.",
            f"The lower end is for data sets of {self.examples:,} examples, the larger of two that "
            "differ in size; the upper end is for any number.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        """Return the inner mechanism's words with the number of examples added."""
        name, details = self.inner._words()
        return f"batch-clipped {name}", (*details, f"{self.examples} examples")


def _batches(inner: Mechanism) -> PoissonSubsampled | RandomAllocation:
    """Return the inner mechanism if it draws batches for Gaussian noise, or raise."""
    if isinstance(inner, RandomAllocation):
        return inner
    if isinstance(inner, PoissonSubsampled) and isinstance(inner.inner, Gaussian):
        return inner
    raise IncompatibleError(
        "clipping of batches as a whole is analysed for Gaussian noise on Poisson samples or "
        f"random allocation, not for {inner}"
    )
