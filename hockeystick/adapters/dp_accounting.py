"""Plugs into dp-accounting: its events as mechanisms, mechanisms as its events, an accountant.

TensorFlow Privacy 0.9 and JAX Privacy 2 account for DP-SGD by such events. They name no neighbours:
say which are meant, or have add-remove; for batches of a fixed size they must be said. What there
is no proof for, and every event that dp-accounting 0.6 does not have, is refused with the reason.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import singledispatch
from typing import Any, Final, final

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.accountants.base import TOLERANCE, composition_of
from hockeystick.adapters import missing
from hockeystick.adjacency import Adjacency
from hockeystick.calibration.session.accountant import Accountant
from hockeystick.errors import HockeystickError, ParameterError, UnsupportedError
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
from hockeystick.numerics.multiprecision import mp, working_digits
from hockeystick.numerics.rounding import (
    DIGITS,
    OUTWARD_128,
    as_mpf,
    evaluated_down,
    evaluated_up,
    float_down,
    float_up,
)

try:
    from dp_accounting import dp_event
    from dp_accounting.privacy_accountant import NeighboringRelation, PrivacyAccountant
except ModuleNotFoundError as _error:
    raise missing(_error, "dp_accounting", "peers") from _error

__all__ = ["HockeystickAccountant", "from_event", "to_event"]

_ADD_REMOVE, _REPLACE, _ZERO_OUT = Adjacency
_RELATIONS: Final[Mapping[NeighboringRelation, Adjacency]] = {
    NeighboringRelation.ADD_OR_REMOVE_ONE: _ADD_REMOVE,
    NeighboringRelation.REPLACE_ONE: _REPLACE,
    NeighboringRelation.REPLACE_SPECIAL: _ZERO_OUT,
}
_NOTHING: Final = PureDP(0) ** 0
_NOISE: Final = Domain(symbol="a", low=0, high=math.inf, typical=(0.1, 10))
_CHANCE: Final = Domain(symbol="p", low=0, high=1, typical=(0.01, 0.99))
_CONSTANT: Final = Domain(symbol="xi", low=0, high=math.inf, typical=(0.01, 1))
_BUCKETS: Final = whole_numbers("k", 1, (2, 9))
_SHAPE: Final = Domain(symbol="eta", low=0, high=math.inf, typical=(0, 2))
_SIZE: Final = whole_numbers("n", 0, (9, 99))
# Orders from 1.004 to a million: between them convexity loses next to nothing.
_ORDERS: Final = tuple(1.0 + 2.0 ** (k / 16) for k in range(-128, 321))
# More than what the search for a given mean is off.
_MORE_RUNS: Final = 1.0 + 1e-11
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
_UNCLIPPED: Final = (
    "an event's noise is in units of the norm of contributions, half of what a replacement moves; "
    "where they are clipped to that norm, say so"
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
        is at most as private as the event. The divergences ``xi + rho alpha`` with xi > 0 are
        stated at 449 orders.

    Edge cases:
        No noise is no privacy; in a sample of a fixed size it is ``ApproxDP(0, q)`` with the chance
        q to be drawn. Sampling what releases nothing, or a sample of size 0, releases nothing.
        Drawing a given number of records inside a Poisson sample is refused.

    Args:
        event: The event.
        adjacency: The neighbours that are meant, also as a ``NeighboringRelation``. None for
            records added or removed, where no sample of a fixed size is drawn.

    Raises:
        UnsupportedError: If the event, or it under this adjacency, has no counterpart.
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
        return _unnamed(event)
    known = isinstance(adjacency, NeighboringRelation) and adjacency in _RELATIONS
    meant = _RELATIONS[adjacency] if known else adjacency
    return _read(event, _validate.choice("adjacency", meant, Adjacency))


def to_event(mechanism: Mechanism, adjacency: Adjacency | str | None = None) -> dp_event.DpEvent:
    """Return the event of dp-accounting that describes a mechanism, by the table of ``from_event``.

    A plan, as ``DPSGD``, is written as what it stands for. An event names no neighbours: give their
    accountant the relation that the mechanism has. Numbers that a float does not hold are rounded
    so that the event is at most as private as the mechanism.

    Args:
        mechanism: The mechanism.
        adjacency: The neighbours that are meant. None for the mechanism's own, or add-remove where
            it names none.

    Raises:
        UnsupportedError: If the mechanism, or it under this adjacency, has no counterpart.

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
    own = mechanism.adjacency or _ADD_REMOVE
    meant = own if adjacency is None else _validate.choice("adjacency", adjacency, Adjacency)
    if mechanism.adjacency not in (None, meant):
        raise _refused(mechanism, f"it is described under {own}, not under {meant}")
    return _write(mechanism, meant)


