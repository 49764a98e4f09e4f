"""Why the epsilon of a plan is exactly 0 or infinite, where its numbers show it at once."""

from __future__ import annotations

import math
from typing import Final

from hockeystick.mechanisms import (
    DPSGD,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Mechanism,
    PoissonSubsampled,
    Repeated,
    runs_of,
)

# Mechanisms that release what they add this noise to, and their fields that say how much.
NOISES: Final = (Gaussian, DiscreteGaussian, Laplace, DiscreteLaplace)
_OF_NOISE: Final = ("noise_multiplier", "sigma", "scale")
_NO_NOISE: Final = "noise 0 hides nothing: epsilon is infinite, and there is no guarantee."


def has_noise(part: Mechanism, amount: float) -> bool:
    """Return whether a mechanism adds noise of this amount, and nothing else hides its release."""
    return isinstance(part, NOISES) and amount in (getattr(part, one, None) for one in _OF_NOISE)


def why_zero(plan: Mechanism) -> str:
    """Return why a plan's epsilon is 0 if nothing of it ever runs; nothing where something does.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.answers.extremes import why_zero
        >>> why_zero(hs.Laplace(1) ** 0), why_zero(hs.Laplace(1))
        ('0 runs: nothing is released.', '')
    """
    parts = _parts(plan)
    if not all(map(_never_runs, parts)):
        return ""
    named = "steps" if all(isinstance(part, DPSGD) for part in parts) else "runs"
    return f"0 {named}: nothing is released."


def why_infinite(plan: Mechanism, delta: float) -> str:
    """Return why a plan's epsilon at a delta is infinite if nothing hides a part; else nothing.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.answers.extremes import why_infinite
        >>> why_infinite(hs.Laplace(1) @ hs.Gaussian(0), 1e-6)
        'noise 0 hides nothing: epsilon is infinite, and there is no guarantee.'
        >>> why_infinite(hs.PoissonSubsampled(hs.Gaussian(0), rate=0.01), 0.02)
        ''
    """
    return _NO_NOISE if any(_shows(part, delta) for part in _parts(plan)) else ""


def needs_delta(plan: Mechanism) -> bool:
    """Return whether some part of a plan surely releases something with Gaussian noise."""
    return any(map(_needs_delta_itself, _parts(plan)))


def _needs_delta_itself(part: Mechanism) -> bool:
    """Return whether a part surely releases something with Gaussian noise."""
    if isinstance(part, DPSGD):
        is_plain = part.schedule is None and part.batch_schedule is None
        releases = part.total_steps > 0 and part.sampling_rate > 0
        return is_plain and releases and part.noise_multiplier < math.inf
    runs = runs_of(part)
    noises = (one.noise_multiplier for one, n in runs if n and isinstance(one, Gaussian))
    return any(noise < math.inf for noise in noises)


def _parts(plan: Mechanism) -> tuple[Mechanism, ...]:
    """Return the parts of a composition, or a plan by itself."""
    return plan.parts if isinstance(plan, Composed) else (plan,)


def _never_runs(part: Mechanism) -> bool:
    """Return whether a part is repeated no times, or has no steps."""
    if isinstance(part, DPSGD):
        return part.extra is None and part.total_steps == 0
    return isinstance(part, Repeated) and part.count == 0


def _shows(part: Mechanism, delta: float) -> bool:
    """Return whether a part shows a record, with a probability above delta, without any noise."""
    if isinstance(part, DPSGD):
        is_plain = part.noise_multiplier == 0.0 and part.batch_schedule is None
        # Whatever the sampling, the first batch has a record with this probability.
        return is_plain and part.total_steps > 0 and part.sampling_rate > delta
    return any(n > 0 and _shows_once(one, delta) for one, n in runs_of(part))


def _shows_once(one: Mechanism, delta: float) -> bool:
    """Return whether one run shows a record, with a probability above delta."""
    if isinstance(one, PoissonSubsampled):
        return one.rate > delta and has_noise(one.inner, 0.0)
    return delta < 1.0 and has_noise(one, 0.0)
