"""mpmath's real, complex and interval arithmetic, at a precision that only this package sets.

``mpmath.mp`` is one object for the whole process: any thread may change its precision while another
computes. These contexts are ours alone, and ``working_precision`` gives them to one thread at a
time. A number keeps the precision of the context that made it, so what leaves the package is handed
over to ``mpmath.mp``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import mpmath
from mpmath.ctx_iv import MPIntervalContext
from mpmath.ctx_mp import MPContext
from mpmath.libmp import from_float

__all__ = ["handed_over", "iv", "mp", "mpc", "mpf"]

mp: Final = MPContext()
iv: Final = MPIntervalContext()

if TYPE_CHECKING:
    from mpmath import mpc, mpf
else:
    mpf, mpc = mp.mpf, mp.mpc


def handed_over(number: Any) -> Any:
    """Return a number of this package, or a float, as a user's ``mpmath.mpf``, digit for digit."""
    parts = from_float(number) if isinstance(number, float) else number._mpf_
    return mpmath.mp.make_mpf(parts)