@final
class HockeystickAccountant(PrivacyAccountant):  # type: ignore[misc]  # theirs has no types
    """An accountant for dp-accounting whose answers are the upper ends of proven intervals.

    They are those of ``hs.Accountant``, which ``account`` is, of the mechanisms that ``from_event``
    reads the events as. ``compose`` says why an event without a counterpart or an account is not
    supported.

    Args:
        neighboring_relation: Which data sets are neighbours, as dp-accounting means it. None for
            ``ADD_OR_REMOVE_ONE``, under which samples of a fixed size are not supported then.
        tolerance: The relative width that is asked of the interval, from 1e-10 to 0.1.

    Example:
        >>> import dp_accounting
        >>> from hockeystick.adapters.dp_accounting import HockeystickAccountant
        >>> event = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.1))
        >>> accountant = HockeystickAccountant().compose(event, 1000)
        >>> f"{accountant.get_epsilon(target_delta=1e-5):.6f}"
        '1.515362'
    """

    def __init__(
        self, neighboring_relation: NeighboringRelation | None = None, tolerance: float = TOLERANCE
    ) -> None:
        self._is_named = neighboring_relation is not None
        meant = neighboring_relation if self._is_named else NeighboringRelation.ADD_OR_REMOVE_ONE
        if not isinstance(meant, NeighboringRelation) or meant not in _RELATIONS:
            allowed = "a NeighboringRelation of dp_accounting; orders are not given"
            raise ParameterError("neighboring_relation", meant, allowed)
        super().__init__(meant)
        self._adjacency, self._tolerance = _RELATIONS[meant], tolerance
        self.account: Final = Accountant()

    def get_epsilon(self, target_delta: float) -> float:
        """Return the upper end of epsilon at a delta in [0, 1]."""
        at = _validate.one("delta", target_delta)
        return float(self.account.epsilon(at, tolerance=self._tolerance).upper)

    def get_delta(self, target_epsilon: float) -> float:
        """Return the upper end of delta at an epsilon in [0, inf]."""
        at = _validate.one("epsilon", target_epsilon)
        return float(self.account.delta(at, tolerance=self._tolerance).upper)

    def _maybe_compose(self, event: dp_event.DpEvent, count: int, do_compose: bool) -> Any:
        try:
            runs = [self._run(part, times) for part, times in _parts(event, count)]
        except HockeystickError as error:
            return self.CompositionErrorDetails(invalid_event=event, error_message=str(error))
        for run in runs if do_compose else ():
            self.account.step(run)
        return None

    def _run(self, event: dp_event.DpEvent, count: int) -> Repeated:
        mechanism = _read(event, self._adjacency) if self._is_named else _unnamed(event)
        composition_of(mechanism, "auto")
        return mechanism**count


def _refused(one: object, reason: str) -> UnsupportedError:
    if isinstance(one, Mechanism):
        return UnsupportedError("dp-accounting", str(one), reason)
    return UnsupportedError("hockeystick", f"dp-accounting's {one!r}", reason)


def _only_under(needed: Adjacency, adjacency: Adjacency, one: object) -> None:
    if adjacency is not needed:
        reason = f"it has a counterpart under {needed} alone, not under {adjacency}: say '{needed}'"
        raise _refused(one, reason)


def _unnamed(event: dp_event.DpEvent) -> Mechanism:
    """Return the mechanism for records added or removed, or raise where others may be meant."""
    if any(isinstance(one, dp_event.SampledWithoutReplacementDpEvent) for one in _all_of(event)):
        raise _refused(event, _UNNAMED)
    return _read(event, _ADD_REMOVE)


