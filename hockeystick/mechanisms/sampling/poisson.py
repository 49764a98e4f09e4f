"""Poisson subsampling."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Final, final

from hockeystick._validate import WordEnum, whole_numbers
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, NoGroupFormError, ParameterError
from hockeystick.mechanisms.base import Mechanism, checked, registered, set_fields
from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.numerics.numerals import plain


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
        Rate 0 releases nothing about the data; rate 1 is the inner mechanism itself, under
        replace-one with half the noise multiplier, as replaced examples move a sum by twice their
        largest contribution.

    Args:
        inner: The mechanism that is run on the sample, which has no stated number of examples.
        rate: Probability of each example to be in the sample, in [0, 1]; a ``Fraction`` is exact.
        adjacency: "add-remove", "zero-out", or for a ``Gaussian`` "replace-one". Under all of them
            a Gaussian's noise multiplier counts in units of the largest contribution of one
            example.

    References:
        Zhu, Dong and Wang, "Optimal Accounting of Differential Privacy via Characteristic
        Function", AISTATS 2022, theorem 11.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.PoissonSubsampled(hs.Gaussian(1.1), rate=256 / 60_000))
        Poisson-subsampled Gaussian (noise multiplier 1.1, rate 0.00426667)
    """

    rises_with: ClassVar[tuple[str, ...]] = ("rate",)
    inner: Mechanism
    rate: float | Fraction
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __init__(
        self,
        inner: Mechanism,
        rate: float | Fraction,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    ) -> None:
        set_fields(self, locals())
        if self.adjacency is Adjacency.REPLACE_ONE and not isinstance(inner, Gaussian):
            raise IncompatibleError(
                "under replace-one, Poisson sampling is analysed for the Gaussian mechanism, not "
                f"for {inner}; use add-remove or zero-out"
            )
        if inner._of_stated_size:
            raise IncompatibleError(
                f"{inner} is described for a stated number of examples, which a Poisson sample "
                "does not have; sample once, by one of the two"
            )
        refuse_other_adjacency(inner, self.adjacency)

    @property
    def assumptions(self) -> tuple[str, ...]:
        sampling = (
            f"Each example is in each sample independently with probability {float(self.rate):g}, "
            "and the sample, one for a whole run of the inner mechanism, is kept secret."
        )
        replaced = self.adjacency is Adjacency.REPLACE_ONE
        noise = on_contributions(self.inner) if replaced else self.inner.assumptions
        return (self.adjacency.meaning, sampling, *noise)

    def for_group(self, size: int) -> Mechanism:
        try:
            return Mechanism.for_group(self, size)
        except NoGroupFormError as error:
            if not isinstance(self.inner, Gaussian):
                raise
            told = f"{error}, and mechanisms.PoissonSubsampledGroup describes one sample for them"
            raise NoGroupFormError(told) from None

    def _words(self) -> tuple[str, tuple[str, ...]]:
        name, details = self.inner._words()
        inside = name if details else f"[{name}]"
        own = (f"rate {float(self.rate):g}", *unless_usual(self.adjacency))
        return f"Poisson-subsampled {inside}", (*details, *own)


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class PoissonSubsampledGroup(Mechanism):
    """Gaussian noise on a Poisson sample, of which a whole group of examples is protected.

    M(D) = inner(S) as for ``PoissonSubsampled``; neighbours differ in up to ``size`` examples, such
    as all that one user has. Of these a binomial number is in S, so that they move the sum by

        sum_j Bin(j; k, rate) N(j/z, 1)    against    N(0, 1),

    k the size and z the noise multiplier, each in units of the noise.

    Guarantees:
        Exact, for a group of exactly k examples, each of which may contribute as much as the
        largest; fewer cost no more. Under add-remove and zero-out the mixture above, and its
        reverse, dominate; under replace-one the mixtures with ``N(j/z, 1)`` and ``N(-j/z, 1)``.
        Examples that all contribute the same vector (under replace-one: against its negative)
        attain them. By Kahane's inequality no other vectors cost more
        (``privacy_loss/sampling/poisson.py`` has the proof). Counts of less than 1e-90 are moved
        up for the upper end and down for the lower one.

    Args:
        inner: The Gaussian mechanism that is run on the sample; its noise multiplier counts in
            units of the largest contribution of one example.
        rate: Probability of each example to be in the sample, in [0, 1]; a ``Fraction`` is exact.
        size: The number k of examples in the group, an integer from 1 to 10^15; above 1,000 it is
            described and not accounted.
        adjacency: "add-remove", "zero-out" or "replace-one", of all examples of the group.

    References:
        Charles, Ganesh, McKenna, McMahan, Mitchell, Pillutla and Rush, "Fine-Tuning Large Language
        Models with User-Level Differential Privacy", 2024 (arXiv 2407.07737), section 4: the
        mixture under add-remove.

    Example:
        >>> import hockeystick as hs
        >>> step = hs.mechanisms.PoissonSubsampledGroup(hs.Gaussian(1.1), rate=0.004, size=4)
        >>> print(step)
        Poisson-subsampled Gaussian (noise multiplier 1.1, rate 0.004, groups of 4)
    """

    rises_with: ClassVar[tuple[str, ...]] = ("rate", "size")
    inner: Mechanism
    rate: float | Fraction
    size: int = field(metadata={"domain": whole_numbers("k", 1, (2, 100))})
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __init__(
        self,
        inner: Mechanism,
        rate: float | Fraction,
        size: float,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    ) -> None:
        set_fields(self, locals())
        if not isinstance(inner, Gaussian):
            raise IncompatibleError(
                f"groups on a Poisson sample are analysed for the Gaussian mechanism, not for "
                f"{inner}; use hs.tradeoff(PoissonSubsampled(...)).group(size)"
            )

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            group_meaning(self.adjacency, self.size),
            f"Each example is in each sample independently with probability {float(self.rate):g}, "
            "and the sample is kept secret.",
            *on_contributions(self.inner),
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        name, details = self.inner._words()
        own = (f"rate {float(self.rate):g}", f"groups of {self.size}")
        return f"Poisson-subsampled {name}", (*details, *own, *unless_usual(self.adjacency))


