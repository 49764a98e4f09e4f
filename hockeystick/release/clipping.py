"""Sums of clipped gradients: layer by layer, pruned, and with norms that follow what is released.

A batch of a training is counted by whoever trains. Gradients have a row for each example, of this
example alone; one without a finite length counts as 0, and no examples give pure noise. The noise
is exact, as of ``mean``, under add-remove and zero-out. A sum is to be divided by a public number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.noise.gaussian import Gaussian, JointGaussian
from hockeystick.numerics import decimal
from hockeystick.release._values import of_kind
from hockeystick.release.charging import Charged, book, checked_charge
from hockeystick.release.noise.clipped_sum import (
    LENGTH,
    NOISE,
    UNITS,
    check_noise,
    gradient_rows,
    length_of,
    noisy_clipped_sum,
    noisy_integers,
)
from hockeystick.release.samplers import Bits, permutation, secret_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KEEP: Final = Domain(symbol="k", low=0, high=1, low_open=True, typical=(0.1, 0.9))
_EXPECTED: Final = Domain(symbol="m", low=1e-24, high=2.0**30, typical=(16, 4096), whole=False)
_STEP_SIZE: Final = Domain(symbol="eta", low=0, high=10, typical=(0.001, 0.5))
_SHARE: Final = Domain(symbol="gamma", low=0, high=1, typical=(0.1, 0.9))
_RATE: Final = Domain(symbol="rho", low=1e-24, high=1e24, typical=(0.001, 10))
_DECAY: Final = Domain(symbol="beta", low=0, high=1, typical=(0.9, 0.999))
_VARIANCE: Final = Domain(symbol="h", low=1e-300, high=1e300, typical=(1e-12, 1), whole=False)
_DIMENSION: Final = whole_numbers("d", 1, (10, 10**6))


def layered_sum(
    mechanism: JointGaussian,
    layers: Any,
    *,
    norms: Any,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> list[NDArray[np.float64]]:
    """Return for each layer the sum of its clipped gradients, with noise in units of its norm.

        G_l = sum_i clip(g_il, C_l) + N(0, (z_l C_l)^2 I),    l = 1..M.

    One example moves each sum by at most its C_l, from 1e-24 to 1e24, and all M of them: together
    they are ``JointGaussian((z_1, ..., z_M))``, each z up to ``2^21``, one Gaussian of
    ``z^-2 = sum z_l^-2``. The same z in each layer costs what ``z / sqrt(M)`` does in one: layers
    whose noise is in units of their own norms are no M separate guarantees of z, nor one.

    References:
        McMahan, Ramage, Talwar and Zhang, "Learning Differentially Private Recurrent Language
        Models", ICLR 2018, section 3 (per-layer clipping).

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> both = hs.mechanisms.JointGaussian((2, 4))
        >>> weights, biases = np.ones((32, 10)), np.ones((32, 3))
        >>> found = hs.release.layered_sum(both, [weights, biases], norms=[1.0, 0.1])
        >>> [one.shape for one in found]
        [(10,), (3,)]
    """
    noises = of_kind(mechanism, JointGaussian).noise_multipliers
    parts = _layers(layers, len(noises))
    lengths = _validate.reals("norms", norms, LENGTH)
    if len(lengths) != len(parts):
        raise ParameterError("norms", norms, f"one for each of {len(parts)} layers")
    check_noise(noises, UNITS)
    book(checked_charge(charge), mechanism)
    of_each = zip(parts, lengths, noises, strict=True)
    return [noisy_clipped_sum(rows, norm, noise, bits) for rows, norm, noise in of_each]


def _layers(layers: Any, count: int) -> list[NDArray[np.float64]]:
    """Return each layer's gradients, of the same examples, or raise."""
    allowed = f"{count} arrays, one for each noise multiplier of the mechanism"
    if not isinstance(layers, list | tuple) or len(layers) != count:
        raise ParameterError("layers", type(layers).__name__, f"a list of {allowed}")
    found = [gradient_rows("layers", one) for one in layers]
    if len({len(one) for one in found}) != 1:
        raise ParameterError("layers", [len(one) for one in found], "rows of the same examples")
    return found


