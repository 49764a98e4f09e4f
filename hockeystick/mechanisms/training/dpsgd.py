"""DP-SGD: the plan of a private training run, as people say it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast, final

import numpy as np

from hockeystick._validate import MAX_COUNT, PARAMETERS, whole_numbers
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.base import (
    STOPPED_EARLIER,
    Composed,
    Mechanism,
    Plan,
    checked,
    divided_words,
    noisy_seen,
    registered,
    set_fields,
)
from hockeystick.mechanisms.sampling.poisson import CAP, Clipping, group_meaning
from hockeystick.mechanisms.scope import ONE_RECORD, Fact, Names
from hockeystick.mechanisms.training.loaders import numbers_of
from hockeystick.mechanisms.training.samplings import SCHEMES, Batches, Sampling
from hockeystick.mechanisms.training.schedules import A_SCHEDULE, Schedule, factors_of
from hockeystick.numerics import decimal
from hockeystick.numerics.numerals import plain

if TYPE_CHECKING:
    from hockeystick.mechanisms.training.schedules import Array

# Larger groups are described and not accounted.
_MOST_OF_A_GROUP: Final = 1000
_NO_OTHER_BATCHES: Final = ", whose epsilon does not cover batches drawn in any other way"
_MICROBATCHES: Final = (
    "; means of microbatches that are clipped each move a sum by up to twice the clipping norm, "
    "and have no plan of their own"
)
_ONE_EXAMPLE: Final = (
    "Nobody has more than one example: whoever has several is protected less, as a plan with "
    "examples_per_user says."
)


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class DPSGD(Plan):
    """A training run by DP-SGD: clip each example's gradient, add them up, add noise, repeat.

    Each step releases sum of clip(g_i, C) over a batch + N(0, (noise_multiplier * C)^2 I). How the
    batches are drawn is part of the plan, and decides what it costs: "poisson" draws each example
    with probability rate = batch_size / examples in each step. The number of steps is given, or it
    is ceil(epochs * examples / batch_size): a partial last step is a whole release.

    The rule for epochs is exact: a float means the decimal that it prints as, or a number that it
    could stand for and that makes the steps whole: rate 1/3 for one epoch is 3 steps, not 4.

    Guarantees:
        Under Poisson sampling exact, for one record or all that one user has, for whoever sees the
        noisy sum of every step, where each example's gradient may reach the clipping norm in each;
        an upper bound for who sees the last model alone. Under other samplings the ends are those
        of ``FixedSizeSubsampled``, ``WithReplacementSubsampled``, ``Shuffled`` and
        ``RandomAllocation``. An answer covers batches that are drawn as the plan says, and no
        others.

        Which data sets the ends are for depends on the adjacency. Under replace-one and zero-out
        the number of examples is public and exactly ``examples``. Under add-remove it is private:
        with Poisson samples, full batches and random allocation the plan fixes the rate, the steps
        and what the noisy sum is divided by, ``examples`` is nominal, and the upper end holds for
        data sets of any size; the lower end of Poisson samples is the supremum over all sizes, the
        others' is for a larger data set of exactly ``examples``. With fixed-size batches and with
        a cap both ends are for a larger data set of exactly ``examples``, and one of one less.

    Edge cases:
        Under replace-one an example moves the sum by up to twice the clipping norm, which is
        accounted; the noise multiplier stays what it is.

    Args:
        noise_multiplier: Standard deviation of the noise over the clipping norm, in [0, inf].
        examples: Size of the training set, an integer >= 1: nominal where it is private.
        batch_size: Expected size of a batch, an integer from 1 to examples; needs examples.
        rate: Probability of an example to be in a batch, in [0, 1]; instead of batch_size.
        epochs: Length of the training in passes over the data, a finite number >= 0.
        steps: Length of the training in steps, an integer >= 0; instead of epochs.
        sampling: How batches are drawn: "poisson", "fixed-size", "with-replacement", "shuffle",
            "random-allocation" or "full-batch".
        adjacency: "add-remove" (Poisson, fixed-size, random allocation, full batch), "zero-out"
            (all but with replacement) or "replace-one" (all but random allocation).
        clipping: "individual", or "batch" where the sum of a batch is clipped.
        schedule: How the noise multiplier changes: a ``Schedule`` of factors, one for each step.
        batch_schedule: How the batch size changes, in the same way; Poisson sampling by steps only.
        batch_cap: The most examples that a Poisson batch keeps, an integer >= 1; None for all.
        examples_per_user: The most examples k that one user has, an integer >= 1: what the answer
            protects is all of them, each of which is drawn and clipped on its own. Above 1 for
            Poisson and full batches with individual clipping and no cap.
        extra: What else is released of the same data, as the statistics of a private normalisation
            or the runs that tuned this one: a mechanism, or several in a tuple; None for nothing.
            Its noise is in units of what moves with whoever is protected: all examples of a user.
        drop_last: Whether shuffled epochs leave out the examples beyond their last whole batch;
            else these are a smaller batch.

    Raises:
        IncompatibleError: If both of a pair of alternatives are given, the sampling has no analysis
            under the adjacency or with the clipping, shuffled or allocated data are no whole number
            of batches or epochs, or what else is released is described under another adjacency.

    References:
        Abadi et al., "Deep Learning with Differential Privacy", CCS 2016, algorithm 1; Zhu, Dong
        and Wang, "Optimal Accounting of Differential Privacy via Characteristic Function", AISTATS
        2022, theorem 11 (the pair of a Poisson sample). Other samplings have those of their own.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.DPSGD(examples=60_000, batch_size=256, epochs=60, noise_multiplier=1.1)
        >>> print(plan.mechanism)
        Poisson-subsampled Gaussian (noise multiplier 1.1, rate 0.00426667) x 14063
        >>> print(plan.steps_rule)
        steps = ceil(epochs * examples / batch_size) = ceil(60 * 60000 / 256) = 14063: \
