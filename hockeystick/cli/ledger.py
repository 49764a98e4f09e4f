"""The commands ``ledger ...``: budgets that jobs and machines share."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click
from rich.text import Text

import hockeystick as hs
from hockeystick import _validate
from hockeystick.calibration import describe
from hockeystick.cli import command, options, plans
from hockeystick.cli.options import LEDGER
from hockeystick.cli.progress import progress
from hockeystick.cli.show import Sheet, one_line, print_json, table
from hockeystick.errors import LedgerError, ParameterError
from hockeystick.io import parse

if TYPE_CHECKING:
    from hockeystick.ledger import Ledger, LedgerCheck, LedgerStatus, Reservation

_NOT_SOUND: Final = 1
_SHOWN: Final = ("left", "budget", "spent", "next release", "room for", "unresolved")
_OPEN: Final = "hockeystick ledger init census --budget 'ZCDP(rho=0.5)' --ledger ledger.db"
_RESERVE: Final = "hockeystick ledger reserve census 'Gaussian(4)' --key run-7 --ledger ledger.db"
_HEADS: Final = "a head that was noted, or a file that ledger status --json printed"

_dataset = click.argument("dataset")
_datasets = click.argument("datasets", nargs=-1, metavar="[DATASET]...")
_key = click.argument("key")


@click.group(
    cls=command.Group,
    examples=(
        f"export {LEDGER}=ledger.db",
        "hockeystick ledger init census --budget 'ZCDP(rho=0.5)'",
        "hockeystick ledger reserve census 'Gaussian(4)' --key run-7",
        "hockeystick ledger commit census run-7",
        "hockeystick ledger status",
    ),
    help="""Keep privacy budgets that jobs and machines share.

What is to run is reserved first, and charged; what ran is committed. What is never resolved, as
after a crash, counts in full. Needs the extra ledger (on PostgreSQL, postgres).

Exit status 0: done. 1: verify found something wrong. 2: wrong input, or a ledger that cannot be
used; nothing was written, or the message says under which key. 4: the budget does not cover it.
""",
)
def ledger() -> None:
    """Run one of the commands."""


def named(url: str | None) -> str:
    """Return where the ledger is, or raise where nobody says."""
    if not url:
        raise click.UsageError(f"Missing --ledger, or {LEDGER} in the environment")
    return url


def _all_opened(url: str | None, datasets: Iterable[str]) -> list[Ledger]:
    """Return datasets to be read, all where none are named."""
    names = tuple(datasets) or hs.ledger.datasets(named(url))
    return [hs.Ledger(named(url), name, read_only=True) for name in dict.fromkeys(names)]


def _delta_of(text: str | None) -> float | None:
    """Return the delta at which budgets without one are shown: the flag's, or else a default."""
    value: Any = options.default("delta") if text is None else parse(text)
    if value is None:
        return None
    if not 0.0 < _validate.real("delta", value) < 1.0:
        raise ParameterError("delta", value, "above 0 and below 1")
    return float(value)


@ledger.command(
    cls=command.Command,
    examples=(
        _OPEN,
        "hockeystick init sgd.toml",
        "hockeystick ledger init sgd --budget 'ApproxDP(2, 1e-6)' --expected sgd.toml "
        "--ledger ledger.db",
    ),
)
@_dataset
@click.option("--budget", required=True, metavar="NOTION", help="'ApproxDP(2, 1e-6)', 'GDP(1)'.")
@click.option("--adjacency", metavar="NAME", help="For which neighbours; add-remove by default.")
@click.option("--expected", metavar="PLAN", help="A plan such as most sampled releases will be.")
@click.option("--within", metavar="DATASET", help="The dataset that this one is a cap of.")
@options.options("ledger", "json", "verbose")
def init(
    dataset: str,
    budget: str,
    expected: str | None,
    url: str | None,
    as_json: bool,
    **terms: str | None,
) -> None:
    """Open a dataset with its budget, in a ledger that is made where there is none.

    Give --expected where DP-SGD, or other releases from random samples, will be charged to an
    ApproxDP budget: one such plan. It fixes the Renyi order at which costs add up, so that sampling
    counts. It is not charged and binds nobody. Without it, each step of DP-SGD costs as if it read
    all the data, often a hundred times as much.

    What is opened stays as it is: the same again changes nothing, anything else is refused.
    """
    given: dict[str, Any] = {**terms, "budget": plans.notion(budget)}
    if expected is not None:
        given["expected"] = plans.Source.of(expected).file().plan
    with progress("opening"):
        made = hs.Ledger(named(url), dataset, **given)
    _print_status([made], as_json, _delta_of(None))


