"""Charges: what a release costs is booked before its noise is drawn."""

from __future__ import annotations

from typing import Any, Protocol

from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import Mechanism


class Charged(Protocol):
    """What books releases: an ``Accountant``, a ``Filter``, an ``Odometer``."""

    def step(self, mechanism: Mechanism) -> object:
        """Book a mechanism that is about to run, or raise."""


def checked_charge(charge: Any) -> Charged | None:
    """Return what is to be charged, or raise where it cannot be."""
    steps = callable(getattr(charge, "step", None)) and not isinstance(charge, type)
    if charge is None or steps:
        return charge  # type: ignore[no-any-return]
    raise ParameterError(
        "charge", charge, "an Accountant, a Filter or another with step(mechanism)"
    )


def book(charge: Charged | None, mechanism: Mechanism) -> None:
    """Charge for a mechanism that is about to run; whoever refuses raises, and nothing is drawn."""
    if charge is not None:
        charge.step(mechanism)
