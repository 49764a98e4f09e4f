"""From an event of dp-accounting to the mechanism that it describes, and back."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import singledispatch
from types import MappingProxyType
from typing import Final, TypeAlias

from dp_accounting import dp_event
from dp_accounting.privacy_accountant import NeighboringRelation

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.adjacency import Adjacency
from hockeystick.errors import ParameterError, UnsupportedError
from hockeystick.mechanisms import (
    Composed,
    DiscreteLaplace,
    FixedSizeSubsampled,
    Gaussian,
    GaussianMixture,
    Laplace,
    Mechanism,
    Plan,
    PoissonSubsampled,
    RandomizedResponse,
    RandomStopping,
    Repeated,
    TreeAggregation,
    TruncatedPoissonSubsampled,
    WithReplacementSubsampled,
    tuning,
)
from hockeystick.notions import ZCDP, ApproxDP, PureDP, RenyiDP
from hockeystick.numerics import largest_reading, least_reading, up
from hockeystick.numerics.multiprecision import mp
from hockeystick.numerics.rounding import (
    DIGITS,
    as_mpf,
    evaluated_down,
    evaluated_up,
    float_down,
    float_up,
)
from hockeystick.numerics.working_precision import working_digits

RELATIONS: Final = MappingProxyType(
    {
        NeighboringRelation.ADD_OR_REMOVE_ONE: Adjacency.ADD_REMOVE,
        NeighboringRelation.REPLACE_ONE: Adjacency.REPLACE_ONE,
        NeighboringRelation.REPLACE_SPECIAL: Adjacency.ZERO_OUT,
    }
)
_NOTHING: Final = PureDP(0) ** 0
_NO_PRIVACY: Final = PureDP(math.inf)
_NO_NOISE: Final = Gaussian(0)
_ADDED_NOISE: Final = Gaussian | Laplace | DiscreteLaplace
_NOISE: Final = Domain(symbol="a", low=0, high=math.inf, typical=(0.1, 10))
_CHANCE: Final = Domain(symbol="p", low=0, high=1, typical=(0.01, 0.99))
_CONSTANT: Final = Domain(symbol="xi", low=0, high=math.inf, typical=(0.01, 1))
_BUCKETS: Final = whole_numbers("k", 1, (2, 9))
_SHAPE: Final = Domain(symbol="eta", low=0, high=math.inf, typical=(0, 2))
# Orders from 1.004 to a million: between them convexity loses next to nothing.
_ORDERS: Final = tuple(1.0 + 2.0 ** (k / 16) for k in range(-128, 321))
# Covers the few roundings of a chance.
_OUTWARD: Final = 1.0 + 2.0**-46
# More than what the search for a given mean is off.
_MORE_RUNS: Final = 1.0 + 1e-11
_SIZE: Final = whole_numbers("n", 0, (9, 99))
# What says how many records it draws from.
_OF_STATED_SIZE: Final = (
    dp_event.SampledWithoutReplacementDpEvent
    | dp_event.SampledWithReplacementDpEvent
    | dp_event.TruncatedSubsampledGaussianDpEvent
)
_UNNAMED: Final = (
    "dp-accounting has samples of a fixed size for a replaced record alone, which can cost more "
    "than an added one: write from_event(event, 'replace-one') or "
    "HockeystickAccountant(NeighboringRelation.REPLACE_ONE) of hockeystick.adapters.dp_accounting, "
    "or name 'add-remove' where that is meant"
)
_FixedSize: TypeAlias = (
    dp_event.SampledWithoutReplacementDpEvent | dp_event.SampledWithReplacementDpEvent
)


def from_event(
    event: dp_event.DpEvent, adjacency: Adjacency | NeighboringRelation | str | None = None
) -> Mechanism:
    """Return the mechanism that an event of dp-accounting describes.

    Noise multipliers of events are in units of the largest contribution of one record (``s / C``
    for values of norm at most C). Under replace-one a sum moves by up to 2C, so that
    ``GaussianDpEvent(z)`` is ``Gaussian(z / 2)`` then; so it is in a sample of a fixed size, which
    is ``clipped`` under zero-out.

    | event | mechanism | adjacency |
    |---|---|---|
    | Gaussian, Laplace, DiscreteLaplace | of the same name | any |
    | RandomizedResponse | ``RandomizedResponse`` | replace-one |
    | Composed, SelfComposed | ``@``, ``**`` | any |
    | PoissonSampled | ``PoissonSubsampled`` | any; replace-one for Gaussians |
    | SampledWithoutReplacement | ``FixedSizeSubsampled`` | replace-one; any for added noise |
    | SampledWithReplacement | ``WithReplacementSubsampled`` of Gaussians | replace-one |
    | TruncatedSubsampledGaussian | ``TruncatedPoissonSubsampled`` | any |
    | SingleEpochTreeAggregation | ``TreeAggregation`` of the largest tree | zero-out |
    | MixtureOfGaussians | ``GaussianMixture`` | add-remove |
    | RepeatAndSelect | ``RandomStopping`` | any |
    | ZCDp | ``ZCDP``, with xi > 0 ``RenyiDP`` | any |
    | NoOp, NonPrivate | a release of nothing, ``PureDP(inf)`` | any |

    Guarantees:
        Exact, but for numbers that a float does not hold, which are rounded so that the mechanism
        is at most as private as the event: discrete Laplace's scale 1/a, randomized response's
        epsilon, several Gaussians on one sample, the gamma of a random number of runs. The
        divergences ``xi + rho alpha`` with xi > 0 are stated at 449 orders.

    Edge cases:
        No noise is no privacy; in a sample of a fixed size it is ``ApproxDP(0, q)`` with the chance
        q to be drawn. ``DiscreteLaplaceDpEvent(0, C)`` is no privacy. Sampling what releases
        nothing releases nothing, and so does a sample of size 0. Drawing a given number of records
        inside a Poisson sample is refused. A ``ZCDpEvent`` is for the neighbours that are meant.

    Args:
        event: The event.
        adjacency: The neighbours that are meant: "add-remove", "replace-one" or "zero-out", or a
            ``NeighboringRelation``. None for records added or removed, where no sample of a fixed
            size is drawn: dp-accounting has these for a replaced record only, which can cost more.

    Raises:
        UnsupportedError: If the event, or it under this adjacency, has no counterpart.
        ParameterError: If a number of it is outside its domain, or it is no event.
        IncompatibleError: If its parts do not go together.

    References:
        dp-accounting 0.6, ``dp_event.py``. Its ``RdpAccountant`` reads Gaussian and Laplace noise
        under ``REPLACE_ONE`` as if C were the distance; its ``PLDAccountant`` reads the Gaussian's
        as here (google/differential-privacy issue 378).

    Example:
        >>> import dp_accounting
        >>> from hockeystick.adapters.dp_accounting import from_event
        >>> step = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.1))
        >>> print(from_event(dp_accounting.SelfComposedDpEvent(step, 1000)))
        Poisson-subsampled Gaussian (noise multiplier 1.1, rate 0.01) x 1000
    """
    if adjacency is None:
        refuse_unnamed(event)
        return read(event, Adjacency.ADD_REMOVE)
    known = isinstance(adjacency, NeighboringRelation) and adjacency in RELATIONS
    meant = RELATIONS[adjacency] if known else adjacency
    return read(event, _validate.choice("adjacency", meant, Adjacency))


def parts_of(event: dp_event.DpEvent, count: int) -> Iterator[tuple[dp_event.DpEvent, int]]:
    """Yield what runs of an event are composed of, each with how often it runs."""
    match event:
        case dp_event.SelfComposedDpEvent(event=inner, count=times):
            yield from parts_of(inner, _validate.count("count", times) * count)
        case dp_event.ComposedDpEvent(events=several):
            for one in several:
                yield from parts_of(one, count)
        case _:
            yield event, count


def _refused(event: object, reason: str) -> UnsupportedError:
    return UnsupportedError("hockeystick", f"dp-accounting's {event!r}", reason)


def _only_under(needed: Adjacency, adjacency: Adjacency, event: object) -> None:
    if adjacency is not needed:
        reason = (
            f"it has a counterpart under {needed} alone, not under {adjacency}: write "
            f"hockeystick.adapters.dp_accounting.from_event(event, '{needed}')"
        )
        raise _refused(event, reason)


def _inside(event: dp_event.DpEvent, adjacency: Adjacency) -> Mechanism | None:
    """Return what runs on one sample, several Gaussians as one; None where nothing does."""
    parts = [
        (one, runs)
        for one, runs in parts_of(event, 1)
        if runs and not isinstance(one, dp_event.NoOpDpEvent)
    ]
    if parts and all(isinstance(one, dp_event.GaussianDpEvent) for one, _ in parts):
        noises = [(_noise(one.noise_multiplier), runs) for one, runs in parts]
        return Gaussian(_distance(_together(noises), adjacency))
    return read(event, adjacency) if parts else None


def refuse_unnamed(event: dp_event.DpEvent) -> None:
    """Raise where nobody says which neighbours are meant, and that is not records added alone."""
    if any(isinstance(one, dp_event.SampledWithoutReplacementDpEvent) for one in _all_of(event)):
        raise _refused(event, _UNNAMED)


def _all_of(event: dp_event.DpEvent) -> Iterator[dp_event.DpEvent]:
    yield event
    match event:
        case dp_event.ComposedDpEvent(events=several):
            for one in several:
                yield from _all_of(one)
        case (
            dp_event.SelfComposedDpEvent(event=inner)
            | dp_event.PoissonSampledDpEvent(event=inner)
            | dp_event.SampledWithoutReplacementDpEvent(event=inner)
            | dp_event.SampledWithReplacementDpEvent(event=inner)
            | dp_event.RepeatAndSelectDpEvent(event=inner)
        ):
            yield from _all_of(inner)
        case _:
            return


def _shown(chance: float | Fraction) -> Mechanism:
    """Return what shows a record where it is drawn, with this chance, and else says nothing."""
    return ApproxDP(0, min(up(float_up(Fraction(chance))), 1.0))


def _draws(event: _FixedSize) -> bool:
    return _validate.count("sample_size", event.sample_size, _SIZE) > 0


def _noise(value: object) -> float:
    return _validate.real("noise_multiplier", value)


def _distance(noise_multiplier: object, adjacency: Adjacency) -> float:
    """Return a noise multiplier for contributions in units of the distance of neighbours."""
    noise = _noise(noise_multiplier)
    if adjacency is not Adjacency.REPLACE_ONE:
        return noise
    half = noise / 2.0
    return half if 2.0 * half <= noise else math.nextafter(half, 0.0)


def _together(noises: Iterable[tuple[float, int]]) -> float:
    """Return the noise of several Gaussians as one, ``(sum n / z^2)^(-1/2)``, rounded down."""
    listed = list(noises)
    if [runs for _, runs in listed] == [1]:
        return listed[0][0]
    if any(noise == 0.0 for noise, _ in listed):
        return 0.0
    finite = [(noise, runs) for noise, runs in listed if noise < math.inf]
    if not finite:
        return math.inf
    with working_digits(DIGITS):
        total = sum((runs / least_reading(noise) ** 2 for noise, runs in finite), Fraction(0))
        return evaluated_down(1 / mp.sqrt(as_mpf(total)))


def _epsilon_of_response(chance: float, buckets: int) -> float:
    """Return ``ln(1 + k (1-p) / p)``, rounded up: with chance p the answer is a random one of k."""
    least = least_reading(chance)
    if least <= 0:
        return math.inf
    if chance == 1.0:
        return 0.0
    with working_digits(DIGITS):
        return evaluated_up(mp.log1p(as_mpf(buckets * (1 - least) / least)))


def _chance_of_any(size: int, examples: int) -> float:
    """Return the chance to be drawn in any of some draws with replacement, rounded up."""
    if examples == 1:
        return 1.0
    return min(-math.expm1(size * math.log1p(-1.0 / examples)) * _OUTWARD, 1.0)


def _runs(mean: float, shape: float) -> tuning.TruncatedNegativeBinomial:
    """Return a truncated negative binomial distribution whose mean is no less than this."""
    if shape != 1.0:
        return tuning.TruncatedNegativeBinomial.of_mean(mean * _MORE_RUNS, shape)
    # Checks the mean too.
    found = tuning.TruncatedNegativeBinomial.of_mean(mean, shape)
    return tuning.TruncatedNegativeBinomial(
        shape, min(found.gamma, float_down(1 / Fraction(float(mean))))
    )


@singledispatch
def read(event: object, adjacency: Adjacency) -> Mechanism:
    """Return the mechanism that an event describes under an adjacency."""
    if not isinstance(event, dp_event.DpEvent):
        raise ParameterError("event", event, "a DpEvent of dp_accounting")
    raise _refused(event, f"there is no mechanism for a {type(event).__name__}")


read.register(dp_event.NoOpDpEvent, lambda event, adjacency: _NOTHING)
read.register(dp_event.NonPrivateDpEvent, lambda event, adjacency: _NO_PRIVACY)
read.register(
    dp_event.GaussianDpEvent,
    lambda one, adjacency: Gaussian(_distance(one.noise_multiplier, adjacency)),
)
read.register(
    dp_event.LaplaceDpEvent,
    lambda one, adjacency: Laplace(_distance(one.noise_multiplier, adjacency)),
)
read.register(
    dp_event.SelfComposedDpEvent,
    lambda one, adjacency: Repeated(read(one.event, adjacency), one.count),
)


@read.register
def _(event: dp_event.DiscreteLaplaceDpEvent, adjacency: Adjacency) -> Mechanism:
    noise = _validate.real("noise_parameter", event.noise_parameter, _NOISE)
    scale = 0.0 if noise in (0.0, math.inf) else float_down(1 / Fraction(noise))
    moves = DiscreteLaplace(scale, event.sensitivity).sensitivity
    return DiscreteLaplace(scale, moves * 2 if adjacency is Adjacency.REPLACE_ONE else moves)


@read.register
def _(event: dp_event.RandomizedResponseDpEvent, adjacency: Adjacency) -> Mechanism:
    """Return randomized response; what a special record answers is not said by the event."""
    _only_under(Adjacency.REPLACE_ONE, adjacency, event)
    buckets = _validate.count("num_buckets", event.num_buckets, _BUCKETS)
    chance = _validate.real("noise_parameter", event.noise_parameter, _CHANCE)
    if buckets == 1:
        return _NOTHING
    return RandomizedResponse(_epsilon_of_response(chance, buckets), buckets)


@read.register
def _(event: dp_event.ComposedDpEvent, adjacency: Adjacency) -> Mechanism:
    parts = [read(one, adjacency) for one in event.events]
    return Composed(parts) if parts else _NOTHING


@read.register
def _(event: dp_event.PoissonSampledDpEvent, adjacency: Adjacency) -> Mechanism:
    """Return the mechanism on a Poisson sample, a Gaussian's noise in units of contributions."""
    units = Adjacency.ADD_REMOVE if adjacency is Adjacency.REPLACE_ONE else adjacency
    if any(isinstance(one, _OF_STATED_SIZE) for one in _all_of(event.event)):
        raise _refused(event, "a Poisson sample has a random size, and not the one stated inside")
    inner = _inside(event.event, units)
    rate = _validate.real("rate", event.sampling_probability)
    return PoissonSubsampled(inner, rate, adjacency) if inner else _NOTHING