def _all_of(event: Any) -> Iterator[dp_event.DpEvent]:
    yield event
    inner = getattr(event, "event", None)
    for one in getattr(event, "events", []) if inner is None else [inner]:
        yield from _all_of(one)


def _parts(event: dp_event.DpEvent, count: int) -> Iterator[tuple[dp_event.DpEvent, int]]:
    """Yield what runs of an event are composed of, each with how often it runs."""
    match event:
        case dp_event.SelfComposedDpEvent(event=inner, count=times):
            yield from _parts(inner, _validate.count("count", times) * count)
        case dp_event.ComposedDpEvent(events=several):
            for one in several:
                yield from _parts(one, count)
        case _:
            yield event, count


@singledispatch
def _read(event: object, adjacency: Adjacency) -> Mechanism:
    if not isinstance(event, dp_event.DpEvent):
        raise ParameterError("event", event, "a DpEvent of dp_accounting")
    raise _refused(event, f"there is no mechanism for a {type(event).__name__}")


@singledispatch
def _write(mechanism: Mechanism, adjacency: Adjacency) -> dp_event.DpEvent:
    raise _refused(mechanism, "dp-accounting has no event for it")


# Nothing, everything, and compositions.

_read.register(dp_event.NoOpDpEvent, lambda event, adjacency: _NOTHING)
_read.register(dp_event.NonPrivateDpEvent, lambda event, adjacency: PureDP(math.inf))
_read.register(
    dp_event.SelfComposedDpEvent,
    lambda one, adjacency: Repeated(_read(one.event, adjacency), one.count),
)
_write.register(Plan, lambda one, adjacency: _write(one.mechanism, adjacency))
_write.register(
    Composed,
    lambda one, adjacency: dp_event.ComposedDpEvent(
        [_write(part, adjacency) for part in one.parts]
    ),
)


@_read.register
def _(event: dp_event.ComposedDpEvent, adjacency: Adjacency) -> Mechanism:
    parts = [_read(one, adjacency) for one in event.events]
    return Composed(parts) if parts else _NOTHING


@_write.register
def _(mechanism: Repeated, adjacency: Adjacency) -> dp_event.DpEvent:
    if mechanism.count == 0:
        return dp_event.NoOpDpEvent()
    return dp_event.SelfComposedDpEvent(_write(mechanism.inner, adjacency), mechanism.count)


@_write.register
def _(mechanism: PureDP, adjacency: Adjacency) -> dp_event.DpEvent:
    if 0.0 < mechanism.epsilon < math.inf:
        raise _refused(mechanism, "dp-accounting has no event for it")
    return dp_event.NoOpDpEvent() if mechanism.epsilon == 0.0 else dp_event.NonPrivateDpEvent()


# Added noise: an event's is in units of contributions, a mechanism's of the distance of neighbours.


def _distance(noise_multiplier: object, adjacency: Adjacency) -> float:
    noise = _validate.real("noise_multiplier", noise_multiplier)
    if adjacency is not _REPLACE:
        return noise
    half = noise / 2.0
    return half if 2.0 * half <= noise else math.nextafter(half, 0.0)


def _contribution(noise_multiplier: float, adjacency: Adjacency) -> float:
    if adjacency is not _REPLACE or noise_multiplier == math.inf:
        return noise_multiplier
    return min(2.0 * noise_multiplier, sys.float_info.max)


@_read.register(dp_event.GaussianDpEvent)
@_read.register(dp_event.LaplaceDpEvent)
def _(event: Any, adjacency: Adjacency) -> Mechanism:
    added = Gaussian if isinstance(event, dp_event.GaussianDpEvent) else Laplace
    return added(_distance(event.noise_multiplier, adjacency))


@_write.register(Gaussian)
@_write.register(Laplace)
def _(mechanism: Any, adjacency: Adjacency) -> dp_event.DpEvent:
    if isinstance(mechanism, Gaussian):
        return dp_event.GaussianDpEvent(_contribution(mechanism.noise_multiplier, adjacency))
    return dp_event.LaplaceDpEvent(_contribution(mechanism.scale, adjacency))


