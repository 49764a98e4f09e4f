"""A dataset's budget, kept in a database that many jobs and machines share."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import final

from hockeystick._validate import Domain, real
from hockeystick.accountants import Answer
from hockeystick.adjacency import Adjacency
from hockeystick.calibration import Accountant
from hockeystick.calibration.filters.measures import Rule
from hockeystick.errors import HockeystickError, ParameterError
from hockeystick.ledger import audits, entries
from hockeystick.ledger.audits import LedgerCheck, LedgerStatus, NewPrice, Repricing
from hockeystick.ledger.book import Book, Reservation
from hockeystick.ledger.dataset import agreed
from hockeystick.ledger.entries import Entry
from hockeystick.mechanisms import Mechanism
from hockeystick.mechanisms.base import checked
from hockeystick.notions import ApproxDP, Notion

_SECONDS = Domain(symbol="t", low=0, high=86_400, low_open=True, typical=(1, 60))
_NO_ORDER = "left out: the dataset was opened without an expected plan, and that stays"
_AS_OPENED = "that with which the dataset was opened, {!r}; what is fixed in advance stays"


@final
class LedgerCharge:
    """A ledger with who charges it and why, by ``Ledger.charging``: for ``charge=``, ``ledger=``.

    Example:
        >>> import hockeystick as hs
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     ledger = hs.Ledger(f"{folder}/ledger.db", "census", hs.ZCDP(rho=0.5))
        ...     weekly = ledger.charging(by="ana", note="weekly counts")
        ...     noise = hs.DiscreteLaplace(scale=4)
        ...     counts = hs.release.geometric(noise, [12, 0, 7], charge=weekly)
        ...     ledger.history()[-1].note
        'weekly counts'
    """

    __slots__ = ("_book", "by", "datasets", "note")

    def __init__(
        self, book: Book, dataset: str, *, by: str | None, note: str, also: Iterable[str]
    ) -> None:
        self._book = book
        more = [entries.name("also", one) for one in entries.listed("also", also)]
        self.datasets: tuple[str, ...] = (dataset, *dict.fromkeys(more))
        self.by: str = entries.person(by)
        self.note: str = entries.note(note)

    def step(self, mechanism: Mechanism, *, count: float = 1) -> None:
        """Charge runs of a mechanism that is about to run, never to be given back; or raise.

        The count is an integer from 0 to 10^15; errors as those of ``Ledger.reserve``.
        """
        runs = checked("mechanism", mechanism)
        whole = runs if count == 1 else runs**count
        self._book.reserve(self.datasets, [(None, whole)], by=self.by, note=self.note, commit=True)

    def reserve(
        self, mechanism: Mechanism, *, key: str | None, told: str = "", resume: bool = False
    ) -> Reservation:
        """Reserve a mechanism as ``Ledger.reserve`` does; the note ends with what is told."""
        named = None if key is None else entries.name("key", key)
        asked = [(named, checked("mechanism", mechanism))]
        note = entries.note(f"{self.note} {told}".strip()) if told else self.note
        return self._book.reserve(self.datasets, asked, by=self.by, note=note, resume=resume)[0]

    def reservation(self, key: str) -> Reservation:
        """Return a reservation that was made before, as ``Ledger.reservation`` does."""
        return self._book.reservation(self.datasets[0], entries.name("key", key), by=self.by)

    def __repr__(self) -> str:
        names = ", ".join(map(repr, self.datasets))
        return f"<LedgerCharge of {names} at {self._book.database.shown} by {self.by!r}>"


@final
class Ledger:
    """A dataset's privacy budget in a database, which jobs, machines and crashes cannot overspend.

    ``reserve`` charges a mechanism before anything of it is released, durably, or refuses it. What
    has run is then committed; what is never resolved, as after a crash, counts in full. Prices are
    exact fractions in the measure of the budget, and

        sum of the prices of all that counts <= the budget's limit

    in the measures of ``hs.calibration.Filter``: of ``ApproxDP(epsilon, delta)`` with ``expected``,
    deltas, and the divergence at the one Renyi order at which the budget covers that plan most.

    Guarantees:
        All that is released by reservations of a dataset has, for neighbours in this dataset alone,
        the guarantee that is its budget, in exact arithmetic. All choices may depend on what was
        released before (*fully adaptive*); interactive mechanisms may run at once (*concurrent*).

        Datasets that hold different people (*blocks*, say of a month) have budgets of their own. A
        release of several charges each, all or none. For neighbours that differ in one block the
        whole has that block's budget; for a record that moves between two, their budgets add up.

        What is reserved on a cap (``within``) is charged to the cap and to the whole. The guarantee
        is that of the whole; the cap's own is one only for who does not see what others released.

        A reservation is on the disk when ``reserve`` returns. Prices and limits stay as they were
        recorded, but for limits of which less is proven since: only ``reprice`` frees anything.

    Edge cases:
        All reservations of a dataset protect the same from the same. What costs nothing fits.
        A file is made with permissions 0600, and its file system has to lock; a ledger at rest is
        that one file. Threads and forked processes may share one object.

    Args:
        url: The path of a SQLite file, or ``sqlite:///FILE``, or
            ``postgresql://USER@HOST/DATABASE`` (extra ``postgres``).
        dataset: The name of the dataset.
        budget: The guarantee to keep, which opens a new dataset; of an old one None or the same.
        adjacency: For which neighbours; by default as opened, else its whole's, or "add-remove".
        slack: For ``ApproxDP``, the part of delta for the conversion, as for ``Filter``.
        rule: For ``ApproxDP`` without ``expected``, as for ``Filter``.
        expected: For ``ApproxDP``, a plan such as most releases will be; it binds nobody.
        within: For a cap, the dataset of the same ledger that it is a part of.
        read_only: True to refuse whatever writes.
        timeout: How many seconds to wait for others, in (0, 86400]; then a ``LedgerError``.

    Raises:
        ParameterError: If an argument is not as the dataset was opened.
        IncompatibleError: If no filter is known for such a budget.
        LedgerError: If the ledger is missing, damaged, foreign, newer, busy, or cannot be written.

    References:
        Those of ``hs.calibration.Filter``; Rogers, Roth, Ullman and Vadhan, "Privacy Odometers and
        Filters", NIPS 2016 (epsilon); Haney, Shoemate, Tian, Vadhan, Vyrros, Xu and Zhang,
        "Concurrent Composition for Interactive Differential Privacy with Adaptive Privacy-Loss
        Parameters", CCS 2023; McSherry, "Privacy Integrated Queries", SIGMOD 2009, theorem 4.

    Example:
        >>> import hockeystick as hs
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     ledger = hs.Ledger(f"{folder}/ledger.db", "census", hs.ZCDP(rho=0.5))
        ...     with ledger.reserve(hs.Gaussian(2.0) ** 3, key="means", by="ana", note="Q3"):
        ...         pass  # draw the noise and release
        ...     print(ledger.remaining)
        0.125-zCDP release
    """

    __slots__ = ("_book", "dataset")

    def __init__(
        self,
        url: str | os.PathLike[str],
        dataset: str,
        budget: Notion | None = None,
        *,
        adjacency: Adjacency | str | None = None,
        slack: float | None = None,
        rule: Rule | str | None = None,
        expected: Mechanism | None = None,
        within: str | None = None,
        read_only: bool = False,
        timeout: float = 30.0,
    ) -> None:
        self.dataset: str = entries.name("dataset", dataset)
        whole = None if within is None else entries.name("within", within)
        self._book = book_at(url, read_only=read_only, timeout=timeout, create=budget is not None)
        known = self._book.names() if budget is not None else [self.dataset]
        if budget is not None and self.dataset not in known:
            of_whole = self._book.terms(whole).adjacency if whole in known else Adjacency.ADD_REMOVE
            neighbours = of_whole if adjacency is None else adjacency
            terms = agreed(budget, neighbours, slack, rule, expected, whole)
            self._book.open(self.dataset, terms, by=entries.person(None))
        terms = self._book.terms(self.dataset)
        asked = {"budget": budget, "slack": slack, "rule": rule, "within": whole}
        for name, value in {**asked, "adjacency": adjacency}.items():
            if value is not None and value != getattr(terms, name):
                raise ParameterError(name, value, _AS_OPENED.format(getattr(terms, name)))
        if expected is not None and terms.order is None:
            raise ParameterError("expected", expected, _NO_ORDER)

    def reserve(
        self,
        mechanism: Mechanism,
        *,
        key: str | None = None,
        by: str | None = None,
        note: str = "",
        also: Iterable[str] = (),
        resume: bool = False,
    ) -> Reservation:
        """Charge a mechanism that is about to run, or refuse it: all the datasets, or none.

        Args:
            mechanism: What is to run, with every run: ``step ** 1000``.
            key: What the run is called; without a key each call is a reservation of its own.
            by: Who asks; by default the user of the operating system.
            note: Why.
            also: Further datasets of this ledger that the mechanism reads, charged in full as well.
            resume: True to be given the reservation that the key may have by now, charged once.

        Raises:
            BudgetExhausted: If a budget does not cover it; the history has the refusal.
            ParameterError: If a dataset is unknown, or the key reserved before and not resumed.
            IncompatibleError: If the mechanism has no price in a budget's measure, is for other
                neighbours or protects something else; or the key was committed or released.
            LedgerError: If the ledger cannot be written.
        """
        charge = self.charging(by=by, note=note, also=also)
        return charge.reserve(mechanism, key=key, resume=resume)

    def reserve_many(
        self,
        mechanisms: Iterable[Mechanism],
        *,
        keys: Iterable[str] | None = None,
        by: str | None = None,
        note: str = "",
        also: Iterable[str] = (),
        resume: bool = False,
    ) -> tuple[Reservation, ...]:
        """Charge several mechanisms in one transaction, all or none, which waits for the disk once.

        Each is a reservation as that of ``reserve``, with the same arguments and errors; the keys
        are as many different names. With ``resume``, what the ledger has already is given again,
        and the rest charged.
        """
        plans = [checked("mechanisms", one) for one in entries.listed("mechanisms", mechanisms)]
        named: Sequence[str | None] = [None] * len(plans)
        if keys is not None:
            named = [entries.name("keys", one) for one in entries.listed("keys", keys)]
        if len(named) != len(plans) or (keys is not None and len({*named}) != len(named)):
            raise ParameterError("keys", keys, f"{len(plans)} different names, one for each")
        asked = list(zip(named, plans, strict=True))
        who = self.charging(by=by, note=note, also=also)
        made = self._book.reserve(who.datasets, asked, by=who.by, note=who.note, resume=resume)
        return tuple(made)

    def charging(
        self, *, by: str | None = None, note: str = "", also: Iterable[str] = ()
    ) -> LedgerCharge:
        """Return the ledger as charged by somebody, and why; arguments as those of ``reserve``."""
        return LedgerCharge(self._book, self.dataset, by=by, note=note, also=also)

    def step(self, mechanism: Mechanism, *, count: float = 1) -> None:
        """Charge what has run, as ``LedgerCharge.step`` does: for ``charge=ledger``."""
        self.charging().step(mechanism, count=count)

    def reservation(self, key: str, *, by: str | None = None) -> Reservation:
        """Return the reservation of a key, to be committed or released by somebody; or raise."""
        return self.charging(by=by).reservation(key)

    @property
    def status(self) -> LedgerStatus:
        """The budget, what is spent and left of it, and where the chain of entries ends."""
        terms = self._book.terms(self.dataset)
        with self._book.database.reading() as rows:
            end = self._book.ends(rows, [self.dataset])[self.dataset]
            unresolved = rows.unresolved(self.dataset)
        return LedgerStatus(
            dataset=self.dataset,
            budget=terms.budget,
            adjacency=terms.adjacency,
            within=terms.within,
            order=terms.order,
            spent=terms.guarantee(end.total),
            remaining=terms.remaining(end.total),
            unresolved=unresolved,
            entries=end.seq + 1,
            head=end.head,
        )

    @property
    def remaining(self) -> Notion:
        """The largest guarantee that one more release may have, rounded down."""
        return self.status.remaining

    def history(self) -> tuple[Entry, ...]:
        """Return all entries of the dataset, in their order."""
        with self._book.database.reading() as rows:
            return tuple(rows.entries(self.dataset))

    def price(self, *, delta: float | None = None, accountant: str = "auto") -> Answer:
        """Return the epsilon of all that counts, as ``hs.Accountant.epsilon`` of a plan has it.

        Of releases chosen as one went the budget is the guarantee; delta is by default its own.
        """
        budget = self._book.terms(self.dataset).budget
        at = budget.delta if delta is None and isinstance(budget, ApproxDP) else delta
        if at is None:
            raise ParameterError("delta", delta, "given, since the budget has none")
        recorded = Accountant()
        for entry in audits.counting(self.history()):
            recorded.step(entry.reserved)
        return recorded.epsilon(at, accountant=accountant)

    def reprice(self, *, by: str | None = None, note: str = "", record: bool = True) -> Repricing:
        """Price all that counts by this library, and record by whom and why what has changed.

        This alone changes recorded prices; limits stay. ``record=False`` only shows what would.
        """
        terms, database = self._book.terms(self.dataset), self._book.database
        who = {"by": entries.person(by), "note": entries.note(note)}
        for entry in audits.counting(self.history()):
            terms.price(entry.reserved)  # is remembered, so that others do not wait for it
        with database.writing() if record else database.reading() as rows:
            end = self._book.ends(rows, [self.dataset], lock=record)[self.dataset]
            changes = audits.repriced(terms, end, rows.entries(self.dataset), **who)
            if record and changes:
                for old, _ in changes:
                    old.check()
                rows.continued(end, [new for _, new in changes])
        after = changes[-1][1] if changes else end
        changed = [
            NewPrice(old.key, old.reserved, terms.guarantee(old.costs), terms.guarantee(new.costs))
            for old, new in changes
        ]
        spent, repriced = terms.guarantee(end.total), terms.guarantee(after.total)
        return Repricing(tuple(changed), spent, repriced, recorded=record)

    def verify(self, *, head: str | None = None) -> LedgerCheck:
        """Go through the dataset's entries, and say what is wrong with them.

        Hashes, sums, limits and what may follow what are checked anew. Whoever can write the
        database can also make a whole chain anew, or cut its end off: only a head that ``status``
        showed before, and that was noted outside, tells. A LedgerError says that it is unreadable.
        """
        noted, terms = entries.head(head), self._book.terms(self.dataset)
        problems = self._book.database.complaints()
        with self._book.database.reading() as rows:
            end = self._book.ends(rows, [self.dataset])[self.dataset]
            found = [*rows.entries(self.dataset)]
            problems += audits.problems_of(found, terms, rows.unresolved(self.dataset), noted)
            problems += audits.missing_elsewhere(rows, found)
        return LedgerCheck(dataset=self.dataset, head=end.head, problems=tuple(problems))

    def close(self) -> None:
        """Close the connections to the database; using the ledger again opens new ones."""
        self._book.database.close()

    def __repr__(self) -> str:
        return f"<Ledger of {self.dataset!r} at {self._book.database.shown}>"


def datasets(
    url: str | os.PathLike[str], *, read_only: bool = True, timeout: float = 30.0
) -> tuple[str, ...]:
    """Return the names of the datasets of a ledger, sorted; arguments as those of ``Ledger``.

    With ``read_only=False`` older tables are brought up to this version.

    Example:
        >>> import hockeystick as hs
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     ledger = hs.Ledger(f"{folder}/ledger.db", "census", hs.ZCDP(rho=0.5))
        ...     hs.ledger.datasets(f"{folder}/ledger.db")
        ('census',)
    """
    return tuple(book_at(url, read_only=read_only, timeout=timeout, create=False).names())


def book_at(url: str | os.PathLike[str], *, read_only: bool, timeout: float, create: bool) -> Book:
    """Return the datasets at a URL, in tables of this version; or raise."""
    try:
        from hockeystick.ledger.database import Database
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "sqlalchemy":
            raise
        message = "a ledger needs SQLAlchemy: install hockeystick[ledger]"
        raise HockeystickError(message) from None
    database = Database(url, read_only=read_only, timeout=real("timeout", timeout, _SECONDS))
    database.prepare(create=create)
    return Book(database)
