"""mpmath's precision, which all threads of a process share: its users take turns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, Final

_TURN: Final = RLock()


@contextmanager
def working_digits(digits: int) -> Iterator[None]:
    """Work with a number of decimal digits, while no other thread works with mpmath."""
    from mpmath import mp

    with _TURN, mp.workdps(digits):
        yield


@contextmanager
def working_bits(bits: int) -> Iterator[None]:
    """Work with a number of bits, while no other thread works with mpmath."""
    from mpmath import mp

    with _TURN, mp.workprec(bits):
        yield


@contextmanager
def interval_bits(bits: int) -> Iterator[None]:
    """Compute intervals with a number of bits, while no other thread works with mpmath."""
    from mpmath import iv

    with _TURN:
        before, iv.prec = iv.prec, bits
        try:
            yield
        finally:
            iv.prec = before


def integers_around(interval: Any) -> tuple[int, int]:
    """Return the floor of an interval's lower end, but at least 0, and the ceiling of its upper."""
    from mpmath import libmp

    low, high = interval._mpi_
    return max(libmp.to_int(low, "f"), 0), max(libmp.to_int(high, "c"), 0)
