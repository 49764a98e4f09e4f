"""Targets besides guarantees: bounds on the success of an attack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import ParameterError

_PROBABILITY: Final = Domain(symbol="p", low=0, high=1, typical=(0.01, 0.5))
_PRIOR: Final = Domain(
    symbol="pi", low=0, high=1, low_open=True, high_open=True, typical=(0.01, 0.5)
)


@final
@dataclass(frozen=True, slots=True, init=False)
class TruePositiveRate:
    """At most this true positive rate for every membership test with this false positive rate.

    ``1 - f(fpr) <= rate``, f the trade-off function of the plan.

    Guarantees:
        Exact as far as f is: no test does better, and where f is the plan's own one does as well.

    Args:
        rate: The largest true positive rate, from fpr to 1.
        fpr: The false positive rate, in [0, 1].

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Dong, Roth and Su 2022, definition 2.1.

    Example:
        >>> import hockeystick as hs
        >>> hs.calibration.TruePositiveRate(rate=0.1, fpr=0.01)
        TruePositiveRate(rate=0.1, fpr=0.01)
    """

    rate: float
    fpr: float

    def __init__(self, rate: float, fpr: float) -> None:
        object.__setattr__(self, "rate", _validate.real("rate", rate, _PROBABILITY))
        object.__setattr__(self, "fpr", _validate.real("fpr", fpr, _PROBABILITY))
        _refuse_less_than_a_guess("rate", self.rate, "fpr", self.fpr)


@final
@dataclass(frozen=True, slots=True, init=False)
class Advantage:
    """At most this difference of true and false positive rate, for every membership test.

    ``delta(0) <= value``: the total variation distance of the outputs.

    Guarantees:
        Exact as far as delta(0) is.

    Args:
        value: The largest advantage, in [0, 1].

    Raises:
        ParameterError: If the value is no such number.

    Example:
        >>> import hockeystick as hs
        >>> target = hs.calibration.Advantage(0.3829249225480262)
        >>> found = hs.calibrate(hs.Gaussian(3), "noise_multiplier", target)
        >>> round(found.value, 6)
        1.0
    """

    value: float

    def __init__(self, value: float) -> None:
        object.__setattr__(self, "value", _validate.real("value", value, _PROBABILITY))


@final
@dataclass(frozen=True, slots=True, init=False)
class BayesError:
    """At least this error for everyone who guesses membership from the release and a prior.

    ``p (1 - delta(ln((1-p)/p))) >= value`` with p the smaller of prior and 1 - prior.

    Guarantees:
        Exact as far as delta is. No plan has an error above p itself.

    Args:
        value: The least error, in [0, 1].
        prior: The probability of membership before the release, above 0 and below 1.

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Dong, Roth and Su 2022, section 2.

    Example:
        >>> import hockeystick as hs
        >>> hs.calibration.BayesError(value=0.09, prior=0.1)
        BayesError(value=0.09, prior=0.1)
    """

    value: float
    prior: float

    def __init__(self, value: float, prior: float) -> None:
        object.__setattr__(self, "value", _validate.real("value", value, _PROBABILITY))
        object.__setattr__(self, "prior", _validate.real("prior", prior, _PRIOR))


@final
@dataclass(frozen=True, slots=True, init=False)
class Reconstruction:
    """At most this chance of a reconstruction that has a baseline chance without the release.

    ``1 - f(baseline) <= probability``.

    Guarantees:
        Sufficient, and necessary only for attacks that come down to one test.

    Args:
        probability: The largest chance of success, from baseline to 1.
        baseline: The chance of success of a guess without the release, in [0, 1].

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Balle, Cherubin and Hayes 2022; Kaissis, Hayes, Ziller and Rueckert 2023.

    Example:
        >>> import hockeystick as hs
        >>> hs.calibration.Reconstruction(probability=0.4, baseline=0.1)
        Reconstruction(probability=0.4, baseline=0.1)
    """

    probability: float
    baseline: float

    def __init__(self, probability: float, baseline: float) -> None:
        chance = _validate.real("probability", probability, _PROBABILITY)
        object.__setattr__(self, "probability", chance)
        object.__setattr__(self, "baseline", _validate.real("baseline", baseline, _PROBABILITY))
        _refuse_less_than_a_guess("probability", self.probability, "baseline", self.baseline)


def _refuse_less_than_a_guess(name: str, value: float, other: str, least: float) -> None:
    """Raise where a target is below what is reached without looking at any release."""
    if value < least:
        allowed = f"at least {other}, which is {least:g}: a blind guess reaches as much"
        raise ParameterError(name, value, allowed)
