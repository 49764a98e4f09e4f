"""Noisy gradient descent on convex losses of which only the last model is released."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Final, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.base import Mechanism, checked, registered, set_fields
from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.mechanisms.sampling.fixed_size import RandomAllocation
from hockeystick.mechanisms.sampling.poisson import PoissonSubsampled
from hockeystick.mechanisms.scope import ONE_RECORD, Fact, Names
from hockeystick.numerics import decimal
from hockeystick.numerics.numerals import plain

FULL_BATCH: Final = "full-batch"
CYCLIC: Final = "cyclic"
FIXED_SIZE: Final = "fixed-size"
_BATCHES: Final = (FULL_BATCH, CYCLIC, FIXED_SIZE)
_POSITIVE: Final = {"domain": Domain("x", 0, math.inf, (1e-4, 10), low_open=True, high_open=True)}
_CONVEXITY: Final = {
    "domain": Domain(symbol="m", low=0, high=math.inf, high_open=True, typical=(1e-4, 1))
}
_DIAMETER: Final = {
    "domain": Domain(symbol="D", low=0, high=math.inf, low_open=True, typical=(0.1, 100))
}
_UNORDERED: Final = ("examples", "batch_size", "step_size", "smoothness", "gradient_bound")


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class LastIterate(Mechanism):
    """Noisy gradient descent on convex losses, of which only the last model is released.

    ``w <- Pi(w - eta (grad r(w) + (sum of g_i(w) over the batch + s C Z) / b))`` in each of T
    steps, ``Z ~ N(0, I)`` fresh: g_i is the gradient of record i's loss, of norm at most C; s is
    the noise multiplier; r a public function (a regulariser, say), which may change from step to
    step; Pi the projection onto a convex set of diameter D, or none; b the batch size, a public
    number. Each batch's objective, ``r + (sum of the losses) / b``, is m-strongly convex and
    M-smooth. All records are in each batch ("full-batch"), the batches take turns ("cyclic"), or
    each is a random set, drawn afresh ("fixed-size").

    Such a step is a contraction by ``c = max(|1 - eta m|, |1 - eta M|)`` before its noise. In units
    of ``eta C / b`` a record moves a step by at most ``u = 2`` under replace-one, ``u = 1``
    otherwise; D is ``d`` of these.

    Guarantees:
        An upper bound, mu-GDP, for every dimension, and for a record in the worst batch, the last
        one. Without projection ``mu = (u/s) sqrt((1-c^T)/(1+c^T) (1+c)/(1-c))`` for full batches,
        ``(u/s) sqrt(T)`` at c = 1, and for E = ceil(T/l) uses in l = ceil(examples/b) > 1 batches

            mu = (u/s) sqrt(1 + c^(2l-2) (1-c^2)/(1-c^l)^2 (1-c^(l(E-1)))/(1+c^(l(E-1)))).

        It never exceeds the cost of releasing all models, ``(u/s) sqrt(E)``. It is exact for full
        batches, and for cyclic ones if ``eta m <= 1 <= eta M``: quadratic r with linear losses
        attain it (where a factor is negative, in the limit of an r that drives w far to and fro).
        Otherwise the lower end is that of such losses.

        With a projection a record's earlier steps count at most d, and the bound is the least over
        where to start from that; for full batches about ``(u/s)^2 (1+c) (2 - (1-c) d/u) d/u`` for
        mu^2. No lower end is known.

        On random batches an upper bound is the composition of some sampled Gaussians, of the last
        steps, and one Gaussian for all before (``privacy_loss/training.py``), or the bound of full
        batches. How many steps are sampled ones is chosen by an estimate, so that at some delta all
        steps, ``FixedSizeSubsampled(Gaussian(s/2), b, examples) ** T``, may cost a little less. The
        lower end is that of quadratic losses among records that are alike.

    Args:
        noise_multiplier: Standard deviation s of a step's noise on the sum of a batch's gradients,
            over their bound C, in [0, inf]: 0 reveals a record, and is refused on random batches.
        steps: The number T of steps, an integer from 0 to 10^15.
        examples: The number of records, an integer >= 1; public, nominal under add-remove.
        batch_size: The number b of records in a batch and the divisor, an integer from 1 to
            examples; all of them if not given.
        batches: "full-batch", "cyclic" or "fixed-size"; if not given, "full-batch" where a batch
            is all records, else "cyclic", of which one epoch costs one step.
        step_size: eta, the same in all steps, a finite number > 0.
        smoothness: M, a finite number > 0, with ``eta M <= 2``.
        convexity: m, a number from 0 (convex) to M.
        diameter: D, a number > 0, or inf for no projection.
        gradient_bound: C, a finite number > 0; needed where there is a projection.
        adjacency: "replace-one", "zero-out", or "add-remove" for full batches, as in smaller ones
            other records would change theirs.

    References:
        Bok, Su and Altschuler, "Shifted Interpolation for Differential Privacy", ICML 2024 (arXiv
        2403.00278), section 4, whose L is ``u C`` here; Altschuler and Talwar, "Privacy
        of Noisy Stochastic Gradient Descent", NeurIPS 2022, for projections.

    Example:
        >>> import hockeystick as hs
        >>> run = hs.mechanisms.LastIterate(
        ...     3.0, steps=2000, examples=60_000, batch_size=1500,
        ...     step_size=0.05, smoothness=20.0, convexity=0.004,
        ... )
        >>> print(hs.epsilon(run, delta=1e-5))
        epsilon = 4.32079 at delta = 1e-05 (proven in [4.3207869..., 4.3207869...]; closed-form, \
replace-one)
    """

    rises_with: ClassVar[Names] = ("steps", "diameter")
    falls_with: ClassVar[Names] = ("noise_multiplier", "convexity")
    unordered: ClassVar[Names] = _UNORDERED
    noise_multiplier: float
    steps: int
    examples: int
    batch_size: int
    batches: str
    step_size: float = field(metadata=_POSITIVE)
    smoothness: float = field(metadata=_POSITIVE)
    convexity: float = field(metadata=_CONVEXITY)
    diameter: float = field(metadata=_DIAMETER)
    gradient_bound: float | None = field(metadata=_POSITIVE)
    adjacency: Adjacency
    scope: ClassVar[tuple[Fact, ...]] = (Fact("unit", ONE_RECORD),)

    def __init__(
        self,
        noise_multiplier: float,
        steps: float,
        *,
        examples: float,
        batch_size: float | None = None,
        batches: str | None = None,
        step_size: float,
        smoothness: float,
        convexity: float = 0.0,
        diameter: float = math.inf,
        gradient_bound: float | None = None,
        adjacency: Adjacency | str = Adjacency.REPLACE_ONE,
    ) -> None:
        number = _validate.count("examples", examples)
        size = number if batch_size is None else _validate.count("batch_size", batch_size)
        sizes = {"batch_size": size, "batches": _batches(batches, size, number)}
        set_fields(self, locals() | sizes)
        _check(self)

    @property
    def period(self) -> int:
        """How many steps there are from one use of a record to the next: 1 but for cycles."""
        return -(-self.examples // self.batch_size) if self.batches == CYCLIC else 1

    @property
    def rate(self) -> Fraction:
        """The chance of a record to be in the batch of a step; 1 for full batches and cycles."""
        drawn = self.batches == FIXED_SIZE
        return Fraction(self.batch_size, self.examples) if drawn else Fraction(1)

    @property
    def factors(self) -> tuple[Fraction, Fraction]:
        """What a step multiplies distances by at the largest and the least curvature, with sign."""
        eta = decimal(self.step_size)
        return 1 - eta * decimal(self.smoothness), 1 - eta * decimal(self.convexity)

    @property
    def change(self) -> int:
        """By how much a record moves a batch's sum, in units of the gradient bound."""
        return 2 if self.adjacency is Adjacency.REPLACE_ONE else 1

    @property
    def moves_across(self) -> Fraction | None:
        """The diameter in units of ``eta C / b``; None without projection."""
        if self.gradient_bound is None or self.diameter == math.inf:
            return None
        unit = decimal(self.step_size) * decimal(self.gradient_bound) / self.batch_size
        return decimal(self.diameter) / unit

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            self.adjacency.meaning,
            *_contraction(self),
            _turns(self),
            "Only the last model is seen by anyone, and nothing else that depends on the others: "
            "no checkpoint, no early stopping, no choice of the best model.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        projected = () if self.diameter == math.inf else (f"diameter {self.diameter:g}",)
        return "last iterate", (
            f"noise multiplier {self.noise_multiplier:g}",
            f"{self.steps} steps",
            f"{self.batches} {self.batch_size} of {self.examples}",
            f"contraction {float(max(map(abs, self.factors))):g}",
            *projected,
            self.adjacency,
        )


