"""The large losses of the Poisson-subsampled Gaussian, separated from the small ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Protocol, final

import numpy as np

from hockeystick.numerics import Ball
from hockeystick.privacy_loss.core.analytic_cgf import tilted_line
from hockeystick.privacy_loss.core.base import CGFEstimate, TailValues

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


class SampledGaussian(Protocol):
    """What the split needs of the loss that it splits."""

    @property
    def p(self) -> float:
        """The sampling rate."""

    @property
    def mu(self) -> float:
        """The distance of the means in units of the noise."""

    def cgf_bounds(self, c: float) -> Ball:
        """Return ``K(c)`` at a real ``c > 0`` with a proven error."""


class SmallLosses(Protocol):
    """A loss without what is above a window."""

    @property
    def edge(self) -> float:
        """The window's edge."""

    @property
    def width(self) -> float:
        """The window's width."""

    def cgf_estimate(self, c: float) -> CGFEstimate:
        """Return ``K(c)`` and two derivatives, unproven."""


@final
@dataclass(frozen=True, slots=True)
class SampledGaussianTailSplit:
    """``M = A + J`` by the window ``W(u) = Phi((u - edge) / width)`` on the output, J above it.

    A loss without far outputs is split in ``(1 - W) V`` and ``W V``, V being its own window. The
    small losses are those of ``1 - W``: their transform is at least A.
    """

    loss: SampledGaussian
    small: SmallLosses
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