@ledger.command(
    cls=command.Command,
    examples=(_OPEN, "hockeystick ledger status census --delta 1e-6 --ledger ledger.db"),
)
@_datasets
@options.options(delta="Show it in epsilon at this delta too.")
@options.options("ledger", "json", "verbose")
def status(datasets: tuple[str, ...], delta: str | None, url: str | None, as_json: bool) -> None:
    """Print what is left of budgets; of all where no dataset is named.

    "Left" says by how much the epsilon of all that is charged together, as a plan fixed in advance,
    may still rise; "room for", how often the budget covers once more what was reserved, of the
    latest five kinds of plans. "Next release" is what one more release may cost at once.
    """
    at = _delta_of(delta)
    _print_status(_all_opened(url, datasets), as_json, at)


@ledger.command(cls=command.Command, examples=(_OPEN, _RESERVE))
@_dataset
@options.plan_words
@click.option("--key", metavar="KEY", help="What the run is called; a new name by default.")
@click.option("--also", multiple=True, metavar="DATASET", help="A further dataset that it reads.")
@click.option("--resume", is_flag=True, help="Take up a KEY that was reserved before.")
@options.options("note", "ledger", "json")
def reserve(
    dataset: str,
    words: tuple[str, ...],
    key: str | None,
    also: tuple[str, ...],
    resume: bool,
    note: str,
    url: str | None,
    as_json: bool,
) -> None:
    """Charge a plan that is about to run, and print its key.

    Once the key is printed, the charge is on the disk. A key that was reserved before is no leave
    to run again, and is refused. With --resume it is charged once, and standard error (in JSON,
    "resumed") says so: for a job whose release goes on, as from a checkpoint, or never began. Exit
    status 4: the budget does not cover it.
    """
    mechanism = plans.plan_of(words).plan
    charged = hs.Ledger(named(url), dataset)
    known = key if key is not None else uuid.uuid4().hex
    with _noted_on_failure(known):
        made = charged.reserve(mechanism, key=known, note=note, also=also, resume=resume)
        _print_reservation(made, made.key, as_json)
    if made.resumed and not as_json:
        click.echo(f"hockeystick: {made.key!r} was reserved before: charged once", err=True)


@contextmanager
def _noted_on_failure(key: str) -> Iterator[None]:
    """Note of what ends badly under which key something may be reserved."""
    try:
        yield
    except (KeyboardInterrupt, OSError, LedgerError) as error:
        error.add_note(
            f"{key!r} may be reserved: ask again with --key and --resume, which charges once"
        )
        raise


@ledger.command(
    cls=command.Command,
    examples=(_OPEN, _RESERVE, "hockeystick ledger commit census run-7 --ledger ledger.db"),
)
@_dataset
@_key
@options.plan_words
@options.options("note", "ledger", "json")
def commit(
    dataset: str, key: str, words: tuple[str, ...], note: str, url: str | None, as_json: bool
) -> None:
    """Record that what was reserved has run.

    Where only a part of it ran, say which by a plan: PLAN.toml steps=400. Each of its releases
    must be one that was reserved, no more often. Without a plan all of it counts.
    """
    ran = plans.plan_of(words).plan if words else None
    held = hs.Ledger(named(url), dataset).reservation(key)
    held.commit(ran=ran, note=note)
    _print_reservation(held, f"{held.key}: {held.state}", as_json)


@ledger.command(
    cls=command.Command,
    examples=(
        _OPEN,
        _RESERVE,
        "hockeystick ledger release census run-7 --note 'never began' --ledger ledger.db",
    ),
)
@_dataset
@_key
@options.options("note", "ledger", "json")
def release(dataset: str, key: str, note: str, url: str | None, as_json: bool) -> None:
    """Give back what was reserved: nothing of it was released, and nothing will be.

    No program can check that; whoever gives it back says so, and the ledger keeps who.
    """
    held = hs.Ledger(named(url), dataset).reservation(key)
    held.release(note=note)
    _print_reservation(held, f"{held.key}: {held.state}", as_json)


@ledger.command(
    cls=command.Command, examples=(_OPEN, "hockeystick ledger log census --ledger ledger.db")
)
@_dataset
@options.options(delta="Show it in epsilon at this delta too.")
@options.options("ledger", "json")
def log(dataset: str, delta: str | None, url: str | None, as_json: bool) -> None:
    """Print what happened: who reserved, committed and released what, when and why."""
    at = _delta_of(delta)
    entries = hs.Ledger(named(url), dataset, read_only=True).history()
    if as_json:
        print_json({"version": hs.__version__, "entries": [asdict(entry) for entry in entries]})
        return
    from hockeystick.ledger.dataset import terms_of
    from hockeystick.reports.ledger import entries_told

    sheet, rows = (
        Sheet(),
        table("", "when (UTC)", "", "what counts", "price, then spent", "who, why"),
    )
    for one in entries_told(entries, terms_of(entries[0]), at):
        done = Text(one.done, "bold").append(f"\n{one.key}" if one.key else "", "not bold")
        who = Text("\n").join(map(one_line, filter(None, (one.by, one.note))))
        costs = "\n".join(filter(None, (one.price, one.spent, one.epsilon)))
        rows.add_row(str(one.seq), one.at, done, one_line(one.what), costs, who)
    sheet.block(rows)
    sheet.show()