@read.register
def _(event: dp_event.SampledWithoutReplacementDpEvent, adjacency: Adjacency) -> Mechanism:
    """Return the mechanism on a sample of a fixed size, in which a record takes another's place."""
    inner = _inside(event.event, Adjacency.REPLACE_ONE) if _draws(event) else None
    if adjacency is not Adjacency.REPLACE_ONE and not isinstance(inner, _ADDED_NOISE | None):
        raise _refused(event, f"what runs inside is not known under replace-one but {adjacency}")
    sizes = event.sample_size, event.source_dataset_size
    clipped = adjacency is Adjacency.ZERO_OUT and isinstance(inner, Gaussian)
    if inner is None:
        return _NOTHING
    sampled = FixedSizeSubsampled(inner, *sizes, adjacency, clipped)
    return _shown(sampled.rate) if inner == _NO_NOISE else sampled


@read.register
def _(event: dp_event.SampledWithReplacementDpEvent, adjacency: Adjacency) -> Mechanism:
    _only_under(Adjacency.REPLACE_ONE, adjacency, event)
    inner = _inside(event.event, adjacency) if _draws(event) else None
    if inner is None:
        return _NOTHING
    size, examples = event.sample_size, event.source_dataset_size
    sampled = WithReplacementSubsampled(inner, size, examples)
    return _shown(_chance_of_any(size, examples)) if inner == _NO_NOISE else sampled


