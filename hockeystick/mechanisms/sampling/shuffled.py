"""One epoch over shuffled data, cut into batches."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import ClassVar, Final, final

from hockeystick._validate import Domain, whole_numbers
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.base import Composed, Mechanism, checked, registered, set_fields
from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.mechanisms.sampling.fixed_size import LastBatch
from hockeystick.mechanisms.sampling.poisson import Clipping, PoissonSubsampled, unless_usual
from hockeystick.mechanisms.scope import EVERYBODY_REPORTS
from hockeystick.numerics.numerals import plain

_USED: Final = MappingProxyType(
    {
        LastBatch.WHOLE: "exactly one of the epoch's {} batches, which are all of one size",
        LastBatch.SMALLER: "exactly one of the epoch's {} batches, of one size but the last, which "
        "is smaller",
        LastBatch.DROPPED: "at most one of the epoch's {} batches, which are all of one size; "
        "fewer than that are in none",
    }
)
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
    """One epoch: the data are shuffled and cut into equal batches, and each one's sum gets noise.

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

    With ``group`` g it is for g examples that differ, as ``for_group`` makes it. Given that k_j of
    them are in batch j, the sums move by at most k_j units, so that whoever sees the batches loses

        delta(eps) = E delta_G(eps; sqrt(sum k_j^2)/s)    (sqrt(sum k_j^2) 2/s under replace-one),

    with g examples each of which is in any batch with the same chance: about ``sqrt(g)/s``, not
    ``g/s``, where g is far below the number of batches, and less than ``g/s`` always. Examples of
    one epoch, in batches of one size, meet less often than that. Where sums are clipped as a whole,
    at most g of them move, each by 2C: ``G_{2 sqrt(g)/s}``. The lower end is that of the sum of all
    batches, which moves by g units, or of a single example.

    **Batches that do not divide the examples.** With ``last_batch`` "smaller" the last of the steps
    has fewer examples, with "dropped" those that are left, fewer than a batch, sit out the epoch.
    Given the order, which does not depend on the data, one batch or none knows the example that
    differs, so that the upper end stays what it is: neither the noise nor the clipping knows the
    size of a batch. The lower end of a smaller batch stays as well, since the largest sum and the
    sum of all have the same law whichever batch the example is in. It is in none of the batches of
    a dropped rest with a probability of at most ``1/(T + 1)``: with b < n/T examples in a batch
    the rest has at most b - 1 of more than T b. The lower end is that of the largest sum which is
    moved with probability ``T/(T + 1)`` only; with less rest more is lost. (Turning some of the
    outputs into those of unmoved sums, whatever the data, leads from the one to the other.)

    A group g meets more often in whole batches if the last one is smaller. With m whole batches of
    b and a rest of r examples, of which a smaller batch or none is made, k of the group are placed,
    ``k_top`` of them in the i fullest. At least ``i (k - r)/m`` are in the i fullest whole batches,
    so that ``m k_top >= i (k - r)``, and the i fullest get the next one with probability at most
    ``(i b - k_top)/(m b + r - k) <= i/m``. So the account is that of m batches, all alike.

    Guarantees:
        An interval: the upper end is that of the Gaussian, the lower end that of such data. They
        are far apart where there are many batches and much noise, and shuffling may then be as
        costly as no sampling at all, or far less.

    Edge cases:
        One step is the Gaussian itself, exactly, with g times the distance where examples are
        clipped. Noise multiplier 0 releases the sums themselves; inf releases nothing. A group of
        more than 40 examples counts as one that is all in one batch, ``G_{g/s}``.

    Args:
        inner: ``Gaussian(noise_multiplier)`` with the standard deviation of the noise over the
            clipping norm C, the largest contribution of one example, under either adjacency.
        steps: The number of batches in the epoch, an integer from 1 to 10^15.
        adjacency: "zero-out" or "replace-one"; under add-remove batches would change their sizes.
        clipping: "individual", or "batch" where the sums of batches of two examples or more are
            clipped.
        group: The number g of examples that differ, an integer from 1 to 10^15.
        last_batch: "whole", "smaller" or "dropped"; a smaller one needs two steps, and where sums
            are clipped two examples.

    References:
        Chua, Ghazi, Kamath, Kumar, Manurangsi, Sinha and Zhang, "How Private are DP-SGD
        Implementations?", ICML 2024, for the lower end under zero-out; van Dijk, Nguyen, Nguyen and
        Nguyen, "Generalizing DP-SGD with shuffling and batch clipping", 2022, for groups, where
        ``G_{sqrt(g)/s}`` is no bound for examples that are clipped one by one.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.Shuffled(hs.Gaussian(1.0), steps=100) ** 10)
        shuffled Gaussian (noise multiplier 1, 100 batches, zero-out) x 10
    """

    rises_with: ClassVar[tuple[str, ...]] = ("group",)
    falls_with: ClassVar[tuple[str, ...]] = ("steps",)
    inner: Gaussian
    steps: int = field(metadata={"domain": whole_numbers("T", 1, (10, 10_000))})
    adjacency: Adjacency = Adjacency.ZERO_OUT
    clipping: Clipping = Clipping.INDIVIDUAL
    group: int = field(default=1, metadata={"domain": whole_numbers("g", 1, (1, 40))})
    last_batch: LastBatch = LastBatch.WHOLE

    def __init__(
        self,
        inner: Mechanism,
        steps: float,
        adjacency: Adjacency | str = Adjacency.ZERO_OUT,
        clipping: Clipping | str = Clipping.INDIVIDUAL,
        group: int = 1,
        last_batch: LastBatch | str = LastBatch.WHOLE,
    ) -> None:
        set_fields(self, locals() | {"inner": _gaussian(checked("inner", inner))})
        if self.last_batch is LastBatch.SMALLER and self.steps == 1:
            raise ParameterError("last_batch", last_batch, "'whole' or 'dropped' with one step")
        if self.adjacency is Adjacency.ADD_REMOVE:
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
        return (
            self.adjacency.meaning,
            "The examples are shuffled afresh for each epoch, and the order is kept secret.",
            f"Each example is in {_USED[self.last_batch].format(f'{self.steps:,}')}.",
            f"{_CLIPPED[self.clipping]} is clipped in L2 to the clipping norm; fresh Gaussian "
            "noise is added to each batch's sum, and its standard deviation is "
            f"{plain(self.noise_multiplier)} times the clipping norm.",
        )

    @property
    def whole_batches(self) -> int:
        """How many batches are of the largest size."""
        return self.steps - (self.last_batch is LastBatch.SMALLER)

    def for_group(self, size: int) -> Shuffled:
        return self if size == 1 else replace(self, group=self.group * size)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        name, details = self.inner._words()
        batches = "1 batch" if self.steps == 1 else f"{self.steps} batches"
        whole = ("batch clipping",) if self.clipping is Clipping.BATCH else ()
        several = (f"group of {self.group}",) if self.group > 1 else ()
        rest = {
            LastBatch.WHOLE: (),
            LastBatch.SMALLER: ("the last smaller",),
            LastBatch.DROPPED: ("the rest dropped",),
        }[self.last_batch]
        return f"shuffled {name}", (*details, batches, *rest, *whole, *several, self.adjacency)


def _gaussian(inner: Mechanism) -> Gaussian:
    if not isinstance(inner, Gaussian):
        if EVERYBODY_REPORTS in inner.scope:
            raise IncompatibleError(
                f"shuffling is of batches of examples here; reports that each person sends, "
                f"{inner}, are shuffled by ShuffledReports(randomizer, users)"
            )
        raise IncompatibleError(
            f"shuffling is analysed for Gaussian noise on a sum in each batch, not for {inner}; "
            "account for one run of the inner mechanism per epoch instead: an example takes part "
            "in one batch"
        )
    return inner


# The most different noises that are accounted for separately.
FEW_LEVELS: Final = 24
_NOISE: Final = Domain("z", 0, math.inf, (0.5, 10), low_open=True, high_open=True)


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class GaussianSequence(Mechanism):
    """Gaussian releases one after the other, each with a noise of its own: a noise schedule.

    M(D) = (M_1(D), ..., M_k(D)), M_j the Gaussian mechanism with the j-th noise multiplier on a
    Poisson sample of D at one rate, drawn afresh for each. It is the composition of
    ``PoissonSubsampled(Gaussian(z), rate)`` over the noise multipliers z; a million of them that
    all differ cost about as much time as a few.

    Guarantees:
        Those of ``PoissonSubsampled``: exact under add-remove and zero-out.

    Args:
        noise_multipliers: Standard deviations of the noise over the sensitivity, at least one, each
            in (0, inf).
        rate: Probability of each example to be in a sample, in [0, 1]; a ``Fraction`` is exact.
        adjacency: "add-remove" or "zero-out".

    References:
        Zhu, Dong and Wang, "Optimal Accounting of Differential Privacy via Characteristic
        Function", AISTATS 2022, theorems 10 and 11.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.mechanisms.GaussianSequence((2.0, 1.5, 1.0), rate=0.01))
        Gaussian sequence (3 releases, noise multipliers from 1 to 2, rate 0.01)
    """

    rises_with: ClassVar[tuple[str, ...]] = ("rate",)
    noise_multipliers: tuple[float, ...] = field(metadata={"domain": _NOISE})
    rate: float | Fraction
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __init__(
        self,
        noise_multipliers: Iterable[float],
        rate: float | Fraction,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    ) -> None:
        set_fields(self, locals())
        if self.adjacency is Adjacency.REPLACE_ONE:
            raise IncompatibleError(
                "a sequence of Gaussians is analysed under add-remove and zero-out; under "
                "replace-one compose PoissonSubsampled(Gaussian(z), rate, 'replace-one')"
            )

    @property
    def expanded(self) -> Mechanism:
        """The composition of Gaussians on Poisson samples, where few differ; else itself."""
        levels = Counter(self.noise_multipliers)
        if 0 < self.rate < 1 and len(levels) > FEW_LEVELS:
            return self
        return Composed(
            PoissonSubsampled(Gaussian(noise), self.rate, self.adjacency) ** runs
            for noise, runs in levels.items()
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            self.adjacency.meaning,
            "Each example is in each sample independently with probability "
            f"{float(self.rate):g}, afresh for each release, and the samples are kept secret.",
            f"Fresh Gaussian noise is added in each of {len(self.noise_multipliers):,} releases; "
            f"its standard deviation is {self._range} times the query's L2 sensitivity.",
        )

    @property
    def _range(self) -> str:
        return f"from {min(self.noise_multipliers):g} to {max(self.noise_multipliers):g}"

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "Gaussian sequence", (
            f"{len(self.noise_multipliers)} releases",
            f"noise multipliers {self._range}",
            f"rate {float(self.rate):g}",
            *unless_usual(self.adjacency),
        )
