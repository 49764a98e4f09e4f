"""The large losses of the Poisson-subsampled Gaussian, separated from the small ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from hockeystick.numerics import ULP, Ball
from hockeystick.privacy_loss.bounds.moments import MinorantDecay
from hockeystick.privacy_loss.core.atomic import log_values, mgf_line, tilted_line
from hockeystick.privacy_loss.core.base import (
    AnalyticLoss,
    Array,
    CGFEstimate,
    ContourValues,
    FarMasses,
    NearLoss,
    TailValues,
)
from hockeystick.privacy_loss.core.composition import mu_of

if TYPE_CHECKING:
    from fractions import Fraction

    from mpmath import mpc, mpf


_FAR: Final = 12.0
# Edge and width of a window that is not there.
NOWHERE: Final = (math.inf, 1.0)
# A window that is everywhere 1.
_EVERYWHERE: Final = (-1e9, 1e6)
# The steps for which the weights' own sum is bounded.
_WIDEST_STEP: Final = 3.0
_MOST_NODES: Final = 200_000.0
# What is so many widths above a window counts unless ln of its share is further below 0.
_WIDTHS: Final = 9.0
_NEGLIGIBLE: Final = 3.0


@dataclass(frozen=True, slots=True)
class SampledGaussian(AnalyticLoss):
    """A loss of ``(1-p) N(0, 1) + p N(mu, 1)`` and ``N(0, 1)`` that has sums over outputs for M."""

    rate: float | Fraction
    noise_multiplier: float | Fraction
    removing: bool
    # The rate and the distance of the means in units of the noise, as floats: asked very often.
    p: float = field(init=False, repr=False, compare=False)
    mu: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", float(self.rate))
        object.__setattr__(self, "mu", mu_of(self.noise_multiplier))

    def power(self, c: float) -> float:
        """Return ``w``, the power of the likelihood ratio at ``z = c``."""
        return 1.0 + c if self.removing else -c


@final
@dataclass(frozen=True, slots=True)
class SampledGaussianTailSplit:
    """``M = A + J`` by the window ``W(u) = Phi((u - edge) / width)`` on the output, J above it.

    A loss without far outputs is split in ``(1 - W) V`` and ``W V``, V being its own window. The
    small losses are those of ``1 - W``: their transform is at least A.
    """

    loss: SampledGaussian
    small: NearSampledGaussianLoss
    top: tuple[float, float] = NOWHERE

    def bulk(self, c: float) -> CGFEstimate:
        """Return ``ln A(c)``, or what is above it, and its derivatives, unproven.

        Infinite where the window no longer cuts off the largest losses.
        """
        found = self.small.cgf_estimate(c)
        counts = self._log_above(c) > found.value - _NEGLIGIBLE
        return CGFEstimate(math.inf, math.inf, 0.0) if counts else found

    def _log_above(self, c: float) -> float:
        """Return about ln of what counts well above the window under a tilt by c."""
        from hockeystick.kernels import sampled_gaussian

        edge, width, mu = self.small.edge, self.small.width, self.loss.mu
        above = (c * mu - edge) / (1.0 + 1.0 / (width * width))
        if above <= _WIDTHS * width:
            return -math.inf
        u = edge + above
        log_size = c * sampled_gaussian.log_ratio(self.loss.p, mu, u)
        return log_size - 0.5 * (above / width) ** 2 - 0.5 * u * u

    def bulk_upper(self, c: float, log_tolerance: float) -> float:
        """Return a proven upper bound of ``ln A(c)``: that of the small losses, one by one."""
        from hockeystick.kernels import jumps

        pair, w, window = (self.loss.p, self.loss.mu), 1.0 + c, (self.small.edge, self.small.width)
        pull = w * self.loss.mu
        capped = window[0] + window[1] * (window[1] * pull + _FAR)
        low, high = -_FAR, max(min(pull + _FAR, capped), 1.0)
        step, log_error = jumps.widest_window_step(
            *pair, w, 0.0, *_EVERYWHERE, *window, low, high, log_tolerance
        )
        if not high - low < _MOST_NODES * step or step > _WIDEST_STEP:
            return math.inf
        log_rest = jumps.log_nodes_left_out(*pair, w, *window, low, high, step)
        value, error = self._small_part(c, step, low, high)
        if not value + error < math.inf or max(log_error, log_rest) > 0.0:
            return math.inf
        # The weights themselves add up to 1 but for the trapezoid rule's error on two Gaussians.
        log_unit = 1.0 - 2.0 * (math.pi / step) ** 2
        slack = error + math.exp(log_error) + math.exp(log_rest) + math.exp(log_unit)
        return math.log1p(value + slack) + 1e-15

    def _small_part(self, c: float, step: float, low: float, high: float) -> tuple[float, float]:
        """Return ``E[(1 - W) exp(c L)] - 1`` summed over nodes, and its round-off."""
        from hockeystick.kernels import jumps, near_outputs, sampled_gaussian

        first = math.floor(low / step)
        count = math.ceil(high / step) - first + 1
        nodes = sampled_gaussian.nodes(self.loss.p, self.loss.mu, True, first, count, step)
        loss, log_weight, loss_error, weight_error = nodes
        (large, error), (small, other) = (
            near_outputs.windows(first, count, step, self.small.edge, self.small.width, side)
            for side in (1.0, -1.0)
        )
        unsure = weight_error + np.maximum(error, other)
        value, off = jumps.small_part(loss, log_weight, loss_error, unsure, large, small, c)
        return float(value), float(off)

    def decay(self, c: float) -> TailDecay:
        """Return the decay of J relative to ``M(c)``, along the line through c."""
        norm = self.loss.cgf_bounds(c)
        return TailDecay(self, c, norm.midpoint - norm.radius)

    def rule(self, c: float, y_high: float, log_tolerance: float) -> TailTrapezoid | None:
        """Return a trapezoid rule for J on the line through c; None where none is fine enough."""
        from hockeystick.kernels import jumps

        span, pair = self._span(c), (self.loss.p, self.loss.mu)
        step, log_error = jumps.widest_window_step(
            *pair, 1.0 + c, y_high, *self._windows, *span, log_tolerance
        )
        if step == 0.0:
            return None
        first = math.floor(span[0] / step)
        count = math.ceil(span[1] / step) - first + 1
        log_rest = jumps.log_nodes_left_out(*pair, 1.0 + c, *self.top, *span, step)
        return TailTrapezoid(self, first, count, step, max(log_error, log_rest) + 0.7)

    @property
    def _windows(self) -> tuple[float, float, float, float]:
        """Edges and widths of W and V."""
        return (self.small.edge, self.small.width, *self.top)

    def _span(self, c: float) -> tuple[float, float]:
        """Return the range of u that J needs: V cuts it off above its edge."""
        pull, (top, width) = (1.0 + c) * self.loss.mu, self.top
        return -_FAR, min(max(pull, self.small.edge) + _FAR, top + width * (width * pull + _FAR))


@final
@dataclass(frozen=True, slots=True)
class TailDecay:
    """How J falls along one line, next to ``M(c)``, of which ``log_norm`` is a lower bound."""

    split: SampledGaussianTailSplit
    c: float
    log_norm: float

    def exponent(self, y: float) -> float:
        """Return a lower bound of ``-ln |J(c + i v)| / M(c)`` for all ``v >= y``."""
        from hockeystick.kernels import jumps

        of, loss = self.split, self.split.loss
        return self.log_norm - jumps.log_decay(
            loss.p, loss.mu, 1.0 + self.c, y, *of._windows, *of._span(self.c)
        )


@final
@dataclass(frozen=True, slots=True)
class TailTrapezoid:
    """Equidistant nodes whose sum is J on one line, with a proven quadrature error."""

    split: SampledGaussianTailSplit
    first: int
    nodes: int
    step: float
    log_error: float

    def line(self, c: float, step: float, count: int) -> TailValues:
        """Return J at ``c + i k step`` for ``k < count``."""
        from hockeystick.kernels import near_outputs, sampled_gaussian

        of = self.split.loss
        loss, log_weight, loss_error, weight_error = sampled_gaussian.nodes(
            of.p, of.mu, True, self.first, self.nodes, self.step
        )
        edge, width, top, top_width = self.split._windows
        for place, wide, side in ((edge, width, 1.0), (top, top_width, -1.0)):
            if place < math.inf:
                log_window, window_error = near_outputs.windows(
                    self.first, self.nodes, self.step, place, wide, side
                )
                log_weight, weight_error = log_weight + log_window, weight_error + window_error
        scale = float((log_weight + c * loss).max())
        real, imag, error = tilted_line(
            loss, log_weight - scale, loss_error, weight_error, c, step, count
        )
        log_error = self.log_error - scale
        quadrature = math.exp(log_error) if log_error < 700.0 else math.inf
        return TailValues(scale, real, imag, error + quadrature)


# Relative accuracy of a proven norm, as a logarithm.
_SURE: Final = -14.0
# The step of the unproven cumulants, in widths of the window.
_ROUGH_STEP: Final = 0.75
# Exponents up to this size are left unscaled.
_COMFORTABLE: Final = 200.0
_FARTHEST: Final = 1e9
# Width of the window above small losses, over 1/mu: about the best throughout.
_WINDOW: Final = 0.12
_NEAR_SAMPLED_GAUSSIAN_MOST_NODES: Final = 400_000
# A uniform minorant of the near outputs ends this many widths below the edge.
_KEPT: Final = 2.0
_KEPT_SHARE: Final = 0.977


@final
@dataclass(frozen=True, slots=True)
class NearSampledGaussianLoss(SampledGaussian, NearLoss):
    """The loss of a Poisson-subsampled Gaussian at the near outputs: those not marked as far.

    Each output u of ``(1-p) N(0, 1) + p N(mu, 1)`` and of ``N(0, 1)`` is marked with probability
    ``W(u) = Phi((u - edge) / width)``. What is not marked has a total mass below 1, and the
    transform ``A(z) = E_P[(1 - W) exp(z L)]``; see ``kernels.near_outputs``.
    """

    edge: float
    width: float
    outside: FarMasses = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        SampledGaussian.__post_init__(self)
        object.__setattr__(self, "outside", _far_masses(self.p, self.mu, self.edge, self.width))

    @property
    def far(self) -> FarMasses:
        """The masses of the far outputs; of adding, no more than that under its own P."""
        if self.removing:
            return self.outside
        return FarMasses(self.outside.log_q, -math.inf, -math.inf, self.outside.error)

    def missing(self, c: float, y: Any) -> tuple[Any, Any, Any]:
        """Return ``J_P + z (J_P - J_Q)`` at ``z = c + i y``: real and imaginary part, and size."""
        found = self.outside
        mass = math.exp(found.log_p if self.removing else found.log_q)
        excess = math.exp(found.log_excess)
        signed = excess if self.removing else -excess
        return mass + c * signed, y * signed, mass + np.hypot(c, y) * excess

    def log_far_power(self, order: float) -> float:
        from hockeystick.kernels import near_outputs

        return float(near_outputs.log_far_power(self.p, self.mu, order, self.edge, self.width))

    @property
    def out_of_range(self) -> bool:
        return False

    @property
    def supremum(self) -> float:
        """Infinite: hardly any output beyond the edge is near, but some are."""
        return math.inf

    def quadrature_available(self, c: float) -> bool:
        return c <= _FARTHEST

    def cgf_estimate(self, c: float) -> CGFEstimate:
        from hockeystick.kernels import near_outputs

        # It resolves the window and the tilted density.
        step = min(0.5, 0.75 / self.mu, _ROUGH_STEP * self.width)
        shift, value, slope, curvature = near_outputs.near_cumulant_sums(
            self.p, self.mu, self.removing, c, self.edge, self.width, step
        )
        unit = math.exp(-shift)
        missing, excess, _ = self.missing(c, 1.0)
        value -= missing * unit
        total = unit + value
        slope = (slope - excess * unit) / total
        log_total = math.log1p(value) if shift == 0.0 else shift + math.log(total)
        return CGFEstimate(log_total, slope, max(curvature / total - slope * slope, 0.0))

    def cgf_bounds(self, c: float) -> Ball:
        """Return ``ln A(c)`` with the proven error of its quadrature; without end where none is."""
        value = self.cgf_estimate(c).value
        rule = self.rule(c, 0.0, value + _SURE)
        if rule is None:
            return Ball(0.0, math.inf)
        real, _, error = rule.line(c, 0.0, 1)
        return Ball(float(real[0]), float(error[0]))

    def decay(self, c: float) -> MinorantDecay:
        """Return the decay by a uniform minorant of the tilted density well below the edge."""
        from hockeystick.kernels import uniform_minorant

        norm = self.cgf_bounds(c)
        width, mass, _ = uniform_minorant.level_sets(
            self.p,
            self.mu,
            self.power(c),
            False,
            norm.midpoint + norm.radius,
            2.0 * norm.radius,
            self.edge - _KEPT * self.width,
        )
        return MinorantDecay(width, _KEPT_SHARE * mass, math.inf)

    def tail_split(self, threshold: float) -> SampledGaussianTailSplit | None:
        small = self.removing and small_losses(self.rate, self.noise_multiplier, threshold)
        return (
            SampledGaussianTailSplit(self, small, (self.edge, self.width))
            if small and small.edge < self.edge
            else None
        )

    def rule(self, c_high: float, y_high: float, log_tolerance: float) -> NearTrapezoid | None:
        from hockeystick.kernels import near_outputs

        p, mu, edge, width, w = self.p, self.mu, self.edge, self.width, self.power(c_high)
        modulus = math.hypot(c_high, y_high)
        low, high, log_rest = near_outputs.near_span(
            p, mu, w, modulus, edge, width, log_tolerance - 2.0
        )
        step, log_error = near_outputs.widest_near_step(
            p, mu, w, modulus, y_high, edge, width, low, high, log_tolerance
        )
        if not 0.0 < step <= width or high - low > _NEAR_SAMPLED_GAUSSIAN_MOST_NODES * step:
            return None
        first = math.floor(low / step)
        count = math.ceil(high / step) - first + 1
        return NearTrapezoid(self, step, first, count, max(log_error, log_rest) + 0.7)


@dataclass(frozen=True)
class Trapezoid:
    """Equidistant nodes in ``u`` whose sum is the transform, with a proven quadrature error."""

    loss: SampledGaussian
    step: float
    first: int
    nodes: int
    log_error: float

    @cached_property
    def terms(self) -> tuple[Array, Array, Array, Array]:
        """Losses, log weights, errors of the losses, errors of the weights."""
        from hockeystick.kernels import sampled_gaussian

        of = self.loss
        return sampled_gaussian.nodes(of.p, of.mu, of.removing, self.first, self.nodes, self.step)

    def line(self, c: float, step: float, count: int) -> ContourValues:
        """Return ``ln M`` along the line; what is out of range has an infinite error or no number.

        Quadrature and round-off error are counted.
        """
        with np.errstate(all="ignore"):
            loss, log_weight, loss_error, weight_error = self.terms
            shift = max(0.0, float((log_weight + c * loss).max()) - _COMFORTABLE)
            real, imag, error = mgf_line(
                loss, log_weight - shift, loss_error, weight_error, c, step, count
            )
            real, imag, error = self.less_missing((real, imag, error), c, step, math.exp(-shift))
            return log_values(real, imag, error + np.exp(self.log_error - shift), shift)

    def less_missing(
        self, values: tuple[Array, Array, Array], c: float, step: float, unit: float
    ) -> tuple[Array, Array, Array]:
        """Return M - 1 in units, less what the weights lack to be those of distributions."""
        return values

    def precise_nodes(self) -> tuple[list[mpf], list[mpf]]:
        """Return losses and weights by mpmath, to its precision."""
        from hockeystick.precision import sampled_gaussian
        from hockeystick.precision.profiles import reciprocal

        of = self.loss
        mu = reciprocal(of.noise_multiplier)
        return sampled_gaussian.nodes(of.rate, mu, of.removing, self.first, self.nodes, self.step)

    def reference_line(self, c: float, step: float, count: int) -> list[mpc]:
        """Return ``ln M`` along the line by mpmath, over the same nodes."""
        from hockeystick.precision import series

        return series.cgf_line(*self.precise_nodes(), c, step, count)


@final
@dataclass(frozen=True)
class NearTrapezoid(Trapezoid):
    """The nodes' weights times the window of near outputs."""

    loss: NearSampledGaussianLoss

    @cached_property
    def terms(self) -> tuple[Array, Array, Array, Array]:
        from hockeystick.kernels import near_outputs, sampled_gaussian

        of = self.loss
        loss, log_weight, loss_error, weight_error = sampled_gaussian.nodes(
            of.p, of.mu, of.removing, self.first, self.nodes, self.step
        )
        log_window, window_error = near_outputs.windows(
            self.first, self.nodes, self.step, of.edge, of.width, -1.0
        )
        return loss, log_weight + log_window, loss_error, weight_error + window_error

    def less_missing(
        self, values: tuple[Array, Array, Array], c: float, step: float, unit: float
    ) -> tuple[Array, Array, Array]:
        missing = self.loss.missing(c, step * np.arange(values[0].size))
        real, imag = values[0] - missing[0] * unit, values[1] - missing[1] * unit
        slack = (self.loss.outside.error + 16.0 * ULP) * unit
        return real, imag, values[2] + slack * missing[2] + ULP * np.hypot(real, imag)

    def reference_line(self, c: float, step: float, count: int) -> list[mpc]:
        from hockeystick.numerics.multiprecision import mp
        from hockeystick.precision import jumps

        of, (loss, weight) = self.loss, self.precise_nodes()
        _, log_kept = jumps.windows(self.first, self.nodes, self.step, of.edge, of.width)
        kept = [mass * mp.exp(log) for mass, log in zip(weight, log_kept, strict=True)]
        return [mp.log(value) for value in jumps.tilted_line(loss, kept, c, step, count)]


