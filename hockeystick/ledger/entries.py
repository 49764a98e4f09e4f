"""The rows of a ledger: what happened, what it costs, and the hash that chains them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Self, final

from hockeystick._validate import WordEnum
from hockeystick.calibration import describe, read_description
from hockeystick.errors import HockeystickError, LedgerError
from hockeystick.ledger.amounts import Costs, costs_of
from hockeystick.mechanisms import Mechanism

# What stands before the first row of a chain.
START: Final = "0" * 64
# The content of a reservation that was released.
NOTHING_RAN: Final = "null"


class EntryKind(WordEnum):
    """What a row of a ledger tells.

    - ``OPEN`` ("open"): the dataset's budget; the first row, and the only one of its kind.
    - ``RESERVE`` ("reserve"): a mechanism may run, and is charged.
    - ``COMMIT`` ("commit"): it has run, or a part of it has, which is what is charged from here on.
    - ``RELEASE`` ("release"): nothing of it has run; it is charged no more.
    - ``REPRICE`` ("reprice"): what counts has another price from here on.
    """

    OPEN = "open"
    RESERVE = "reserve"
    COMMIT = "commit"
    RELEASE = "release"
    REPRICE = "reprice"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row of a dataset's chain, with the texts of the table as they are.

    Args:
        dataset: Whose chain.
        seq: The place in it, from 0.
        kind: What happened, as an ``EntryKind`` says.
        key: Of which reservation; empty for the first row.
        content: What counts from here on, as ``describe`` writes it; of the first row the terms.
        price: What that costs in the budget's measure, exact; of the first row the limits.
        spent: The sum of what counts, exact.
        together: The datasets that are charged for it together.
        by: Who asked.
        at: When, in UTC.
        note: Why.
        version: Which hockeystick priced it.
        previous: The hash of the row before.
        hash: SHA-256 of all of the above.
    """

    dataset: str
    seq: int
    kind: str
    key: str
    content: str
    price: str
    spent: str
    together: str
    by: str
    at: str
    note: str
    version: str
    previous: str
    hash: str = ""

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Self:
        """Return the entry of a row of the table, or raise where it has what no entry has."""
        for name, value in row.items():
            if not isinstance(value, int if name == "seq" else str):
                where = f"entry {row['seq']} of dataset {row['dataset']!r}"
                raise LedgerError(f"{where} is damaged: its {name} cannot be read")
        return cls(**row)

    def check(self) -> None:
        """Raise where it is not what was written."""
        if self.digest() != self.hash:
            raise LedgerError(
                f"{self._where} was changed: its hash is another one; nothing was written"
            )

    @property
    def mechanism(self) -> Mechanism | None:
        """What counts from here on; None where nothing does, and in the first row.

        Raises:
            LedgerError: If this version of hockeystick cannot read it.
        """
        nothing = self.kind == EntryKind.OPEN or self.content == NOTHING_RAN
        return None if nothing else self.reserved

    @property
    def reserved(self) -> Mechanism:
        """The mechanism of an entry that has one, or raise as ``mechanism``."""
        try:
            return read_description(json.loads(self.content))
        except (ValueError, TypeError, RecursionError, HockeystickError) as error:
            raise LedgerError(
                f"{self._where} cannot be read: it was written by hockeystick "
                f"{self.version}, or is damaged ({error})"
            ) from error

    @property
    def datasets(self) -> tuple[str, ...]:
        """The datasets that are charged for it together."""
        try:
            return tuple(map(str, json.loads(self.together)))
        except (ValueError, TypeError, RecursionError) as error:
            raise LedgerError(f"{self._where} is damaged: it has no datasets") from error

    @property
    def costs(self) -> Costs:
        """The price as fractions."""
        return self._exact(self.price)

    @property
    def total(self) -> Costs:
        """What is spent from here on as fractions."""
        return self._exact(self.spent)

    def digest(self) -> str:
        """Return the hash that the row should have.

        It is SHA-256, in hexadecimal, of a JSON list of all other columns in their order, without
        spaces and with all that is not ASCII escaped.
        """
        values = [getattr(self, field.name) for field in fields(self) if field.name != "hash"]
        text = json.dumps(values, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def _where(self) -> str:
        """Which entry of which dataset."""
        return f"entry {self.seq} of dataset {self.dataset!r}"

    def _exact(self, text: str) -> Costs:
        """Return the fractions of a text, or raise."""
        try:
            return costs_of(text)
        except ValueError as error:
            raise LedgerError(f"{self._where} is damaged: it has no exact price") from error


def content_of(mechanism: Mechanism) -> str:
    """Return a mechanism as the text that entries have.

    Raises:
        ParameterError: If it has no description in JSON.
    """
    return json.dumps(describe(mechanism))
