"""What an answer does not say by itself, and whoever decides should know."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, final

from hockeystick.accountants.ask import Answer, asked
from hockeystick.answers.extremes import has_noise, needs_delta, why_infinite, why_zero
from hockeystick.mechanisms import (
    DPSGD,
    DiscreteLaplace,
    FedSDP,
    Laplace,
    MatrixFactorization,
    Mechanism,
    PoissonSubsampled,
    RandomizedResponse,
    Sampling,
    SquareRoot,
    Toeplitz,
    TreeAggregation,
    runs_of,
)
from hockeystick.mechanisms.streams.encoders import rounds_word
from hockeystick.notions import RenyiDP
from hockeystick.numerics.numerals import at_most, plain
from hockeystick.results import Certified

# The fields of mechanisms that say how many are protected, and what one of these is called.
_UNITS: Final = {"examples": "examples", "total_clients": "clients", "users": "users"}
# Ponomareva et al. (2023), section 5.2: a larger epsilon is "weak to no formal" protection.
_WEAK: Final = 10.0
# A delta of more than this over the number of records is of its order.
_OF_ORDER: Final = 0.1
# Whose rounds are one release, sampled or not as a whole.
_STREAMS: Final = (MatrixFactorization, TreeAggregation)
_ONE_SAMPLE: Final = (
    "all rounds run on one and the same sample. Where each round draws its own, this is not the "
    "plan: CyclicPoisson and BallsInBins are, for encoders of bands."
)
_NO_PROMISE: Final = (
    "a delta of 1 promises nothing: a release that shows all data is (0, 1)-DP. Choose one far "
    "below one over the number of records."
)
_NEEDS_DELTA: Final = "at a delta of 0, this plan's epsilon is infinite: choose a delta above 0."
# Stated divergences may be upper bounds, each with an error of its own.
_FALLS: Final = 1.0 - 1e-6
# One release of Laplace noise with a smaller scale has an epsilon of 5 and more.
_SMALL_SCALE: Final = 0.2
# A true answer to a question is more likely than this.
_EVEN: Final = 0.5
# With less noise on the sum of many clients' changes, next to nothing hides one of them.
_NOISE_ON_THE_MEAN: Final = 0.1
# No tree that is of use has as much noise, and more than it has leaves.
_MUCH_NOISE: Final = 100.0
_SHUFFLED: Final = (
    "the plan's notes speak of shuffling, and the answer is that of Poisson sampling: of shuffled "
    "batches it proves nothing (hockeystick compare PLAN --samplings shows what others cost)."
)
_NO_GUARANTEE: Final = (
    "an infinite epsilon is no guarantee: it also holds for a release that shows all data."
)
_WEAKLY: Final = "epsilon above 10: weak to no guarantee (Ponomareva et al. 2023)"


@final
@dataclass(frozen=True, slots=True)
class Caution:
    """What an answer does not say by itself.

    Args:
        about: "delta", "epsilon", "rho", "mu", "divergences", "noise" or "sampling".
        text: One or two sentences for whoever decides.
        is_mild: Whether it is a matter of what is usual rather than of what is promised.
    """

    about: str
    text: str
    is_mild: bool = False


@final
@dataclass(frozen=True, slots=True)
class Units:
    """How many are protected, and what one of them is called, as in "50,000 examples"."""

    count: int
    name: str

    def __str__(self) -> str:
        return f"{self.count:,} {self.name}"


def cautions(
    answer: Answer, plan: Mechanism, *, delta: float | None = None, epsilon: float | None = None
) -> tuple[Caution, ...]:
    """Return what whoever decides by an answer should know besides.

    A delta of at least one over the number of records allows a release that shows one of them in
    full, whatever epsilon is, and one of that order is far from usual (Dwork and Roth 2014, section
    2.3): above a tenth of it, the caution is a mild one. An epsilon above 10 is "weak to no formal"
    protection (Ponomareva et al. 2023, section 5.2).

    Guarantees:
        None: these are conventions, not theorems. No caution does not mean that an answer is good.

    Edge cases:
        Where the plan does not say how many records there are, nothing is said of a delta below 1.

    Args:
        answer: What ``epsilon`` or ``delta`` returned.
        plan: What it is of.
        delta: Where epsilon was asked for; or
        epsilon: where delta was asked for: exactly one of the two.

    Returns:
        The cautions, the most serious first.

    Raises:
        ParameterError: If not exactly one of delta and epsilon is given.

    References:
        Ponomareva et al., "How to DP-fy ML", 2023; Dwork and Roth, "The Algorithmic Foundations of
        Differential Privacy", 2014.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.DPSGD(examples=50_000, batch_size=500, epochs=1, noise_multiplier=1)
        >>> (found,) = hs.answers.cautions(hs.epsilon(plan, delta=0.4), plan, delta=0.4)
        >>> print(found.text)
        delta 0.4 is not below 1 / 50,000; use 1e-06 or less
    """
    quantity, at = asked(delta, epsilon)
    told = float(answer if isinstance(answer, Certified) else answer.value)
    at_delta, at_epsilon = (at, told) if quantity == "epsilon" else (told, at)
    return cautions_at(plan, epsilon=at_epsilon, delta=at_delta)


def cautions_at(plan: Mechanism, *, epsilon: float, delta: float) -> tuple[Caution, ...]:
    """Return the cautions where a plan is said to be (epsilon, delta)-DP."""
    found = (_of_delta(delta, plan), _of_epsilon(epsilon, plan, delta), *cautions_of_plan(plan))
    return tuple(sorted(filter(None, found), key=lambda one: one.is_mild))


def cautions_of_plan(plan: Mechanism) -> tuple[Caution, ...]:
    """Return the cautions that do not depend on what was asked."""
    return (
        *_of_one_sample(plan),
        *_of_falling(plan),
        *_of_nothing(plan),
        *_of_scale(plan),
        *_of_truth(plan),
        *_of_rounds(plan),
        *_of_separation(plan),
        *_of_mean(plan),
        *_of_swapped(plan),
    )


def caution_of_question(plan: Mechanism, delta: float | None) -> Caution | None:
    """Return the caution on a question about a plan at a delta, before it is answered.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.answers.cautions import caution_of_question
        >>> caution_of_question(hs.Gaussian(2), 0.0).text
        "at a delta of 0, this plan's epsilon is infinite: choose a delta above 0."
    """
    # Without a delta, only what is so at all below 1 is told.
    at = math.nextafter(1.0, 0.0) if delta is None else delta
    exactly = why_zero(plan) or why_infinite(plan, at)
    if exactly:
        return Caution("epsilon", exactly)
    if delta == 0.0 and needs_delta(plan):
        return Caution("delta", _NEEDS_DELTA)
    return None if delta is None else _of_delta(delta, plan)


def caution_of_notes(plan: Mechanism, notes: str | None) -> Caution | None:
    """Return the caution where notes on a plan doubt that its batches are Poisson samples.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.answers.cautions import caution_of_notes
        >>> plan = hs.DPSGD(rate=0.01, steps=9, noise_multiplier=1)
        >>> caution_of_notes(plan, "The loader shuffles.").about
        'sampling'
    """
    trainings = (one for one in mechanisms_in(plan) if isinstance(one, DPSGD))
    is_poisson = any(one.sampling is Sampling.POISSON for one in trainings)
    doubted = is_poisson and "shuffl" in (notes or "").lower()
    return Caution("sampling", _SHUFFLED) if doubted else None


def _of_one_sample(plan: Mechanism) -> Iterator[Caution]:
    """Yield the caution where rounds with correlated noise all run on one and the same sample."""
    for one in mechanisms_in(plan):
        if isinstance(one, PoissonSubsampled) and isinstance(one.inner, _STREAMS):
            yield Caution("epsilon", _ONE_SAMPLE)
            return


def _of_falling(plan: Mechanism) -> Iterator[Caution]:
    """Yield the caution where stated Renyi divergences fall, which none do."""
    stated = (part for part in mechanisms_in(plan) if isinstance(part, RenyiDP))
    for one in dict.fromkeys(stated):
        finite = [pair for pair in one.divergences if pair[1] < math.inf]
        for (low, above), (high, below) in pairwise(finite):
            if below < above * _FALLS:
                yield Caution(
                    "divergences",
                    f"Renyi divergences never fall as the order grows: the {plain(below)} at order "
                    f"{plain(high)} holds at order {plain(low)} too, and the {plain(above)} stated "
                    "there is not used. Is a number mistyped?",
                )
                break


def _of_nothing(plan: Mechanism) -> Iterator[Caution]:
    """Yield the cautions for a plan that releases nothing, or only noise."""
    if never := why_zero(plan):
        yield Caution("epsilon", never)
    elif (runs := runs_of(plan)) and all(_is_noise_alone(part) for part, _ in runs):
        yield Caution("epsilon", "infinite noise: nothing is learned from the data.")


def _is_noise_alone(part: Mechanism) -> bool:
    """Return whether infinite noise hides all that a mechanism releases."""
    if isinstance(part, DPSGD):
        return part.extra is None and part.noise_multiplier == math.inf
    return has_noise(part, math.inf)


def _of_scale(plan: Mechanism) -> Iterator[Caution]:
    """Yield the caution where the scale of Laplace noise looks like the epsilon that was meant."""
    for one in mechanisms_in(plan):
        if isinstance(one, Laplace | DiscreteLaplace) and 0.0 < one.scale <= _SMALL_SCALE:
            moved = getattr(one, "sensitivity", 1)
            text = (
                f"a scale of {plain(one.scale)} is epsilon {at_most(moved / one.scale)} in one "
                f"release; epsilon {plain(one.scale)} is a scale of {at_most(moved / one.scale)}."
            )
            yield Caution("noise", text)
            return


def _of_truth(plan: Mechanism) -> Iterator[Caution]:
    """Yield the caution where an epsilon looks like the probability of a true answer."""
    for one in mechanisms_in(plan):
        if isinstance(one, RandomizedResponse) and _EVEN < one.epsilon < 1.0:
            told, others = plain(one.epsilon), one.categories - 1
            odds = f"{told} / (1 - {told})" if others == 1 else f"{told} * {others} / (1 - {told})"
            text = (
                f"{told} is read as epsilon; where a true answer has the probability {told}, write "
                f"RandomizedResponse(log({odds})) in its place."
            )
            yield Caution("epsilon", text)
            return


def _of_rounds(plan: Mechanism) -> Iterator[Caution]:
    """Yield the caution where fewer participations fit into the rounds than are stated."""
    for one in mechanisms_in(plan):
        if isinstance(one, MatrixFactorization):
            encoder = one.encoder
            fit = 1 + (encoder.rounds - 1) // encoder.separation
            if fit < encoder.participations:
                apart = f"{encoder.separation:,} {rounds_word(encoder.separation)} apart"
                text = (
                    f"only {fit:,} of {encoder.participations:,} participations fit into "
                    f"{encoder.rounds:,} {rounds_word(encoder.rounds)}, {apart}."
                )
                yield Caution("noise", text, is_mild=True)
                return


def _of_separation(plan: Mechanism) -> Iterator[Caution]:
    """Yield the caution where participations overlap in bands that they may be as far apart as."""
    for one in mechanisms_in(plan):
        if not isinstance(one, MatrixFactorization):
            continue
        encoder, bands = one.encoder, _bands(one.encoder.strategy)
        # As many rounds apart as there are bands, participations share no row, if they fit.
        fits = (encoder.participations - 1) * bands < encoder.rounds
        if encoder.participations > 1 and encoder.separation < bands and fits:
            least = encoder.separation
            again = "in neighbouring rounds" if least == 1 else f"again {least:,} rounds later"
            text = (
                f"a participant may take part {again}: with separation={bands}, as many as bands, "
                "it costs less; say it where participations are that far apart."
            )
            yield Caution("noise", text, is_mild=True)
            return


def _bands(strategy: object) -> int:
    """Return how many diagonals a banded strategy has; 0 where it is none."""
    if isinstance(strategy, Toeplitz):
        return len(strategy.coefficients)
    return (strategy.bands or 0) if isinstance(strategy, SquareRoot) else 0


def _of_mean(plan: Mechanism) -> Iterator[Caution]:
    """Yield the caution where the noise of federated training looks like that on the average."""
    for one in mechanisms_in(plan):
        if isinstance(one, FedSDP) and 0.0 < one.noise_multiplier < _NOISE_ON_THE_MEAN:
            each = one.clients_per_round
            text = (
                f"the noise multiplier, {plain(one.noise_multiplier)}, is of the sum of the "
                "clients' changes: noise on their average is multiplied by clients_per_round "
                f"first, here {plain(one.noise_multiplier)} times {each:,}."
            )
            yield Caution("noise", text)
            return


def _of_swapped(plan: Mechanism) -> Iterator[Caution]:
    """Yield the caution where the numbers of a tree look as if in each other's place."""
    for one in mechanisms_in(plan):
        if isinstance(one, TreeAggregation) and max(_MUCH_NOISE, one.leaves) < one.noise_multiplier:
            if one.leaves == 0 or one.noise_multiplier == math.inf:
                continue
            noise = plain(one.noise_multiplier)
            text = (
                f"a noise multiplier of {noise} and {one.leaves} leaves: were they meant the other "
                f"way round, TreeAggregation(noise_multiplier={one.leaves}, leaves={noise})?"
            )
            yield Caution("noise", text)
            return


