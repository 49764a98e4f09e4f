"""Lines above the Renyi divergences of unbounded losses, from their moments at many orders.

K is convex and 0 at 0, so that it is below the chords between proven values at ascending orders.
The least rho with ``chords <= rho c (c+1)`` holds up to the last of them.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

from hockeystick.privacy_loss.bounds.zcdp_line import (
    Concentration,
    concentration_of,
    outward,
    steepest_slope,
)
from hockeystick.privacy_loss.core.base import PrivacyLoss
from hockeystick.privacy_loss.noise.sinh_normal import SinhNormalLoss
from hockeystick.privacy_loss.noise.skellam import SkellamLoss

# Orders less 1, and how many of them there are to a factor of ten.
_FIRST: Final = 1e-3
_LAST: Final = 1e3
_TO_TEN: Final = 12
# Orders are left out from where rho would be larger than that of the first one by this factor.
_GROWTH: Final = 1.05


@concentration_of.register(SinhNormalLoss)
@concentration_of.register(SkellamLoss)
def _(loss: SinhNormalLoss | SkellamLoss) -> Concentration | None:
    # Both have the same loss in either direction.
    return line_above(loss)


@lru_cache(maxsize=256)
def line_above(loss: PrivacyLoss) -> Concentration | None:
    """Return rho, and the orders that do not make it much larger than the first one does.

    Where further orders would, rho is as large as is allowed, so that it falls where K falls.

    Guarantees:
        ``K(c) <= rho c (c+1)`` for ``0 < c <= omega - 1``, of this direction, rounding included.
    """
    count = round(_TO_TEN * math.log10(_LAST / _FIRST))
    ratio = (_LAST / _FIRST) ** (1.0 / count)
    last, first, rho = (0.0, 0.0), 0.0, 0.0
    for c in (_FIRST * ratio**k for k in range(count + 1)):
        found = loss.cgf_bounds(c)
        point = (c, found.midpoint + found.radius)
        slope = steepest_slope(last, point) if point[1] < math.inf else math.inf
        first = first or slope
        if not slope <= _GROWTH * first < math.inf:
            # A rho that rises was about to be as large as is allowed.
            rho = _GROWTH * first if rho > first else rho
            break
        last, rho = point, max(rho, slope)
    return Concentration(outward(rho), 1.0 + last[0]) if last[0] > 0.0 else None
