"""Sums of clipped gradients: layer by layer, pruned, and with norms that follow what is released.

Whoever trains draws the batch and counts it. Gradients have a row for each example, of this example
alone; one without a finite length counts as 0, and no examples give pure noise. Under add-remove
and zero-out a step is its ``mechanism``, of a batch: sums are of integers with exact noise, and
what follows from them is post-processing. Clipping norms C are from 1e-24 to 1e24, noise
multipliers up to ``2^21``, m is a batch's expected size. A sum is to be divided by a public number.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from dataclasses import InitVar, dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, Self, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.adjacency import Adjacency
from hockeystick.calibration.budgets.gaussian import clipping_noise, joint_noise
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import DPSGD, Gaussian, JointGaussian, Mechanism
from hockeystick.mechanisms import Clipping as Clipped
from hockeystick.numerics import decimal
from hockeystick.release._values import of_kind, set_numbers
from hockeystick.release.counting import Charged, book, checked_charge
from hockeystick.release.noise import clipped_sum
from hockeystick.release.noise.clipped_sum import LENGTH, NOISE, NORM, UNITS, noisy_clipped_sum
from hockeystick.release.samplers.bits import POSITIVE, Bits, Floats, permutation, secret_bits

_KEEP: Final = Domain(symbol="k", low=0, high=1, low_open=True, typical=(0.1, 0.9))
_EXPECTED: Final = Domain(symbol="m", low=1e-24, high=2.0**30, typical=(16, 4096), whole=False)
_STEP_SIZE: Final = Domain(symbol="eta", low=0, high=10, typical=(0.001, 0.5))
_SHARE: Final = Domain(symbol="gamma", low=0, high=1, typical=(0.1, 0.9))
_VARIANCE: Final = Domain(symbol="h", low=1e-300, high=1e300, typical=(1e-12, 1), whole=False)
_SIGMA: Final = Domain("sigma", 0, math.inf, (1, 100), low_open=True, high_open=True)
_INFLATION: Final = Domain("r", 1, math.inf, (1.001, 1.5), low_open=True, high_open=True)
# Beyond this an exponent leaves the lengths that can be clipped to, from any of them.
_MOST: Final = 700.0
# A norm that follows noisy answers in a training loop stays within this factor of the first one.
_REACH: Final = 1e6
_beside_bits: Final = lru_cache(maxsize=1024)(clipping_noise)
_beside_directions: Final = lru_cache(maxsize=1024)(joint_noise)


def layered_sum(
    mechanism: JointGaussian,
    layers: Any,
    *,
    norms: Any,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> list[Floats]:
    """Return for each layer the sum of its clipped gradients, with noise in units of its norm.

        G_l = sum_i clip(g_il, C_l) + N(0, (z_l C_l)^2 I),    l = 1..M.

    One example moves each sum by at most its C_l: together they are ``JointGaussian((z_1, ...,
    z_M))``, one Gaussian of ``z^-2 = sum z_l^-2``. The same z in each layer costs what ``z /
    sqrt(M)`` does in one (McMahan, Ramage, Talwar and Zhang, ICLR 2018, section 3).

    Example:
        >>> import hockeystick as hs
        >>> both = hs.mechanisms.JointGaussian((2, 4))
        >>> [one.shape for one in hs.release.layered_sum(both, [[[3, 4]], [[1]]], norms=[1.0, 0.1])]
        [(2,), (1,)]
    """
    noises = of_kind(mechanism, JointGaussian).noise_multipliers
    if not isinstance(layers, list | tuple) or len(layers) != len(noises):
        allowed = f"a list of {len(noises)} arrays, one for each noise multiplier of the mechanism"
        raise ParameterError("layers", type(layers).__name__, allowed)
    parts = [clipped_sum.gradient_rows("layers", one) for one in layers]
    if len({len(one) for one in parts}) != 1:
        raise ParameterError("layers", [len(one) for one in parts], "rows of the same examples")
    lengths = _validate.reals("norms", norms, LENGTH)
    if len(lengths) != len(parts):
        raise ParameterError("norms", norms, f"one for each of {len(parts)} layers")
    clipped_sum.check_noise(noises, UNITS)
    book(checked_charge(charge), mechanism)
    of_each = zip(parts, lengths, noises, strict=True)
    return [noisy_clipped_sum(rows, norm, noise, bits) for rows, norm, noise in of_each]


def randomly_pruned_sum(
    mechanism: Gaussian,
    gradients: Any,
    *,
    norm: float,
    keep: float,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> Floats:
    """Return the noisy sum of clipped gradients in randomly chosen coordinates, zeros elsewhere.

    ``sum_i clip(g_iK, C) + N(0, (z C)^2 I)`` in a random set K of ``ceil(keep d)`` coordinates,
    keep in (0, 1]. What is clipped is what is kept. K is drawn without the gradients; pruning is no
    privacy by itself (Wei et al., "Securing Distributed SGD", 2023, section 4.1).

    Example:
        >>> import hockeystick as hs
        >>> hs.release.randomly_pruned_sum(hs.Gaussian(1), [[3, 0, 4]], norm=1, keep=0.5).shape
        (3,)
    """
    rows, length, count = _pruned(mechanism, gradients, norm, keep, charge)
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
) -> Floats:
    """Return the largest coordinates of the noisy sum of clipped gradients, zeros elsewhere.

    Of ``sum_i clip(g_i, C) + N(0, (z C)^2 I)`` the ``ceil(keep d)`` entries that are largest in
    size: post-processing. Selective SGD as published (Shokri and Shmatikov, CCS 2015; Wei et al.
    2023, section 4.1) chooses by the gradients themselves, which for no epsilon is private.

    Example:
        >>> import hockeystick as hs
        >>> hs.release.selective_sum(hs.Gaussian(0), [[0.3, 0.0, -0.4]], norm=1, keep=0.5).round(3)
        array([ 0.3,  0. , -0.4])
    """
    rows, length, count = _pruned(mechanism, gradients, norm, keep, charge)
    found = noisy_clipped_sum(rows, length, mechanism.noise_multiplier, bits)
    found[np.argsort(-np.abs(found), kind="stable")[count:]] = 0.0
    return found


def _pruned(
    mechanism: Any, gradients: Any, norm: Any, keep: Any, charge: Any
) -> tuple[Floats, float, int]:
    known, rows = of_kind(mechanism, Gaussian), clipped_sum.gradient_rows("gradients", gradients)
    share = decimal(_validate.real("keep", keep, _KEEP))
    clipped_sum.check_noise((known.noise_multiplier,), UNITS)
    length = _validate.real("norm", norm, LENGTH)
    book(checked_charge(charge), known)
    return rows, length, math.ceil(share * rows.shape[1])


def _moved(norm: float, exponent: float) -> float:
    """Return ``norm exp(exponent)``, kept within the lengths that can be clipped to."""
    moved = norm * math.exp(min(max(exponent, -_MOST), _MOST))
    return min(max(moved, LENGTH.low), LENGTH.high)


class Clip:
    """A rule for the clipping norm; what it releases is paid for out of the plan's own noise.

    A second query of a step's batch has noise of its own, and the gradients' noise is raised until
    both cost what the plan's ``noise_multiplier`` does: in units of their sensitivities they are
    one Gaussian release, ``z^-2 = z_gradients^-2 + z_query^-2``. So the account of the plan holds.
    """

    __slots__ = ()
    norm: float
    per_layer: bool = False

    def check(self, plan: DPSGD) -> None:
        """Raise where the plan has no clipping that it could follow."""
        name = type(self).__name__
        if not isinstance(self, Constant) and plan.clipping is not Clipped.INDIVIDUAL:
            raise IncompatibleError(f"{name} is of single gradients; use Constant for batches")
        if isinstance(self, Quantile) and plan.adjacency is Adjacency.ZERO_OUT:
            raise IncompatibleError("a zeroed example moves its bit by 1, not 1/2; use add-remove")

    def noises(self, noise_multiplier: float) -> tuple[float, float]:
        """Return the noise of gradients in clipping norms, and of the second query's sum."""
        return noise_multiplier, 0.0

    def moved(self, norm: float, seen: float) -> float:
        """Return the norm after this one, by what the second query showed."""
        return norm

    def _within(self, norm: float, exponent: float) -> float:
        moved = norm * math.exp(min(max(exponent, -1.0), 1.0))
        return min(max(moved, self.norm / _REACH), self.norm * _REACH)


