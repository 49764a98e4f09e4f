"""Tuning with a random number of runs, of which the best one is released."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Final, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.adjacency import Adjacency
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import Mechanism, registered, set_fields
from hockeystick.numerics.numerals import plain
from hockeystick.numerics.roots import increasing_root

# What stands under this module's name in the reference: RandomStopping stands in its room.
__all__ = ["Binomial", "Poisson", "RunCount", "TruncatedNegativeBinomial"]

ETA: Final = Domain("eta", -1, math.inf, (-0.5, 2), low_open=True, high_open=True)
GAMMA: Final = Domain("gamma", 0, 1, (1e-3, 0.5), low_open=True, high_open=True)
_MEAN: Final = Domain("m", 0, math.inf, (2, 1000), low_open=True, high_open=True)
TRIALS: Final = _validate.whole_numbers("n", 1, (2, 1000))
_CHANCE: Final = Domain("p", 0, 1, (1e-3, 0.9), low_open=True, high_open=True)
A_DISTRIBUTION: Final = (
    "a distribution of the number of runs, as tuning.TruncatedNegativeBinomial(eta=1, gamma=0.1) "
    "or tuning.Poisson(mean=10) or tuning.Binomial(trials=20, probability=0.5)"
)
_NO_RUN: Final = (
    "Where there is no run at all, a fixed output is released that does not depend on the data."
)
# Means are met to this share of themselves.
_TOLERANCE: Final = 1e-13
# Exponentials are taken as infinite beyond this; a gamma with less than the other is tiny.
_LARGEST: Final = 709.0
_TINY: Final = -600.0


@dataclass(frozen=True, slots=True)
class RunCount(ABC):
    """How many runs there are: a distribution over whole numbers that nobody sees."""

    def __post_init__(self) -> None:
        set_fields(self)

    @property
    @abstractmethod
    def expected(self) -> float:
        """The mean number of runs, rounded to a float."""

    @property
    @abstractmethod
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the number of runs to be as described."""

    @abstractmethod
    def __str__(self) -> str: ...


@final
@dataclass(frozen=True, slots=True)
class TruncatedNegativeBinomial(RunCount):
    """At least one run; as many as a negative binomial distribution says that is not 0.

    ``P[K = k] = (1-gamma)^k / (gamma^-eta - 1) * prod_{l<k} (l + eta) / (l + 1)`` for k >= 1, and
    for eta = 0 the limit, ``(1-gamma)^k / (k ln(1/gamma))``. The mean is
    ``eta (1-gamma) / (gamma (1 - gamma^eta))``, for eta = 0 ``(1/gamma - 1) / ln(1/gamma)``.

    eta = 1 is the geometric distribution, "stop after each run with probability gamma", of mean
    ``1/gamma``; eta = 0 the logarithmic one. For the same mean, a smaller eta spreads the number
    of runs more; what it saves of the factor 1 + eta it pays in ``ln(1/gamma)``.

    Args:
        eta: In (-1, inf).
        gamma: In (0, 1); the smaller, the more runs.

    References:
        Papernot and Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", ICLR 2022,
        definition 1.

    Example:
        >>> from hockeystick.mechanisms import tuning
        >>> tuning.TruncatedNegativeBinomial(eta=1, gamma=0.1).expected
        10.0
    """

    eta: float = field(metadata={"domain": ETA})
    gamma: float = field(metadata={"domain": GAMMA})

    @classmethod
    def of_mean(cls, mean: float, eta: float = 1.0) -> TruncatedNegativeBinomial:
        """Return the distribution whose mean is this, to some 12 digits.

        Args:
            mean: The number of runs to expect, above 1 and at most 10^9, which some gamma has.
            eta: In (-1, inf).

        Example:
            >>> from hockeystick.mechanisms import tuning
            >>> tuning.TruncatedNegativeBinomial.of_mean(10).gamma
            0.1
        """
        target = _validate.real("mean", mean, Domain("m", 1, 1e9, (2, 1000), low_open=True))
        shape = _validate.real("eta", eta, ETA)
        if shape == 1.0:
            return cls(shape, 1.0 / target)

        def excess(log_odds: float) -> float:
            gamma = 1.0 / (1.0 + math.exp(log_odds))
            if not 0.0 < gamma < 1.0:
                return math.copysign(math.inf, log_odds)
            return math.log(cls(shape, gamma).expected / target)

        log_odds = increasing_root(excess, 1.0, tolerance=_TOLERANCE, farthest=700.0)
        if not abs(excess(log_odds)) <= 1e-9:
            raise ParameterError("mean", mean, f"the mean for eta = {shape:g} and some gamma")
        return cls(shape, 1.0 / (1.0 + math.exp(log_odds)))

    @property
    def expected(self) -> float:
        """The mean number of runs, rounded to a float; inf where none holds it."""
        log_gamma = math.log(self.gamma)
        if self.eta < 0.0 and log_gamma < _TINY:
            # All but 1 of gamma^eta - 1, which may be beyond floats.
            log_mean = math.log(-self.eta) - (1.0 + self.eta) * log_gamma
            return math.exp(log_mean) if log_mean < _LARGEST else math.inf
        # (1 - gamma^eta) / eta, and what it tends to for small eta.
        share = -math.expm1(self.eta * log_gamma) / self.eta if self.eta else -log_gamma
        return (1.0 - self.gamma) / self.gamma / share

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            "The number of runs is drawn in advance from the truncated negative binomial "
            f"distribution with eta = {plain(self.eta)} and gamma = {plain(self.gamma)}, "
            "independently of the data, and neither it nor the time that they take is shown.",
        )

    def __str__(self) -> str:
        known = {0.0: "logarithmic", 1.0: "geometric"}
        name = known.get(self.eta, f"truncated negative binomial, eta {self.eta:g}")
        return f"{name}, gamma {self.gamma:g}"