@_read.register
def _(event: dp_event.DiscreteLaplaceDpEvent, adjacency: Adjacency) -> Mechanism:
    noise = _validate.real("noise_parameter", event.noise_parameter, _NOISE)
    scale = 0.0 if noise in (0.0, math.inf) else float_down(1 / Fraction(noise))
    moves = DiscreteLaplace(scale, event.sensitivity).sensitivity
    return DiscreteLaplace(scale, moves * 2 if adjacency is _REPLACE else moves)


@_write.register
def _(mechanism: DiscreteLaplace, adjacency: Adjacency) -> dp_event.DpEvent:
    if mechanism.scale == 0.0:
        return dp_event.NonPrivateDpEvent()
    if mechanism.scale == math.inf:
        return dp_event.NoOpDpEvent()
    moves, odd = divmod(mechanism.sensitivity, 2 if adjacency is _REPLACE else 1)
    if odd:
        raise _refused(mechanism, "contributions of at most C move a sum by 2C, an even number")
    return dp_event.DiscreteLaplaceDpEvent(float_up(1 / Fraction(mechanism.scale)), moves)


# Randomized response: with chance p the answer is a random one of k.


@_read.register
def _(event: dp_event.RandomizedResponseDpEvent, adjacency: Adjacency) -> Mechanism:
    """Return one of ``ln(1 + k (1-p) / p)``, rounded up."""
    _only_under(_REPLACE, adjacency, event)
    buckets = _validate.count("num_buckets", event.num_buckets, _BUCKETS)
    chance = _validate.real("noise_parameter", event.noise_parameter, _CHANCE)
    if buckets == 1:
        return _NOTHING
    least = least_reading(chance)
    if chance == 1.0 or least <= 0:
        return RandomizedResponse(0.0 if chance == 1.0 else math.inf, buckets)
    with working_digits(DIGITS):
        epsilon = evaluated_up(mp.log1p(as_mpf(buckets * (1 - least) / least)))
    return RandomizedResponse(epsilon, buckets)


@_write.register
def _(mechanism: RandomizedResponse, adjacency: Adjacency) -> dp_event.DpEvent:
    """Return the event of ``p = k / (e^epsilon + k - 1)``, rounded down."""
    _only_under(_REPLACE, adjacency, mechanism)
    epsilon, categories = mechanism.epsilon, mechanism.categories
    if epsilon in (0.0, math.inf):
        return dp_event.RandomizedResponseDpEvent(float(epsilon == 0.0), categories)
    with working_digits(DIGITS):
        odds = mp.exp(as_mpf(largest_reading(epsilon)))
        chance = evaluated_down(categories / (odds + categories - 1))
    return dp_event.RandomizedResponseDpEvent(chance, categories)


# Samples; in one of a fixed size a record takes another's place.


def _inside(event: dp_event.DpEvent, adjacency: Adjacency) -> Mechanism | None:
    """Return what runs on one sample, several Gaussians as one; None where nothing does."""
    parts = [
        (one, runs)
        for one, runs in _parts(event, 1)
        if runs and not isinstance(one, dp_event.NoOpDpEvent)
    ]
    if len(parts) > 1 or any(runs > 1 for _, runs in parts):
        if all(isinstance(one, dp_event.GaussianDpEvent) for one, _ in parts):
            return Gaussian(_distance(_together(parts), adjacency))
        return _read(event, adjacency)
    return _read(parts[0][0], adjacency) if parts else None


def _together(parts: list[tuple[dp_event.DpEvent, int]]) -> float:
    """Return the noise of several Gaussians as one, ``(sum n / z^2)^(-1/2)``, rounded down."""
    noises = [
        (_validate.real("noise_multiplier", one.noise_multiplier), runs) for one, runs in parts
    ]
    finite = [(noise, runs) for noise, runs in noises if noise < math.inf]
    least = min(noise for noise, _ in noises)
    if least in (0.0, math.inf):
        return least
    with working_digits(DIGITS):
        total = sum((runs / least_reading(noise) ** 2 for noise, runs in finite), Fraction(0))
        return evaluated_down(1 / mp.sqrt(as_mpf(total)))


