"""Children that are forked and killed, and runs on a ledger, as loops of any library count them."""

import os
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hockeystick as hs
from hockeystick.adapters.loop import Account
from hockeystick.ledger import ReservedRun


def killed(work: Callable[[], object]) -> None:
    """Do work in a forked process, and check that it is killed by SIGKILL on the way."""
    assert outcome(work) == -signal.SIGKILL


def outcome(work: Callable[[], object]) -> int:
    """Return the exit status of a forked process that does work: 0, 1 where it raises, -9."""
    return awaited(forked(work))


def forked(work: Callable[[], object]) -> int:
    """Return the number of a forked process that does work."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


def awaited(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


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