@read.register
def _(event: dp_event.TruncatedSubsampledGaussianDpEvent, adjacency: Adjacency) -> Mechanism:
    size = _validate.count("dataset_size", event.dataset_size, _SIZE)
    cap = _validate.count("truncated_batch_size", event.truncated_batch_size, _SIZE)
    if not size or not cap:
        return _NOTHING
    noise = Gaussian(event.noise_multiplier)
    return TruncatedPoissonSubsampled(noise, event.sampling_probability, cap, size, adjacency)


@read.register
def _(event: dp_event.SingleEpochTreeAggregationDpEvent, adjacency: Adjacency) -> Mechanism:
    """Return the largest tree: a record is in one of them."""
    _only_under(Adjacency.ZERO_OUT, adjacency, event)
    several = event.step_counts if isinstance(event.step_counts, list) else [event.step_counts]
    if not several:
        raise ParameterError("step_counts", several, "a number of steps, or a list of such")
    trees = [TreeAggregation(event.noise_multiplier, steps) for steps in several]
    return max(trees, key=lambda tree: tree.leaves)


@read.register
def _(event: dp_event.MixtureOfGaussiansDpEvent, adjacency: Adjacency) -> Mechanism:
    _only_under(Adjacency.ADD_REMOVE, adjacency, event)
    moves, chances = tuple(event.sensitivities), tuple(event.sampling_probs)
    return GaussianMixture(event.standard_deviation, moves, chances)