def _batches(batches: object, size: int, examples: int) -> str:
    if size > examples:
        raise ParameterError("batch_size", size, f"an integer from 1 to examples, {examples}")
    usual = FULL_BATCH if size == examples else CYCLIC
    found = usual if batches is None else _validate.one_of("batches", batches, _BATCHES)
    if found == FULL_BATCH and size < examples:
        raise IncompatibleError(
            f"a full batch is one of all {examples} examples; leave out batch_size {size}"
        )
    return found


def _check(run: LastIterate) -> None:
    if run.convexity > run.smoothness:
        allowed = f"a number from 0 to smoothness, {plain(run.smoothness)}"
        raise ParameterError("convexity", run.convexity, allowed)
    if run.factors[0] < -1:
        raise IncompatibleError(
            f"step_size times smoothness must be at most 2, where gradient steps contract; "
            f"{plain(run.step_size)} times {plain(run.smoothness)} is more"
        )
    if run.diameter < math.inf and run.gradient_bound is None:
        raise IncompatibleError("how far a diameter is in steps depends on gradient_bound: give it")
    if run.adjacency is Adjacency.ADD_REMOVE and run.batch_size < run.examples:
        raise IncompatibleError(
            "a record more or less would move others to other batches: use adjacency "
            "'replace-one' or 'zero-out'"
        )


