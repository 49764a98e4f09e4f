"""Privacy budgets that teams share: what is reserved, what ran, and what is left."""

from __future__ import annotations

from hockeystick.ledger.audits import LedgerCheck, LedgerStatus, NewPrice, Repricing
from hockeystick.ledger.book import Reservation, ReservationState
from hockeystick.ledger.entries import Entry, EntryKind
from hockeystick.ledger.ledger import Ledger, LedgerCharge, datasets
from hockeystick.ledger.reserved_run import CountedRun, ReservedRun

__all__ = [
    "CountedRun",
    "Entry",
    "EntryKind",
    "Ledger",
    "LedgerCharge",
    "LedgerCheck",
    "LedgerStatus",
    "NewPrice",
    "Repricing",
    "Reservation",
    "ReservationState",
    "ReservedRun",
    "datasets",
]