a partial last step is a whole release
    """

    rises_with: ClassVar[Names] = ("batch_size", "rate", "epochs", "steps", "examples_per_user")
    falls_with: ClassVar[Names] = ("noise_multiplier", "examples")
    noise_multiplier: float
    examples: int | None
    batch_size: int | None
    rate: float | None
    epochs: float | None
    steps: int | None
    sampling: Sampling = field(metadata={"besides": _NO_OTHER_BATCHES})
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    clipping: Clipping = field(default=Clipping.INDIVIDUAL, metadata={"besides": _MICROBATCHES})
    schedule: Schedule | None = field(default=None, metadata={"allowed": A_SCHEDULE})
    batch_schedule: Schedule | None = field(default=None, metadata={"allowed": A_SCHEDULE})
    batch_cap: int | None = field(default=None, metadata={"domain": CAP})
    examples_per_user: int = field(default=1, metadata={"domain": whole_numbers("k", 1, (1, 100))})
    extra: Mechanism | None = None
    drop_last: bool = False

    def __init__(
        self,
        *,
        noise_multiplier: float,
        examples: float | None = None,
        batch_size: float | None = None,
        rate: float | None = None,
        epochs: float | None = None,
        steps: float | None = None,
        sampling: Sampling | str = Sampling.POISSON,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
        clipping: Clipping | str = Clipping.INDIVIDUAL,
        schedule: Schedule | None = None,
        batch_schedule: Schedule | None = None,
        batch_cap: float | None = None,
        examples_per_user: float = 1,
        extra: Mechanism | Iterable[Mechanism] | None = None,
        drop_last: bool = False,
    ) -> None:
        set_fields(self, locals() | {"extra": _extra(extra)})
        if self.sampling is Sampling.FULL_BATCH and (self.rate, self.batch_size) == (None, None):
            object.__setattr__(self, "rate", 1.0)
        _check_alternatives(self)
        _check_length(self)
        SCHEMES[self.sampling].check(_batches(self))
        _check_options(self)
        _check_epochs(self)
        if self.extra is not None:
            # A composition refuses parts under different adjacencies.
            Composed((self, self.extra))

    @classmethod
    def from_loader(
        cls,
        loader: Any,
        *,
        epochs: float,
        noise_multiplier: float,
        sampling: Sampling | str | None = None,
        accumulate: float = 1,
        **options: Any,
    ) -> DPSGD:
        """Return the plan of a run over a PyTorch ``DataLoader``.

        "poisson" is what Opacus makes of the loader: rate ``1/len(loader)``, rounded up to a float,
        and ``ceil(epochs * len(loader))`` steps, whatever the batch size and the number of
        processes. "shuffle" is the loader itself, with ``shuffle=True`` or a ``DistributedSampler``
        on n ranks, whose steps have n batches. Batches that are split to fit into memory
        (``BatchMemoryManager``) count as the one that they were.

        Args:
            loader: A ``DataLoader`` over a data set with a length, or Opacus's ``DPDataLoader``.
            epochs: Length of the training in passes over the loader, a finite number >= 0.
            noise_multiplier: As for a plan.
            sampling: "poisson" or "shuffle"; must be given unless the loader is a ``DPDataLoader``.
            accumulate: How many shuffled batches one step has, an integer >= 1.
            **options: What else a plan is made of: adjacency, clipping, schedule, extra, ...

        Raises:
            IncompatibleError: If the loader does not say how batches are drawn (a data set without
                a length, batch_size None), or draws them in another way; and as ``DPSGD`` does.
        """
        numbers = numbers_of(loader, sampling, epochs, accumulate)
        return cls(noise_multiplier=noise_multiplier, **numbers, **options)

    @property
    def sampling_rate(self) -> float:
        """The probability of an example to be in a batch, correctly rounded."""
        if self.rate is not None:
            return self.rate
        return float(_batch_fraction(self))

    @property
    def total_steps(self) -> int:
        """The number of steps."""
        return self._length[0]

    @property
    def steps_rule(self) -> str:
        """Where the number of steps comes from, as one line."""
        return self._length[1]

    @property
    def _length(self) -> tuple[int, str]:
        if self.sampling is Sampling.SHUFFLE and _batch_fraction(self).numerator > 1:
            return _steps_of_epochs(self, self.drop_last)
        return _steps_of(self)

    @property
    def steps_per_epoch(self) -> int | None:
        """How many batches an epoch of shuffled or allocated data has, None for other samplings."""
        by_epoch = SCHEMES[self.sampling].by_epoch
        return _batches(self).per_epoch if by_epoch else None

    @property
    def noise_multipliers(self) -> Array:
        """The noise multiplier of each step."""
        return self.noise_multiplier * factors_of(self.schedule, self.total_steps)

    @property
    def mechanism(self) -> Mechanism:
        return self._steps if self.extra is None else Composed((self._steps, self.extra))

    def for_group(self, size: int) -> Mechanism:
        """Return the plan for users with ``size`` examples, where its batches are Poisson samples.

        Exact: all of a group may be in each of these. What else is released is for a group too.
        """
        alone = self.examples_per_user == 1 and self.batch_cap is None
        known = alone and self.clipping is Clipping.INDIVIDUAL and 1 < size <= _MOST_OF_A_GROUP
        if self.sampling is not Sampling.POISSON or not known or size > (self.examples or size):
            return Plan.for_group(self, size)
        extra = None if self.extra is None else self.extra.for_group(size)
        return replace(self, examples_per_user=size, extra=extra)

    @property
    def _steps(self) -> Mechanism:
        scheme, batches = SCHEMES[self.sampling], _batches(self)
        if self.schedule is None and self.batch_schedule is None:
            runs = self.total_steps // (self.steps_per_epoch or 1)
            return scheme.mechanism(batches, self.noise_multiplier) ** runs
        parts = (
            scheme.varied(replace(batches, rate=rate), noises) for rate, noises in _segments(self)
        )
        return Composed(tuple(one for part in parts for one in part))

    @property
    def scope(self) -> tuple[Fact, ...]:
        several = self.examples_per_user > 1
        words = f"one user, who has at most {self.examples_per_user} examples"
        unit = Fact("unit", words if several else ONE_RECORD)
        return (unit,) if self.extra is None else (unit, *self.extra.scope)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            group_meaning(self.adjacency, self.examples_per_user),
            *(() if self.examples_per_user > 1 else (_ONE_EXAMPLE,)),
            SCHEMES[self.sampling].number(_batches(self)),
            SCHEMES[self.sampling].drawn(_batches(self)),
            _clipped(self),
            "Fresh Gaussian noise is added to the sum of the clipped gradients in each step; its "
            f"standard deviation is {_noise_words(self)} times the clipping norm.",
            divided_words(self.adjacency, "the size of the drawn batch", "examples"),
            f"The number of steps is fixed in advance: {self.steps_rule}; {STOPPED_EARLIER}",
            noisy_seen("the noisy sums of all steps", alone="gradients and batches"),
            *_besides(self.extra, self.examples_per_user),
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "DP-SGD", (
            f"{self.sampling} sampling",
            f"noise multiplier {self.noise_multiplier:g}",
            f"rate {self.sampling_rate:g}",
            "1 step" if self.total_steps == 1 else f"{self.total_steps} steps",
            *_options(self),
            self.adjacency,
        )


def _check_alternatives(plan: DPSGD) -> None:
    for first, second in (("batch_size", "rate"), ("epochs", "steps")):
        pair = getattr(plan, first), getattr(plan, second)
        if pair == (None, None):
            raise ParameterError(f"{first} or {second}", None, "given")
        if None not in pair:
            got = f"{first} = {plain(pair[0])}, {second} = {plain(pair[1])}"
            raise IncompatibleError(f"give {first} or {second}, not both; got {got}")
    if plan.batch_size is None:
        return
    if plan.examples is None:
        raise ParameterError("examples", None, "given where batch_size is")
    if plan.batch_size > plan.examples:
        allowed = f"at most the number of examples, {plan.examples}"
        raise ParameterError("batch_size", plan.batch_size, allowed)


def _check_length(plan: DPSGD) -> None:
    if plan.epochs is None:
        return
    if plan.rate == 0:
        allowed = f"{PARAMETERS['rate'].allowed}, and above 0 where epochs is given"
        raise ParameterError("rate", plan.rate, allowed)
    if plan.total_steps > MAX_COUNT:
        raise ParameterError("epochs", plan.epochs, "so few that there are at most 10^15 steps")


def _batch_fraction(plan: DPSGD) -> Fraction:
    return _fraction(plan.batch_size, plan.examples, plan.rate)


@lru_cache(maxsize=256)
def _fraction(batch_size: int | None, examples: int | None, rate: float | None) -> Fraction:
    if batch_size is not None and examples is not None:
        return Fraction(batch_size, examples)
    return decimal(cast(float, rate))


def _steps_of(plan: DPSGD) -> tuple[int, str]:
    if plan.epochs is None:
        steps = int(plan.steps or 0)
        return steps, f"steps = {steps}, as planned"
    return _steps_in(plan.epochs, plan.batch_size, plan.examples, plan.rate)


def _steps_of_epochs(plan: DPSGD, drop_last: bool) -> tuple[int, str]:
    """Return the steps of epochs whose batches do not divide the examples, and the rule."""
    if plan.epochs is None:
        return _steps_of(plan)
    whole = int(1 / _batch_fraction(plan))
    per_epoch, name = (whole, "floor") if drop_last else (whole + 1, "ceil")
    steps = math.ceil(decimal(plan.epochs) * per_epoch)
    numbers = f"{plain(plan.epochs)} * {name}({plan.examples} / {plan.batch_size})"
    return steps, f"steps = epochs * {name}(examples / batch_size) = {numbers} = {steps}"


@lru_cache(maxsize=256)
def _steps_in(
    epochs: float, batch_size: int | None, examples: int | None, rate: float | None
) -> tuple[int, str]:
    if rate is None:
        formula = "epochs * examples / batch_size"
        numbers = f"{plain(epochs)} * {examples} / {batch_size}"
    else:
        formula, numbers = "epochs / rate", f"{plain(epochs)} / {plain(rate)}"
    share = _fraction(batch_size, examples, rate)
    exact = decimal(epochs) / share
    nearest = round(exact)
    if exact == nearest:
        return nearest, f"steps = {formula} = {numbers} = {nearest}"
    if nearest and _floats_allow(epochs, rate, share, nearest):
        rule = f"steps = {formula} = {numbers} = {nearest}, to the last digit of what was given"
        return nearest, rule
    steps = math.ceil(exact)
    rule = f"steps = ceil({formula}) = ceil({numbers}) = {steps}"
    return steps, f"{rule}: a partial last step is a whole release"


def _floats_allow(epochs: float, rate: float | None, share: Fraction, steps: int) -> bool:
    if rate is not None and float(decimal(epochs) / steps) == rate:
        return True
    return not epochs.is_integer() and float(steps * share) == epochs


def _besides(extra: Mechanism | None, examples_per_user: int) -> tuple[str, ...]:
    if extra is None:
        return ()
    used = f"Besides, the data are used for {extra}."
    if examples_per_user > 1:
        used += " Its noise is counted for all examples of a user together."
    return (used, *extra.assumptions)


def _extra(extra: object) -> Mechanism | None:
    if extra is None or isinstance(extra, Mechanism):
        return extra
    if not isinstance(extra, tuple | list) or not extra:
        raise ParameterError("extra", extra, "a mechanism, or several in a tuple")
    parts = [checked(f"extra[{index}]", part) for index, part in enumerate(extra)]
    return parts[0] if len(parts) == 1 else Composed(parts)


def _batches(plan: DPSGD) -> Batches:
    return Batches(
        plan.adjacency,
        plan.clipping,
        _batch_fraction(plan),
        plan.batch_size,
        plan.examples,
        plan.batch_cap,
        plan.examples_per_user,
        plan.drop_last,
    )


def _check_options(plan: DPSGD) -> None:
    poisson = plan.sampling is Sampling.POISSON
    if plan.batch_cap is not None:
        if not poisson:
            raise IncompatibleError(f"batch_cap cuts Poisson batches; not those of {plan.sampling}")
        if plan.examples is None:
            raise ParameterError("examples", None, "given where batch_cap is")
    if plan.drop_last and plan.sampling is not Sampling.SHUFFLE:
        raise IncompatibleError(
            f"drop_last is about shuffled epochs; sampling {plan.sampling!r} has no last batch "
            "(Opacus samples at rate 1 / len(loader): give that rate)"
        )
    if plan.examples_per_user > 1:
        _check_users(plan)
    if plan.batch_schedule is not None and not (poisson and plan.epochs is None):
        raise IncompatibleError(
            "batch_schedule changes the rate of Poisson sampling from step to step: give "
            "sampling 'poisson' and the number of steps"
        )


def _check_users(plan: DPSGD) -> None:
    size = plan.examples_per_user
    several = f"examples_per_user {size}"
    if plan.sampling not in (Sampling.POISSON, Sampling.FULL_BATCH):
        asked = f"in Python, hockeystick.tradeoff(plan).group({size})"
        if plan.sampling is Sampling.SHUFFLE:
            asked = f"--group {size}, or in Python plan.for_group({size})"
        raise IncompatibleError(
            f"{several} has no analysis with sampling {plan.sampling!r}; use 'poisson', or leave "
            f"it out and ask for a group of records: {asked}"
        )
    if plan.batch_cap is not None or plan.clipping is not Clipping.INDIVIDUAL:
        raise IncompatibleError(
            f"{several} has no analysis with a cap or with batches that are clipped as a whole; "
            "clip each example on its own, and leave out batch_cap"
        )
    if plan.examples is not None and plan.examples_per_user > plan.examples:
        allowed = f"at most the number of examples, {plan.examples:,}"
        raise ParameterError("examples_per_user", plan.examples_per_user, allowed)


def _check_epochs(plan: DPSGD) -> None:
    length = plan.steps_per_epoch
    if length is None:
        return
    if plan.total_steps % length:
        whole = plan.total_steps // length * length
        raise IncompatibleError(
            f"{plan.total_steps} steps are no whole number of epochs of {length}, and part of an "
            f"epoch of sampling {plan.sampling!r} has no analysis; use {whole} or {whole + length}"
        )
    if plan.schedule is not None and plan.total_steps:
        by_epoch = plan.noise_multipliers.reshape(-1, length)
        if bool((by_epoch != by_epoch[:, :1]).any()):
            raise IncompatibleError(
                f"sampling {plan.sampling!r} is analysed epoch by epoch: the schedule must keep "
                f"the noise for whole epochs of {length} steps, as schedules.Piecewise can"
            )


def _segments(plan: DPSGD) -> Iterator[tuple[Fraction, Array]]:
    length = plan.steps_per_epoch or 1
    noises = plan.noise_multipliers[::length]
    factors = factors_of(plan.batch_schedule, plan.total_steps)[::length]
    rate = _batch_fraction(plan)
    for factor in np.unique(factors).tolist():
        own = rate if factor == 1.0 else rate * decimal(factor)
        if own > 1:
            allowed = f"factors of at most {float(1 / rate):g}, so that no rate exceeds 1"
            raise ParameterError("batch_schedule", factor, allowed)
        yield own, noises[factors == factor]


def _clipped(plan: DPSGD) -> str:
    if plan.clipping is Clipping.BATCH:
        return (
            "The sum of a batch's gradients is clipped as a whole to the clipping norm in L2, so "
            "that one example moves it by at most twice the clipping norm."
        )
    clipped = "Each example's gradient is clipped on its own to the clipping norm in L2"
    if plan.adjacency is Adjacency.REPLACE_ONE:
        clipped += ", so that replacing one moves the sum by at most twice the clipping norm"
    return f"{clipped}."


def _noise_words(plan: DPSGD) -> str:
    if plan.schedule is None or not plan.total_steps:
        return plain(plan.noise_multiplier)
    noise = plan.noise_multipliers
    return (
        f"{noise[0]:g} in the first step and {noise[-1]:g} in the last, between {noise.min():g} "
        f"and {noise.max():g},"
    )


def _options(plan: DPSGD) -> Iterator[str]:
    if plan.clipping is not Clipping.INDIVIDUAL:
        yield f"{plan.clipping} clipping"
    for name in ("schedule", "batch_schedule"):
        schedule = getattr(plan, name)
        if schedule is not None:
            yield f"{name.replace('_', ' ')} {type(schedule).__name__.lower()}"
    if plan.batch_cap is not None:
        yield f"batches of at most {plan.batch_cap}"
    if plan.drop_last:
        yield "the rest of an epoch dropped"
    if plan.examples_per_user > 1:
        yield f"users with {plan.examples_per_user} examples"
    if plan.extra is not None:
        yield f"extra {plan.extra}"
