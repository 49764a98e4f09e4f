"""Privacy budgets that teams share: what is reserved, what ran, and what is left."""

from __future__ import annotations

from hockeystick.ledger.entries import Entry, EntryKind
from hockeystick.ledger.ledger import Ledger, datasets
from hockeystick.ledger.reports import LedgerCheck, LedgerStatus, NewPrice, Repricing
from hockeystick.ledger.reservation import Reservation, ReservationState

__all__ = [
    "Entry",
    "EntryKind",
    "Ledger",
    "LedgerCheck",
    "LedgerStatus",
    "NewPrice",
    "Repricing",
    "Reservation",
    "ReservationState",
    "datasets",
]
