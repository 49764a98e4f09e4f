"""Samples of a fixed size, without and with replacement, and random allocation."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Final, final

from hockeystick._validate import PARAMETERS, WordEnum, whole_numbers
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.base import Mechanism, checked, registered, set_fields
from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.mechanisms.sampling.poisson import unless_usual

REPLACED: Final = (
    "Its noise is measured by what replacing one example may move the result by: for contributions "
    "clipped to a norm, by twice that norm, where a plan of DP-SGD counts noise in once the norm."
)


def twice_moved(adjacency: Adjacency, one: str) -> str:
    """Return why clipped sums over sets of a fixed size cost more than by coins, as a sentence.

    Nothing under zero-out, where who is zeroed is still drawn.
    """
    if adjacency is Adjacency.ZERO_OUT:
        return ""
    return (
        f" Another {one} takes the place of one that is missing or replaced, so that a sum moves "
        "by up to twice the clipping norm and the noise counts half: sampling 'poisson', a coin "
        f"for each {one}, costs less."
    )


@dataclass(frozen=True, slots=True, init=False)
class OnFixedSizeSample(Mechanism):
    """A mechanism run on a secret sample of a fixed size, for which one example is replaced."""

    rises_with: ClassVar[tuple[str, ...]] = ("batch_size",)
    falls_with: ClassVar[tuple[str, ...]] = ("examples",)
    _of_stated_size: ClassVar[bool] = True
    _drawn: ClassVar[str]
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
        set_fields(self, locals())
        self._check()
        if inner.adjacency not in (None, Adjacency.REPLACE_ONE):
            raise IncompatibleError(
                f"the inner mechanism, {inner}, is described under {inner.adjacency}, and samples "
                f"of a fixed size are neighbours under {Adjacency.REPLACE_ONE}; describe it under "
                "that"
            )

    @abstractmethod
    def _check(self) -> None: ...

    @abstractmethod
    def _sampling(self) -> str: ...

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (self.adjacency.meaning, self._sampling(), *self.inner.assumptions, REPLACED)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        name, details = self.inner._words()
        inside = name if details else f"[{name}]"
        sizes = f"{self.batch_size} of {self.examples}"
        return f"{self._drawn} {inside}", (*details, sizes, self.adjacency)


_CLIPPED: Final = (
    "Each example contributes a vector whose L2 norm is at most half of what replacing one may "
    "move the sum; one that is zeroed contributes nothing."
)


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class FixedSizeSubsampled(OnFixedSizeSample):
    """A mechanism run on a random sample of a fixed size, drawn without replacement.

    M(D) = inner(S), where S is one of the sets of ``batch_size`` examples of D, all equally likely,
    and is kept secret. In a sample of a fixed size another example takes the place of a missing
    one: ``inner`` is described for samples in which one example is replaced, also under add-remove.

    Guarantees:
        Under add-remove exact: ``(1-q) inner(S') + q inner(S)`` against ``inner(S')`` and its
        reverse, q = batch_size / examples, dominate and are attained. Under replace-one a single
        run is exact; of several the upper end composes ``C_q(f)``, the worst of both directions in
        each run, and the lower end the direction that costs most throughout. With Gaussian noise,
        integer noise of sensitivity 1 and two answers, the upper end of some hundred runs is that
        of data that earlier outcomes choose; with more answers ``C_q(f)`` is attained.

        Under zero-out an interval. Let P_1 be the release from a sample with the example, Q_1 that
        with the example zeroed, and P_0 that without it, the same for both data sets. With
        ``b = e^(eps'-eps)``, ``e^eps' = 1 + q (e^eps - 1)``, advanced joint convexity says

            delta(eps') = q H_eps(P_1, (1-b) P_0 + b Q_1)
                       <= q ((1-b) H_eps(P_1, P_0) + b H_eps(P_1, Q_1)),

        and both divergences are at most that of a replacement: P_0 is P_1 with another example in
        the place of the one that is zeroed, on average over which. The same holds with P_1 and Q_1
        exchanged, so that the upper end is that of replace-one. The lower end is known for Gaussian
        noise on sums: where all other examples contribute nothing, zeroing moves a sum by half as
        much as a replacement may, C of 2C, and the release is a sampled Gaussian.

        Where contributions are ``clipped`` to norm C and the noise is Gaussian, a single run is
        exact under zero-out: for ``eps >= 0`` an example costs most where all others contribute the
        opposite, ``(1-q) N(-C) + q N(C)`` against ``(1-q) N(-C) + q N(0)``, and in the other order
        where they contribute the same, ``(1-q) N(C) + q N(0)`` against ``N(C)``. Of several runs
        the upper end composes the worst of both in each run, and the lower end the first in one
        order and the second in the other. Contributions in [0, 2C], which a replacement moves as
        far, cost more: ``(1-q) N(0) + q N(2C)`` against ``N(0)``.

    Edge cases:
        Under replace-one a sample of all examples is the inner mechanism itself. Under add-remove
        its neighbour has no example to take the place of the missing one: known is an interval, for
        a Gaussian on sums of contributions of norm at most C. One that is missing moves such a sum
        by C, the lower end; the upper end is that of a replacement, by 2C, which holds for
        contributions in [0, 2C] as well. Where they are ``clipped`` to norm C, both ends are those
        of moving by C. So are those of one that is zeroed.

    Args:
        inner: The mechanism that is run on the sample, the same in both directions of a
            replacement, as noise is; a Gaussian's noise multiplier is the standard deviation over
            the most that replacing one example moves the result.
        batch_size: Size of a sample, an integer from 1 to examples.
        examples: Size of the data set, under add-remove exactly that of the larger one, an integer
            >= 1.
        adjacency: "replace-one", "add-remove" or "zero-out".
        clipped: Whether the inner mechanism is Gaussian noise on a sum of vectors, one of each
            example, whose L2 norm is at most half of what replacing one moves the sum, 0 for one
            that is zeroed; as where each is clipped to the norm C, for replacements that move the
            sum by up to 2C. Not so for a count, whose 0 or 1 a replacement moves by 1.

    References:
        Balle, Barthe and Gaboardi, "Privacy amplification by subsampling", NeurIPS 2018, theorem 2;
        Dong, Roth and Su, JRSS B 2022, theorem 4.2; Zhu, Dong and Wang, AISTATS 2022, theorem 11;
        Lebeda, Regehr, Kamath and Steinke, "Avoiding pitfalls for privacy accounting of subsampled
        mechanisms under composition", SaTML 2025, for why directions are composed separately;
        Kahane, "Sur le chaos multiplicatif", Ann. Sci. Math. Quebec 1985, for which vectors of a
        ball cost most.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.FixedSizeSubsampled(hs.Gaussian(1.1), batch_size=256, examples=60_000))
        fixed-size-subsampled Gaussian (noise multiplier 1.1, 256 of 60000, replace-one)
    """

    _drawn = "fixed-size-subsampled"
    clipped: bool = False

    def __init__(
        self,
        inner: Mechanism,
        batch_size: float,
        examples: float,
        adjacency: Adjacency | str = Adjacency.REPLACE_ONE,
        clipped: bool = False,
    ) -> None:
        OnFixedSizeSample.__init__(self, inner, batch_size, examples, adjacency)
        set_fields(self, {"clipped": clipped})
        if clipped and not isinstance(inner, Gaussian):
            raise IncompatibleError(
                f"clipped contributions are analysed for the Gaussian mechanism, not for {inner}; "
                "leave clipped out"
            )

    def _check(self) -> None:
        if self.batch_size > self.examples:
            allowed = f"at most the number of examples, {self.examples}"
            raise ParameterError("batch_size", self.batch_size, allowed)

    @property
    def rate(self) -> Fraction:
        """The chance of an example to be in the sample."""
        return Fraction(self.batch_size, self.examples)

    def _sampling(self) -> str:
        every = (
            f"Each sample is one of all sets of {self.batch_size:,} of {self.examples:,} examples, "
            "equally likely, and kept secret."
        )
        larger = f" The larger of two neighbouring data sets has exactly {self.examples:,}."
        return every + larger if self.adjacency is Adjacency.ADD_REMOVE else every

    @property
    def assumptions(self) -> tuple[str, ...]:
        clipped = (_CLIPPED,) if self.clipped else ()
        inner = self.inner.assumptions
        return (self.adjacency.meaning, self._sampling(), *clipped, *inner, REPLACED)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        name, details = OnFixedSizeSample._words(self)
        return name, (*details[:-1], "clipped", details[-1]) if self.clipped else details


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class WithReplacementSubsampled(OnFixedSizeSample):
    """The Gaussian mechanism run on a sample of a fixed size, drawn with replacement.

    Each of the ``batch_size`` places of the sample holds one of the examples, independently and
    equally likely: an example may be there several times, and moves the result as often. The
    sample is kept secret.

    Guarantees:
        An upper end by theorem 10 of Balle, Barthe and Gaboardi 2018: with
        ``gamma = 1 - (1 - 1/n)^m``, ``delta(ln(1 + gamma (e^eps - 1)))`` is at most
        ``sum_k P[Bin(m, 1/n) = k] delta_k(eps)`` over the groups of k; a lower end by data sets
        whose other examples are all alike, a mixture of Gaussians.

    Args:
        inner: A ``Gaussian``; its noise multiplier is the standard deviation over the most that
            replacing one place of the sample moves the result.
        batch_size: Number m of places, an integer >= 1.
        examples: Size n of the data set, an integer >= 1.
        adjacency: "replace-one".

    References:
        Balle, Barthe and Gaboardi, "Privacy amplification by subsampling", NeurIPS 2018.

    Example:
        >>> import hockeystick as hs
        >>> print(
        ...     hs.mechanisms.WithReplacementSubsampled(
        ...         hs.Gaussian(1.1), batch_size=10, examples=1000
        ...     )
        ... )
        with-replacement-subsampled Gaussian (noise multiplier 1.1, 10 of 1000, replace-one)
    """

    _drawn = "with-replacement-subsampled"

    def _check(self) -> None:
        if self.adjacency is not Adjacency.REPLACE_ONE:
            raise IncompatibleError(
                f"sampling with replacement has no analysis under {self.adjacency}: with one "
                "example more every place is drawn from another data set; use replace-one"
            )

    def _sampling(self) -> str:
        return (
            f"Each of the {self.batch_size:,} places of a sample holds any of the "
            f"{self.examples:,} examples, independently and equally likely; samples are secret."
        )


@registered
class LastBatch(WordEnum):
    """What the last batch of a shuffled epoch is.

    - "whole": as large as the others, which divide the examples.
    - "smaller": the examples that are left, fewer than in the others.
    - "dropped": the examples that are left sit out the epoch: others in each.
    """

    WHOLE = "whole"
    SMALLER = "smaller"
    DROPPED = "dropped"


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class RandomAllocation(Mechanism):
    """An epoch of steps with Gaussian noise; each record is in some of them, chosen at random.

    Each step releases the sum of what its records contribute, plus fresh noise; each record is in
    exactly ``participations`` k of the ``steps`` t, which k being equally likely, independently of
    all other records, and secret ("balls-and-bins" for k = 1). With the record, moving each step
    that it is in by one unit, and without it the outputs are

        P = mean over the k-subsets I of N(sum of e_i over I, s^2 I),    Q = N(0, s^2 I).

    ``** epochs`` is as many epochs, each allocated afresh. A shuffled data set that is cut into
    batches of one size is not this: there the records' steps depend on each other.

    Guarantees:
        k = 1: exact, as an interval between two discretisations, for contributions that are
        orthogonal in different steps; an upper bound elsewhere. k > 1: the upper end is that of k
        allocations of 1 step of a block, of ``floor(t/k)`` steps or one more so that they add up to
        t (the blocks of a random partition told); the lower end that of a sum of scores of all
        steps, and of the sum of all outputs, ``mu = k/(s sqrt(t))``. Noise multipliers outside
        [0.1, 1e4], 10^8 steps and more, or k for which losses exceed 650, have the bounds of a
        record whose steps are known, ``mu = sqrt(k)/s``, and of the sum.

    Edge cases:
        One step of one, and k = t, are the inner mechanism, k times. k = 0 releases nothing of the
        record; so does noise inf. Noise 0 reveals that the record is there.

    Args:
        inner: One step's ``Gaussian``; its noise is in units of one record's largest contribution.
        steps: Number of steps of an epoch, t >= 1.
        participations: In how many of these a record is, k from 0 to t.
        adjacency: "add-remove" or "zero-out".

    References:
        Chua, Ghazi, Harrison, Leeman, Kamath, Kumar, Manurangsi, Sinha and Zhang, "Balls-and-bins
        sampling for DP-SGD", 2024 (arXiv 2412.16802); Feldman and Shenfeld, "Privacy amplification
        by random allocation", 2025 (arXiv 2502.08202).

    Example:
        >>> import hockeystick as hs
        >>> print(hs.mechanisms.RandomAllocation(hs.Gaussian(1), steps=1000))
        Gaussian in 1 of 1000 random steps (noise multiplier 1)
    """

    rises_with: ClassVar[tuple[str, ...]] = ("participations",)
    falls_with: ClassVar[tuple[str, ...]] = ("steps",)
    inner: Gaussian
    steps: int = field(metadata={"domain": whole_numbers("t", 1, (2, 10_000))})
    participations: int = field(metadata={"domain": PARAMETERS["count"]})
    adjacency: Adjacency

    def __init__(
        self,
        inner: Mechanism,
        steps: int,
        participations: int = 1,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    ) -> None:
        set_fields(self, locals() | {"inner": _gaussian(checked("inner", inner))})
        if self.participations > self.steps:
            allowed = f"an integer from 0 to {self.steps}"
            raise ParameterError("participations", participations, allowed)
        if self.adjacency is Adjacency.REPLACE_ONE:
            raise IncompatibleError(
                "no dominating pair is known for random allocation under replace-one; "
                "use add-remove or zero-out"
            )

    @property
    def assumptions(self) -> tuple[str, ...]:
        allocation = (
            f"Each example is in exactly {self.participations} of an epoch's {self.steps:,} steps, "
            "all choices being equally likely, independently of the other examples and of other "
            "epochs; the choice is kept secret."
        )
        return (self.adjacency.meaning, allocation, *self.inner.assumptions)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        name, details = self.inner._words()
        words = f"{name} in {self.participations} of {self.steps} random steps"
        return words, (*details, *unless_usual(self.adjacency))


def _gaussian(inner: Mechanism) -> Gaussian:
    if isinstance(inner, Gaussian):
        return inner
    raise IncompatibleError(
        f"random allocation is analysed for Gaussian noise only, not for {inner}; "
        "compose its steps without amplification, or sample them with PoissonSubsampled"
    )
