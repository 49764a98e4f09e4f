"""mpmath's precision, which all threads of a process share: its users take turns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Final

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