def _sampled(sampled: Mechanism, inner: Mechanism, chance: float | Fraction) -> Mechanism:
    """Return a sample, or what shows a record where it is drawn and else says nothing."""
    if inner == Gaussian(0):
        return ApproxDP(0, min(up(float_up(Fraction(chance))), 1.0))
    return sampled


def _is_drawn(event: Any) -> bool:
    return _validate.count("sample_size", event.sample_size, _SIZE) > 0


@_read.register
def _(event: dp_event.PoissonSampledDpEvent, adjacency: Adjacency) -> Mechanism:
    units = _ADD_REMOVE if adjacency is _REPLACE else adjacency
    if any(isinstance(one, _OF_STATED_SIZE) for one in _all_of(event.event)):
        raise _refused(event, "a Poisson sample has a random size, and not the one stated inside")
    inner = _inside(event.event, units)
    rate = _validate.real("rate", event.sampling_probability)
    return PoissonSubsampled(inner, rate, adjacency) if inner else _NOTHING


@_write.register
def _(mechanism: PoissonSubsampled, adjacency: Adjacency) -> dp_event.DpEvent:
    units = _ADD_REMOVE if adjacency is _REPLACE else adjacency
    inner = _write(mechanism.inner, units)
    return dp_event.PoissonSampledDpEvent(float_up(Fraction(mechanism.rate)), inner)


@_read.register
def _(event: dp_event.SampledWithoutReplacementDpEvent, adjacency: Adjacency) -> Mechanism:
    inner = _inside(event.event, _REPLACE) if _is_drawn(event) else None
    if inner is None:
        return _NOTHING
    if adjacency is not _REPLACE and not isinstance(inner, Gaussian | Laplace | DiscreteLaplace):
        raise _refused(event, f"what runs inside is not known under replace-one but {adjacency}")
    clipped = adjacency is _ZERO_OUT and isinstance(inner, Gaussian)
    sizes = event.sample_size, event.source_dataset_size
    sampled = FixedSizeSubsampled(inner, *sizes, adjacency, clipped)
    return _sampled(sampled, inner, sampled.rate)


@_write.register
def _(mechanism: FixedSizeSubsampled, adjacency: Adjacency) -> dp_event.DpEvent:
    zeroed = adjacency is _ZERO_OUT and isinstance(mechanism.inner, Gaussian)
    if zeroed and not mechanism.clipped:
        raise _refused(mechanism, _UNCLIPPED)
    sizes = mechanism.examples, mechanism.batch_size
    return dp_event.SampledWithoutReplacementDpEvent(*sizes, _write(mechanism.inner, _REPLACE))


@_read.register
def _(event: dp_event.SampledWithReplacementDpEvent, adjacency: Adjacency) -> Mechanism:
    _only_under(_REPLACE, adjacency, event)
    inner = _inside(event.event, adjacency) if _is_drawn(event) else None
    if inner is None:
        return _NOTHING
    size, examples = event.sample_size, event.source_dataset_size
    sampled = WithReplacementSubsampled(inner, size, examples)
    # The chance to be drawn in any of the draws, rounded up.
    never = size * math.log1p(-1.0 / examples) if examples > 1 else -math.inf
    return _sampled(sampled, inner, min(-math.expm1(never) * (1.0 + OUTWARD_128), 1.0))


_write.register(
    WithReplacementSubsampled,
    lambda one, adjacency: dp_event.SampledWithReplacementDpEvent(
        one.examples, one.batch_size, _write(one.inner, adjacency)
    ),
)


@_read.register
def _(event: dp_event.TruncatedSubsampledGaussianDpEvent, adjacency: Adjacency) -> Mechanism:
    size = _validate.count("dataset_size", event.dataset_size, _SIZE)
    cap = _validate.count("truncated_batch_size", event.truncated_batch_size, _SIZE)
    if not size or not cap:
        return _NOTHING
    noise = Gaussian(event.noise_multiplier)
    return TruncatedPoissonSubsampled(noise, event.sampling_probability, cap, size, adjacency)


