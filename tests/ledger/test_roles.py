"""The roles of PostgreSQL that the page on ledgers recommends: what each may and may not do."""

import re
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.errors import LedgerError
from tests.documents import ROOT, blocks_of

pytestmark = pytest.mark.extras
STEP = hs.Gaussian(2.0)
PAGE = ROOT / "docs" / "howto" / "ledgers.md"
ROLES = ("ledger_job", "ledger_reader")


def statements() -> str:
    (shown,) = (one.text for one in blocks_of(PAGE.read_text("utf-8")) if "GRANT" in one.text)
    return shown


def run(url: str, text: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(text.encode())


@pytest.fixture(scope="module")
def roles(server: Any) -> dict[str, str]:
    """Return the URLs of a ledger for its owner and the roles that the page makes."""
    url = server.new_database("roles")
    for dataset in ("census", "survey"):
        hs.Ledger(url, dataset, hs.ZCDP(rho=0.5))
    run(url, statements())
    return {"owner": url, **{name: re.sub("//ledger@", f"//{name}@", url) for name in ROLES}}


def test_each_role_may_do_its_part_and_no_more(roles: dict[str, str], tmp_path: Path) -> None:
    job = hs.Ledger(roles["ledger_job"], "census")
    with job.reserve(STEP, key="k"):
        pass
    job.reserve(STEP, key="l").release()
    assert job.reprice().changed == ()
    reader = hs.Ledger(roles["ledger_reader"], "census", read_only=True)
    assert reader.status == job.status
    assert reader.verify().sound
    with pytest.raises(LedgerError, match="cannot be written"):
        hs.Ledger(roles["ledger_reader"], "census").reserve(STEP, key="m")
    with pytest.raises(LedgerError, match="cannot be written"):
        hs.Ledger(roles["ledger_job"], "another", hs.ZCDP(rho=100.0))
    for text in (
        "DELETE FROM hockeystick_entries",
        "UPDATE hockeystick_entries SET note = ''",
        "TRUNCATE hockeystick_entries",
        "DROP TABLE hockeystick_datasets",
        "DELETE FROM hockeystick_datasets",
        "INSERT INTO hockeystick_schema VALUES (9, '')",
    ):
        with pytest.raises(Exception, match=r"permission denied|must be owner"):
            run(roles["ledger_job"], text)
    assert len(reader.history()) == 5