def _contraction(run: LastIterate) -> tuple[str, ...]:
    bound = "C" if run.gradient_bound is None else plain(run.gradient_bound)
    size = f"{run.batch_size:,}"
    projection = (
        "there is no projection Pi"
        if run.diameter == math.inf
        else f"Pi is a projection onto a convex set of diameter at most {plain(run.diameter)}"
    )
    return (
        "Each step is w <- Pi(w - eta (gradient of r + (sum of the batch's gradients + noise) / "
        f"{size})) with eta = {plain(run.step_size)}; {projection}; r is public and may change "
        f"from step to step; the divisor {size} is public, whatever the number of records.",
        f"The objective of every step, r plus the sum of the batch's losses over {size}, is "
        f"{plain(run.convexity)}-strongly convex and {plain(run.smoothness)}-smooth on both data "
        "sets, so that steps contract as they are really done. Clipping the gradients of a loss "
        "destroys that, unless the clipped gradients are those of another convex loss, as in "
        "linear models, where it is the derivative by the score that is clipped.",
        f"Each record's gradient has norm at most {bound} wherever it is evaluated, beside what "
        "does not depend on the record, such as r.",
        f"The noise on the sum is fresh and Gaussian; its standard deviation is "
        f"{plain(run.noise_multiplier)} times {bound} in each coordinate. The first model does not "
        "depend on the data.",
    )


def _turns(run: LastIterate) -> str:
    if run.rate < 1:
        return (
            f"The batch of each of the {run.steps:,} steps is one of all sets of "
            f"{run.batch_size:,} of {run.examples:,} records, equally likely, drawn afresh and "
            "kept secret."
        )
    if run.period == 1:
        return f"All records are in the batch of each of the {run.steps:,} steps."
    return (
        f"The {run.examples:,} records are cut into {run.period:,} batches without looking at "
        f"them, which take turns in one order for {run.steps:,} steps; each record is in one "
        "batch, and stays there. The guarantee is for the worst one."
    )


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

    Args:
        inner: ``PoissonSubsampled(Gaussian(z), rate)`` or ``RandomAllocation(Gaussian(z), steps)``
            under add-remove or zero-out, with z the standard deviation of the noise over C.
        examples: Size of the (larger) data set, an integer >= 1.

    References:
        Huber, "A robust version of the probability ratio test", 1965, for the mixtures.

    Example:
        >>> import hockeystick as hs
        >>> batches = hs.PoissonSubsampled(hs.Gaussian(1.1), rate=0.01, adjacency="zero-out")
        >>> print(hs.mechanisms.BatchClipped(batches, examples=1000))
        batch-clipped Poisson-subsampled Gaussian \
(noise multiplier 1.1, rate 0.01, zero-out, 1000 examples)
    """

    falls_with: ClassVar[Names] = ("examples",)
    _of_stated_size: ClassVar[bool] = True
    inner: PoissonSubsampled | RandomAllocation
    examples: int

    def __init__(self, inner: Mechanism, examples: float) -> None:
        object.__setattr__(self, "inner", _batches_of_batch_clipped(checked("inner", inner)))
        set_fields(self, {"examples": examples})
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
        return (
            *self.inner.assumptions,
            "The sum of each batch is clipped as a whole to the clipping norm in L2.",
            f"The lower end is for data sets of {self.examples:,} examples, the larger of two that "
            "differ in size; the upper end is for any number.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        name, details = self.inner._words()
        return f"batch-clipped {name}", (*details, f"{self.examples} examples")


def _batches_of_batch_clipped(inner: Mechanism) -> PoissonSubsampled | RandomAllocation:
    if isinstance(inner, RandomAllocation):
        return inner
    if isinstance(inner, PoissonSubsampled) and isinstance(inner.inner, Gaussian):
        return inner
    raise IncompatibleError(
        "clipping of batches as a whole is analysed for Gaussian noise on Poisson samples or "
        f"random allocation, not for {inner}"
    )
