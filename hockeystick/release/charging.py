"""Charges: what a release costs is booked before its noise is drawn, once for each run."""

from __future__ import annotations

import os
from typing import Any, NoReturn, Protocol

from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.base import Mechanism


class Charged(Protocol):
    """What books releases: an ``Accountant``, a ``Filter``, an ``Odometer``, a ``Ledger``."""

    def step(self, mechanism: Mechanism) -> object:
        """Book a mechanism that is about to run, or raise."""


def checked_charge(charge: Any) -> Charged | None:
    """Return what is to be charged, or raise where it cannot be."""
    steps = callable(getattr(charge, "step", None)) and not isinstance(charge, type)
    if charge is None or steps:
        return charge  # type: ignore[no-any-return]
    allowed = "an Accountant, a Filter, a Ledger or another with step(mechanism)"
    raise ParameterError("charge", charge, allowed)


def book(charge: Charged | None, mechanism: Mechanism) -> None:
    """Charge for a mechanism that is about to run; whoever refuses raises, and nothing is drawn."""
    if charge is not None:
        charge.step(mechanism)


class ChargedRun:
    """A run of several answers that is charged once, so that there is one of it.

    Two copies would answer by the same noise, each as many questions as one is charged for.
    """

    __slots__ = ("_process",)

    def __init__(self) -> None:
        self._process = os.getpid()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise IncompatibleError(
            "a run is not copied or pickled: it is counted and charged once, and a copy would use "
            "its noise again; begin another run, or save the state of one that has a state"
        )

    def _check_process(self) -> None:
        """Raise in a process that was forked from the run's own."""
        if os.getpid() != self._process:
            raise IncompatibleError(
                f"this process was forked from {self._process}, whose run this is: both would "
                "release what is counted and charged once; begin a run in this process"
            )
