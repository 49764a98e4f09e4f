"""The commands ``ledger ...``: budgets that jobs and machines share."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click
from rich.text import Text

import hockeystick as hs
from hockeystick import _validate
from hockeystick.calibration import describe
from hockeystick.cli import options, show
from hockeystick.cli.command import Group, command, examples
from hockeystick.cli.options import LEDGER, Source
from hockeystick.cli.show import progress
from hockeystick.errors import LedgerError, ParameterError
from hockeystick.notions import Notion

if TYPE_CHECKING:
    from hockeystick.ledger import Ledger, Reservation

_INSIDE: Final = replace(_validate.PARAMETERS["delta"], low_open=True, high_open=True)
_SHOWN: Final = {"left", "budget", "spent", "next release", "room for", "unresolved"}
_OPEN: Final = "init census --budget 'ZCDP(rho=0.5)'"
_RESERVE: Final = "reserve census 'Gaussian(4)' --key run-7"
_AT: Final = "Show it in epsilon at this delta too."
_HEADS: Final = "a head that was noted, or a file that ledger status --json printed"


@click.group(
    cls=Group,
    epilog=examples(
        f"export {LEDGER}=ledger.db",
        f"hockeystick ledger {_OPEN}",
        f"hockeystick ledger {_RESERVE}",
        "hockeystick ledger commit census run-7",
        "hockeystick ledger status",
    ),
)
def ledger() -> None:
    """Keep privacy budgets that jobs and machines share.

    What is to run is reserved first, and charged; what ran is committed. What is never resolved, as
    after a crash, counts in full. Needs the extra ledger (on PostgreSQL, postgres).

    Exit status 0: done. 1: verify found something wrong. 2: wrong input, or a ledger that cannot be
    used; nothing was written, or the message says under which key. 4: the budget does not cover it.
    """


def _command(
    *lines: str, takes: str, **helps: str
) -> Callable[[Callable[..., None]], click.Command]:
    """Return the decorator for a command of the ledger's; its examples are without what is here."""
    whole = (f"hockeystick ledger {one.replace(' ', ' --ledger ledger.db ', 1)}" for one in lines)
    return command(*whole, takes=f"{takes} ledger json", of=ledger, **helps)


def named(url: str | None) -> str:
    """Return where the ledger is, or raise where nobody says."""
    if not url:
        raise click.UsageError(f"Missing --ledger, or {LEDGER} in the environment")
    return url


def _all_opened(url: str | None, datasets: Iterable[str]) -> list[Ledger]:
    names = tuple(datasets) or hs.ledger.datasets(named(url))
    return [hs.Ledger(named(url), name, read_only=True) for name in dict.fromkeys(names)]


def _delta_of(given: Any) -> float | None:
    return None if given is None else _validate.real("delta", given, _INSIDE)


@_command(
    _OPEN,
    "init sgd --budget 'ApproxDP(2, 1e-6)' --expected plan.toml",
    takes="DATASET budget adjacency expected within verbose",
)
def init(
    dataset: str, budget: str, expected: str | None, url: str | None, **terms: str | None
) -> None:
    """Open a dataset with its budget, in a ledger that is made where there is none.

    Give --expected where DP-SGD, or other releases from random samples, will be charged to an
    ApproxDP budget: one such plan. It fixes the Renyi order at which costs add up, so that sampling
    counts. It is not charged and binds nobody. Without it, each step of DP-SGD costs as if it read
    all the data, often a hundred times as much.

    What is opened stays as it is: the same again changes nothing, anything else is refused.
    """
    given: dict[str, Any] = {**terms, "budget": options.notion(budget)}
    if expected is not None:
        given["expected"] = Source.of(expected).file().plan
    with progress("opening"):
        made = hs.Ledger(named(url), dataset, **given)
    _print_status([made], None)