@read.register
def _(event: dp_event.RepeatAndSelectDpEvent, adjacency: Adjacency) -> Mechanism:
    inner = read(event.event, adjacency)
    shape = _validate.real("shape", event.shape, _SHAPE)
    if shape == math.inf:
        return RandomStopping(inner, tuning.Poisson(event.mean))
    return inner if event.mean == 1 else RandomStopping(inner, _runs(event.mean, shape))


@read.register
def _(event: dp_event.ZCDpEvent, adjacency: Adjacency) -> Mechanism:
    """Return the guarantee, with a constant xi its divergences at orders."""
    least = ZCDP(event.rho)
    xi = _validate.real("xi", event.xi, _CONSTANT)
    if xi == 0.0:
        return least
    if math.inf in (xi, least.rho):
        return RenyiDP((order, math.inf) for order in _ORDERS)
    start, slope = largest_reading(xi), largest_reading(least.rho)
    return RenyiDP((order, float_up(start + slope * Fraction(order))) for order in _ORDERS)


def to_event(mechanism: Mechanism, adjacency: Adjacency | str | None = None) -> dp_event.DpEvent:
    """Return the event of dp-accounting that describes a mechanism, by the table of ``from_event``.

    A plan, as ``DPSGD``, is written as what it stands for. An event does not say which neighbours
    it is for: give their accountant the relation that the mechanism has. Numbers that a float does
    not hold are rounded so that the event is at most as private as the mechanism.

    Args:
        mechanism: The mechanism.
        adjacency: The neighbours that are meant. None for the mechanism's own, or add-remove where
            it names none.

    Raises:
        UnsupportedError: If the mechanism, or it under this adjacency, has no counterpart.
        ParameterError: If it is no mechanism.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.adapters.dp_accounting import to_event
        >>> to_event(hs.Gaussian(1.1) ** 1000)
        SelfComposedDpEvent(event=GaussianDpEvent(noise_multiplier=1.1), count=1000)
        >>> to_event(hs.Gaussian(1.1), adjacency="replace-one")
        GaussianDpEvent(noise_multiplier=2.2)
    """
    if not isinstance(mechanism, Mechanism):
        raise ParameterError("mechanism", mechanism, "a mechanism")
    own = mechanism.adjacency or Adjacency.ADD_REMOVE
    meant = own if adjacency is None else _validate.choice("adjacency", adjacency, Adjacency)
    if mechanism.adjacency not in (None, meant):
        raise _unwritten(mechanism, f"it is described under {own}, not under {meant}")
    return write(mechanism, meant)


