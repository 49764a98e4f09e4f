"""How the batch of a step is drawn, and what each way of drawing makes of the noise."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final, cast

import numpy as np

from hockeystick._validate import WordEnum
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms.base import registered
from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.mechanisms.sampling.fixed_size import (
    FixedSizeSubsampled,
    LastBatch,
    RandomAllocation,
    WithReplacementSubsampled,
    twice_moved,
)
from hockeystick.mechanisms.sampling.poisson import (
    Clipping,
    PoissonSubsampled,
    PoissonSubsampledGroup,
    TruncatedPoissonSubsampled,
)
from hockeystick.mechanisms.sampling.shuffled import FEW_LEVELS, GaussianSequence, Shuffled
from hockeystick.mechanisms.training.last_iterate import BatchClipped

if TYPE_CHECKING:
    from hockeystick.mechanisms.base import Mechanism
    from hockeystick.mechanisms.training.schedules import Array


@registered
class Sampling(WordEnum):
    """How the batch of a step is drawn.

    - "poisson": each example is in each batch independently, with one probability.
    - "fixed-size": each batch is a random set of a fixed size.
    - "with-replacement": each place of a batch holds any of the examples.
    - "shuffle": in each epoch the data are shuffled and cut into batches.
    - "random-allocation": in each epoch each example is put into one of
      the batches, independently of the others.
    - "full-batch": each step uses every example.
    """

    POISSON = "poisson"
    FIXED_SIZE = "fixed-size"
    WITH_REPLACEMENT = "with-replacement"
    SHUFFLE = "shuffle"
    RANDOM_ALLOCATION = "random-allocation"
    FULL_BATCH = "full-batch"


@dataclass(frozen=True, slots=True)
class Batches:
    """What a way of sampling needs to know: of what, how many, under which neighbours.

    ``rate`` is the chance of an example to be in a batch; the sizes are None where it was given.
    Neighbours differ in as many examples as one user has.
    """

    adjacency: Adjacency
    clipping: Clipping
    rate: Fraction
    batch_size: int | None
    examples: int | None
    cap: int | None
    examples_per_user: int = 1
    drop_last: bool = False

    @property
    def last(self) -> LastBatch:
        """What becomes of the examples beyond the last whole batch of an epoch."""
        if self.rate.numerator <= 1:
            return LastBatch.WHOLE
        return LastBatch.DROPPED if self.drop_last else LastBatch.SMALLER

    @property
    def per_epoch(self) -> int:
        """How many batches an epoch has."""
        return int(1 / self.rate) + (self.last is LastBatch.SMALLER)

    @property
    def replaced(self) -> bool:
        """Whether one example may be replaced by another one."""
        return self.adjacency is Adjacency.REPLACE_ONE

    @property
    def fixed_number(self) -> int | None:
        """The number of examples where it is public; None under add-remove, or not given."""
        return None if self.adjacency is Adjacency.ADD_REMOVE else self.examples

    @property
    def cut_to(self) -> int | None:
        """How many examples a batch of all of them keeps; None where it keeps all."""
        cap, examples = self.cap, self.examples
        return None if cap is None or examples is None or cap >= examples else cap

    @property
    def sizes(self) -> tuple[int, int]:
        """The sizes of a batch and of the data, or an error where they are not known."""
        if self.batch_size is None or self.examples is None:
            how = "give examples and batch_size"
            if self.examples is not None:
                near = max(1, round(self.rate * self.examples))
                how = f"give batch_size in place of rate, about {near}"
            raise IncompatibleError(f"only Poisson sampling knows a rate without sizes; {how}")
        return self.batch_size, self.examples


class Scheme(ABC):
    """One way to draw batches."""

    # Whether one run of the mechanism is a whole epoch.
    by_epoch: bool = False

    @abstractmethod
    def check(self, batches: Batches) -> None:
        """Raise where nothing is known, with the reason and what to do instead."""

    @abstractmethod
    def mechanism(self, batches: Batches, noise_multiplier: float) -> Mechanism:
        """Return one step, or one epoch, of noise in units of the clipping norm."""

    def varied(self, batches: Batches, noise_multipliers: Array) -> Iterator[Mechanism]:
        """Return steps or epochs with these noises, those that are alike together."""
        noises, counts = np.unique(noise_multipliers, return_counts=True)
        for noise, count in zip(noises.tolist(), counts.tolist(), strict=True):
            yield self.mechanism(batches, noise) ** count

    @abstractmethod
    def drawn(self, batches: Batches) -> str:
        """Return what must hold of the batches, as a sentence."""

    def number(self, batches: Batches) -> str:
        """Return for which numbers of examples the answer holds, as a sentence."""
        examples = batches.examples
        if batches.adjacency is not Adjacency.ADD_REMOVE:
            if examples is None:
                return "The number of examples is public; the answer is for any number."
            return f"The number of examples is public: exactly {examples:,}."
        if self._for_one_size or batches.cap is not None:
            return f"The larger of two neighbouring data sets has exactly {examples:,} examples."
        private = "The number of examples is private, and the plan's rate and steps are fixed"
        if examples is None:
            return f"{private} without it; the answer is for data sets of any size."
        return f"{private} without it: {examples:,} is nominal; {self._for_sizes}."

    # What of an answer holds for data sets of which size, where the number of examples is nominal.
    _for_sizes: ClassVar[str] = (
        "the upper end is for data sets of any size, the lower end for a larger one of so many"
    )
    _for_one_size: ClassVar[bool] = False


_EVERY: Final = "Every step uses every example once."


class _Poisson(Scheme):
    """Each example in each batch with one probability; with a cap, truncated to that size."""

    _for_sizes = "the answer is for data sets of any size"

    def check(self, batches: Batches) -> None:
        if batches.replaced and batches.rate < 1 and batches.clipping is Clipping.BATCH:
            raise IncompatibleError(
                "clipping of Poisson batches as a whole has no analysis under replace-one; use "
                "add-remove"
            )
        if batches.cap is not None:
            _needs(batches, "batch_cap", tuple(Adjacency), Clipping.INDIVIDUAL)

    def mechanism(self, batches: Batches, noise_multiplier: float) -> Mechanism:
        if batches.rate == 1 and batches.cut_to is None:
            return _whole(batches, noise_multiplier)
        if batches.cap is not None:
            return _capped(batches, batches.cap, noise_multiplier)
        noise, users = Gaussian(noise_multiplier), batches.examples_per_user
        if users > 1:
            return PoissonSubsampledGroup(noise, batches.rate, users, batches.adjacency)
        sampled = PoissonSubsampled(noise, batches.rate, batches.adjacency)
        if batches.clipping is Clipping.INDIVIDUAL:
            return sampled
        if batches.fixed_number is not None:
            return BatchClipped(sampled, batches.fixed_number)
        # Among enough others an example moves the sum of its batch by 2C.
        return replace(sampled, inner=Gaussian(noise_multiplier / 2))

    def varied(self, batches: Batches, noise_multipliers: Array) -> Iterator[Mechanism]:
        ends = noise_multipliers.min(), noise_multipliers.max()
        few = np.unique(noise_multipliers).size <= FEW_LEVELS
        plain = batches.cap is None and not batches.replaced and batches.rate < 1
        plain = plain and batches.examples_per_user == 1
        whole = batches.clipping is Clipping.BATCH
        if whole and batches.fixed_number is not None:
            plain = False
        if few or not plain or ends[0] == 0.0 or ends[1] == math.inf:
            yield from super().varied(batches, noise_multipliers)
            return
        shrunk = 0.5 if whole else 1.0
        yield GaussianSequence(shrunk * noise_multipliers, batches.rate, batches.adjacency)

    def drawn(self, batches: Batches) -> str:
        if batches.rate == 1 and batches.cut_to is None:
            return _EVERY
        cut = "" if batches.cap is None else f"; a random set of {batches.cap:,} is kept of more"
        return (
            "Each step draws its batch by Poisson sampling: each example independently with "
            f"probability {float(batches.rate):.6g}{cut}, afresh in each step, and the batches "
            "stay secret."
        )


class _FixedSize(Scheme):
    _for_one_size = True

    def check(self, batches: Batches) -> None:
        _ = batches.sizes

    def mechanism(self, batches: Batches, noise_multiplier: float) -> Mechanism:
        if batches.rate == 1:
            return _whole(batches, noise_multiplier)
        clipped = batches.clipping is Clipping.INDIVIDUAL
        clipped = clipped and batches.adjacency is Adjacency.ZERO_OUT
        noise = Gaussian(noise_multiplier / 2)
        return FixedSizeSubsampled(noise, *batches.sizes, batches.adjacency, clipped)

    def drawn(self, batches: Batches) -> str:
        if batches.rate == 1:
            return _EVERY
        size, examples = batches.sizes
        zeroed = batches.adjacency is Adjacency.ZERO_OUT
        neighbour = (
            "an example that is zeroed is still drawn"
            if zeroed
            else "another example takes the place of a missing one"
        )
        drawn = (
            f"Each step draws one of all sets of {size:,} of {examples:,} examples, equally "
            "likely, afresh in each step, and the batches stay secret"
        )
        if zeroed or batches.clipping is Clipping.BATCH:
            return f"{drawn}; {neighbour}."
        return f"{drawn}.{twice_moved(batches.adjacency, 'example')}"


class _WithReplacement(Scheme):
    def check(self, batches: Batches) -> None:
        _ = batches.sizes
        adjacencies = (Adjacency.REPLACE_ONE,)
        _needs(batches, "sampling 'with-replacement'", adjacencies, Clipping.INDIVIDUAL)

    def mechanism(self, batches: Batches, noise_multiplier: float) -> Mechanism:
        return WithReplacementSubsampled(Gaussian(noise_multiplier / 2), *batches.sizes)

    def drawn(self, batches: Batches) -> str:
        size, examples = batches.sizes
        return (
            f"Each of the {size:,} places of a step's batch holds any of the {examples:,} "
            "examples, independently and equally likely, and the batches stay secret."
        )


class _Shuffle(Scheme):
    by_epoch = True

    def check(self, batches: Batches) -> None:
        size, examples = batches.sizes
        alone = batches.last is LastBatch.SMALLER and examples % size == 1
        if alone and batches.clipping is Clipping.BATCH:
            raise IncompatibleError(
                f"the last of {examples:,} examples in batches of {size:,} would be alone, and "
                "clipping it as a whole has no analysis; use drop_last, or another batch_size"
            )
        adjacencies = Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
        _needs(batches, "sampling 'shuffle'", adjacencies, batches.clipping)

    def mechanism(self, batches: Batches, noise_multiplier: float) -> Mechanism:
        # A batch of one example is clipped with it.
        clipping = batches.clipping if batches.sizes[0] > 1 else Clipping.INDIVIDUAL
        return Shuffled(
            Gaussian(noise_multiplier),
            batches.per_epoch,
            batches.adjacency,
            clipping,
            last_batch=batches.last,
        )

    def drawn(self, batches: Batches) -> str:
        size, examples = batches.sizes
        rest, used = "", "exactly one batch of an epoch"
        if batches.last is LastBatch.SMALLER:
            rest = f", the last of {examples % size:,}"
        if batches.last is LastBatch.DROPPED:
            used = f"{used}, but the last {examples % size:,} of its order, which are left out"
        return (
            "The examples are shuffled afresh for each epoch and cut into batches of "
            f"{size:,}{rest}; each example is in {used}, and the order stays secret."
        )


class _RandomAllocation(Scheme):
    by_epoch = True

    def check(self, batches: Batches) -> None:
        size, examples = batches.sizes
        if examples % size:
            raise IncompatibleError(
                f"{examples} examples are no whole number of batches of {size}: the last batch of "
                f"an epoch would have {examples % size}; drop these (examples = "
                f"{examples - examples % size}) or choose a batch_size that divides examples"
            )
        adjacencies = Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT
        _needs(batches, "sampling 'random-allocation'", adjacencies, batches.clipping)

    def mechanism(self, batches: Batches, noise_multiplier: float) -> Mechanism:
        allocated = RandomAllocation(
            Gaussian(noise_multiplier), int(1 / batches.rate), adjacency=batches.adjacency
        )
        if batches.clipping is Clipping.INDIVIDUAL:
            return allocated
        return BatchClipped(allocated, batches.sizes[1])

    def drawn(self, batches: Batches) -> str:
        return (
            f"In each epoch each example is put into one of {int(1 / batches.rate):,} batches, "
            "equally likely and independently of the other examples, and the batches stay secret."
        )


class _FullBatch(Scheme):
    def check(self, batches: Batches) -> None:
        if batches.rate != 1:
            raise IncompatibleError(
                "sampling 'full-batch' uses every example in each step; leave out batch_size, or "
                "name how smaller batches are drawn"
            )

    def mechanism(self, batches: Batches, noise_multiplier: float) -> Mechanism:
        return _whole(batches, noise_multiplier)

    def drawn(self, batches: Batches) -> str:
        return _EVERY


def _whole(batches: Batches, noise_multiplier: float) -> Mechanism:
    """Return a step that uses every example.

    Replaced, or clipped with others, one moves the sum by 2C, else by C; an only example may have
    others where the number of examples may be another one.
    """
    whole = batches.clipping is Clipping.BATCH
    if whole and batches.examples == 1 and not batches.replaced:
        alone = PoissonSubsampled(Gaussian(noise_multiplier), Fraction(1), batches.adjacency)
        return BatchClipped(alone, 1)
    if batches.examples_per_user > 1:
        # Noise in units of one example's contribution; a group at rate 1 moves by all of theirs.
        everything = Gaussian(noise_multiplier), Fraction(1), batches.examples_per_user
        return PoissonSubsampledGroup(*everything, batches.adjacency)
    return Gaussian(noise_multiplier / (2 if batches.replaced or whole else 1))


def _capped(batches: Batches, cap: int, noise_multiplier: float) -> Mechanism:
    examples = cast(int, batches.examples)
    if batches.rate < 1:
        noise = Gaussian(noise_multiplier)
        return TruncatedPoissonSubsampled(noise, batches.rate, cap, examples, batches.adjacency)
    # All are drawn: another example takes the place of one that is missing.
    clipped = batches.adjacency is Adjacency.ZERO_OUT
    half = Gaussian(noise_multiplier / 2)
    return FixedSizeSubsampled(half, cap, examples, batches.adjacency, clipped)


def _needs(
    batches: Batches, what: str, adjacencies: tuple[Adjacency, ...], clipping: Clipping
) -> None:
    if batches.adjacency not in adjacencies:
        others = " or ".join(adjacencies)
        raise IncompatibleError(
            f"{what} has no analysis under {batches.adjacency}; use adjacency {others}"
        )
    if batches.clipping is not clipping:
        raise IncompatibleError(
            f"{what} has no analysis with {batches.clipping} clipping; use {clipping} clipping"
        )


SCHEMES: Final = MappingProxyType(
    {
        Sampling.POISSON: _Poisson(),
        Sampling.FIXED_SIZE: _FixedSize(),
        Sampling.WITH_REPLACEMENT: _WithReplacement(),
        Sampling.SHUFFLE: _Shuffle(),
        Sampling.RANDOM_ALLOCATION: _RandomAllocation(),
        Sampling.FULL_BATCH: _FullBatch(),
    }
)
