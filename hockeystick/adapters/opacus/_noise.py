"""Opacus's ``get_noise_multiplier``, by ``hs.calibrate`` for this module's accountant."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from opacus import privacy_engine
from opacus.accountants import utils

import hockeystick as hs
from hockeystick.adapters.opacus._accountant import NAME, drawn_rate

_theirs = utils.get_noise_multiplier


def get_noise_multiplier(*, accountant: str = "rdp", **asked: Any) -> float:
    """Return the least noise multiplier that meets a target, as Opacus's function does.

    Importing this module puts it in the place of ``opacus.accountants.utils.get_noise_multiplier``;
    a name that was imported from there before still is Opacus's coarser search.

    Args:
        accountant: "hockeystick" for ``hs.calibrate``; Opacus's own ones are asked by its function.
        **asked: ``target_epsilon``, ``target_delta``, ``sample_rate``, and ``steps`` or ``epochs``,
            which are ``epochs / sample_rate`` steps, rounded up, at the rate that the sampler draws
            with (``drawn_rate``). ``epsilon_tolerance`` is Opacus's: the noise is the least to a
            relative ``tolerance`` of 1e-9. ``adjacency``, "add-remove".

    Raises:
        ParameterError: If an argument is outside its domain.
        InfeasibleError: If no finite noise meets the target.

    Example:
        >>> from hockeystick.adapters.opacus import get_noise_multiplier
        >>> target = {"target_epsilon": 0.01, "target_delta": 1e-5, "sample_rate": 0.01}
        >>> noise = get_noise_multiplier(**target, steps=1000, accountant="hockeystick")
        >>> print(f"{noise:.3f}")
        77.133
    """
    return _least(**asked) if accountant == NAME else _theirs(accountant=accountant, **asked)


def _least(
    *,
    target_epsilon: float,
    target_delta: float,
    sample_rate: float,
    epsilon_tolerance: float = 0.01,
    tolerance: float = 1e-9,
    **length: Any,
) -> float:
    """Return the least noise multiplier for the steps that are recorded at this rate."""
    given = hs.DPSGD(noise_multiplier=1.0, rate=sample_rate, **length)
    rate, steps = drawn_rate(sample_rate), given.total_steps
    plan = replace(given, rate=rate, steps=steps, epochs=None)
    target = hs.ApproxDP(target_epsilon, target_delta)
    return hs.calibrate(plan, "noise_multiplier", target, tolerance=tolerance).value


utils.get_noise_multiplier = privacy_engine.get_noise_multiplier = get_noise_multiplier
