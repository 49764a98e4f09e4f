"""The large losses of the Poisson-subsampled Gaussian, separated from the small ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol, final

from hockeystick.numerics import Ball
from hockeystick.privacy_loss.core.base import TailValues

_FAR: Final = 12.0
# The steps for which the weights' own sum is bounded.
_WIDEST_STEP: Final = 3.0
_ROUGH_STEPS: Final = 3.0
_ROUGH_STEP: Final = 0.25
_MOST_NODES: Final = 200_000.0


class SampledGaussian(Protocol):
    """What the split needs of the loss that it splits."""

    @property
    def noise_multiplier(self) -> float | Fraction:
        """The standard deviation of the noise."""

    @property
    def rate(self) -> float | Fraction:
        """The sampling rate."""

    @property
    def mu(self) -> float:
        """The distance of the means in units of the noise."""

    def cgf_bounds(self, c: float) -> Ball:
        """Return ``K(c)`` at a real ``c > 0`` with a proven error."""


@final
@dataclass(frozen=True, slots=True)
class SampledGaussianTailSplit:
    """``M = A + J`` by the window ``W(u) = Phi((u - edge) / width)`` on the output, J above it."""

    loss: SampledGaussian
    edge: float
    width: float

    def bulk(self, c: float) -> float:
        """Return ``ln A(c)`` by a fixed step."""
        low, high = self._small_span(c)
        step = 2.0 ** math.floor(math.log2(min(self.width / _ROUGH_STEPS, _ROUGH_STEP)))
        if high - low > _MOST_NODES * step:
            return math.inf
        value, _ = self._small(c, step, low, high)
        return math.log1p(value) if -1.0 < value < math.inf else math.inf

    def bulk_upper(self, c: float, log_tolerance: float) -> float:
        """Return a proven upper bound of ``ln A(c)``."""
        from hockeystick.kernels import jumps

        low, high = self._small_span(c)
        step, log_error = jumps.widest_window_step(
            *self._pair, 1.0 + c, 0.0, self.edge, self.width, -1.0, low, high, log_tolerance
        )
        if not high - low < _MOST_NODES * step or step > _WIDEST_STEP:
            return math.inf
        log_rest = jumps.log_nodes_left_out(
            *self._pair, 1.0 + c, self.edge, self.width, -1.0, low, high, step
        )
        value, error = self._small(c, step, low, high)
        if not value + error < math.inf or max(log_error, log_rest) > 0.0:
            return math.inf
        # The weights themselves add up to 1 but for the trapezoid rule's error on two Gaussians.
        log_unit = 1.0 - 2.0 * (math.pi / step) ** 2
        slack = error + math.exp(log_error) + math.exp(log_rest) + math.exp(log_unit)
        return math.log1p(value + slack) + 1e-15

    def decay(self, c: float) -> TailDecay:
        """Return the decay of J relative to ``M(c)``, along the line through c."""
        norm = self.loss.cgf_bounds(c)
        return TailDecay(self, c, norm.midpoint - norm.radius)

    def rule(self, c: float, y_high: float, log_tolerance: float) -> TailTrapezoid | None:
        """Return a trapezoid rule for J on the line through c; None where none is fine enough."""
        from hockeystick.kernels import jumps

        low, high = self._large_span(c)
        step, log_error = jumps.widest_window_step(
            *self._pair, 1.0 + c, y_high, self.edge, self.width, 1.0, low, high, log_tolerance
        )
        if step == 0.0:
            return None
        first = math.floor(low / step)
        count = math.ceil(high / step) - first + 1
        log_rest = jumps.log_nodes_left_out(
            *self._pair, 1.0 + c, self.edge, self.width, 1.0, low, high, step
        )
        return TailTrapezoid(self, first, count, step, max(log_error, log_rest) + 0.7)

    @property
    def _pair(self) -> tuple[float, float]:
        """The rate and mu as floats."""
        return float(self.loss.rate), self.loss.mu

    def _large_span(self, c: float) -> tuple[float, float]:
        """Return the range of u that J needs."""
        return -_FAR, max((1.0 + c) * self.loss.mu, self.edge) + _FAR

    def _small_span(self, c: float) -> tuple[float, float]:
        """Return the range of u that A needs: the window cuts it off above the edge."""
        pull = (1.0 + c) * self.loss.mu
        capped = self.edge + self.width * (self.width * pull + _FAR)
        return -_FAR, max(min(pull + _FAR, capped), 1.0)

    def _small(self, c: float, step: float, low: float, high: float) -> tuple[float, float]:
        """Return ``A(c) - 1`` summed over nodes, and its round-off."""
        from hockeystick.kernels import jumps, sampled_gaussian

        first = math.floor(low / step)
        count = math.ceil(high / step) - first + 1
        loss, log_weight, loss_error, weight_error = sampled_gaussian.nodes(
            *self._pair, True, first, count, step
        )
        large, small, window_error = jumps.windows(first, count, step, self.edge, self.width)
        value, error = jumps.small_part(
            loss, log_weight, loss_error, weight_error + window_error, large, small, c
        )
        return float(value), float(error)


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

        of, w = self.split, 1.0 + self.c
        low, high = of._large_span(self.c)
        return self.log_norm - jumps.log_decay(*of._pair, w, y, of.edge, of.width, low, high)


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
        from hockeystick.kernels import jumps, sampled_gaussian

        of = self.split
        loss, log_weight, loss_error, weight_error = sampled_gaussian.nodes(
            *of._pair, True, self.first, self.nodes, self.step
        )
        large, _, window_error = jumps.windows(self.first, self.nodes, self.step, of.edge, of.width)
        weights = log_weight + large
        scale = float((weights + c * loss).max())
        real, imag, error = jumps.tilted_line(
            loss, weights - scale, loss_error, weight_error + window_error, c, step, count
        )
        log_error = self.log_error - scale
        quadrature = math.exp(log_error) if log_error < 700.0 else math.inf
        return TailValues(scale, real, imag, error + quadrature)