@final
@dataclass(frozen=True, slots=True)
class Constant(Clip):
    """One clipping norm C >= 1e-24 throughout.

    ``per_layer`` clips the gradient of each of L layers (modules with parameters of their own) to
    ``C/sqrt(L)``, so that an example's whole gradient is within C.
    """

    norm: float
    per_layer: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        set_numbers(self, norm=NORM)


@final
@dataclass(frozen=True, slots=True)
class Quantile(Clip):
    """A clipping norm that follows a quantile of the gradients' lengths, by a noisy count.

    The steps are those of ``hs.release.QuantileClipping``, from C = norm on, with the gradients'
    noise ``hs.calibration.clipping_noise(z, bit_noise)`` in place of the plan's z. Quantile and
    rate are in [0, 1], and bit_noise is above half of z.
    """

    norm: float
    quantile: float = field(default=0.5, kw_only=True)
    rate: float = field(default=0.2, kw_only=True)
    bit_noise: float = field(kw_only=True)

    def __post_init__(self) -> None:
        set_numbers(self, norm=NORM, quantile=_SHARE, rate=_SHARE, bit_noise=_SIGMA)

    def noises(self, noise_multiplier: float) -> tuple[float, float]:
        return _beside_bits(noise_multiplier, self.bit_noise), self.bit_noise

    def moved(self, norm: float, seen: float) -> float:
        return self._within(norm, -self.rate * (seen - self.quantile))


