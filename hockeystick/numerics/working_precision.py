"""The precision of this package's mpmath contexts, which its threads share: they take turns."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, Final

from hockeystick.numerics.multiprecision import iv, mp

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
