"""The exponential mechanism, and permute-and-flip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from hockeystick._validate import WordEnum
from hockeystick.mechanisms.base import AnyAdjacency, registered, set_fields
from hockeystick.numerics.numerals import plain

_SCORES = (
    "The score of each candidate moves by at most the sensitivity between neighbouring data sets; "
    "where all scores move the same way, the sensitivity counts half."
)


@registered
class MaxNoise(WordEnum):
    """The noise that is added to the scores before the largest is reported.

    - "gumbel": selects exactly as the exponential mechanism does.
    - "exponential": selects exactly as permute-and-flip does.
    - "laplace": costs at most what permute-and-flip does.
    """

    GUMBEL = "gumbel"
    EXPONENTIAL = "exponential"
    LAPLACE = "laplace"


@registered
@final
@dataclass(frozen=True, slots=True)
class Exponential(AnyAdjacency):
    """The selection of a candidate with probability exponential in its score.

    P(M(D) = o) proportional to exp(epsilon * score(D, o) / (2 * sensitivity)), where the
    sensitivity is the most that any score moves between two neighbouring data sets; without the 2
    where all scores move the same way (monotone scores). The same as reporting the largest score
    after Gumbel noise of scale 2 * sensitivity / epsilon.

    Guarantees:
        Losses lie in an interval of length epsilon (bounded range), which costs less than
        epsilon-DP does. One run is exact: two candidates attain it at each epsilon. So do several,
        to about 0.1 % for hundreds of runs: the largest delta of k, chosen one by one, is
        ``H_k(e^eps)``, with ``H_0(x) = (1 - x)_+`` and, for the range e, H_(k+1)(x) the largest of

            ((1 - u e^-e) H_k(x/u) + (u - 1) e^-e H_k(x e^e/u)) / (1 - e^-e),   1 <= u <= e^e:

        of likelihood ratios from ``u e^-e`` to u, these two are the worst. Poisson samples are
        alike. Of very many runs and beside other mechanisms the upper end is that of a pair which
        dominates all, and the lower one two candidates with opposite scores.

    Args:
        epsilon: In [0, inf]: 0 ignores the scores and costs nothing; inf selects the best, and its
            loss may be infinite.

    References:
        McSherry and Talwar, "Mechanism Design via Differential Privacy", 2007; Durfee and Rogers,
        "Practical Differentially Private Top-k Selection with Pay-what-you-get Composition",
        2019; Dong, Durfee and Rogers, "Optimal Differential Privacy Composition for Exponential
        Mechanisms", 2020.

    Example:
        >>> import hockeystick as hs
        >>> hs.Exponential(epsilon=1.0)
        Exponential(epsilon=1.0)
    """

    rises_with: ClassVar[tuple[str, ...]] = ("epsilon",)
    epsilon: float

    @property
    def assumptions(self) -> tuple[str, ...]:
        rate = f"{plain(self.epsilon)} * score / (2 * sensitivity)"
        return (f"A candidate is selected with probability proportional to exp({rate}).", _SCORES)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "exponential mechanism", (f"epsilon {self.epsilon:g}",)


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class ReportNoisyMax(AnyAdjacency):
    """The candidate whose score is the largest after noise is added to each.

    M(D) = argmax (score(D, o) + noise of scale 2 * sensitivity / epsilon), the sensitivity as for
    ``Exponential``, without the 2 for monotone scores.

    Guarantees:
        Gumbel noise: as ``Exponential``. Exponential noise: as ``PermuteAndFlip``. Laplace noise:
        its upper end, and two candidates with opposite scores as the lower end.

    Args:
        epsilon: In [0, inf]: 0 ignores the scores and costs nothing; inf reports the best, and its
            loss may be infinite.
        noise: "gumbel", "exponential" or "laplace".

    References:
        Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, section 3.3
        (their Laplace noise of scale 1/epsilon is for monotone scores, such as counts); Ding,
        Kifer, Sayed, Steinke, Wang, Xiao and Zhang, "The Permute-and-Flip Mechanism is Identical
        to Report-Noisy-Max with Exponential Noise", 2021.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.mechanisms.ReportNoisyMax(1.0, "laplace"))
        report noisy max (epsilon 1, laplace noise)
    """

    rises_with: ClassVar[tuple[str, ...]] = ("epsilon",)
    epsilon: float
    noise: MaxNoise

    def __init__(self, epsilon: float, noise: MaxNoise | str = MaxNoise.GUMBEL) -> None:
        set_fields(self, locals())

    @property
    def assumptions(self) -> tuple[str, ...]:
        noise = f"{self.noise.value.capitalize()} noise of scale 2 * sensitivity / epsilon"
        fresh = f"{noise}, with epsilon {plain(self.epsilon)}, is added to each score afresh"
        return (f"{fresh}; only the candidate with the largest sum is released.", _SCORES)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "report noisy max", (f"epsilon {self.epsilon:g}", f"{self.noise} noise")


@registered
@final
@dataclass(frozen=True, slots=True)
class PermuteAndFlip(AnyAdjacency):
    """The first candidate in random order whose coin, biased by its score, shows heads.

    Each candidate's coin shows heads with probability
    ``exp(epsilon * (score(D, o) - best score) / (2 * sensitivity))``, the sensitivity as for
    ``Exponential``, without the 2 for monotone scores. The same as reporting the largest score
    after exponential noise.

    Guarantees:
        At most what a Laplace query of the scale 1/epsilon costs, ``1 - exp((eps - epsilon)/2)``,
        which two candidates attain at each eps in one run (proof:
        ``privacy_loss/selection/exponential.py``). The lower end of more runs is that of two
        whose scores change places.

    Args:
        epsilon: In [0, inf]: 0 ignores the scores and costs nothing; inf selects the best, and its
            loss may be infinite.

    References:
        McKenna and Sheldon, "Permute-and-Flip: A New Mechanism for Differentially Private
        Selection", 2020, theorem 1.

    Example:
        >>> import hockeystick as hs
        >>> hs.mechanisms.PermuteAndFlip(epsilon=1.0)
        PermuteAndFlip(epsilon=1.0)
    """

    rises_with: ClassVar[tuple[str, ...]] = ("epsilon",)
    epsilon: float

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            "Candidates are visited in uniformly random order, each accepted with probability "
            f"exp({plain(self.epsilon)} * (score - best score) / (2 * sensitivity)); the first "
            "that is accepted is released.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "permute-and-flip", (f"epsilon {self.epsilon:g}",)