@_command(_OPEN, "status census --delta 1e-6", takes="DATASETS delta verbose", delta=_AT)
def status(datasets: tuple[str, ...], delta: Any, url: str | None) -> None:
    """Print what is left of budgets; of all where no dataset is named.

    "Left" says by how much the epsilon of all that is charged together, as a plan fixed in advance,
    may still rise; "room for", how often the budget covers once more what was reserved, of the
    latest five kinds of plans. "Next release" is what one more release may cost at once.
    """
    _print_status(_all_opened(url, datasets), _delta_of(delta))


@_command(_OPEN, _RESERVE, takes="DATASET PLAN key also resume note")
def reserve(
    dataset: str,
    given: Source,
    key: str | None,
    also: tuple[str, ...],
    resume: bool,
    note: str,
    url: str | None,
) -> None:
    """Charge a plan that is about to run, and print its key.

    Once the key is printed, the charge is on the disk. A key that was reserved before is no leave
    to run again, and is refused. With --resume it is charged once, and standard error (in JSON,
    "resumed") says so: for a job whose release goes on, as from a checkpoint, or never began. Exit
    status 4: the budget does not cover it.
    """
    mechanism = given.file().plan
    charged = hs.Ledger(named(url), dataset)
    known = key if key is not None else uuid.uuid4().hex
    try:
        made = charged.reserve(mechanism, key=known, note=note, also=also, resume=resume)
        _print_reservation(made)
    except (KeyboardInterrupt, OSError, LedgerError) as error:
        error.add_note(
            f"{known!r} may be reserved: ask again with --key and --resume, which charges once"
        )
        raise
    if made.resumed and not options.is_given("json"):
        click.echo(f"hockeystick: {made.key!r} was reserved before: charged once", err=True)


@_command(_OPEN, _RESERVE, "commit census run-7", takes="DATASET KEY [PLAN] note")
def commit(dataset: str, key: str, given: Source | None, note: str, url: str | None) -> None:
    """Record that what was reserved has run.

    Where only a part of it ran, say which by a plan: PLAN.toml steps=400. Each of its releases
    must be one that was reserved, no more often. Without a plan all of it counts.
    """
    held = hs.Ledger(named(url), dataset).reservation(key)
    held.commit(ran=given and given.file().plan, note=note)
    _print_reservation(held)


@_command(_OPEN, _RESERVE, "release census run-7 --note 'never began'", takes="DATASET KEY note")
def release(dataset: str, key: str, note: str, url: str | None) -> None:
    """Give back what was reserved: nothing of it was released, and nothing will be.

    No program can check that; whoever gives it back says so, and the ledger keeps who.
    """
    held = hs.Ledger(named(url), dataset).reservation(key)
    held.release(note=note)
    _print_reservation(held)


@_command(_OPEN, "log census", takes="DATASET delta", delta=_AT)
def log(dataset: str, delta: Any, url: str | None) -> None:
    """Print what happened: who reserved, committed and released what, when and why."""
    from hockeystick.ledger.dataset import terms_of
    from hockeystick.reports.ledger import entries_told

    at = _delta_of(delta)
    entries = hs.Ledger(named(url), dataset, read_only=True).history()
    facts: list[show.Fact] = []
    for one in entries_told(entries, terms_of(entries[0]), at):
        entry, label = one.entry, f"{one.entry.seq} {one.entry.kind}"
        when = f"{entry.at[:10]} {entry.at[11:16]} UTC"
        spent = f"spent then {', '.join(filter(None, (one.spent, one.epsilon)))}"
        about = ", ".join(filter(None, (entry.key, when, entry.by, entry.note)))
        costs = f"costs {one.price}; {spent}" if one.price else spent
        facts += [(label, about), (label, one.what), (label, costs)]
    told = {"version": hs.__version__, "entries": [asdict(entry) for entry in entries]}
    show.answer(told, facts)