def small_losses(
    rate: float | Fraction, noise_multiplier: float | Fraction, threshold: float
) -> NearSampledGaussianLoss | None:
    """Return the loss of removing without what is well above a threshold; None out of range."""
    if not 0.0 < threshold <= _COMFORTABLE:
        return None
    mu = mu_of(noise_multiplier)
    edge = edge_at(threshold, float(rate), mu)
    return NearSampledGaussianLoss(rate, noise_multiplier, True, edge, _WINDOW / mu)


def edge_at(threshold: float, p: float, mu: float) -> float:
    """Return the output with a loss."""
    return math.log1p(math.expm1(threshold) / p) / mu + 0.5 * mu


def _far_masses(p: float, mu: float, edge: float, width: float) -> FarMasses:
    """Return the masses: ``u + width N(0, 1)`` is a normal of variance ``1 + width^2``.

    ``J_Q = Phi(-edge/s)`` and ``J_P = (1-p) J_Q + p Phi((mu-edge)/s)``, ``s = sqrt(1 + width^2)``.
    """
    from hockeystick.kernels.jumps import log_normal_cdf

    deviation = math.sqrt(1.0 + width * width)
    low, high = -edge / deviation, (mu - edge) / deviation
    log_q, log_moved = log_normal_cdf(low), log_normal_cdf(high)
    log_excess = math.log(p) + log_moved + math.log(-math.expm1(min(log_q - log_moved, -1e-300)))
    # d ln Phi / dx is at most 1 + max(-x, 0); the difference of two logs loses digits.
    reach = abs(edge) + mu
    one = ULP * (24.0 + 8.0 * (2.0 + reach) * reach) + (2e-8 if reach > 30.0 else 0.0)
    gap = -math.expm1(min(log_q - log_moved, -1e-300))
    error = 2.0 * one / gap + 8.0 * ULP
    log_p = max(log_q, log_excess)
    log_p += math.log1p(math.exp(min(log_q, log_excess) - log_p))
    return FarMasses(log_p, log_q, log_excess, error)