def randomly_pruned_sum(
    mechanism: Gaussian,
    gradients: Any,
    *,
    norm: float,
    keep: float,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> NDArray[np.float64]:
    """Return the noisy sum of clipped gradients in randomly chosen coordinates, zeros elsewhere.

    With a random set K of ``ceil(keep d)`` coordinates, keep in (0, 1],
    ``sum_i clip(g_iK, C) + N(0, (z C)^2 I)`` in K, z up to ``2^21`` and C from 1e-24 to 1e24. What
    is clipped is what is kept, so that one example moves the sum by at most C. K is drawn before
    any gradient is looked at; it may be known. Pruning makes a message shorter and clips less; it
    is no privacy by itself, and none is accounted.

    References:
        Wei et al., "Securing Distributed SGD against Gradient Leakage Threats", 2023, section 4.1.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> found = hs.release.randomly_pruned_sum(
        ...     hs.Gaussian(1), np.ones((8, 10)), norm=1, keep=0.25
        ... )
        >>> int(np.count_nonzero(found))
        3
    """
    rows, length, count = _pruned(mechanism, gradients, norm, keep)
    book(checked_charge(charge), mechanism)
    kept = permutation(rows.shape[1], bits=bits)[:count]
    found = np.zeros(rows.shape[1])
    found[kept] = noisy_clipped_sum(rows[:, kept], length, mechanism.noise_multiplier, bits)
    return found


def selective_sum(
    mechanism: Gaussian,
    gradients: Any,
    *,
    norm: float,
    keep: float,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> NDArray[np.float64]:
    """Return the largest coordinates of the noisy sum of clipped gradients, zeros elsewhere.

    Of ``sum_i clip(g_i, C) + N(0, (z C)^2 I)`` the ``ceil(keep d)`` entries that are largest in
    size: post-processing. Selective SGD as published chooses by the gradients themselves and
    noises the chosen values; which ones are chosen then shows without any noise, and for no epsilon
    is that private: one example decides surely between two sets.

    References:
        Shokri and Shmatikov, "Privacy-Preserving Deep Learning", CCS 2015 (distributed selective
        SGD); Wei et al. 2023, section 4.1.

    Example:
        >>> import hockeystick as hs
        >>> hs.release.selective_sum(hs.Gaussian(0), [[0.3, 0.0, -0.4]], norm=1, keep=0.5).round(3)
        array([ 0.3,  0. , -0.4])
    """
    rows, length, count = _pruned(mechanism, gradients, norm, keep)
    book(checked_charge(charge), mechanism)
    whole = noisy_clipped_sum(rows, length, mechanism.noise_multiplier, bits)
    found = np.zeros(len(whole))
    largest = np.argsort(-np.abs(whole), kind="stable")[:count]
    found[largest] = whole[largest]
    return found


def _pruned(
    mechanism: Any, gradients: Any, norm: Any, keep: Any
) -> tuple[NDArray[np.float64], float, int]:
    """Return the gradients, the norm and how many coordinates are kept, or raise."""
    known, rows = of_kind(mechanism, Gaussian), gradient_rows("gradients", gradients)
    share = decimal(_validate.real("keep", keep, _KEEP))
    check_noise((known.noise_multiplier,), UNITS)
    return rows, length_of("norm", norm), math.ceil(share * rows.shape[1])


def _moved_length(value: float, exponent: float) -> float:
    """Return ``value exp(exponent)``, kept within the lengths that can be clipped to."""
    logarithm = min(max(math.log(value) + exponent, math.log(LENGTH.low)), math.log(LENGTH.high))
    return min(max(math.exp(logarithm), LENGTH.low), LENGTH.high)


@final
@dataclass(frozen=True, slots=True, init=False)
class QuantileClipping:
    """DP-SGD's sum of gradients, with a clipping norm that follows a quantile of their lengths.

    Each step releases, of the same batch B with m its expected size,

        g = (sum clip(g_i, C) + N(0, (z C)^2 I)) / m,
        b = (sum (1[|g_i| <= C] - 1/2) + N(0, s^2)) / m + 1/2,

    and the next norm is ``C exp(-eta (b - gamma))``: computed from b, it costs nothing more. An
    example in the batch moves the first sum by at most C, and the second by exactly 1/2.

    Guarantees:
        Under add-remove and zero-out a step is ``mechanism``, ``JointGaussian((z, 2 s))``, of a
        batch, whatever norms came before: both sums are of integers, each example's decided by it
        alone. As with ``hs.calibration.clipping_noise``: a plan of noise multiplier nu covers the
        steps where ``z^-2 + (2 s)^-2 <= nu^-2``. Whoever trains draws the batch and counts it.

    Args:
        norm: The first clipping norm C, from 1e-24 to 1e24.
        quantile: The share gamma of gradients that is to stay unclipped, in [0, 1].
        gradient_noise: z, the noise multiplier of the gradients' sum, in [0, 2^21].
        bit_noise: s, the standard deviation of the noise on the sum of bits, in [0, 2^21].
        step_size: eta, how fast the norm follows, in [0, 10].

    References:
        Andrew, Thakkar, McMahan and Ramaswamy, "Differentially Private Learning with Adaptive
        Clipping", NeurIPS 2021, algorithm 1 and theorem 1.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> noise = hs.calibration.clipping_noise(1.0, bit_noise=5.0)
        >>> clipping = hs.release.QuantileClipping(
        ...     norm=1.0, quantile=0.5, gradient_noise=noise, bit_noise=5.0
        ... )
        >>> gradient, clipping = clipping.step(np.ones((64, 10)), expected=64)
        >>> gradient.shape, clipping.norm > 1.0
        ((10,), True)
        >>> step = hs.PoissonSubsampled(clipping.mechanism, rate=0.01)
        >>> plan = hs.DPSGD(rate=0.01, steps=100, noise_multiplier=1.0)
        >>> hs.epsilon(step**100, 1e-5).upper <= hs.epsilon(plan, 1e-5).upper * (1 + 1e-9)
        True
    """

    norm: float
    quantile: float
    gradient_noise: float
    bit_noise: float
    step_size: float

    def __init__(
        self,
        norm: float,
        quantile: float,
        gradient_noise: float,
        bit_noise: float,
        step_size: float = 0.2,
    ) -> None:
        set_to = object.__setattr__
        set_to(self, "norm", length_of("norm", norm))
        set_to(self, "quantile", _validate.real("quantile", quantile, _SHARE))
        set_to(self, "gradient_noise", _validate.real("gradient_noise", gradient_noise, NOISE))
        set_to(self, "bit_noise", _validate.real("bit_noise", bit_noise, NOISE))
        set_to(self, "step_size", _validate.real("step_size", step_size, _STEP_SIZE))

    @property
    def mechanism(self) -> JointGaussian:
        """What a step is, of its batch: the bits' sensitivity is 1/2."""
        return JointGaussian((self.gradient_noise, 2.0 * self.bit_noise))

    def step(
        self, gradients: Any, *, expected: float, bits: Bits = secret_bits
    ) -> tuple[NDArray[np.float64], QuantileClipping]:
        """Return the noisy mean gradient of a batch, and the clipping of the next step.

        Expected is the expected size m of a batch, at least 1e-24: public, never the size that was
        drawn. A row without a finite length counts as 0, and as clipped.
        """
        rows = gradient_rows("gradients", gradients)
        size = _validate.real("expected", expected, _EXPECTED)
        noisy = noisy_clipped_sum(rows, self.norm, self.gradient_noise, bits)
        share = 0.5 + 0.5 * self._halves(rows, bits) / size
        norm = _moved_length(self.norm, -self.step_size * (share - self.quantile))
        return noisy / size, replace(self, norm=norm)

    def _halves(self, rows: NDArray[np.float64], bits: Bits) -> float:
        """Return twice the noisy sum of bits: 1 for a gradient that stays, -1 for another."""
        with np.errstate(over="ignore", invalid="ignore"):
            within = np.linalg.norm(rows, axis=1) <= self.norm
        total = np.array([2 * int(within.sum()) - len(rows)], dtype=np.int64)
        return math.fsum(noisy_integers(total, 1, 2.0 * self.bit_noise, bits))


@final
@dataclass(frozen=True, slots=True, init=False, eq=False)
class OnlineClipping:
    """DP-SGD's sum of gradients, with a clipping norm and a learning rate that descend too.

    Each step releases, of the same batch with m its expected size,

        g_t = (sum clip(g_i, C_t) + N(0, (z_g C_t)^2 I)) / m,
        q_t = (sum 1[|g_i| > C_t] g_i/|g_i| + N(0, z_q^2 I)) / m,

    q the derivative of the clipped sum by C, and then, with nothing but these,

        C_(t+1)   = C_t   exp(rho_c sign(g_t . q_(t-1))),
        rho_(t+1) = rho_t exp(rho_r sign(g_t . g_(t-1))).

    An example in the batch moves the first sum by at most C_t and the second by at most 1. The
    first step changes neither: there is no step before it.

    Guarantees:
        Under add-remove and zero-out a step is ``mechanism``, ``JointGaussian((z_g, z_q))``, of a
        batch: both sums are of integers, each example's decided by it alone. The norm and the
        learning rate are computed from what is released: post-processing. A plan of noise
        multiplier nu covers the steps where ``z_g^-2 + z_q^-2 <= nu^-2``, as with
        ``hs.calibration.joint_noise``. Whoever trains draws the batch and counts it.

    Args:
        norm: The first clipping norm C, from 1e-24 to 1e24.
        learning_rate: The first learning rate rho, from 1e-24 to 1e24.
        gradient_noise: z_g, the noise multiplier of the gradients' sum, in [0, 2^21].
        direction_noise: z_q, that of the sum of directions, in [0, 2^21].
        norm_rate: rho_c, in [0, 10].
        learning_rate_rate: rho_r, in [0, 10]; 0 keeps the learning rate.

    References:
        Galli, "Sense and Sensitivity" (PhD thesis, Scuola Normale Superiore), algorithm 3 and
        proposition 1. Its line 13 adds noise of z_g to q in place of z_q; its equations 3.17 and
        3.18 noise the means, its algorithm the sums, as here.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> noise = hs.calibration.joint_noise(1.0, inflation=1.01)
        >>> clipping = hs.release.OnlineClipping(0.1, 0.5, noise.gradient, noise.query, 0.05)
        >>> for _ in range(3):
        ...     gradient, clipping = clipping.step(np.ones((4096, 2)), expected=4096)
        >>> round(clipping.norm, 4), round(clipping.learning_rate, 6)
        (0.1105, 0.502506)
    """

    norm: float
    learning_rate: float
    gradient_noise: float
    direction_noise: float
    norm_rate: float
    learning_rate_rate: float
    _before: tuple[NDArray[np.float64], NDArray[np.float64]] | None = field(repr=False)

    def __init__(
        self,
        norm: float,
        learning_rate: float,
        gradient_noise: float,
        direction_noise: float,
        norm_rate: float = 2.5e-3,
        learning_rate_rate: float = 2.5e-3,
    ) -> None:
        set_to = object.__setattr__
        set_to(self, "norm", length_of("norm", norm))
        set_to(self, "learning_rate", _validate.real("learning_rate", learning_rate, _RATE))
        set_to(self, "gradient_noise", _validate.real("gradient_noise", gradient_noise, NOISE))
        set_to(self, "direction_noise", _validate.real("direction_noise", direction_noise, NOISE))
        set_to(self, "norm_rate", _validate.real("norm_rate", norm_rate, _STEP_SIZE))
        rate = _validate.real("learning_rate_rate", learning_rate_rate, _STEP_SIZE)
        set_to(self, "learning_rate_rate", rate)
        set_to(self, "_before", None)

    @property
    def mechanism(self) -> JointGaussian:
        """What a step is, of its batch."""
        return JointGaussian((self.gradient_noise, self.direction_noise))

    def step(
        self, gradients: Any, *, expected: float, bits: Bits = secret_bits
    ) -> tuple[NDArray[np.float64], OnlineClipping]:
        """Return the noisy mean gradient of a batch, and the clipping of the next step.

        Expected is the expected size m of a batch, at least 1e-24: public, never the size that was
        drawn. Gradients are as long as in the step before.
        """
        rows = gradient_rows("gradients", gradients)
        size = _validate.real("expected", expected, _EXPECTED)
        if self._before is not None and rows.shape[1] != len(self._before[0]):
            allowed = f"rows of {len(self._before[0])} numbers, as in the step before"
            raise ParameterError("gradients", f"an array of shape {rows.shape}", allowed)
        directions = _directions(rows, self.norm)
        gradient = noisy_clipped_sum(rows, self.norm, self.gradient_noise, bits) / size
        direction = noisy_clipped_sum(directions, 1.0, self.direction_noise, bits) / size
        return gradient, self._after(gradient.copy(), direction)

    def _after(
        self, gradient: NDArray[np.float64], direction: NDArray[np.float64]
    ) -> OnlineClipping:
        """Return the clipping of the next step."""
        norm, rate = self.norm, self.learning_rate
        noises = self.gradient_noise, self.direction_noise
        if self._before is not None:
            before, its_direction = self._before
            norm = _moved_length(norm, self.norm_rate * _sign(gradient, its_direction))
            rate = _moved_length(rate, self.learning_rate_rate * _sign(gradient, before))
        found = OnlineClipping(norm, rate, *noises, self.norm_rate, self.learning_rate_rate)
        object.__setattr__(found, "_before", (gradient, direction))
        return found


def _directions(rows: NDArray[np.float64], norm: float) -> NDArray[np.float64]:
    """Return the directions of the rows that are clipped, and zeros for the others."""
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(rows, axis=1)
    clipped = np.isfinite(lengths) & (lengths > norm)
    unit = np.where(clipped, lengths, 1.0)[:, None]
    return np.where(clipped[:, None], rows, 0.0) / unit


def _sign(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    return float(np.sign(first @ second))


@final
@dataclass(frozen=True, slots=True, init=False, eq=False)
class CoordinateClipping:
    """DP-SGD's sum of gradients, shifted and scaled in each coordinate before it is clipped.

    With a and b > 0 of d entries, of which nothing but the steps before decides, and m the expected
    size of a batch, each step releases

        w = (sum clip((g_i - a) / b, 1) + N(0, z^2 I)) / m,    g = a + b w.

    Then, entry by entry, ``a`` moves to ``beta_1 a + (1 - beta_1) g``, the variance ``v`` to
    ``beta_2 v + (1 - beta_2) min(max((g - a)^2 - b^2 z^2/m^2, h_1), h_2)``, and
    ``b_k = sqrt(s_k sum_j s_j)`` with ``s = sqrt(v)``, which makes the noise least.

    Guarantees:
        Under add-remove and zero-out a step is ``Gaussian(z)`` of a batch: an example in it moves
        the sum by at most 1, whatever a and b are, and these are computed from what was released.
        It costs what a step of DP-SGD with z does, and nothing more. (Some libraries call AdaClip a
        norm that follows a quantile, which costs more: that is ``QuantileClipping``.)

    Args:
        dimension: The number d of entries of a gradient, an integer >= 1.
        noise_multiplier: z, in [0, 2^21].
        decays: beta_1 and beta_2, each in [0, 1].
        variances: h_1 and h_2, the least and the largest variance of an entry, both > 0; the first
            one is ``sqrt(h_1 h_2)``.

    References:
        Pichapati, Suresh, Yu, Reddi and Kumar, "AdaCliP: Adaptive Clipping for Private SGD", 2019,
        algorithm 1.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> clipping = hs.release.CoordinateClipping(dimension=3, noise_multiplier=1)
        >>> for _ in range(100):
        ...     gradient, clipping = clipping.step(np.full((500, 3), [5, 1, 0]), expected=500)
        >>> print(clipping.mechanism)
        Gaussian (noise multiplier 1)
    """

    noise_multiplier: float
    decays: tuple[float, float]
    variances: tuple[float, float]
    center: NDArray[np.float64]
    variance: NDArray[np.float64]

    def __init__(
        self,
        dimension: int,
        noise_multiplier: float,
        decays: tuple[float, float] = (0.99, 0.9),
        variances: tuple[float, float] = (1e-8, 1.0),
    ) -> None:
        count = _validate.count("dimension", dimension, _DIMENSION)
        noise = _validate.real("noise_multiplier", noise_multiplier, NOISE)
        known = _pair("decays", decays, _DECAY)
        least, most = _pair("variances", variances, _VARIANCE)
        if not least <= most:
            raise ParameterError("variances", variances, "the least one first")
        object.__setattr__(self, "noise_multiplier", noise)
        object.__setattr__(self, "decays", known)
        object.__setattr__(self, "variances", (least, most))
        object.__setattr__(self, "center", np.zeros(count))
        object.__setattr__(self, "variance", np.full(count, math.sqrt(least) * math.sqrt(most)))

    @property
    def mechanism(self) -> Gaussian:
        """What a step is, of its batch."""
        return Gaussian(self.noise_multiplier)

    @property
    def scale(self) -> NDArray[np.float64]:
        """What each entry is divided by: b, which is proportional to ``v^(1/4)``."""
        deviation = np.sqrt(self.variance)
        return np.asarray(np.sqrt(deviation * deviation.sum()))

    def step(
        self, gradients: Any, *, expected: float, bits: Bits = secret_bits
    ) -> tuple[NDArray[np.float64], CoordinateClipping]:
        """Return the noisy mean gradient of a batch, and the clipping of the next step.

        Expected is the expected size m of a batch, at least 1e-24: public, never the size that was
        drawn. A row without a finite length counts as a.
        """
        rows = gradient_rows("gradients", gradients, len(self.center))
        size = _validate.real("expected", expected, _EXPECTED)
        scale = self.scale
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (rows - self.center) / scale
        noisy = noisy_clipped_sum(scaled, 1.0, self.noise_multiplier, bits)
        gradient = self.center + scale * (noisy / size)
        return gradient, self._after(gradient, scale * self.noise_multiplier / size)

    def _after(
        self, gradient: NDArray[np.float64], deviation: NDArray[np.float64]
    ) -> CoordinateClipping:
        """Return the clipping of the next step, by this one's gradient and its noise."""
        first, second = self.decays
        own = np.clip((gradient - self.center) ** 2 - deviation**2, *self.variances)
        size, noise = len(self.center), self.noise_multiplier
        found = CoordinateClipping(size, noise, self.decays, self.variances)
        object.__setattr__(found, "center", first * self.center + (1 - first) * gradient)
        object.__setattr__(found, "variance", second * self.variance + (1 - second) * own)
        return found


def _pair(name: str, values: Any, domain: Domain) -> tuple[float, float]:
    """Return two numbers of a domain, or raise."""
    found = _validate.reals(name, values, domain)
    if len(found) != 2:
        raise ParameterError(name, values, "two numbers")
    return found[0], found[1]