def _unwritten(mechanism: Mechanism, reason: str) -> UnsupportedError:
    return UnsupportedError("dp-accounting", str(mechanism), reason)


def _written_only_under(needed: Adjacency, adjacency: Adjacency, mechanism: Mechanism) -> None:
    if adjacency is not needed:
        reason = f"there is an event for it under {needed} alone, not under {adjacency}"
        raise _unwritten(mechanism, reason)


def _contribution(noise_multiplier: float, adjacency: Adjacency) -> float:
    """Return a noise multiplier for the distance of neighbours in units of contributions."""
    if adjacency is not Adjacency.REPLACE_ONE or noise_multiplier == math.inf:
        return noise_multiplier
    return min(2.0 * noise_multiplier, sys.float_info.max)


def _chance_of_response(epsilon: float, categories: int) -> float:
    """Return ``p = k / (e^epsilon + k - 1)``, rounded down."""
    if epsilon == 0.0:
        return 1.0
    if epsilon == math.inf:
        return 0.0
    with working_digits(DIGITS):
        odds = mp.exp(as_mpf(largest_reading(epsilon)))
        return evaluated_down(categories / (odds + categories - 1))


@singledispatch
def write(mechanism: Mechanism, adjacency: Adjacency) -> dp_event.DpEvent:
    """Return the event that describes a mechanism under an adjacency."""
    raise _unwritten(mechanism, "dp-accounting has no event for it")


