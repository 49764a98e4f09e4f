"""The Poisson-subsampled Gaussian's loss, also split in tail and bulk."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Final, final

import numpy as np

from hockeystick.kernels import jumps, near_outputs, sampled_gaussian, uniform_minorant
from hockeystick.kernels.fixed_size_gaussian import convex_bound
from hockeystick.numerics import ULP, Ball
from hockeystick.numerics.multiprecision import mp, mpc, mpf
from hockeystick.precision import lines
from hockeystick.precision.profiles import exact, reciprocal, sampled_gaussian_delta
from hockeystick.privacy_loss.bounds import moments
from hockeystick.privacy_loss.core.atomic import log_values, mgf_line, tilted_line
from hockeystick.privacy_loss.core.base import (
    LARGEST_EXPONENT,
    AnalyticLoss,
    Array,
    CGFEstimate,
    ContourValues,
    FarMasses,
    Masses,
    NearLoss,
    ProfiledLoss,
    TailValues,
)
from hockeystick.privacy_loss.core.composition import (
    LESS,
    MORE,
    largest_when_adding,
    mu_of,
    mu_squared_upper,
)
from hockeystick.privacy_loss.core.uncertain_endpoints import (
    DensityLoss,
    UncertainEdges,
    far_masses,
)
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss
from hockeystick.privacy_loss.sampling.fixed_size_gaussian import (
    FixedSizeGaussianLoss,
    sampled_cumulants,
    sampled_moment_bounds,
)
from hockeystick.privacy_loss.sampling.sampled import SubsamplingMap
from hockeystick.tradeoffs import (
    GaussianProfile,
    IntervalProfile,
    Profile,
    SampledProfile,
    SwappedSampledProfile,
)

_FAR: Final = 12.0
# Edge and width of a window that is not there.
NOWHERE: Final = (math.inf, 1.0)


@dataclass(frozen=True, slots=True)
class SampledGaussian(AnalyticLoss):
    """A loss of ``(1-p) N(0, 1) + p N(mu, 1)`` and ``N(0, 1)`` that has sums over outputs for M."""

    rate: float | Fraction
    noise_multiplier: float | Fraction
    removing: bool
    # The rate and the distance of the means in units of the noise, as floats: asked very often.
    p: float = field(init=False, repr=False, compare=False)
    mu: float = field(init=False, repr=False, compare=False)
    # A float means the decimal that it prints as: it is no fraction that equals it.
    is_fraction: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_fraction", isinstance(self.rate, Fraction))
        object.__setattr__(self, "p", float(self.rate))
        object.__setattr__(self, "mu", mu_of(self.noise_multiplier))

    def power(self, c: float) -> float:
        """Return ``w``, the power of the likelihood ratio at ``z = c``."""
        return 1.0 + c if self.removing else -c

    @property
    def window(self) -> tuple[float, float]:
        """Edge and width of the window that leaves out the far outputs."""
        return NOWHERE

    def tail_split(self, threshold: float) -> SampledGaussianTailSplit | None:
        if not (self.removing and 0.0 < threshold <= _COMFORTABLE):
            return None
        edge, width = edge_at(threshold, self.p, self.mu), _WINDOW / self.mu
        below = NearSampledGaussianLoss(self.rate, self.noise_multiplier, True, edge, width)
        return SampledGaussianTailSplit(self, below, self.window) if edge < self.window[0] else None


@final
@dataclass(frozen=True, slots=True)
class SampledGaussianTailSplit:
    """``M = A + J`` by the window ``W(u) = Phi((u - edge) / width)`` on the output, J above it.

    A loss without far outputs is split in ``(1 - W) V`` and ``W V``, V being its own window. The
    losses ``below`` are those of ``1 - W``: their transform is at least A.
    """

    loss: SampledGaussian
    below: NearSampledGaussianLoss
    top: tuple[float, float] = NOWHERE

    def bulk(self, c: float) -> CGFEstimate:
        """Return ``ln A(c)``, or what is above it, and its derivatives, unproven.

        Infinite where the window no longer cuts off the largest losses.
        """
        found = self.below.cgf_estimate(c)
        counts = self._log_above(c) > found.value - 3.0
        return CGFEstimate(math.inf, math.inf, 0.0) if counts else found

    def _log_above(self, c: float) -> float:
        edge, width, mu = self.below.edge, self.below.width, self.loss.mu
        above = (c * mu - edge) / (1.0 + 1.0 / (width * width))
        if above <= 9.0 * width:
            return -math.inf
        u = edge + above
        log_size = c * sampled_gaussian.log_ratio(self.loss.p, mu, u)
        return log_size - 0.5 * (above / width) ** 2 - 0.5 * u * u

    def bulk_upper(self, c: float, log_tolerance: float) -> float:
        pair, w, window = (self.loss.p, self.loss.mu), 1.0 + c, (self.below.edge, self.below.width)
        pull = w * self.loss.mu
        capped = window[0] + window[1] * (window[1] * pull + _FAR)
        low, high = -_FAR, max(min(pull + _FAR, capped), 1.0)
        everywhere = (-1e9, 1e6)
        step, log_error = jumps.widest_window_step(
            *pair, w, 0.0, *everywhere, *window, low, high, log_tolerance
        )
        # Up to such a step the weights' own sum is bounded.
        if not high - low < 200_000.0 * step or step > 3.0:
            return math.inf
        log_rest = jumps.log_nodes_left_out(*pair, w, *window, low, high, step)
        value, error = self._bulk_part(c, step, low, high)
        if not value + error < math.inf or max(log_error, log_rest) > 0.0:
            return math.inf
        # The weights themselves add up to 1 but for the trapezoid rule's error on two Gaussians.
        log_unit = 1.0 - 2.0 * (math.pi / step) ** 2
        slack = error + math.exp(log_error) + math.exp(log_rest) + math.exp(log_unit)
        return math.log1p(value + slack) + 1e-15

    def _bulk_part(self, c: float, step: float, low: float, high: float) -> tuple[float, float]:
        """Return ``E[(1 - W) exp(c L)] - 1`` summed over nodes, and its round-off."""
        first = math.floor(low / step)
        count = math.ceil(high / step) - first + 1
        nodes = sampled_gaussian.nodes(self.loss.p, self.loss.mu, True, first, count, step)
        loss, log_weight, loss_error, weight_error = nodes
        (tail, error), (bulk, other) = (
            near_outputs.windows(first, count, step, self.below.edge, self.below.width, side)
            for side in (1.0, -1.0)
        )
        unsure = weight_error + np.maximum(error, other)
        value, off = jumps.bulk_part(loss, log_weight, loss_error, unsure, tail, bulk, c)
        return float(value), float(off)

    def decay(self, c: float) -> TailDecay:
        norm = self.loss.cgf_bounds(c)
        return TailDecay(self, c, norm.midpoint - norm.radius)

    def rule(self, c: float, y_high: float, log_tolerance: float) -> TailTrapezoid | None:
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
        return (self.below.edge, self.below.width, *self.top)

    def _span(self, c: float) -> tuple[float, float]:
        """Return the range of u that J needs: V cuts it off above its edge."""
        pull, (top, width) = (1.0 + c) * self.loss.mu, self.top
        return -_FAR, min(max(pull, self.below.edge) + _FAR, top + width * (width * pull + _FAR))


@final
@dataclass(frozen=True, slots=True)
class TailDecay:
    """How J falls along one line, next to ``M(c)``, of which ``log_norm`` is a lower bound."""

    split: SampledGaussianTailSplit
    c: float
    log_norm: float

    def exponent(self, y: float) -> float:
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


# Relative accuracy of proven cumulants, as a logarithm: where digits count, and elsewhere.
_SHARP: Final = -38.0
_SURE: Final = -14.0
# Exponents up to this size are left unscaled.
_COMFORTABLE: Final = 200.0
# Width of the window above the bulk, over 1/mu: about the best throughout.
_WINDOW: Final = 0.12


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
        object.__setattr__(self, "outside", far_masses(self.p, self.mu, self.edge, self.width))

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
        return float(near_outputs.log_far_power(self.p, self.mu, order, self.edge, self.width))

    out_of_range = False

    # Infinite: hardly any output beyond the edge is near, but some are.
    supremum: ClassVar[float] = math.inf

    def quadrature_available(self, c: float) -> bool:
        return c <= 1e9

    def cgf_estimate(self, c: float) -> CGFEstimate:
        # It resolves the window and the tilted density.
        step = min(0.5, 0.75 / self.mu, 0.75 * self.width)
        shift, value, slope, curvature = near_outputs.near_cumulant_sums(
            self.p, self.mu, self.removing, c, self.edge, self.width, step
        )
        unit = math.exp(-shift)
        missing, excess, _ = self.missing(c, 1.0)
        return CGFEstimate.of_sums(shift, value - missing * unit, slope - excess * unit, curvature)

    def cgf_bounds(self, c: float) -> Ball:
        value = self.cgf_estimate(c).value
        rule = self.rule(c, 0.0, value + _SURE)
        if rule is None:
            return Ball(0.0, math.inf)
        real, _, error = rule.line(c, 0.0, 1)
        return Ball(float(real[0]), float(error[0]))

    def decay(self, c: float) -> moments.MinorantDecay:
        # Two widths below the edge the window is at most ``Phi(-2)``.
        norm, end = self.cgf_bounds(c), self.edge - 2.0 * self.width
        upper, error = norm.midpoint + norm.radius, 2.0 * norm.radius
        width, mass, _ = uniform_minorant.level_sets(
            self.p, self.mu, self.power(c), False, upper, error, end
        )
        return moments.MinorantDecay(width, 0.977 * mass, math.inf)

    @property
    def window(self) -> tuple[float, float]:
        return self.edge, self.width

    def rule(self, c_high: float, y_high: float, log_tolerance: float) -> NearTrapezoid | None:
        p, mu, edge, width, w = self.p, self.mu, self.edge, self.width, self.power(c_high)
        modulus = math.hypot(c_high, y_high)
        low, high, log_rest = near_outputs.near_span(
            p, mu, w, modulus, edge, width, log_tolerance - 2.0
        )
        step, log_error = near_outputs.widest_near_step(
            p, mu, w, modulus, y_high, edge, width, low, high, log_tolerance
        )
        if not 0.0 < step <= width or high - low > 400_000 * step:
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
    def _terms(self) -> tuple[Array, Array, Array, Array]:
        of = self.loss
        return sampled_gaussian.nodes(of.p, of.mu, of.removing, self.first, self.nodes, self.step)

    def line(self, c: float, step: float, count: int) -> ContourValues:
        with np.errstate(all="ignore"):
            loss, log_weight, loss_error, weight_error = self._terms
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

    def _precise_nodes(self) -> tuple[list[mpf], list[mpf]]:
        of, nodes = self.loss, (self.first, self.nodes, self.step)
        mu = reciprocal(of.noise_multiplier)
        return lines.sampled_gaussian_nodes(of.rate, mu, of.removing, *nodes)

    def reference_line(self, c: float, step: float, count: int) -> list[mpc]:
        return lines.cgf_line(*self._precise_nodes(), c, step, count)


@final
@dataclass(frozen=True)
class NearTrapezoid(Trapezoid):
    """The nodes' weights times the window of near outputs."""

    loss: NearSampledGaussianLoss

    @cached_property
    def _terms(self) -> tuple[Array, Array, Array, Array]:
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
        of, (loss, weight) = self.loss, self._precise_nodes()
        _, log_kept = lines.windows(self.first, self.nodes, self.step, of.edge, of.width)
        kept = [mass * mp.exp(log) for mass, log in zip(weight, log_kept, strict=True)]
        return [mp.log(value) for value in lines.tilted_line(loss, kept, c, step, count)]


