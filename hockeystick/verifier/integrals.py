"""Delta as an integral over z, steps 2, 3 and 5 of the argument, or as a finite sum."""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple, TypeAlias

from flint import acb, arb, arb_poly, ctx

from .balls import (
    Ball,
    Box,
    NotCovered,
    ball,
    ellipse,
    gauss_error,
    many,
    middle,
    point,
    points_needed,
    rule,
    within,
)

Losses: TypeAlias = Sequence[tuple[Any, int]]  # of one run each, and how often it runs

MOST_SEGMENTS: Final = 80


class Kernel(NamedTuple):
    """``e^{-epsilon z} / (z (z+1))``, by which M is multiplied."""

    epsilon: Fraction
    stop: float = math.inf

    @property
    def rate(self) -> Ball:
        return ball(self.epsilon)

    def factor(self, z: Ball) -> Ball:
        """Return what ``e^{-rate z}`` is multiplied by."""
        return 1 / (z * (z + 1))

    def end(self, far: complex) -> Ball:
        """Return where a segment ends."""
        return point(far)

    def beyond(self, z: complex) -> Ball:
        """Return a bound of the integral of ``|factor|`` from z upwards."""
        return 1 / arb(z.imag)


class LatticeKernel(NamedTuple):
    """``d sum e^{-s z} (1 - e^{epsilon - s})`` over the sums ``s = least + d k`` above epsilon."""

    epsilon: Fraction
    span: Fraction
    least: Fraction

    @property
    def stop(self) -> float:
        """Return pi/d, rounded."""
        return math.pi / float(self.span)

    @property
    def rate(self) -> Ball:
        """Return the least sum above epsilon."""
        return ball(self.least)

    def factor(self, z: Ball) -> Ball:
        d, ratio = ball(self.span), ball(self.epsilon - self.least).exp()
        return d / (1 - (-d * z).exp()) - d * ratio / (1 - (-d * (z + 1)).exp())

    def end(self, far: complex) -> Ball:
        """Return where a segment ends, the last one in a ball around pi/d."""
        return acb(far.real, arb.pi() / ball(self.span)) if self.beyond(far) == 0 else point(far)

    def beyond(self, z: complex) -> Ball:
        """Return 0 for the end of the last segment."""
        return arb(0) if z.imag > self.stop * (1 - 1e-15) else arb("inf")


AnyKernel: TypeAlias = Kernel | LatticeKernel


def laplace_sum(scale: Fraction, count: int, epsilon: Fraction) -> Ball:
    """Return delta of Laplace noise that is added count times, by the theorem of residues.

    With ``a = 1/scale``, ``(2z+1) M(z) = (z+1) e^{az} + z e^{-a(z+1)}``. In the binomial sum for
    ``M^count``, the term of k has the exponent ``z t`` with ``t = (count - 2k) a - epsilon``. The
    line closes to the right where ``t <= 0``, around nothing, and to the left where ``t > 0``,
    around -1/2 and, for k = 0, around 0, where the residue is 1.
    """
    total, half = arb(0), arb(1) / 2
    for k in range(count + 1):
        t = (count - 2 * k) / scale - epsilon
        if t <= 0:
            break
        series = [(-ball(t) / 2).exp()]  # e^{zt} in powers of z + 1/2
        for j in range(1, count):
            series.append(series[-1] * ball(t) / j)
        term = arb_poly(series)
        for pole, power in ((half, count - k - 1), (-half, k - 1)):
            inverse = [-(arb(2) ** (j + 1)) for j in range(count)]  # 1/z
            term *= arb_poly([pole, 1]) ** power if power >= 0 else arb_poly(inverse)
        weight = math.comb(count, k) * (-k / ball(scale)).exp() / arb(2) ** count
        total += weight * term[count - 1] + (1 if k == 0 else 0)
    return total


def near(losses: Losses, box: Box, bits: float) -> Losses:
    """Return what evaluates each loss on a box, to more digits if it runs often, or nothing."""
    try:
        return [(loss.on(box, bits + math.log2(count)), count) for loss, count in losses]
    except NotCovered:
        return []


def product(losses: Losses, z: Ball) -> Ball:
    """Return M of all runs."""
    value = acb(1)
    for loss, count in losses:
        value *= loss.moment(z) ** count
    return value


def log_bound(losses: Losses, kernel: AnyKernel, c: float, y: float) -> Ball:
    """Return ln of ``B(c, y) e^{-rate c}`` of all runs, which is convex in c."""
    return sum((count * loss.bound(c, y).log() for loss, count in losses), -kernel.rate * c)


