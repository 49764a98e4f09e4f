"""mpmath's real, complex and interval arithmetic, at a precision that only this package sets.

``mpmath.mp`` is one object for the whole process: any thread may change its precision while another
computes. These contexts are ours alone, and threads take turns with them. mpmath is loaded where it
is first used: many answers need none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import RLock
from typing import Any, Final, TypeAlias


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

# Those of mpmath, which has no types.
mpf: TypeAlias = Any
mpc: TypeAlias = Any


_TURN: Final = RLock()
# A process is forked only between two turns: its child has no thread that could end one.
if hasattr(os, "register_at_fork"):  # all systems but Windows
    os.register_at_fork(
        before=_TURN.acquire, after_in_parent=_TURN.release, after_in_child=_TURN.release
    )
# Bits that are left for the round-off of mpmath, whose exp may miss by part of a last bit.
_SPARE: Final = 32


@contextmanager
def working_digits(digits: int) -> Iterator[None]:
    """Work with a number of decimal digits, while no other thread of this package computes."""
    with _TURN, mp.workdps(digits):
        yield


@contextmanager
def working_bits(bits: int) -> Iterator[None]:
    """Work with a number of bits, while no other thread of this package computes."""
    with _TURN, mp.workprec(bits):
        yield


@contextmanager
def interval_bits(bits: int) -> Iterator[None]:
    """Compute intervals with a number of bits, while no other thread of this package computes."""
    with _TURN:
        before, iv.prec = iv.prec, bits
        try:
            yield
        finally:
            iv.prec = before


def integers_around(interval: Any) -> tuple[int, int]:
    """Return the floor of an interval's lower end, but at least 0, and the ceiling of its upper.

    Both ends are moved outward by ``2^-32`` first, which covers mpmath's round-off where the
    interval is known much more closely than that.
    """
    from mpmath import libmp

    low, high = (libmp.mpf_shift(end, _SPARE) for end in interval._mpi_)
    least, most = libmp.to_int(low, "f") - 1, libmp.to_int(high, "c") + 1
    return max(least >> _SPARE, 0), max(-(-most >> _SPARE), 0)
