"""The rows of a ledger: what happened, what it costs, the hash that chains them, who asks."""

from __future__ import annotations

import getpass
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, Final, Self, final

from hockeystick._validate import WordEnum
from hockeystick._version import __version__
from hockeystick.calibration import describe, read_description
from hockeystick.errors import HockeystickError, LedgerError, ParameterError
from hockeystick.ledger.amounts import Costs, costs_of, text_of
from hockeystick.mechanisms import Mechanism

# What stands before the first row of a chain.
START: Final = "0" * 64
# The content of a reservation that was released.
NOTHING_RAN: Final = "null"
_NAME: Final = "a text of 1 to 200 characters that can be printed"
_NOTE: Final = "a text of at most 10,000 characters, without NUL and without lone surrogates"
_HEAD: Final = "a head as status has it: a number of entries, a colon and a hash"
_HEADS: Final = re.compile("[0-9]+:[0-9a-f]{64}")


class EntryKind(WordEnum):
    """What a row of a ledger tells.

    - ``OPEN``: the dataset's budget; the first row, and the only one of its kind.
    - ``RESERVE``: a mechanism may run, and is charged.
    - ``COMMIT``: it has run, or a part of it has, which is what is charged from here on.
    - ``RELEASE``: nothing of it has run; it is charged no more.
    - ``REPRICE``: what counts has another price from here on.
    - ``REFUSE``: a budget did not cover it; nothing is charged, and nothing may run.
    """

    OPEN = "open"
    RESERVE = "reserve"
    COMMIT = "commit"
    RELEASE = "release"
    REPRICE = "reprice"
    REFUSE = "refuse"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row of a dataset's chain, with the texts of the table as they are.

    Args:
        dataset: Whose chain.
        seq: The place in it, from 0.
        kind: What happened, as an ``EntryKind`` says.
        key: Of which reservation; empty for the first row.
        content: What counts from here on, or was refused, as ``describe`` has it; first the terms.
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

    dataset: str = ""
    seq: int = 0
    kind: str = ""
    key: str = ""
    content: str = ""
    price: str = ""
    spent: str = ""
    together: str
    by: str
    at: str = ""
    note: str = ""
    version: str = ""
    previous: str = START
    hash: str = ""

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Self:
        """Return the entry of a row of the table, or raise where it has what no entry has."""
        for name, value in row.items():
            if not isinstance(value, int if name == "seq" else str):
                where = f"entry {row['seq']} of dataset {row['dataset']!r}"
                raise LedgerError(f"{where} is damaged: its {name} cannot be read")
        return cls(**row)

    def priced(self, kind: EntryKind, price: Costs, spent: Costs, **changes: Any) -> Self:
        """Return it as another kind of entry, with its price and what is spent after it."""
        costs = {"price": text_of(price), "spent": text_of(spent)}
        return replace(self, kind=str(kind), **{**changes, **costs})

    def after(self, last: Entry | None) -> Self:
        """Return it as the next entry of a chain, with its hash; or raise. None begins a chain."""
        begun: dict[str, Any] = {"at": datetime.now(UTC).isoformat(timespec="microseconds")}
        if last is not None:
            begun |= {"dataset": last.dataset, "seq": last.seq + 1, "previous": last.hash}
        made = replace(self, version=__version__, **begun)
        if any(one < 0 for one in made.total):
            where = f"the ledger is damaged: dataset {made.dataset!r}"
            raise LedgerError(f"{where} would have spent less than nothing; nothing was written")
        return replace(made, hash=made.digest())

    def check(self) -> None:
        """Raise where it is not what was written."""
        if self.digest() != self.hash:
            where = f"entry {self.seq} of dataset {self.dataset!r}"
            raise LedgerError(f"{where} was changed: its hash is another one; nothing was written")

    @property
    def head(self) -> str:
        """The head of a chain that ends here: how many entries there are, and the hash."""
        return f"{self.seq + 1}:{self.hash}"

    @property
    def mechanism(self) -> Mechanism | None:
        """What counts from here on; None where nothing does. A LedgerError if it is unreadable."""
        nothing = self.kind in (EntryKind.OPEN, EntryKind.REFUSE) or self.content == NOTHING_RAN
        return None if nothing else self.reserved

    @property
    def reserved(self) -> Mechanism:
        """The mechanism of an entry that has one, what was asked for of a refusal; or raise."""
        with self._reading("content"):
            return read_description(json.loads(self.content))

    @property
    def datasets(self) -> tuple[str, ...]:
        """The datasets that are charged for it together, or raise."""
        with self._reading("together"):
            return tuple(map(str, json.loads(self.together)))

    @property
    def costs(self) -> Costs:
        """The price as fractions."""
        with self._reading("price"):
            return costs_of(self.price)

    @property
    def total(self) -> Costs:
        """What is spent from here on as fractions."""
        with self._reading("spent"):
            return costs_of(self.spent)

    def digest(self) -> str:
        """Return SHA-256 of a JSON list of all other columns, without spaces and in ASCII."""
        values = [getattr(self, field.name) for field in fields(self) if field.name != "hash"]
        text = json.dumps(values, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @contextmanager
    def _reading(self, column: str) -> Iterator[None]:
        try:
            yield
        except (ValueError, TypeError, RecursionError, HockeystickError) as error:
            raise LedgerError(
                f"entry {self.seq} of dataset {self.dataset!r}, by hockeystick {self.version}, is "
                f"damaged or newer: its {column} cannot be read ({error})"
            ) from error


def content_of(mechanism: Mechanism) -> str:
    """Return a mechanism as the text that entries have, or raise."""
    return json.dumps(describe(mechanism))


def name(parameter: str, value: object) -> str:
    """Return a name of a dataset, a key or a person, or raise."""
    if not isinstance(value, str) or not 0 < len(value) <= 200 or not value.isprintable():
        raise ParameterError(parameter, value, _NAME)
    return value


def listed(parameter: str, values: object) -> list[Any]:
    """Return what somebody lists, or raise."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ParameterError(parameter, values, "in a tuple or list")
    return list(values)


def person(value: object) -> str:
    """Return who asks, by default the user whom the operating system names; or raise."""
    if value is not None:
        return name("by", value)
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"


def note(value: object) -> str:
    """Return a note, or raise."""
    if not isinstance(value, str) or len(value) > 10_000 or re.search("[\0\ud800-\udfff]", value):
        raise ParameterError("note", value, _NOTE)
    return value


def head(value: object) -> str | None:
    """Return a head as it was noted, None where none is given; or raise."""
    if value is not None and (not isinstance(value, str) or not _HEADS.fullmatch(value)):
        raise ParameterError("head", value, _HEAD)
    return value