def saddle(losses: Losses, kernel: AnyKernel, enough: float = -math.inf) -> tuple[float, float]:
    """Return a c > 0 where the integrand is about least, and ln of it there.

    The search ends early where c times the integrand is below ``e^enough``.
    """

    def height(log_c: float) -> float:
        c = math.exp(log_c)
        parts = near(losses, Box(c, c, 0.0, 0.0), 8)
        if not parts:
            return math.inf
        return middle(log_bound(parts, kernel, c, 0.0) + kernel.factor(arb(c)).log())

    at, step, here = 0.5, 1.0, height(0.5)
    while step > 0.08 and here + at > enough:
        for there in (at + step, at - step):
            if abs(there) < 20 and (value := height(there)) < here:
                at, here = there, value
                break
        else:
            step /= 2
    if not math.isfinite(here):
        raise NotCovered("no line was found to integrate along")
    if here + at > enough:  # to the left, rare losses disturb the integrand less
        heights = [(at - step, height(at - step)) for step in (0.5, 0.4, 0.3, 0.2, 0.1, 0.0)]
        at, here = next(pair for pair in heights if pair[1] < here + 4.5)
    return math.exp(at), here


class Segment(NamedTuple):
    """Where a segment ends, what evaluates the losses about it, points, and errors by 4 and 5."""

    end: complex
    losses: Losses
    points: int
    errors: list[Ball]


def segment(
    losses: Losses,
    kernels: Sequence[AnyKernel],
    at: complex,
    step: complex,
    bits: float,
    goal: float,
) -> Segment | None:
    """Return the longest segment from a point in a direction that few points integrate, if any."""
    while abs(step) > 1e-6 * abs(at):
        around = ellipse(at, at + step)
        left, right = float(around.real.lower()), float(around.real.upper())
        low, high = (max(float(end), 0.0) for end in (around.imag.lower(), around.imag.upper()))
        factors = [abs(kernel.factor(around)) for kernel in kernels]
        far = not all(factor.is_finite() for factor in factors)
        parts = [] if far else near(losses, Box(left, right, low, high), bits)
        sizes = [
            [log_bound(parts, kernel, c, low).upper() for c in (left, right)] for kernel in kernels
        ]
        if parts and all(size.is_finite() for ends in sizes for size in ends):
            tops = [
                (factor * max(ends).exp()).upper()
                for factor, ends in zip(factors, sizes, strict=True)
            ]
            n = max(points_needed(top, abs(step) / 2, goal) for top in tops)
            if n <= many(bits):
                errors = [gauss_error(top, abs(step) / 2, int(n)) for top in tops]
                return Segment(at + step, parts, int(n), errors)
        step *= 0.6
    return None


def turn(losses: Losses, kernel: AnyKernel, at: complex, length: float) -> complex:
    """Return in which direction what remains gets small fastest: a guess with few digits."""

    def remains(way: complex) -> float:
        z = at + way * length
        parts = near(losses, Box(z.real, z.real, z.imag, z.imag), 8)
        if not parts:
            return math.inf
        return middle(log_bound(parts, kernel, z.real, z.imag)) - 2 * math.log(z.imag)

    return min((cmath.rect(1, math.pi / 2 - angle) for angle in (0, 0.35, -0.35)), key=remains)


def integral(
    losses: Losses, kernels: Sequence[AnyKernel], c: float, bits: float, goal: float
) -> tuple[list[Ball], bool]:
    """Return a ball around ``1/(2 pi i) int M(z) kernel(z) dz`` for each kernel, up from c.

    The goal is about ln of its radius, and the bits are what it takes. Also whether the goal is
    reached; if not, no more bits help.
    """
    stop, enough = kernels[0].stop, (arb(goal) + math.log(c)).exp()
    totals, tails, at, way, length = [acb(0) for _ in kernels], [], complex(c), 1j, 0.7 * c
    for _ in range(MOST_SEGMENTS):
        part = segment(losses, kernels, at, way * min(length, stop - at.imag), bits, goal)
        if part is None:
            break
        half = (kernels[0].end(part.end) - point(at)) / 2
        for x, weight in rule(part.points, ctx.prec):
            z = point(at) + half * (1 + x)
            value = product(part.losses, z) * half * weight
            for k, kernel in enumerate(kernels):
                totals[k] += value * (-kernel.rate * z).exp() * kernel.factor(z)
        totals = [sum_ + within(error) for sum_, error in zip(totals, part.errors, strict=True)]
        length = abs(part.end - at) * (1.7 if part.points < 0.85 * many(bits) else 1.1)
        at = part.end
        tails = [
            (log_bound(part.losses, kernel, at.real, at.imag).exp() * kernel.beyond(at)).upper()
            for kernel in kernels
        ]
        if all(tail < enough for tail in tails):
            break
        if stop == math.inf:
            way = turn(losses, kernels[0], at, length)
    found = [
        (sum_ + within(tail)).imag / arb.pi() for sum_, tail in zip(totals, tails, strict=False)
    ]
    return found or [arb(0, "inf")] * len(kernels), all(tail < enough for tail in tails)