@final
@dataclass(frozen=True, slots=True)
class Online(Clip):
    """OSO-DPSGD: a clipping norm that goes where the loss falls, by a second noisy query.

    The steps are those of ``hs.release.OnlineClipping``, from C = norm on, without its learning
    rate. Gradients get inflation > 1 times the plan's noise multiplier z, and directions ``(1 -
    inflation^-2)^(-1/2) z`` (``hs.calibration.joint_noise``). Rate is in [0, 1].
    """

    norm: float
    rate: float = field(default=0.0025, kw_only=True)
    inflation: float = field(default=1.01, kw_only=True)

    def __post_init__(self) -> None:
        set_numbers(self, norm=NORM, rate=_SHARE, inflation=_INFLATION)

    def noises(self, noise_multiplier: float) -> tuple[float, float]:
        found = _beside_directions(noise_multiplier, inflation=self.inflation)
        return found.gradient, found.query

    def moved(self, norm: float, seen: float) -> float:
        return self._within(norm, math.copysign(self.rate, seen) if seen else 0.0)


class Clipping(ABC):
    """How a step of DP-SGD clips and adds noise, and how that follows from the steps before."""

    __slots__ = ()

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """What a step is, of its batch."""

    def step(
        self, gradients: Any, *, expected: float, bits: Bits = secret_bits
    ) -> tuple[Floats, Self]:
        """Return the noisy mean gradient of a batch, and the clipping of the next step.

        Expected is the public m >= 1e-24, never the size drawn. Gradients keep their length.
        """
        rows = clipped_sum.gradient_rows("gradients", gradients)
        return self._step(rows, _validate.real("expected", expected, _EXPECTED), bits)

    @abstractmethod
    def _step(self, rows: Floats, size: float, bits: Bits) -> tuple[Floats, Self]: ...


