"""mpmath's real, complex and interval arithmetic, at a precision that only this package sets.

``mpmath.mp`` is one object for the whole process: any thread may change its precision while another
computes. These contexts are ours alone, and ``working_precision`` gives them to one thread at a
time. A number keeps the precision of the context that made it, so what leaves the package is handed
over to ``mpmath.mp``. mpmath is loaded where it is first used: many answers need none.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

__all__ = ["handed_over", "iv", "mp", "mpc", "mpf"]


class _Context:
    """A context of mpmath, made when it is first asked for something."""

    def __init__(self, module: str, name: str) -> None:
        self.__dict__["_of"] = module, name

    def _made(self) -> Any:
        if "_one" not in self.__dict__:
            module, kind = self._of
            # Of two threads' contexts the first one stays.
            self.__dict__.setdefault("_one", getattr(import_module(module), kind)())
        return self._one

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made(), name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._made(), name, value)


mp: Final[Any] = _Context("mpmath.ctx_mp", "MPContext")
iv: Final[Any] = _Context("mpmath.ctx_iv", "MPIntervalContext")

if TYPE_CHECKING:
    from mpmath import mpc, mpf
else:

    def mpf(*parts: object) -> Any:
        """Return a real number."""
        return mp.mpf(*parts)

    def mpc(*parts: object) -> Any:
        """Return a complex number."""
        return mp.mpc(*parts)


def handed_over(number: Any) -> Any:
    """Return a number of this package, or a float, as a user's ``mpmath.mpf``, digit for digit."""
    import mpmath
    from mpmath.libmp import from_float

    parts = from_float(number) if isinstance(number, float) else number._mpf_
    return mpmath.mp.make_mpf(parts)
