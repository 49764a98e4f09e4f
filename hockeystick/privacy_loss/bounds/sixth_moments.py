"""Crude bounds of the sixth moment of a loss: for what little lies beyond the last cells.

Of an event E of probability p, with ``k <= 3`` and ``S = E[L^6]`` (Cauchy-Schwarz and Lyapunov),

    E[(|L| + a)^k; E] <= sqrt(p) (32 (S + a^6))^(k/6).

Where a loss is no more than ``a + b |Z|`` of a normal Z, ``S <= 32 (a^6 + 15 b^6)``.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Final

from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.dominated import DominatedLoss
from hockeystick.privacy_loss.core.registry import NoAnalysisError
from hockeystick.privacy_loss.noise.discrete_gaussian import DiscreteGaussianLoss
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss
from hockeystick.privacy_loss.noise.gaussian_mixture import GaussianMixtureLoss
from hockeystick.privacy_loss.noise.sinh_normal import SinhNormalLoss
from hockeystick.privacy_loss.noise.skellam import SkellamLoss
from hockeystick.privacy_loss.sampling.sampled import SampledLoss, SampledProfiledLoss
from hockeystick.privacy_loss.sampling.sampled_atoms import SampledAtomsLoss
from hockeystick.privacy_loss.sampling.sampled_gaussian import SampledGaussianLoss
from hockeystick.privacy_loss.selection.above_threshold import FoldedGaussianLoss

# Of larger losses the powers leave the floats.
_LARGEST: Final = 1e40
# Covers the few roundings of each formula.
_OUTWARD: Final = 1.0 + 2.0**-40


def sixth_moment_upper(loss: CellLoss) -> float:
    """Return an upper bound of ``E[L^6]`` under P and under Q.

    Raises:
        NoAnalysisError: If none is known, or it is too large for floats.
    """
    farthest = max(-loss.infimum, loss.supremum)
    found = _power(farthest) if farthest < math.inf else _unbounded(loss)
    if not found < math.inf:
        raise NoAnalysisError("its losses are too large for floats")
    return found * _OUTWARD


def beyond(mass: float, sixth: float, power: int, offset: float) -> float:
    """Return a bound of ``E[(|L| + offset)^power]`` over an event of at most this mass."""
    largest = 32.0 * (sixth + offset**6)
    return math.sqrt(mass) * float(largest ** (power / 6.0)) * _OUTWARD


@singledispatch
def _unbounded(loss: CellLoss) -> float:
    """Return the bound of a loss without a largest or a least value."""
    raise NoAnalysisError(f"no bounds of the moments of a {type(loss).__name__} are known")


@_unbounded.register
def _(loss: GaussianLoss) -> float:
    return _of_normal(0.5 * loss.mu * loss.mu, loss.mu)


@_unbounded.register
def _(loss: SampledGaussianLoss) -> float:
    return _of_normal(0.5 * loss.mu * loss.mu, loss.mu)


@_unbounded.register
def _(loss: GaussianMixtureLoss) -> float:
    # The loss is between the least and the largest m x - m^2/2, and |x| <= |Z| + m.
    farthest = float(max(loss.distances))
    return _of_normal(1.5 * farthest * farthest, farthest)


@_unbounded.register
def _(loss: FoldedGaussianLoss) -> float:
    # At the ends of the gap, or a Gaussian's and a shift on either side.
    mu = float(1 / loss.noise_multiplier)
    return _power(loss.gap) + 2.0 * _of_normal(0.5 * mu * mu + loss.shift, mu)


@_unbounded.register
def _(loss: SinhNormalLoss) -> float:
    # rho A^2 sinh(1/A) sinh(2|y|/A), with sinh(z/A) = n/(A sqrt(2 rho)) of a normal n and
    # sinh(2 (|z| + 1/2)/A) <= exp(1/A) (1 + 2 sinh(z/A)^2); E[n^12] = 10395.
    width, rho = loss.width, loss.rho
    front = rho * width * width * math.sinh(1.0 / width) * math.exp(1.0 / width)
    share = 1.0 / (rho * width * width)
    return _power(front) * 32.0 * (1.0 + 10395.0 * share**6)


@_unbounded.register
def _(loss: DiscreteGaussianLoss) -> float:
    # D (2|k| + 3D) / (2 sigma^2), and E[k^6] <= 2 * 3! (2 sigma^2)^3 as k is sub-Gaussian.
    half, shift = float(loss.half), float(loss.sensitivity)
    spread = 12.0 / half**3
    return 32.0 * (_power(3.0 * shift * shift * half) + _power(2.0 * shift * half) * spread)


@_unbounded.register
def _(loss: SkellamLoss) -> float:
    # 2 D (|k| + 3D) / v; with t = 1/sqrt(v) at most 1, E[k^6] <= 6!/t^6 * 2 exp(v (cosh t - 1)).
    variance, shift = loss.variance, float(loss.sensitivity)
    spread = 1440.0 * max(variance, 1.0) ** 3 * math.exp(0.6)
    slope = 2.0 * shift / variance
    return 32.0 * (_power(3.0 * shift * slope) + _power(slope) * spread)


@_unbounded.register(SampledLoss)
@_unbounded.register(SampledProfiledLoss)
@_unbounded.register(SampledAtomsLoss)
def _(loss: SampledLoss | SampledProfiledLoss | SampledAtomsLoss) -> float:
    # A sampled loss is nearer to 0 than the inner one, and its masses are mixtures of the two.
    return sixth_moment_upper(loss.inner)


@_unbounded.register
def _(loss: DominatedLoss) -> float:
    return sixth_moment_upper(loss.above)


def _of_normal(offset: float, slope: float) -> float:
    """Return the bound of ``E[(a + b |Z|)^6]``."""
    return 32.0 * (_power(offset) + 15.0 * _power(slope))


def _power(size: float) -> float:
    """Return the sixth power, inf beyond the floats."""
    return size**6 if size < _LARGEST else math.inf