@_command(
    _OPEN,
    "status --json > heads.json",
    "verify --head heads.json",
    takes="DATASETS head",
    head=f"Of one dataset, {_HEADS}.",
)
def verify(datasets: tuple[str, ...], head: str | None, url: str | None) -> None:
    """Go through the entries of datasets, of all where none is named.

    Hashes, sums, limits and what may follow what are checked anew. A head that was noted before,
    out of reach, also shows what was cut off since. Exit status 1: not sound; 2: not readable.
    """
    from hockeystick.ledger import LedgerCheck

    heads: Mapping[str, str] = {}
    if head is not None:
        is_head = len(datasets) == 1 and ":" in head and not head.endswith(".json")
        heads = {datasets[0]: head} if is_head else _heads(head)
    with progress("verifying"):
        ledgers = _all_opened(url, datasets)
        checks = [one.verify(head=heads.get(one.dataset)) for one in ledgers]
    gone = set() if datasets else heads.keys() - {one.dataset for one in ledgers}
    lost = ("it is not in the ledger any more",)
    checks += [LedgerCheck(dataset=n, head=heads[n], problems=lost) for n in sorted(gone)]
    facts: list[show.Fact] = []
    for one in checks:
        verdict = Text("sound", "bold green") if one.sound else Text("not sound", "bold red")
        facts.append((one.dataset, verdict))
        facts += [(one.dataset, text) for text in (one.head, *one.problems)]
    told = [{**asdict(one), "sound": one.sound} for one in checks]
    is_sound = all(one.sound for one in checks)
    show.answer({"version": hs.__version__, "datasets": told}, facts, status=int(not is_sound))


def _heads(path: str) -> Mapping[str, str]:
    """Return the heads that a file of statuses has, by dataset, or raise."""
    try:
        with open(path, encoding="utf-8") as file:
            told = json.load(file)
        return {str(one["dataset"]): str(one["head"]) for one in told["datasets"]}
    except (OSError, ValueError, KeyError, TypeError):
        raise ParameterError("head", path, _HEADS) from None


def _print_reservation(one: Reservation) -> None:
    if not options.is_given("json"):
        is_open = str(one.state) == "reserved"
        click.echo(one.key if is_open else f"{one.key}: {one.state}")
        return
    told = {
        "key": one.key,
        "state": str(one.state),
        "resumed": one.resumed,
        "datasets": list(one.together),
        "mechanism": describe(one.mechanism),
    }
    show.print_json({"version": hs.__version__, **told})


def _print_status(ledgers: Sequence[Ledger], delta: float | None) -> NoReturn:
    """Print what is left: all that is known of one dataset, a line for each of several."""
    from hockeystick.ledger import EntryKind
    from hockeystick.reports.ledger import in_epsilon, rooms_of, status_facts

    statuses = [one.status for one in ledgers]
    found = [(one.dataset, dict(status_facts(one, delta))["left"]) for one in statuses]
    shown = {one.dataset for one in statuses}
    if len(ledgers) == 1:
        entries = ledgers[0].history()[: statuses[0].entries]
        found = status_facts(statuses[0], delta, rooms_of(entries, delta))
        stages = (EntryKind.RESERVE, EntryKind.COMMIT, EntryKind.RELEASE)
        last = {one.key: one.kind for one in entries if one.key and one.kind in stages}
        is_open = (key for key, kind in last.items() if kind == EntryKind.RESERVE)
        found += [("unresolved", key) for key in is_open]
        shown = _SHOWN
    facts = [fact for fact in found if fact[0] in shown]
    more = [fact for fact in found if fact[0] not in shown]
    told = []
    for one in statuses:
        held = {field.name: getattr(one, field.name) for field in fields(one)}
        told.append({name: describe(x) if isinstance(x, Notion) else x for name, x in held.items()})
        at_delta = in_epsilon(one, delta)
        told[-1]["in_epsilon"] = None if at_delta is None else at_delta._asdict()
    show.answer({"version": hs.__version__, "datasets": told}, facts, more=more)