def edge_at(threshold: float, p: float, mu: float) -> float:
    """Return the output with a loss."""
    return math.log1p(math.expm1(threshold) / p) / mu + 0.5 * mu


# Beyond this c only the convex bound of M is used.
FARTHEST: Final = 1e8


@final
@dataclass(frozen=True, slots=True)
class SampledGaussianLoss(SampledGaussian, DensityLoss, ProfiledLoss):
    """The loss of ``(1-p) N(0, 1) + p N(mu, 1)`` against ``N(0, 1)``, or the other way round.

    With ``r(u) = 1 - p + p exp(mu u - mu^2/2)`` the loss of removing is ``ln r(U)`` under the
    mixture and that of adding ``-ln r(U)`` under N(0, 1), so that ``M(z) = E[r(U)^w]`` over
    N(0, 1), with ``w = 1 + z`` (removing) or ``w = -z`` (adding).

    References:
        Zhu, Dong and Wang, AISTATS 2022, theorem 11: the two pairs dominate Poisson sampling under
        add-remove adjacency, and a data set attains them.
    """

    @property
    def out_of_range(self) -> bool:
        return not (1e-6 <= self.mu <= 25.0 and 1e-10 <= self.p <= 1.0 - 1e-7)

    def quadrature_available(self, c: float) -> bool:
        if self.out_of_range or c > FARTHEST:
            return False
        return sampled_gaussian.within_reach(self.p, self.mu, self.removing, c)

    def cgf_estimate(self, c: float) -> CGFEstimate:
        if self.out_of_range or c > FARTHEST:
            return CGFEstimate(*convex_bound(self.p, self.mu, c))
        found = sampled_gaussian.cgf_estimate(self.p, self.mu, self.removing, c)
        known = not math.isnan(found[0])
        return CGFEstimate(*(found if known else convex_bound(self.p, self.mu, c)))

    def cgf_bounds(self, c: float, log_accuracy: float = _SHARP) -> Ball:
        value = self.cgf_estimate(c).value if self.quadrature_available(c) else 0.0
        known = self.cgf_by_rule(c, value, log_accuracy, of_transform=False)
        return known or self._between_bounds(c)

    def _between_bounds(self, c: float) -> Ball:
        """Return K between bounds without quadrature: 0, convexity, the largest loss, the norm."""
        inner = 0.5 * c * (c + 1.0) * self.mu * self.mu
        upper = convex_bound(self.p, self.mu, c)[0] * (1.0 + 64.0 * ULP) + 16.0 * ULP * inner
        lower, upper = 0.0, min(upper, c * self.supremum)
        if upper == math.inf:
            return Ball(math.inf, 0.0)
        if self.removing:
            least, most = self._norm_bounds(c)
            lower, upper = max(least, lower), min(most, upper)
        half = 0.5 * (upper - lower)
        return Ball(lower + half, half + 2.0 * ULP * upper)

    def _norm_bounds(self, c: float) -> tuple[float, float]:
        """Return ends of K for removing; ``r = 1 - p + p e^t``, ``w = 1 + c`` and ``x = c mu^2/2``.

        ``(1-p)^w + (p e^x)^w <= E[r^w]``, as ``(a + b)^w >= a^w + b^w``, and by Minkowski's
        inequality ``E[r^w]^(1/w) <= 1 - p + p e^x``. The two meet where the sampled part decides.
        """
        p, w, x = self.p, 1.0 + c, 0.5 * c * self.mu * self.mu
        log_p = math.log(p)
        if x > LARGEST_EXPONENT:
            one, share = x + log_p + math.log1p((1.0 - p) * math.exp(-x - log_p)), 1.0
        else:
            one = math.log1p(p * math.expm1(x))
            share = p * math.exp(x) / (1.0 + p * math.expm1(x))
        most = w * (one + 32.0 * ULP * (one + share * (x - log_p + 1.0)))
        seen, unseen = w * (x + log_p), w * math.log1p(-min(p, 1.0 - ULP))
        high, low = max(seen, unseen), min(seen, unseen)
        least = high + math.log1p(math.exp(low - high))
        return least - 32.0 * ULP * (w * (x - log_p) - unseen + abs(least)), most

    @property
    def clt_mu_squared(self) -> float:
        # Bu, Dong, Long and Su 2020, "Deep learning with Gaussian differential privacy".
        square, rate = self.mu * self.mu, self.p
        return rate * rate * math.expm1(square) if square < LARGEST_EXPONENT else math.inf

    @property
    def dominating_mu_squared(self) -> Fraction:
        return mu_squared_upper(self.noise_multiplier)

    def cumulants(self) -> moments.Cumulants | None:
        return None if self.out_of_range else sampled_cumulants(self.p, self.mu, self.removing)

    def moment_bounds(self) -> moments.MomentBounds | None:
        return None if self.out_of_range else sampled_moment_bounds(self.p, self.mu, self.removing)

    @property
    def sixth_moment_upper(self) -> float:
        return moments.sixth_moment_of_normal(0.5 * self.mu * self.mu, self.mu)

    @property
    def supremum(self) -> float:
        return math.inf if self.removing else largest_when_adding(self.rate)

    @property
    def infimum(self) -> float:
        return -largest_when_adding(self.rate) if self.removing else -math.inf

    @property
    def symmetrized_quadrature(self) -> FixedSizeGaussianLoss | None:
        if not self.removing or self.out_of_range:
            return None
        return FixedSizeGaussianLoss(self.rate, float(self.noise_multiplier))

    def uncertain_cells(self, edges: UncertainEdges) -> Masses:
        inner = GaussianLoss(self.noise_multiplier)
        return SubsamplingMap(self.rate, self.removing).masses(inner, edges)

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        worse = 1 + perturbation * ULP
        rate = min(exact(self.rate) * worse, 1)
        mu = reciprocal(self.noise_multiplier) * worse
        return sampled_gaussian_delta(epsilon, rate, mu, self.removing)

    def proven_profile(self) -> Profile:
        return IntervalProfile(self._profile(LESS), self._profile(MORE))

    def _profile(self, factor: float) -> Profile:
        inner, rate = GaussianProfile(self.mu * factor), min(self.p * factor, 1.0)
        return SampledProfile(inner, rate) if self.removing else SwappedSampledProfile(inner, rate)

    def decay(self, c: float) -> moments.MinorantDecay:
        p, mu, w = self.p, self.mu, self.power(c)
        norm = self.cgf_bounds(c, _SURE)
        upper, error = norm.midpoint + norm.radius, 2.0 * norm.radius
        return moments.MinorantDecay(*uniform_minorant.level_sets(p, mu, w, False, upper, error))

    def rule(self, c_high: float, y_high: float, log_tolerance: float) -> Trapezoid | None:
        step, first, nodes, log_error = sampled_gaussian.trapezoid_rule(
            self.p, self.mu, self.removing, c_high, y_high, log_tolerance
        )
        return Trapezoid(self, step, first, nodes, log_error) if step > 0.0 else None

    @property
    def opposite(self) -> SampledGaussianLoss:
        return replace(self, removing=not self.removing)

    def far_mode(self, c: float) -> tuple[float, float]:
        return sampled_gaussian.far_mode(self.p, self.mu, self.removing, c)

    def delta_estimate(self, epsilon: float) -> float:
        if epsilon > _COMFORTABLE:
            return 0.0
        grown = math.expm1(epsilon) if self.removing else math.expm1(-epsilon)
        if grown <= -self.p:
            return 0.0
        middle, half = math.log1p(grown / self.p) / self.mu, 0.5 * self.mu
        if self.removing:
            lost = (1.0 + grown / self.p) * _tail(middle + half)
            return self.p * max(_tail(middle - half) - lost, 0.0)
        kept = self.p - math.expm1(epsilon) * (1.0 - self.p)
        return max(
            kept * _tail(-middle - half) - math.exp(epsilon) * self.p * _tail(half - middle), 0.0
        )

    def near_outputs(self, threshold: float, steepness: float) -> NearSampledGaussianLoss | None:
        """Return the loss without the outputs of ``|L|`` beyond a threshold; None out of range.

        At c the window ``exp(-x^2 / 2 width^2)`` still cuts off ``r^c ~ exp(c (mu x + ln L))``
        where ``(c mu width)^2 / 2`` is below ``-c ln L``.
        """
        if not 0.0 < threshold <= LARGEST_EXPONENT:
            return None
        edge = edge_at(threshold, self.p, self.mu)
        narrow = math.sqrt(max(-math.log(threshold), 1.0) * threshold / steepness)
        width = min(min(0.06, narrow) / self.mu, 0.1)
        return NearSampledGaussianLoss(self.rate, self.noise_multiplier, self.removing, edge, width)


def _tail(x: float) -> float:
    return 0.5 * math.erfc(x * math.sqrt(0.5))