def unless_usual(adjacency: Adjacency) -> tuple[str, ...]:
    """Return an adjacency as a detail of a description, nothing for add-remove."""
    return () if adjacency is Adjacency.ADD_REMOVE else (str(adjacency),)


def on_contributions(inner: Mechanism) -> tuple[str, ...]:
    """Return what is assumed of noise that is scaled to what one example adds to a sum."""
    if not isinstance(inner, Gaussian):
        return inner.assumptions
    return (
        "Fresh Gaussian noise is added to a sum over the sample; its standard deviation is "
        f"{plain(inner.noise_multiplier)} times the largest L2 norm of what one example adds to "
        "it. Replacing an example may move the sum by twice that norm.",
    )


def group_meaning(neighbours: Adjacency, size: int) -> str:
    """Return what data sets are neighbours if all examples of a group differ, as a sentence."""
    if size == 1:
        return neighbours.meaning
    several = {
        Adjacency.ADD_REMOVE: f"by up to {size:,} examples, all of one user, added or removed",
        Adjacency.REPLACE_ONE: f"in the values of up to {size:,} examples, all of one user",
        Adjacency.ZERO_OUT: f"by up to {size:,} examples, all of one user, that contribute zero",
    }
    return f"Neighbouring data sets differ {several[neighbours]}."


def refuse_other_adjacency(inner: Mechanism, neighbours: Adjacency) -> None:
    """Raise where an inner mechanism is described under another adjacency than its sample is."""
    if inner.adjacency not in (None, neighbours):
        raise IncompatibleError(
            f"the inner mechanism, {inner}, is described under {inner.adjacency} and cannot be "
            f"accounted under {neighbours}; give both the same adjacency"
        )


@registered
class Clipping(WordEnum):
    """What is clipped to the clipping norm C.

    - "individual": each example's gradient; one example moves a batch's sum by at
      most C, and replacing it by at most 2C.
    - "batch": the sum of a batch; one example may move it by 2C, however it came in.
    """

    INDIVIDUAL = "individual"
    BATCH = "batch"