@_write.register
def _(mechanism: TruncatedPoissonSubsampled, adjacency: Adjacency) -> dp_event.DpEvent:
    if not isinstance(mechanism.inner, Gaussian):
        raise _refused(mechanism, "there is an event for cut samples of Gaussians alone")
    rate, noise = float_up(Fraction(mechanism.rate)), mechanism.inner.noise_multiplier
    return dp_event.TruncatedSubsampledGaussianDpEvent(
        mechanism.examples, rate, mechanism.cap, noise
    )


# Trees, mixtures, searches, and concentrated differential privacy.


@_read.register
def _(event: dp_event.SingleEpochTreeAggregationDpEvent, adjacency: Adjacency) -> Mechanism:
    """Return the largest tree: a record is in one of them."""
    _only_under(_ZERO_OUT, adjacency, event)
    several = event.step_counts if isinstance(event.step_counts, list) else [event.step_counts]
    if not several:
        raise ParameterError("step_counts", several, "a number of steps, or a list of such")
    trees = [TreeAggregation(event.noise_multiplier, steps) for steps in several]
    return max(trees, key=lambda tree: tree.leaves)


@_write.register
def _(mechanism: TreeAggregation, adjacency: Adjacency) -> dp_event.DpEvent:
    _only_under(_ZERO_OUT, adjacency, mechanism)
    return dp_event.SingleEpochTreeAggregationDpEvent(mechanism.noise_multiplier, mechanism.leaves)


@_read.register
def _(event: dp_event.MixtureOfGaussiansDpEvent, adjacency: Adjacency) -> Mechanism:
    _only_under(_ADD_REMOVE, adjacency, event)
    moves, chances = tuple(event.sensitivities), tuple(event.sampling_probs)
    return GaussianMixture(event.standard_deviation, moves, chances)


_write.register(
    GaussianMixture,
    lambda one, adjacency: dp_event.MixtureOfGaussiansDpEvent(
        one.noise_multiplier, one.sensitivities, one.probabilities
    ),
)


@_read.register
def _(event: dp_event.RepeatAndSelectDpEvent, adjacency: Adjacency) -> Mechanism:
    """Return the search of a mean number of runs that is no less than the event's."""
    inner = _read(event.event, adjacency)
    shape = _validate.real("shape", event.shape, _SHAPE)
    if shape == math.inf:
        return RandomStopping(inner, tuning.Poisson(event.mean))
    if event.mean == 1:
        return inner
    of_mean = tuning.TruncatedNegativeBinomial.of_mean
    if shape != 1.0:
        return RandomStopping(inner, of_mean(event.mean * _MORE_RUNS, shape))
    gamma = min(of_mean(event.mean, shape).gamma, float_down(1 / Fraction(float(event.mean))))
    return RandomStopping(inner, tuning.TruncatedNegativeBinomial(shape, gamma))


@_write.register
def _(mechanism: RandomStopping, adjacency: Adjacency) -> dp_event.DpEvent:
    """Return the event of a mean number of runs that is no less than the mechanism's."""
    runs: Any = mechanism.distribution
    if not isinstance(runs, tuning.Poisson | tuning.TruncatedNegativeBinomial):
        reason = "an event's number of runs is truncated negative binomial or Poisson"
        raise _refused(mechanism, reason)
    if isinstance(runs, tuning.Poisson):
        mean, shape = runs.mean, math.inf
    elif runs.eta < 0.0:
        raise _refused(mechanism, "an event's shape is at least 0")
    elif runs.eta == 1.0:
        mean, shape = float_up(1 / Fraction(runs.gamma)), 1.0
    else:
        mean, shape = runs.expected * _MORE_RUNS, runs.eta
    return dp_event.RepeatAndSelectDpEvent(_write(mechanism.inner, adjacency), mean, shape)


@_read.register
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


_write.register(ZCDP, lambda one, adjacency: dp_event.ZCDpEvent(one.rho))