@final
@dataclass(frozen=True, slots=True)
class Poisson(RunCount):
    """As many runs as a Poisson distribution says: ``P[K = k] = e^-m m^k / k!`` for k >= 0.

    The number is concentrated about its mean, but there may be no run at all.

    Args:
        mean: In (0, inf).

    References:
        Papernot and Steinke 2022, section 3.3.

    Example:
        >>> from hockeystick.mechanisms import tuning
        >>> tuning.Poisson(mean=10).expected
        10.0
    """

    mean: float = field(metadata={"domain": _MEAN})

    @property
    def expected(self) -> float:
        return self.mean

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            "The number of runs is drawn in advance from the Poisson distribution with mean "
            f"{plain(self.mean)}, independently of the data, and neither it nor the time that "
            "they take is shown.",
            _NO_RUN,
        )

    def __str__(self) -> str:
        return f"Poisson, mean {self.mean:g}"


@final
@dataclass(frozen=True, slots=True)
class Binomial(RunCount):
    """As many runs as n coins fall heads: ``P[K = k] = C(n, k) p^k (1-p)^(n-k)`` for 0 <= k <= n.

    There are never more than n runs, and the number is closer to its mean n p than a Poisson
    number is; there may be no run at all, with probability ``(1-p)^n``. For many trials of a small
    p it is nearly Poisson. n runs for certain are no random number: they cost ``run ** n``.

    Args:
        trials: The number n of coins, an integer from 1 to 10^15.
        probability: That of a run, p, in (0, 1).

    References:
        Koskela, Redberg and Wang, "Privacy Profiles for Private Selection", ICML 2024.

    Example:
        >>> from hockeystick.mechanisms import tuning
        >>> tuning.Binomial(trials=20, probability=0.5).expected
        10.0
    """

    trials: int = field(metadata={"domain": TRIALS})
    probability: float = field(metadata={"domain": _CHANCE})

    @property
    def expected(self) -> float:
        return self.trials * self.probability

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            "The number of runs is drawn in advance from the binomial distribution of "
            f"{self.trials} trials with probability {plain(self.probability)}, independently of "
            "the data, and neither it nor the time that they take is shown.",
            _NO_RUN,
        )

    def __str__(self) -> str:
        return f"binomial, trials {self.trials}, probability {self.probability:g}"


