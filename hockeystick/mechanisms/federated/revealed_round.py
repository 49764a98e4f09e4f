"""Several runs that a client takes part in together, or not at all, as everybody sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hockeystick.mechanisms.registry import registered
from hockeystick.mechanisms.sampling.revealed_sample import OnRevealedSample


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class RevealedRound(OnRevealedSample):
    """Runs that share one coin: with some probability all of them happen, and all see whether.

    In a round of federated training a client is drawn or not; where it is, it runs ``inner``, which
    may be many local steps. The coin is seen, and is the same for all of them:

        delta(eps) = rate * delta_inner(eps),    K(c) = ln(1 + rate (e^(K_inner(c)) - 1)),

    with K the cumulant generating function of the privacy loss, in each direction. Steps that share
    their coin are not sampled independently: n of them cost more than n runs of
    ``RevealedSample``, which flips one for each.

    Guarantees:
        An upper bound for whoever sees who takes part, by Renyi divergences of all orders; exact
        where ``inner`` is one run, or nothing but Gaussians. The lower end of runs of a sampled
        Gaussian is that of the sum of their outputs, which whoever sees them can form: close by
        where the noise is large, half as much where it is small. Elsewhere it is that of a single
        run inside, and far below.

    Edge cases:
        Rate 0 releases nothing about the data; rate 1 costs what ``inner`` does, by its bounds.

    Args:
        inner: What is run with the client's data, one run or a composition.
        rate: Probability of the client to be drawn in one round, in [0, 1]; a ``Fraction`` is kept
            exact.

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Zhu, Dong and Wang, "Optimal Accounting of Differential Privacy via Characteristic
        Function", AISTATS 2022, theorem 10, for the adaptive composition inside; that a choice
        which is seen averages hockey-stick divergences is their definition.

    Example:
        >>> import hockeystick as hs
        >>> local = hs.FixedSizeSubsampled(hs.Gaussian(3.0), 5, 500) ** 100
        >>> print(hs.federated.RevealedRound(local, rate=0.1) ** 60)
        revealed round (rate 0.1, fixed-size-subsampled Gaussian (noise multiplier 3, 5 of 500, \
replace-one) x 100) x 60
    """

    def _drawn(self) -> str:
        return (
            f"A client takes part in each round with probability {float(self.rate):g}, "
            "independently of the other rounds and of the data; who takes part may be known."
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "revealed round", (f"rate {float(self.rate):g}", str(self.inner))
