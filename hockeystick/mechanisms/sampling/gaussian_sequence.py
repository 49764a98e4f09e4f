"""Gaussian releases with noises of their own, each on a Poisson sample of its own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms.base import Composed, Mechanism
from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.mechanisms.registry import registered
from hockeystick.mechanisms.sampling.poisson import PoissonSubsampled

# The most different noises that are accounted for separately.
FEW_LEVELS: Final = 24
_NOISE: Final = Domain(
    symbol="z", low=0, high=math.inf, low_open=True, high_open=True, typical=(0.5, 10)
)


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class GaussianSequence(Mechanism):
    """Gaussian releases one after the other, each with a noise of its own: a noise schedule.

    M(D) = (M_1(D), ..., M_k(D)), M_j the Gaussian mechanism with the j-th noise multiplier on a
    Poisson sample of D at one rate, drawn afresh for each. It is the composition of
    ``PoissonSubsampled(Gaussian(z), rate)`` over the noise multipliers z; a million of them that
    all differ cost about as much time as a few.

    Guarantees:
        Those of ``PoissonSubsampled``: exact under add-remove and zero-out.

    Edge cases:
        Rate 0 releases nothing; rate 1 uses all data in each release. The order does not matter to
        the privacy of the whole.

    Args:
        noise_multipliers: Standard deviations of the noise over the sensitivity, at least one, each
            in (0, inf).
        rate: Probability of each example to be in a sample, in [0, 1]; a ``Fraction`` is kept
            exact.
        adjacency: "add-remove" or "zero-out".

    Raises:
        ParameterError: If a parameter is outside its domain.
        IncompatibleError: Under replace-one.

    References:
        Zhu, Dong and Wang, "Optimal Accounting of Differential Privacy via Characteristic
        Function", AISTATS 2022, theorems 10 and 11.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.mechanisms.GaussianSequence((2.0, 1.5, 1.0), rate=0.01))
        Gaussian sequence (3 releases, noise multipliers from 1 to 2, rate 0.01)
    """

    rises_with = ("rate",)

    noise_multipliers: tuple[float, ...]
    rate: float | Fraction
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __init__(
        self,
        noise_multipliers: Iterable[float],
        rate: float | Fraction,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    ) -> None:
        noises = _validate.reals("noise_multipliers", noise_multipliers, _NOISE)
        object.__setattr__(self, "noise_multipliers", noises)
        object.__setattr__(self, "rate", _validate.probability("rate", rate))
        neighbours = _validate.choice("adjacency", adjacency, Adjacency)
        if neighbours is Adjacency.REPLACE_ONE:
            raise IncompatibleError(
                "a sequence of Gaussians is analysed under add-remove and zero-out; under "
                "replace-one compose PoissonSubsampled(Gaussian(z), rate, 'replace-one')"
            )
        object.__setattr__(self, "adjacency", neighbours)

    @property
    def expanded(self) -> Mechanism:
        """The composition of Gaussians on Poisson samples, where few differ; else itself."""
        levels = Counter(self.noise_multipliers)
        if 0 < self.rate < 1 and len(levels) > FEW_LEVELS:
            return self
        return Composed(
            PoissonSubsampled(Gaussian(noise), self.rate, self.adjacency) ** runs
            for noise, runs in levels.items()
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the noise and the sampling to be as described."""
        return (
            self.adjacency.meaning,
            "Each example is in each sample independently with probability "
            f"{float(self.rate):g}, afresh for each release, and the samples are kept secret.",
            f"Fresh Gaussian noise is added in each of {len(self.noise_multipliers):,} releases; "
            f"its standard deviation is {self._range} times the query's L2 sensitivity.",
        )

    @property
    def _range(self) -> str:
        """The least and the most noise, in words."""
        return f"from {min(self.noise_multipliers):g} to {max(self.noise_multipliers):g}"

    def _words(self) -> tuple[str, tuple[str, ...]]:
        """Return the name, the number of releases, the range of the noise and the rate."""
        default = self.adjacency is Adjacency.ADD_REMOVE
        return "Gaussian sequence", (
            f"{len(self.noise_multipliers)} releases",
            f"noise multipliers {self._range}",
            f"rate {float(self.rate):g}",
            *(() if default else (str(self.adjacency),)),
        )