def units_of(plan: Mechanism) -> Units | None:
    """Return how many are protected by a plan, the most that a part says; None where none does.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.DPSGD(examples=50_000, batch_size=500, epochs=1, noise_multiplier=1)
        >>> print(hs.answers.units_of(plan @ hs.Laplace(1)))
        50,000 examples
    """
    return max(_units(plan), key=lambda one: one.count, default=None)


def reservation(delta: float, units: Units | None) -> str:
    """Return why meeting a budget at a delta says little; nothing where it does not.

    Example:
        >>> from hockeystick.answers.cautions import Units, reservation
        >>> reservation(0.4, Units(60_000, "examples"))
        'a delta of 0.4 promises little: it is not below 1 / 60,000'
    """
    if delta == 1.0:
        return "a delta of 1 promises nothing"
    if units is None or delta * units.count < 1.0:
        return ""
    return f"a delta of {_short(delta)} promises little: it is not below 1 / {units.count:,}"


def suggested_delta(units: Units) -> float:
    """Return the largest power of ten that is at most a tenth of one over the number of records.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.answers import Units, suggested_delta
        >>> suggested_delta(Units(60_000, "examples"))
        1e-06
    """
    return float(f"1e-{len(str(10 * units.count - 1))}")


def _of_delta(delta: float, plan: Mechanism) -> Caution | None:
    """Return the caution where delta is not well below one over the number of records."""
    units = units_of(plan)
    if units is None:
        return Caution("delta", _NO_PROMISE) if delta == 1.0 else None
    expected = delta * units.count
    if expected <= _OF_ORDER:
        return None
    sensible = plain(suggested_delta(units))
    if expected < 1.0:
        text = f"delta {_short(delta)} is high for {units}; use {sensible} or less"
        return Caution("delta", text, is_mild=True)
    text = f"delta {_short(delta)} is not below 1 / {units.count:,}; use {sensible} or less"
    return Caution("delta", text)