write.register(Plan, lambda one, adjacency: write(one.mechanism, adjacency))
write.register(ZCDP, lambda one, adjacency: dp_event.ZCDpEvent(one.rho))
write.register(
    Gaussian,
    lambda one, adjacency: dp_event.GaussianDpEvent(_contribution(one.noise_multiplier, adjacency)),
)
write.register(
    Laplace, lambda one, adjacency: dp_event.LaplaceDpEvent(_contribution(one.scale, adjacency))
)
write.register(
    Composed,
    lambda one, adjacency: dp_event.ComposedDpEvent([write(part, adjacency) for part in one.parts]),
)
write.register(
    WithReplacementSubsampled,
    lambda one, adjacency: dp_event.SampledWithReplacementDpEvent(
        one.examples, one.batch_size, write(one.inner, adjacency)
    ),
)
write.register(
    GaussianMixture,
    lambda one, adjacency: dp_event.MixtureOfGaussiansDpEvent(
        one.noise_multiplier, one.sensitivities, one.probabilities
    ),
)


@write.register
def _(mechanism: Repeated, adjacency: Adjacency) -> dp_event.DpEvent:
    """Return the repetition; none at all does nothing."""
    if mechanism.count == 0:
        return dp_event.NoOpDpEvent()
    return dp_event.SelfComposedDpEvent(write(mechanism.inner, adjacency), mechanism.count)


@write.register
def _(mechanism: DiscreteLaplace, adjacency: Adjacency) -> dp_event.DpEvent:
    """Return the discrete Laplace mechanism with the parameter 1/scale."""
    if mechanism.scale == 0.0:
        return dp_event.NonPrivateDpEvent()
    if mechanism.scale == math.inf:
        return dp_event.NoOpDpEvent()
    moves, odd = divmod(mechanism.sensitivity, 2)
    if adjacency is not Adjacency.REPLACE_ONE:
        moves, odd = mechanism.sensitivity, 0
    if odd:
        raise _unwritten(mechanism, "contributions of at most C move a sum by 2C, an even number")
    return dp_event.DiscreteLaplaceDpEvent(float_up(1 / Fraction(mechanism.scale)), moves)


