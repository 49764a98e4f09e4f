"""The ledger of version 1 that the tests bring up: ``python -m tests.ledger.version_1 FILE``.

Version 1 had the tables of today but for the column ``unresolved``. The stored file is not made
anew: this says what is in it.
"""

import sqlite3
import sys
from pathlib import Path
from typing import Final

import hockeystick as hs

STORED: Final = Path(__file__).with_name("version-1.db")


def fill(file: Path) -> None:
    """Make a ledger: a cap, reservations in each state, one of two datasets."""
    whole = hs.Ledger(file, "census", hs.ZCDP(rho=0.5))
    cap = hs.Ledger(file, "census/health", hs.ZCDP(rho=0.25), within="census")
    whole.reserve(hs.Gaussian(4.0), key="committed", by="ana", note="means").commit()
    whole.reserve(hs.Gaussian(4.0), key="released", by="ana").release()
    whole.reserve(hs.Gaussian(4.0) ** 3, key="open", by="bea")
    cap.reserve(hs.Gaussian(4.0) ** 2, key="both", by="bea").commit(ran=hs.Gaussian(4.0))
    cap.reserve(hs.Gaussian(4.0), key="both open", by="bea")


def taken_back(file: Path) -> None:
    """Give a ledger of version 2 the tables of version 1."""
    connection = sqlite3.connect(file)
    with connection:
        connection.execute("ALTER TABLE hockeystick_datasets DROP COLUMN unresolved")
        connection.execute("UPDATE hockeystick_schema SET version = 1")
    connection.execute("VACUUM")
    connection.close()


if __name__ == "__main__":
    fill(Path(sys.argv[1]))
    taken_back(Path(sys.argv[1]))
