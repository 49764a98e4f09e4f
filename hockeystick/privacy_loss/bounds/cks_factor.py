"""The factor by which Canonne, Kamath and Steinke sharpen Chernoff's bound of delta."""

from __future__ import annotations

import math
from typing import Any


def log_cks_factor(c: float, m: Any = math) -> float:
    """Return ``ln(c^c / (1+c)^(1+c)) <= 0``: ``ln delta <= K(c) - c epsilon`` plus this.

    ``sup_l exp(-c l) (1 - exp(-l))`` over ``l > 0`` is attained at ``l = ln(1 + 1/c)``. With a
    context of mpmath as m, the factor is computed in it.

    References:
        Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", 2020,
        proposition 12.
    """
    return -c * m.log1p(1 / c) - m.log1p(c) if c > 0 else 0.0