@write.register
def _(mechanism: RandomizedResponse, adjacency: Adjacency) -> dp_event.DpEvent:
    """Return randomized response by the chance of a random answer."""
    _written_only_under(Adjacency.REPLACE_ONE, adjacency, mechanism)
    chance = _chance_of_response(mechanism.epsilon, mechanism.categories)
    return dp_event.RandomizedResponseDpEvent(chance, mechanism.categories)


@write.register
def _(mechanism: PoissonSubsampled, adjacency: Adjacency) -> dp_event.DpEvent:
    """Return Poisson sampling, a Gaussian's noise in units of contributions."""
    units = Adjacency.ADD_REMOVE if adjacency is Adjacency.REPLACE_ONE else adjacency
    inner = write(mechanism.inner, units)
    return dp_event.PoissonSampledDpEvent(float_up(Fraction(mechanism.rate)), inner)


@write.register
def _(mechanism: FixedSizeSubsampled, adjacency: Adjacency) -> dp_event.DpEvent:
    """Return sampling without replacement, in which a record takes another's place."""
    zeroed = adjacency is Adjacency.ZERO_OUT and isinstance(mechanism.inner, Gaussian)
    if zeroed and not mechanism.clipped:
        reason = (
            "an event's noise is in units of the norm of contributions, half of what a replacement "
            "moves; where they are clipped to that norm, say so"
        )
        raise _unwritten(mechanism, reason)
    inner = write(mechanism.inner, Adjacency.REPLACE_ONE)
    return dp_event.SampledWithoutReplacementDpEvent(
        mechanism.examples, mechanism.batch_size, inner
    )


@write.register
def _(mechanism: TruncatedPoissonSubsampled, adjacency: Adjacency) -> dp_event.DpEvent:
    if not isinstance(mechanism.inner, Gaussian):
        raise _unwritten(mechanism, "there is an event for cut samples of Gaussians alone")
    return dp_event.TruncatedSubsampledGaussianDpEvent(
        mechanism.examples,
        float_up(Fraction(mechanism.rate)),
        mechanism.cap,
        mechanism.inner.noise_multiplier,
    )


@write.register
def _(mechanism: TreeAggregation, adjacency: Adjacency) -> dp_event.DpEvent:
    _written_only_under(Adjacency.ZERO_OUT, adjacency, mechanism)
    return dp_event.SingleEpochTreeAggregationDpEvent(mechanism.noise_multiplier, mechanism.leaves)


@write.register
def _(mechanism: RandomStopping, adjacency: Adjacency) -> dp_event.DpEvent:
    mean, shape = _mean_and_shape(mechanism, mechanism.distribution)
    return dp_event.RepeatAndSelectDpEvent(write(mechanism.inner, adjacency), mean, shape)


def _mean_and_shape(mechanism: Mechanism, distribution: tuning.RunCount) -> tuple[float, float]:
    """Return the mean number of runs, rounded up, and the shape of their distribution."""
    if isinstance(distribution, tuning.Poisson):
        return distribution.mean, math.inf
    if not isinstance(distribution, tuning.TruncatedNegativeBinomial):
        reason = "an event's number of runs is truncated negative binomial or Poisson"
        raise _unwritten(mechanism, reason)
    if distribution.eta < 0.0:
        raise _unwritten(mechanism, "an event's shape is at least 0")
    if distribution.eta == 1.0:
        return float_up(1 / Fraction(distribution.gamma)), 1.0
    return distribution.expected * _MORE_RUNS, distribution.eta


@write.register
def _(mechanism: PureDP, adjacency: Adjacency) -> dp_event.DpEvent:
    """Return an event for the two ends; there is none for epsilon-DP in general."""
    if mechanism.epsilon == math.inf:
        return dp_event.NonPrivateDpEvent()
    if mechanism.epsilon == 0.0:
        return dp_event.NoOpDpEvent()
    raise _unwritten(mechanism, "dp-accounting has no event for it")
