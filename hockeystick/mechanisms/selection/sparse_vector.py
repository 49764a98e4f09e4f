"""Sparse vector: which of many queries are the first to exceed a noisy threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Final, final

from hockeystick._validate import Domain, WordEnum, whole_numbers
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import AnyAdjacency, Mechanism, Plan, registered, set_fields
from hockeystick.numerics.numerals import plain

_SCALE: Final = {"domain": Domain(symbol="b", low=0, high=math.inf, typical=(1, 100))}
_QUERIES: Final = {"domain": whole_numbers("N", 1, (10, 1000))}


@registered
class ComparisonNoise(WordEnum):
    """The noise of a threshold, or of the queries that are compared with it.

    - "laplace": of a scale.
    - "gaussian": of a standard deviation.
    """

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class AboveThreshold(AnyAdjacency):
    """The place of the first query whose noisy answer reaches a noisy threshold, and no more.

    M(D) = the first i with query_i(D) + noise_i >= threshold + noise, all noises fresh, or that
    there is none. The queries may be chosen as the outcomes come in. No answer is released.

    Guarantees:
        Shifting the threshold's noise by the sensitivity makes every "below" at least as likely
        for the neighbour, and leaves one "above", whose query moves by at most twice the
        sensitivity against the threshold (once where all queries move the same way). Laplace
        query noise, whatever the number of queries: the largest loss is that of the threshold plus
        (2 or 1) / query_scale, and lesser shifts, or none, say that it is rarely as large; the
        least bound of nine shifts counts (``privacy_loss/selection/threshold_bound.py``), in both
        directions. Gaussian query noise: so do shifts with at most N queries, up to 2,000; beyond,
        Renyi divergences of mu^2 = (1/threshold_scale)^2 + (2/query_scale)^2 plus
        ln(N) / (alpha - 1). The lower end is that of a few queries at good places, which
        ``privacy_loss/selection/threshold_attacks.py`` has.

    Edge cases:
        Query scale inf releases nothing. Threshold scale inf leaves the queries' share alone.
        Scale 0 of either has no finite bound: epsilon is at most inf.

    Args:
        threshold_scale: Scale (Laplace) or standard deviation (Gaussian) of the threshold's noise
            over the queries' sensitivity, in [0, inf].
        query_scale: The same of each query's noise, in [0, inf].
        threshold_noise: "laplace" or "gaussian".
        query_noise: "laplace" or "gaussian"; Gaussian only with a Gaussian threshold.
        monotone: Whether between two neighbouring data sets all queries move the same way.
        queries: The largest number N of queries that are asked, an integer >= 1; needed with
            Gaussian query noise, where it counts.

    References:
        Dwork and Roth 2014, algorithm 1 (epsilon = 1/threshold_scale + 2/query_scale); Lyu, Su and
        Li, "Understanding the Sparse Vector Technique for Differential Privacy", 2017 (variants
        that are not private); Zhu and Wang, "Improving Sparse Vector Technique with Renyi
        Differential Privacy", 2020.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.mechanisms.AboveThreshold(2.0, 4.0))
        above threshold (laplace threshold noise of scale 2, laplace query noise of scale 4)
    """

    rises_with: ClassVar[tuple[str, ...]] = ("queries",)
    falls_with: ClassVar[tuple[str, ...]] = ("threshold_scale", "query_scale")
    threshold_scale: float = field(metadata=_SCALE)
    query_scale: float = field(metadata=_SCALE)
    threshold_noise: ComparisonNoise
    query_noise: ComparisonNoise
    monotone: bool
    queries: int | None = field(metadata=_QUERIES)

    def __init__(
        self,
        threshold_scale: float,
        query_scale: float,
        *,
        threshold_noise: ComparisonNoise | str = ComparisonNoise.LAPLACE,
        query_noise: ComparisonNoise | str = ComparisonNoise.LAPLACE,
        monotone: bool = False,
        queries: float | None = None,
    ) -> None:
        set_fields(self, locals())
        _check_gaussian_queries(self)

    @property
    def assumptions(self) -> tuple[str, ...]:
        threshold = f"{self.threshold_noise.value.capitalize()} noise"
        query = f"{self.query_noise.value.capitalize()} noise"
        moves = "Each query's answer moves by at most the sensitivity between neighbours"
        if self.monotone:
            moves += ", and all answers move the same way"
        return (
            f"{threshold} of {plain(self.threshold_scale)} times the queries' sensitivity is "
            f"added to the threshold once, and fresh {query} of {plain(self.query_scale)} times "
            "the sensitivity to each query's answer.",
            f"{moves}.",
            "Only whether each noisy answer reaches the noisy threshold is released, never the "
            "answer; at the first that does, the run ends and the threshold's noise is discarded.",
            *(() if self.queries is None else (f"A run asks at most {self.queries:,} queries.",)),
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        details = [
            f"{self.threshold_noise} threshold noise of scale {self.threshold_scale:g}",
            f"{self.query_noise} query noise of scale {self.query_scale:g}",
        ]
        if self.monotone:
            details.append("monotone queries")
        if self.queries is not None:
            details.append(f"at most {self.queries} queries")
        return "above threshold", tuple(details)


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class SparseVector(AnyAdjacency, Plan):
    """The first queries whose noisy answers reach a noisy threshold, drawn anew after each.

    One ``AboveThreshold`` after the other: after each "above" the threshold gets fresh noise, and
    after that number no query is asked any more. Parameters as there.

    Guarantees:
        Those of ``AboveThreshold``, added up over the positives: the upper end holds for any
        queries, the lower end is a few queries for each positive, asked at good places.

    Args:
        threshold_scale: As in ``AboveThreshold``.
        query_scale: As in ``AboveThreshold``.
        positives: The number of "above" after which it stops, an integer >= 0.
        threshold_noise: "laplace" or "gaussian".
        query_noise: "laplace" or "gaussian"; Gaussian only with a Gaussian threshold.
        monotone: Whether between two neighbouring data sets all queries move the same way.
        queries: The largest number of queries for each positive, an integer >= 1.

    References:
        Dwork and Roth 2014, algorithm 2, with epsilon/c for each positive.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.mechanisms.SparseVector(20.0, 40.0, positives=10).mechanism)
        above threshold (laplace threshold noise of scale 20, laplace query noise of scale 40) x 10
    """

    rises_with: ClassVar[tuple[str, ...]] = ("positives", "queries")
    falls_with: ClassVar[tuple[str, ...]] = ("threshold_scale", "query_scale")
    threshold_scale: float = field(metadata=_SCALE)
    query_scale: float = field(metadata=_SCALE)
    positives: int = field(metadata={"domain": whole_numbers("c", 0, (1, 100))})
    threshold_noise: ComparisonNoise
    query_noise: ComparisonNoise
    monotone: bool
    queries: int | None = field(metadata=_QUERIES)

    def __init__(
        self,
        threshold_scale: float,
        query_scale: float,
        *,
        positives: float = 1,
        threshold_noise: ComparisonNoise | str = ComparisonNoise.LAPLACE,
        query_noise: ComparisonNoise | str = ComparisonNoise.LAPLACE,
        monotone: bool = False,
        queries: float | None = None,
    ) -> None:
        set_fields(self, locals())
        _check_gaussian_queries(self)

    @property
    def once(self) -> AboveThreshold:
        """The part up to one positive."""
        return AboveThreshold(**{name: getattr(self, name) for name in AboveThreshold.__slots__})

    @property
    def mechanism(self) -> Mechanism:
        return self.once**self.positives

    @property
    def assumptions(self) -> tuple[str, ...]:
        stop = f"After {self.positives:,} noisy answers above the threshold no query is asked."
        return (*self.once.assumptions, stop)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "sparse vector", (f"{self.positives} positives", *self.once._words()[1])


def _check_gaussian_queries(mechanism: AboveThreshold | SparseVector) -> None:
    if mechanism.query_noise is not ComparisonNoise.GAUSSIAN:
        return
    if mechanism.threshold_noise is not ComparisonNoise.GAUSSIAN:
        allowed = "'gaussian' where query_noise is"
        raise ParameterError("threshold_noise", mechanism.threshold_noise, allowed)
    if mechanism.queries is None:
        raise ParameterError("queries", None, "given where query_noise is 'gaussian'")
