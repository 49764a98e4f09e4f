"""One epoch over shuffled data, cut into batches."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, final

from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms.base import Mechanism, checked
from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.mechanisms.registry import registered
from hockeystick.mechanisms.sampling.clipping import Clipping
from hockeystick.numerics.numerals import plain

_STEPS: Final = whole_numbers("T", 1, (10, 10_000))
_CLIPPED: Final = MappingProxyType(
    {
        Clipping.INDIVIDUAL: "Each example's contribution",
        Clipping.BATCH: "The sum of each batch, which has at least two examples,",
    }
)


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class Shuffled(Mechanism):
    """One epoch: the data are shuffled and cut into batches, and each batch's sum gets noise.

    M(D) = (sum of batch t + N(0, (noise_multiplier C)^2 I)) for t = 1..steps, where each example
    is in exactly one batch, all ways of filling the batches are equally likely, each example
    contributes a vector of norm at most C, and a batch may depend on what was released before.
    ``** epochs`` shuffles afresh for each epoch.

    With s the noise multiplier, one epoch is ``G_{1/s}`` under zero-out and ``G_{2/s}`` under
    replace-one, whatever the other examples contribute: given which batch each example is in, only
    one batch knows the example that differs. No better bound is proven for all noise and steps.
    A lower bound is the loss of the largest of the batches' sums for data where every other example
    contributes -C along one direction, and the one that differs

    - under zero-out +C or nothing: a batch is 2C or C above the others;
    - under replace-one +C or -C: a batch is 2C above the others, or none is.

    With ``clipping`` "batch" it is the sum of a batch, of two examples or more, that is clipped to
    C, and what an example contributes is not. Then one epoch is ``G_{2/s}`` under either adjacency:
    given which batch each example is in, the only sum that knows the one that differs moves within
    a ball of radius C, by at most 2C. Where every other example contributes ``-R``, R at least C,
    along one direction, each batch of others has the sum -C, with one example fewer as well. If the
    one that differs contributes ``+bR``, b the size of a batch, its batch has +C; if it contributes
    nothing or ``-R``, -C. So a batch is 2C above the others, or none is, under zero-out as under
    replace-one, and the lower end is that of the latter.

    Guarantees:
        An interval: the upper end is that of the Gaussian, the lower end that of such data. They
        are far apart where there are many batches and much noise, and shuffling may then be as
        costly as no sampling at all, or far less.

    Edge cases:
        One step is the Gaussian itself, exactly. Noise multiplier 0 releases the sums themselves;
        inf releases nothing.

    Args:
        inner: ``Gaussian(noise_multiplier)`` with the standard deviation of the noise over the
            clipping norm C, the largest contribution of one example, under either adjacency.
        steps: The number of batches in the epoch, an integer from 1 to 10^15.
        adjacency: "zero-out" or "replace-one".
        clipping: "individual", or "batch" where the sums of batches of two examples or more are
            clipped.

    Raises:
        ParameterError: If a parameter is outside its domain.
        IncompatibleError: Under add-remove, where the batches would change their number or sizes,
            and for any other inner mechanism than a Gaussian.

    References:
        Chua, Ghazi, Kamath, Kumar, Manurangsi, Sinha and Zhang, "How Private are DP-SGD
        Implementations?", ICML 2024, for the lower end under zero-out.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.Shuffled(hs.Gaussian(1.0), steps=100) ** 10)
        shuffled Gaussian (noise multiplier 1, 100 batches, zero-out) x 10
    """

    falls_with = ("steps",)

    inner: Gaussian
    steps: int
    adjacency: Adjacency = Adjacency.ZERO_OUT
    clipping: Clipping = Clipping.INDIVIDUAL

    def __init__(
        self,
        inner: Mechanism,
        steps: float,
        adjacency: Adjacency | str = Adjacency.ZERO_OUT,
        clipping: Clipping | str = Clipping.INDIVIDUAL,
    ) -> None:
        object.__setattr__(self, "inner", _gaussian(checked("inner", inner)))
        object.__setattr__(self, "steps", _validate.count("steps", steps, _STEPS))
        neighbours = _validate.choice("adjacency", adjacency, Adjacency)
        object.__setattr__(self, "adjacency", neighbours)
        object.__setattr__(self, "clipping", _validate.choice("clipping", clipping, Clipping))
        if neighbours is Adjacency.ADD_REMOVE:
            raise IncompatibleError(
                "an example more or less changes the number or the sizes of shuffled batches, so "
                "that shuffling has no analysis under add-remove; use zero-out or replace-one"
            )

    @property
    def noise_multiplier(self) -> float:
        """The standard deviation of the noise over the clipping norm."""
        return self.inner.noise_multiplier

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold in the training code for the release to be as described."""
        return (
            self.adjacency.meaning,
            "The examples are shuffled afresh for each epoch, and the order is kept secret.",
            f"Each example is in exactly one of the epoch's {self.steps:,} batches, whose sizes "
            "do not depend on the data.",
            f"{_CLIPPED[self.clipping]} is clipped in L2 to the clipping norm; fresh Gaussian "
            "noise is added to each batch's sum, and its standard deviation is "
            f"{plain(self.noise_multiplier)} times the clipping norm.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        """Return the inner mechanism's words with the batches added."""
        name, details = self.inner._words()
        batches = "1 batch" if self.steps == 1 else f"{self.steps} batches"
        whole = ("batch clipping",) if self.clipping is Clipping.BATCH else ()
        return f"shuffled {name}", (*details, batches, *whole, self.adjacency)


def _gaussian(inner: Mechanism) -> Gaussian:
    """Return the inner mechanism if it is one that shuffling is analysed for, or raise."""
    if not isinstance(inner, Gaussian):
        raise IncompatibleError(
            f"shuffling is analysed for Gaussian noise on a sum in each batch, not for {inner}; "
            "account for one run of the inner mechanism per epoch instead: an example takes part "
            "in one batch"
        )
    return inner
