"""Samples of a fixed size, drawn with replacement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms.registry import registered
from hockeystick.mechanisms.sampling._fixed_sizes import OnFixedSizeSample


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class WithReplacementSubsampled(OnFixedSizeSample):
    """The Gaussian mechanism run on a sample of a fixed size, drawn with replacement.

    Each of the ``batch_size`` places of the sample holds one of the examples, independently and
    equally likely: an example may be there several times, and moves the result as often. The
    sample is kept secret.

    Guarantees:
        An upper end by theorem 10 of Balle, Barthe and Gaboardi 2018: with
        ``gamma = 1 - (1 - 1/n)^m``, ``delta(ln(1 + gamma (e^eps - 1)))`` is at most
        ``sum_k P[Bin(m, 1/n) = k] delta_k(eps)`` over the groups of k; a lower end by data sets
        whose other examples are all alike, a mixture of Gaussians.

    Args:
        inner: A ``Gaussian``; its noise multiplier is the standard deviation over the most that
            replacing one place of the sample moves the result.
        batch_size: Number m of places, an integer >= 1.
        examples: Size n of the data set, an integer >= 1.
        adjacency: "replace-one".

    Raises:
        ParameterError: If a parameter is outside its domain.
        IncompatibleError: Under another adjacency.

    References:
        Balle, Barthe and Gaboardi, "Privacy amplification by subsampling", NeurIPS 2018.

    Example:
        >>> import hockeystick as hs
        >>> print(
        ...     hs.mechanisms.WithReplacementSubsampled(
        ...         hs.Gaussian(1.1), batch_size=10, examples=1000
        ...     )
        ... )
        with-replacement-subsampled Gaussian (noise multiplier 1.1, 10 of 1000, replace-one)
    """

    _drawn = "with-replacement-subsampled"

    def _check(self) -> None:
        if self.adjacency is not Adjacency.REPLACE_ONE:
            raise IncompatibleError(
                f"sampling with replacement has no analysis under {self.adjacency}: with one "
                "example more every place is drawn from another data set; use replace-one"
            )

    def _sampling(self) -> str:
        return (
            f"Each of the {self.batch_size:,} places of a sample holds any of the "
            f"{self.examples:,} examples, independently and equally likely; samples are secret."
        )