def _short(value: float) -> str:
    """Return a number as it was given, or rounded up if it has many digits."""
    return min(plain(value), at_most(value), key=len)


def _of_epsilon(epsilon: float, plan: Mechanism, delta: float) -> Caution | None:
    """Return the caution where epsilon promises hardly anything, or nothing."""
    if epsilon <= _WEAK:
        return None
    if epsilon == math.inf:
        return Caution("epsilon", why_infinite(plan, delta) or _NO_GUARANTEE)
    return Caution("epsilon", _WEAKLY)


def mechanisms_in(plan: object) -> Iterator[Any]:
    """Yield a plan and the mechanisms that it is made of."""
    if isinstance(plan, tuple):
        for part in plan:
            yield from mechanisms_in(part)
    if isinstance(plan, Mechanism) and dataclasses.is_dataclass(plan):
        yield plan
        for field in dataclasses.fields(plan):
            yield from mechanisms_in(getattr(plan, field.name))


def _units(plan: Mechanism) -> Iterator[Units]:
    """Yield how many are protected, as the parts of a plan say it."""
    for part in mechanisms_in(plan):
        for name in (field.name for field in dataclasses.fields(part) if field.name in _UNITS):
            value = getattr(part, name)
            # Users who have several examples may be as many as there are examples.
            if isinstance(value, int):
                yield Units(value, _UNITS[name])
