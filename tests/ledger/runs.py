"""Runs on a ledger, as loops of any library count them."""

from pathlib import Path
from typing import Any

import hockeystick as hs
from hockeystick.adapters.loop import Account
from hockeystick.ledger import ReservedRun

PLAN = hs.DPSGD(examples=60, sampling="full-batch", steps=8, noise_multiplier=4)  # rho 1/32 a step


def account(
    ledger: Any, journal: Path | None, key: str = "model", plan: hs.DPSGD = PLAN, **options: Any
) -> Account[Any]:
    return Account(plan, journal=ReservedRun(ledger, key, journal), **options)


def counted(account: Account[Any], steps: int) -> Account[Any]:
    for _ in range(steps):
        account.count()
    return account


def rho(ledger: hs.Ledger) -> float:
    spent = ledger.status.spent
    assert isinstance(spent, hs.ZCDP)
    return float(spent.rho)