@registered
@final
@dataclass(frozen=True, slots=True)
class RandomStopping(Mechanism):
    """Tuning: a random number of runs of one mechanism, of which only the best one is released.

    M(D) = the best of K independent runs of ``inner``, by a score that is part of each run's
    output. ``inner`` is all of a run: it draws the hyperparameters from a fixed distribution,
    trains, and scores the result with privacy; so a whole ``DPSGD`` and what its evaluation costs.

    A search over a fixed list of k candidates that releases the best costs what k runs cost:
    ``run ** k``.

    Guarantees:
        Both ends are by the privacy profile of ``inner``, at the ranking of its outputs that costs
        most, whatever the scores are (the "selection" accountant): exact but for some tenths of a
        percent where ``inner`` is known exactly. In a composition with others, and where less is
        known of a run, the upper end is by Renyi divergences: with those of ``inner``,
        ``D(lambda)`` in one direction and ``D'`` in the other,

        - truncated negative binomial: ``D(lambda) + (1+eta) min_h [(1 - 1/h) D'(h) +
          ln(1/gamma)/h] + ln E[K] / (lambda - 1)`` with h >= 1 (theorem 2). For ``inner``
          epsilon-DP that is at most (2 + eta) epsilon, so 3 epsilon for the geometric
          distribution (Liu and Talwar), and at most epsilon + (1 + eta) ln(1/gamma).
        - Poisson: at most ``D(lambda) + m delta + ln(m) / (lambda - 1)``, where delta is that of
          the other direction at ``epsilon = ln(1 + 1/(lambda-1))`` (theorem 6). What is computed
          is ``ln(1 + m e^((lambda-1) m delta) (e^((lambda-1) D(lambda)) - 1)) / (lambda - 1)``,
          which is less, and holds for means below 1 too, where theorem 6 as printed would promise
          negative divergences.
        - binomial: at most that of all runs being seen, ``n ln(1 + p (e^((lambda-1) D(lambda)) -
          1)) / (lambda - 1)``, and at most ``ln(1 + C (e^((lambda-1) D(lambda)) - 1)) /
          (lambda - 1)``, where for any epsilon >= 0 and the other direction's delta there
          ``C = n p max((1 - p delta)^-(lambda-1), (1 - p (1-delta) e^-epsilon)^lambda /
          (1-p)^(lambda-1))^(n-1)``, which tends to Poisson's for small p.

        The lower end is then, where there is at least one run, what ``inner`` costs at least: the
        score may be drawn at random. Under Poisson and binomial none is known.

    Edge cases:
        A release of nothing costs nothing, however often it is tuned. What has no Renyi
        divergences, such as ``ApproxDP`` with a delta, is refused: state the divergences of a run,
        or the mechanism that it is, or pay for k runs that all may see by ``run ** k``.

    Args:
        inner: One run: a mechanism, a composition or a whole plan.
        distribution: ``tuning.TruncatedNegativeBinomial(eta, gamma)``, ``tuning.Poisson(mean)`` or
            ``tuning.Binomial(trials, probability)``.

    References:
        Papernot and Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", ICLR 2022,
        theorems 2 and 6; Liu and Talwar, "Private Selection from Private Candidates", STOC 2019;
        Koskela, Redberg and Wang, "Privacy Profiles for Private Selection", ICML 2024.

    Example:
        >>> import hockeystick as hs
        >>> run = hs.DPSGD(noise_multiplier=2, rate=0.01, steps=1000)
        >>> ten = hs.mechanisms.tuning.Poisson(10)
        >>> tuned = hs.mechanisms.RandomStopping(run, ten)
        >>> print(f"{hs.epsilon(run, 1e-6):.3f}, and tuned {hs.epsilon(tuned, 1e-6):.3f}")
        0.721, and tuned 1.325
    """

    inner: Mechanism
    distribution: RunCount = field(metadata={"allowed": A_DISTRIBUTION})

    def __post_init__(self) -> None:
        set_fields(self)

    @property
    def adjacency(self) -> Adjacency | None:
        return self.inner.adjacency

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            *self.inner.assumptions,
            *self.distribution.assumptions,
            "All runs are alike and independent: each draws its hyperparameters afresh from one "
            "distribution that does not depend on the data, and whichever it draws, it is at least "
            f"as private as this: {self.inner}.",
            "Only the best run's output is released. Which is best is told by the outputs alone, "
            "scores included: whatever the score reads from the data is part of the run.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return f"best of random runs of [{self.inner}]", (str(self.distribution),)
