"""Twin of ``kernels.jumps``: the large losses and the small ones, separated by a smooth window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

from hockeystick.numerics.multiprecision import mp, mpc, mpf
from hockeystick.precision.profiles import exact


def log_normal_cdf(x: mpf) -> mpf:
    """Return ``ln Phi(x)`` to full relative precision on either side."""
    far = mp.erfc(abs(x) / mp.sqrt(2)) / 2
    return mp.log1p(-far) if x > 0 else mp.log(far)


def windows(
    first: int, count: int, step: float, edge: float, width: float
) -> tuple[list[mpf], list[mpf]]:
    """Return ``ln W`` and ``ln(1 - W)`` at ``u = (first + j) step`` for ``j < count``."""
    x = [(j * mp.mpf(step) - edge) / width for j in range(first, first + count)]
    return [log_normal_cdf(one) for one in x], [log_normal_cdf(-one) for one in x]


def tilted_line(
    loss: Sequence[mpf], weight: Sequence[mpf], c: float, step: float, count: int
) -> list[mpc]:
    """Return ``E[exp(z L)]`` at ``z = c + i k step`` for ``k < count``."""
    totals = [mp.mpc(0)] * count
    for x, mass in zip(loss, weight, strict=True):
        power, turn = mass * mp.exp(c * x), mp.expj(step * x)
        for k in range(count):
            totals[k] += power
            power *= turn
    return totals


def small_part(
    loss: Sequence[mpf], weight: Sequence[mpf], large: Sequence[mpf], small: Sequence[mpf], c: float
) -> mpf:
    """Return ``A(c) - 1 = E[(1 - W) (exp(c L) - 1)] - E[W]``."""
    terms = zip(loss, weight, large, small, strict=True)
    return mp.fsum(
        mass * (mp.exp(kept) * mp.expm1(c * x) - mp.exp(lost)) for x, mass, lost, kept in terms
    )


def integral(rate: float | Fraction, mu: mpf, w: mpc, edge: float, width: float, side: int) -> mpc:
    """Return ``Int phi(u) r(u)^w Phi(side (u - edge) / width) du``: J with side 1, A with -1."""
    p = exact(rate)

    def log_integrand(u: mpf) -> mpc:
        ratio = mp.log1p(p * mp.expm1(mu * u - mu * mu / 2))
        return w * ratio - u * u / 2 + log_normal_cdf(side * (u - edge) / width)

    high = max(mp.re(w) * mu, edge) + 15
    cuts = {mp.mpf(u) for u in range(-15, int(high) + 2)}
    cuts |= {edge + k * mp.mpf(width) for k in range(-12, 13, 3)}
    return _integral(log_integrand, sorted(cuts)) / mp.sqrt(2 * mp.pi)


def _integral(log_integrand: Callable[[mpf], mpc], cuts: Sequence[mpf]) -> mpc:
    """Integrate over the panels that count, scaled: the accuracy of ``quad`` is an absolute one."""
    nothing = mp.log(2) * mp.prec + 6
    logs = [mp.re(log_integrand(u)) for u in cuts]
    scale = max(logs)

    def scaled(u: mpf) -> mpc:
        return mp.exp(log_integrand(u) - scale)

    panels = zip(pairwise(cuts), pairwise(logs), strict=True)
    kept = [ends for ends, sizes in panels if max(sizes) > scale - nothing]
    return mp.exp(scale) * mp.fsum(mp.quad(scaled, ends, method="gauss-legendre") for ends in kept)
