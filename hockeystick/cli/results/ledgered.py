"""Ledgers for programs: what is left, what happened, what is wrong, what prices are now."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from typing import Any

from hockeystick.calibration import describe
from hockeystick.ledger import Entry, LedgerCheck, LedgerStatus, Repricing, Reservation
from hockeystick.reports.ledger import in_epsilon


def status_as_dict(status: LedgerStatus, delta: float | None = None) -> dict[str, Any]:
    """Return a status, ready for JSON; guarantees as ``describe`` writes them."""
    found = in_epsilon(status, delta)
    return {
        "dataset": status.dataset,
        "budget": describe(status.budget),
        "adjacency": str(status.adjacency),
        "within": status.within,
        "order": status.order,
        "spent": describe(status.spent),
        "remaining": describe(status.remaining),
        "in_epsilon": None if found is None else found._asdict(),
        "unresolved": status.unresolved,
        "entries": status.entries,
        "head": status.head,
    }


def reservation_as_dict(one: Reservation) -> dict[str, Any]:
    """Return a reservation, ready for JSON."""
    return {
        "key": one.key,
        "state": str(one.state),
        "resumed": one.resumed,
        "datasets": list(one.together),
        "mechanism": describe(one.mechanism),
    }


def check_as_dict(check: LedgerCheck) -> dict[str, Any]:
    """Return what a verification found, ready for JSON."""
    problems = list(check.problems)
    return {"dataset": check.dataset, "sound": check.sound, "head": check.head} | {
        "problems": problems
    }


def repricing_as_dict(done: Repricing) -> dict[str, Any]:
    """Return a repricing, ready for JSON."""
    changed = [
        {"key": one.key, "old": describe(one.old), "new": describe(one.new)} for one in done.changed
    ]
    spent, then = describe(done.spent), describe(done.repriced)
    return {"recorded": done.recorded, "spent": spent, "repriced": then, "changed": changed}


def as_lines(entries: Iterable[Entry]) -> str:
    """Return entries as JSON lines: each column of the table as it is, in its order."""
    return "".join(f"{json.dumps(asdict(entry))}\n" for entry in entries)


def as_csv(entries: Sequence[Entry]) -> str:
    """Return the same as CSV, with a row of names at the top."""
    written = io.StringIO()
    names = [field.name for field in fields(Entry)]
    table = csv.DictWriter(written, names, lineterminator="\n")
    table.writeheader()
    table.writerows(map(asdict, entries))
    return written.getvalue()