CAP: Final = whole_numbers("B", 1, (16, 65_536))


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class TruncatedPoissonSubsampled(Mechanism):
    """The Gaussian mechanism on a Poisson sample of which at most ``cap`` examples are kept.

    Each example is drawn independently with probability ``rate``; where more than ``cap`` are
    drawn, a random set of ``cap`` of them is kept. What is drawn and kept is secret.

    Guarantees:
        An upper end: with n examples in the larger data set, let ``J ~ Bin(n - 1, rate)`` of the
        others be drawn. Where J is below the cap B, nothing is cut and the run is one on a Poisson
        sample. Otherwise the sample without the example is a random set of B others, and the
        example, if drawn and kept, takes the place of one of them, which moves the result twice as
        far; that happens with probability ``r = B P[Bin(n, rate) > B] / (n P[J >= B])``. Which case
        it is is taken as known. A lower end by data sets whose other examples add nothing.

        Under zero-out and replace-one, for contributions that are vectors of a ball, the same: a
        full sample is one of a fixed size, which the example is in with the chance r, among others
        that are opposite or alike; below the cap it is the Poisson sample of that adjacency.

        This is for data sets of exactly n examples, under add-remove the larger one: of fewer,
        fewer batches are cut, but those that are keep more of what is drawn, so that the cost may
        rise or fall with the cap and with the examples.

    Edge cases:
        A cap that is hardly ever reached costs what Poisson sampling does; one of n is never
        reached. A cap far below ``n rate`` costs what samples of that fixed size do.

    Args:
        inner: A ``Gaussian``; its noise multiplier is the standard deviation over the largest
            L2 norm of the vector that one example contributes.
        rate: Probability of each example to be drawn, in [0, 1].
        cap: Largest size of a sample, an integer >= 1.
        examples: Size n of the data set, under add-remove of the larger one, an integer >= 1.
        adjacency: "add-remove", "zero-out" or "replace-one".

    References:
        Chua et al., "Scalable DP-SGD: shuffling vs. Poisson subsampling", NeurIPS 2024, for
        truncated batches; Ganesh, McKenna, McMahan, Smith and Wu, arXiv 2508.15089, for the bound
        by conditioning, with a looser pair for full samples.

    Example:
        >>> import hockeystick as hs
        >>> print(
        ...     hs.mechanisms.TruncatedPoissonSubsampled(
        ...         hs.Gaussian(1.1), 0.01, cap=70, examples=6_000
        ...     )
        ... )
        truncated-Poisson-subsampled Gaussian (noise multiplier 1.1, rate 0.01, at most 70 of 6000)
    """

    rises_with: ClassVar[tuple[str, ...]] = ("rate",)
    unordered: ClassVar[tuple[str, ...]] = ("cap", "examples")
    _of_stated_size: ClassVar[bool] = True
    inner: Mechanism
    rate: float | Fraction
    cap: int = field(metadata={"domain": CAP})
    examples: int
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __init__(
        self,
        inner: Mechanism,
        rate: float | Fraction,
        cap: float,
        examples: float,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    ) -> None:
        set_fields(self, locals())
        refuse_other_adjacency(inner, self.adjacency)

    @property
    def assumptions(self) -> tuple[str, ...]:
        sampling = (
            f"Each of {self.examples:,} examples is drawn independently with probability "
            f"{float(self.rate):g}; of more than {self.cap:,} a random set of {self.cap:,} is "
            "kept; the sample is secret."
        )
        if self.adjacency is Adjacency.ADD_REMOVE:
            larger = "The larger of two neighbouring data sets has exactly"
            sampling = f"{sampling} {larger} {self.examples:,}."
        replaced = self.adjacency is Adjacency.REPLACE_ONE
        noise = on_contributions(self.inner) if replaced else self.inner.assumptions
        return (self.adjacency.meaning, sampling, *noise)

    def for_group(self, size: int) -> Mechanism:
        # The second of two records that go leaves a data set of another size than the stated one,
        # from which a cap keeps each record more often.
        private = self.adjacency is Adjacency.ADD_REMOVE
        if size > 1 and self.cap < self.examples and private:
            raise IncompatibleError(
                f"a {self} has no analysis for groups: its guarantee is for data sets of exactly "
                f"{self.examples:,} examples and one less; leave the cap out"
            )
        return Mechanism.for_group(self, size)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        name, details = self.inner._words()
        inside = name if details else f"[{name}]"
        own = (f"rate {float(self.rate):g}", f"at most {self.cap} of {self.examples}")
        words = (*details, *own, *unless_usual(self.adjacency))
        return f"truncated-Poisson-subsampled {inside}", words


_SMALLEST_RATE: Final = 1e-300


@dataclass(frozen=True, slots=True, init=False)
class OnRevealedSample(Mechanism):
    """Runs that a record takes part in with some probability, and all see whether it does."""

    rises_with: ClassVar[tuple[str, ...]] = ("rate",)
    inner: Mechanism
    rate: float | Fraction

    def __init__(self, inner: Mechanism, rate: float | Fraction) -> None:
        set_fields(self, locals())
        if 0 < self.rate < _SMALLEST_RATE:
            raise ParameterError("rate", rate, f"0, or a number from {_SMALLEST_RATE:g} to 1")

    @property
    def adjacency(self) -> Adjacency | None:
        return self.inner.adjacency

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (self._drawn(), *self.inner.assumptions)

    @abstractmethod
    def _drawn(self) -> str: ...


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

    Args:
        inner: The mechanism that the record is used by, for the change that it makes there: under
            replace-one, noise in units of twice the clipping norm.
        rate: Probability of a record to be used in one run, 0 or from 1e-300 to 1.

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
        name, details = self.inner._words()
        inside = name if details else f"[{name}]"
        return f"{inside} on a revealed sample", (*details, f"rate {float(self.rate):g}")