@final
@dataclass(frozen=True, slots=True)
class QuantileClipping(Clipping):
    """DP-SGD's sum of gradients, with a clipping norm that follows a quantile of their lengths.

    Each step releases, of the same batch,

        g = (sum clip(g_i, C) + N(0, (z C)^2 I)) / m,
        b = (sum (1[|g_i| <= C] - 1/2) + N(0, s^2)) / m + 1/2,

    and the next norm is ``C exp(-eta (b - gamma))``. An example moves the first sum by at most C,
    and the second by exactly 1/2: a step is ``JointGaussian((z, 2 s))``, and a plan of noise
    multiplier nu covers those where ``z^-2 + (2 s)^-2 <= nu^-2``
    (``hs.calibration.clipping_noise``). A row without a finite length counts as clipped. The fields
    are C, the share gamma in [0, 1] that is to stay unclipped, z, s in [0, 2^21], and eta in [0,
    10] (Andrew, Thakkar, McMahan and Ramaswamy, NeurIPS 2021, algorithm 1 and theorem 1).

    Example:
        >>> import hockeystick as hs
        >>> clipping = hs.release.QuantileClipping(1.0, 0.5, gradient_noise=1.0, bit_noise=5.0)
        >>> gradient, clipping = clipping.step([[3.0, 4.0]] * 64, expected=64)
        >>> gradient.shape, clipping.norm > 1.0
        ((2,), True)
    """

    norm: float
    quantile: float
    gradient_noise: float
    bit_noise: float
    step_size: float = 0.2

    def __post_init__(self) -> None:
        noises = {"gradient_noise": NOISE, "bit_noise": NOISE}
        set_numbers(self, norm=LENGTH, quantile=_SHARE, **noises, step_size=_STEP_SIZE)

    @property
    def mechanism(self) -> JointGaussian:
        return JointGaussian((self.gradient_noise, 2.0 * self.bit_noise))

    def _step(self, rows: Floats, size: float, bits: Bits) -> tuple[Floats, QuantileClipping]:
        noisy = noisy_clipped_sum(rows, self.norm, self.gradient_noise, bits)
        with np.errstate(over="ignore", invalid="ignore"):
            within = np.linalg.norm(rows, axis=1) <= self.norm
        # Twice the sum of bits: 1 for a gradient that stays, -1 for another.
        total = np.array([2 * int(within.sum()) - len(rows)], dtype=np.int64)
        halves = clipped_sum.noisy_integers(total, 1, 2.0 * self.bit_noise, bits)
        share = 0.5 + 0.5 * float(halves[0]) / size
        norm = _moved(self.norm, -self.step_size * (share - self.quantile))
        return noisy / size, replace(self, norm=norm)


@final
@dataclass(frozen=True, slots=True, eq=False)
class OnlineClipping(Clipping):
    """DP-SGD's sum of gradients, with a clipping norm and a learning rate that descend too.

    Each step releases, of the same batch,

        g_t = (sum clip(g_i, C_t) + N(0, (z_g C_t)^2 I)) / m,
        q_t = (sum 1[|g_i| > C_t] g_i/|g_i| + N(0, z_q^2 I)) / m,

    q the derivative of the clipped sum by C, and then, but for the first step,

        C_(t+1)   = C_t   exp(rho_c sign(g_t . q_(t-1))),
        rho_(t+1) = rho_t exp(rho_r sign(g_t . g_(t-1))).

    An example moves the first sum by at most C_t and the second by at most 1: a step is
    ``JointGaussian((z_g, z_q))``, and a plan of noise multiplier nu covers those where ``z_g^-2 +
    z_q^-2 <= nu^-2`` (``hs.calibration.joint_noise``). This is algorithm 3 with proposition 1 of
    Galli, "Sense and Sensitivity" (PhD thesis), whose line 13 adds noise of z_g to q in place of
    z_q, and whose equations 3.17 and 3.18 noise the means, its algorithm the sums, as here. The
    fields are C, rho from 1e-24 to 1e24, z_g, z_q, and rho_c and rho_r in [0, 10].

    Example:
        >>> import hockeystick as hs
        >>> clipping = hs.release.OnlineClipping(0.1, 0.5, 2.0, 8.0, norm_rate=0.05)
        >>> for _ in range(3):
        ...     gradient, clipping = clipping.step([[1.0, 1.0]] * 4096, expected=4096)
        >>> round(clipping.norm, 4), round(clipping.learning_rate, 6)
        (0.1105, 0.502506)
    """

    norm: float
    learning_rate: float
    gradient_noise: float
    direction_noise: float
    norm_rate: float = 2.5e-3
    learning_rate_rate: float = 2.5e-3
    _before: tuple[Floats, Floats] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        noises = {"gradient_noise": NOISE, "direction_noise": NOISE}
        rates = {"norm_rate": _STEP_SIZE, "learning_rate_rate": _STEP_SIZE}
        set_numbers(self, norm=LENGTH, learning_rate=LENGTH, **noises, **rates)

    @property
    def mechanism(self) -> JointGaussian:
        return JointGaussian((self.gradient_noise, self.direction_noise))

    def _step(self, rows: Floats, size: float, bits: Bits) -> tuple[Floats, OnlineClipping]:
        if self._before is not None:
            rows = clipped_sum.gradient_rows("gradients", rows, len(self._before[0]))
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = np.linalg.norm(rows, axis=1)
        clipped = np.isfinite(lengths) & (lengths > self.norm)
        unit = np.where(clipped, lengths, 1.0)[:, None]
        directions = np.where(clipped[:, None], rows, 0.0) / unit
        gradient = noisy_clipped_sum(rows, self.norm, self.gradient_noise, bits) / size
        direction = noisy_clipped_sum(directions, 1.0, self.direction_noise, bits) / size
        norm, rate = self.norm, self.learning_rate
        if self._before is not None:
            before, its_direction = self._before
            norm = _moved(norm, self.norm_rate * float(np.sign(gradient @ its_direction)))
            rate = _moved(rate, self.learning_rate_rate * float(np.sign(gradient @ before)))
        after = replace(self, norm=norm, learning_rate=rate)
        object.__setattr__(after, "_before", (gradient.copy(), direction))
        return gradient, after


