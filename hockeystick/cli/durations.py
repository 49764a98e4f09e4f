"""Durations in the unit that suits them."""

from __future__ import annotations


def seconds(value: float) -> str:
    """Return a duration in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            count = value / size
            # What two digits would round to a hundred has three.
            return f"{count:.2g} {unit}" if count < 99.5 else f"{count:.0f} {unit}"
    return f"{value * 1e6:.0f} us"