@ledger.command(
    cls=command.Command,
    examples=(
        _OPEN,
        "hockeystick ledger status --json --ledger ledger.db > heads.json",
        "hockeystick ledger verify --head heads.json --ledger ledger.db",
    ),
)
@_datasets
@options.options(head=f"Of one dataset, {_HEADS}.")
@options.options("ledger", "json")
def verify(datasets: tuple[str, ...], head: str | None, url: str | None, as_json: bool) -> None:
    """Go through the entries of datasets, of all where none is named.

    Hashes, sums, limits and what may follow what are checked anew. A head that was noted before,
    where nobody can change it, also shows what was cut off since. Exit status 1: not sound; 2: it
    cannot even be read.
    """
    from hockeystick.ledger import LedgerCheck

    heads = _heads(head) if head is not None and len(datasets) != 1 else {}
    if head is not None and len(datasets) == 1:
        heads = {datasets[0]: head} if ":" in head and not head.endswith(".json") else _heads(head)
    with progress("verifying"):
        ledgers = _all_opened(url, datasets)
        checks = [one.verify(head=heads.get(one.dataset)) for one in ledgers]
    gone = set() if datasets else heads.keys() - {one.dataset for one in ledgers}
    lost = ("it is not in the ledger any more",)
    checks += [LedgerCheck(dataset=n, head=heads[n], problems=lost) for n in sorted(gone)]
    if as_json:
        print_json({"version": hs.__version__, "datasets": list(map(_check_as_dict, checks))})
    else:
        sheet = Sheet()
        for one in checks:
            verdict = Text("sound", "bold green") if one.sound else Text("not sound", "bold red")
            sheet.block(Text.assemble(verdict, f"  {one.dataset}\n  {one.head}"))
            sheet.block(*(one_line(f"  - {problem}") for problem in one.problems))
        sheet.show()
    if not all(one.sound for one in checks):
        click.get_current_context().exit(_NOT_SOUND)


def _heads(path: str) -> Mapping[str, str]:
    """Return the heads that a file of statuses has, by dataset, or raise."""
    try:
        with open(path, encoding="utf-8") as file:
            told = json.load(file)
        return {str(one["dataset"]): str(one["head"]) for one in told["datasets"]}
    except (OSError, ValueError, KeyError, TypeError):
        raise ParameterError("head", path, _HEADS) from None


def _check_as_dict(check: LedgerCheck) -> dict[str, Any]:
    """Return what a verification found, ready for JSON."""
    about = {"dataset": check.dataset, "sound": check.sound, "head": check.head}
    return {**about, "problems": list(check.problems)}


def _print_reservation(one: Reservation, words: str, as_json: bool) -> None:
    """Print a reservation: as JSON, or in words."""
    if not as_json:
        click.echo(words)
        return
    told = {
        "key": one.key,
        "state": str(one.state),
        "resumed": one.resumed,
        "datasets": list(one.together),
        "mechanism": describe(one.mechanism),
    }
    print_json({"version": hs.__version__, **told})


def _print_status(ledgers: Sequence[Ledger], as_json: bool, delta: float | None) -> None:
    """Print what is left: facts of one dataset, a table of several."""
    from hockeystick.reports.ledger import rooms_of, status_facts

    statuses = [one.status for one in ledgers]
    if as_json:
        told = [_status_as_dict(one, delta) for one in statuses]
        print_json({"version": hs.__version__, "datasets": told})
        return
    if len(statuses) == 1:
        (status,) = statuses
        sheet = Sheet(status.dataset)
        rooms = rooms_of(ledgers[0].history()[: status.entries], delta)
        for label, text in status_facts(status, delta, rooms):
            add = sheet.fact if label in _SHOWN else sheet.more
            add(label, one_line(text, "bold green" if label == "left" else ""))
    else:
        sheet, rows = Sheet(), table("dataset", "left", ">open", ">entries")
        for status in statuses:
            (_, left), *_ = status_facts(status, delta)
            counted = f"{status.unresolved:,}", f"{status.entries:,}"
            rows.add_row(Text(status.dataset), Text(left, "bold green"), *counted)
        sheet.block(rows)
        if sheet.is_verbose:
            sheet.bullets("heads", [f"{one.dataset}: {one.head}" for one in statuses])
    sheet.show()


def _status_as_dict(status: LedgerStatus, delta: float | None) -> dict[str, Any]:
    """Return a status, ready for JSON; guarantees as ``describe`` writes them."""
    from hockeystick.reports.ledger import in_epsilon

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