@final
@dataclass(frozen=True, slots=True, eq=False)
class CoordinateClipping(Clipping):
    """DP-SGD's sum of gradients, shifted and scaled in each coordinate before it is clipped.

    With a and b > 0 of d entries, of which nothing but the steps before decides, each step releases

        w = (sum clip((g_i - a) / b, 1) + N(0, z^2 I)) / m,    g = a + b w.

    Then, entry by entry, ``a`` moves to ``beta_1 a + (1 - beta_1) g``, the variance ``v`` to
    ``beta_2 v + (1 - beta_2) min(max((g - a)^2 - b^2 z^2/m^2, h_1), h_2)``, and ``b_k = sqrt(s_k
    sum_j s_j)`` with ``s = sqrt(v)``, which makes the noise least. A step is ``Gaussian(z)``: an
    example moves the sum by at most 1, whatever a and b are; a row without a finite length counts
    as a (Pichapati, Suresh, Yu, Reddi and Kumar, "AdaCliP", 2019, algorithm 1; some libraries call
    AdaClip what is ``QuantileClipping`` here). Arguments are d, z, beta_1 and beta_2 in [0, 1], and
    h_1 and h_2 > 0, the least and the largest variance of an entry, at first ``sqrt(h_1 h_2)``.

    Example:
        >>> import hockeystick as hs
        >>> clipping = hs.release.CoordinateClipping(dimension=3, noise_multiplier=1)
        >>> gradient, clipping = clipping.step([[5, 1, 0]] * 500, expected=500)
        >>> print(clipping.mechanism)
        Gaussian (noise multiplier 1)
    """

    dimension: InitVar[int]
    noise_multiplier: float
    decays: tuple[float, float] = (0.99, 0.9)
    variances: tuple[float, float] = (1e-8, 1.0)
    center: Floats = field(init=False)
    variance: Floats = field(init=False)

    def __post_init__(self, dimension: int) -> None:
        count = _validate.count("dimension", dimension, POSITIVE)
        set_numbers(self, noise_multiplier=NOISE)
        known = _pair("decays", self.decays, _SHARE)
        least, most = _pair("variances", self.variances, _VARIANCE)
        if not least <= most:
            raise ParameterError("variances", self.variances, "the least one first")
        variance = np.full(count, math.sqrt(least) * math.sqrt(most))
        made = {"decays": known, "variances": (least, most), "variance": variance}
        for name, value in {**made, "center": np.zeros(count)}.items():
            object.__setattr__(self, name, value)

    @property
    def mechanism(self) -> Gaussian:
        return Gaussian(self.noise_multiplier)

    @property
    def scale(self) -> Floats:
        """What each entry is divided by: b."""
        deviation = np.sqrt(self.variance)
        return np.asarray(np.sqrt(deviation * deviation.sum()))

    def _step(self, rows: Floats, size: float, bits: Bits) -> tuple[Floats, CoordinateClipping]:
        rows = clipped_sum.gradient_rows("gradients", rows, len(self.center))
        scale, (first, second) = self.scale, self.decays
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (rows - self.center) / scale
        noisy = noisy_clipped_sum(scaled, 1.0, self.noise_multiplier, bits)
        gradient = self.center + scale * (noisy / size)
        deviation = scale * self.noise_multiplier / size
        own = np.clip((gradient - self.center) ** 2 - deviation**2, *self.variances)
        after = copy.copy(self)
        object.__setattr__(after, "center", first * self.center + (1 - first) * gradient)
        object.__setattr__(after, "variance", second * self.variance + (1 - second) * own)
        return gradient, after


def _pair(name: str, values: Any, domain: Domain) -> tuple[float, float]:
    found = _validate.reals(name, values, domain)
    if len(found) != 2:
        raise ParameterError(name, values, "two numbers")
    return found[0], found[1]
