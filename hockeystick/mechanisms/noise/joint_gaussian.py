"""Several queries of the same data, each with Gaussian noise of its own, as one release."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

from hockeystick import _validate
from hockeystick.mechanisms.base import AnyAdjacency
from hockeystick.mechanisms.registry import registered
from hockeystick.numerics.numerals import plain

_NOISE: Final = _validate.PARAMETERS["noise_multiplier"]


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class JointGaussian(AnyAdjacency):
    """Several queries of the same data at once, each with Gaussian noise of its own.

    Noise multipliers z_i, each in units of its own query's sensitivity, are together one Gaussian
    mechanism with ``z^-2 = sum z_i^-2``. Unlike ``Composed``, it is one run: all the queries may
    be asked of the same Poisson sample, ``PoissonSubsampled(JointGaussian(...), rate)``, as the
    gradients of a batch and what steers their clipping are.

    One record is what the sensitivities are for: an example, or a client with all its data where
    the queries add up updates of clients. Of either, ``PoissonSubsampled`` speaks as an example.

    Guarantees:
        Exact where one record moves every query by its sensitivity; an upper bound elsewhere.

    Edge cases:
        A noise multiplier of 0 releases an answer itself, and inf releases nothing of its query.

    Args:
        noise_multipliers: Standard deviations of the noise over the queries' sensitivities, one or
            more numbers in [0, inf].

    Raises:
        ParameterError: If it is no such list.

    References:
        Andrew, Thakkar, McMahan and Ramaswamy, "Differentially Private Learning with Adaptive
        Clipping", NeurIPS 2021, theorem 1.

    Example:
        >>> import hockeystick as hs
        >>> step = hs.PoissonSubsampled(hs.mechanisms.JointGaussian((1.01, 7.2)), rate=0.01)
        >>> print(step**1000)
        Poisson-subsampled joint Gaussian (noise multipliers 1.01 and 7.2, rate 0.01) x 1000
        >>> print(hs.epsilon(step**1000, delta=1e-5))
        epsilon = 1.82745 at delta = 1e-05 (proven in [1.82744..., 1.82744...]; contour, add-remove)
    """

    noise_multipliers: tuple[float, ...]

    def __init__(self, noise_multipliers: Iterable[float]) -> None:
        known = _validate.reals("noise_multipliers", noise_multipliers, _NOISE)
        object.__setattr__(self, "noise_multipliers", known)

    @property
    def assumptions(self) -> tuple[str, ...]:
        listed = ", ".join(plain(noise) for noise in self.noise_multipliers)
        return (
            "Fresh Gaussian noise is added to each of the queries, all asked of the same data; "
            f"its standard deviations are {listed} times the queries' own L2 sensitivities to one "
            "record: an example, or a client with all its data where the queries add up what "
            "clients send.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        *first, last = (f"{noise:g}" for noise in self.noise_multipliers)
        if not first:
            return "joint Gaussian", (f"noise multiplier {last}",)
        return "joint Gaussian", (f"noise multipliers {', '.join(first)} and {last}",)
