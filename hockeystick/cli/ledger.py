"""The commands ``ledger ...``: budgets that jobs and machines share."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from rich.text import Text

import hockeystick as hs
from hockeystick import _validate
from hockeystick.calibration import describe
from hockeystick.cli import command, flags, layout, plans
from hockeystick.cli.as_json import dumped
from hockeystick.cli.command import Group
from hockeystick.cli.layout import Sheet
from hockeystick.cli.progress import waiting
from hockeystick.errors import LedgerError, ParameterError
from hockeystick.io import parse
from hockeystick.notions import ApproxDP
from hockeystick.numerics.numerals import plain

if TYPE_CHECKING:
    from hockeystick.ledger import Ledger, LedgerCheck, LedgerStatus, Reservation
    from hockeystick.ledger.terms import Terms
    from hockeystick.reports.ledger import EntryTold, Room

NOT_SOUND: Final = 1
_NOTED: Final = "a file that ledger status --json printed"
_BUDGET: Final = (
    "Such as 'ApproxDP(2, 1e-6)' (epsilon, delta), 'PureDP(1)', 'ZCDP(0.5)' or 'GDP(1)'."
)
_EXPECTED: Final = (
    "Of an ApproxDP budget: a plan such as most releases will be, if they are sampled."
)
_HELP: Final = """Keep privacy budgets that jobs and machines share.

What is to run is reserved first, and charged; what ran is committed. What is never resolved, as
after a crash, counts in full. Needs the extra ledger (on PostgreSQL, postgres).

Exit status 0: done. 1: verify found something wrong. 2: wrong input, or a ledger that cannot be
used; nothing was written, or the message says under which key. 4: the budget does not cover it.
"""


_SHOWN: Final = ("left", "budget", "spent", "next release", "room for", "unresolved")
_ASK: Final = "hockeystick ledger status --delta 1e-6 shows it"
_Command = TypeVar("_Command", bound=Callable[..., Any])

VARIABLE: Final = "HOCKEYSTICK_LEDGER"
_URL: Final = (
    "The ledger: a SQLite file, or postgresql://USER@HOST/DATABASE; by default what the "
    f"environment's {VARIABLE} says."
)
_DELTA: Final = (
    "Show rho, mu or divergences in epsilon at this delta too; a budget that has a delta is shown "
    "at its own."
)
delta_flag = click.option("--delta", metavar="D", help=_DELTA)
by_flag = click.option("--by", metavar="NAME", help="Who asks; by default the system's user.")
note_flag = click.option("--note", default="", metavar="TEXT", help="Why, for the entry.")


place_flag = click.option("--ledger", "url", envvar=VARIABLE, metavar="URL", help=_URL)


def writing_flags(command: _Command) -> _Command:
    """Add the same, and who writes, and why."""
    return place_flag(by_flag(note_flag(command)))


def opened(url: str | None, dataset: str, **options: Any) -> Ledger:
    """Return a dataset of the ledger that the flags name."""
    return hs.Ledger(named(url), dataset, **options)


def all_opened(url: str | None, datasets: Iterable[str]) -> list[Ledger]:
    """Return datasets to be read, all where none are named."""
    names = tuple(datasets) or hs.ledger.datasets(named(url))
    return [opened(url, name, read_only=True) for name in dict.fromkeys(names)]


def delta_of(text: str | None) -> float | None:
    """Return the delta at which budgets without one are shown: the flag's, or else a default."""
    value = flags.default("delta") if text is None else parse(text)
    if value is None:
        return None
    if not 0.0 < _validate.real("delta", value) < 1.0:
        raise ParameterError("delta", value, "above 0 and below 1")
    return float(value)


def named(url: str | None) -> str:
    """Return where the ledger is, or raise where nobody says."""
    if not url:
        raise click.UsageError(f"Missing --ledger, or {VARIABLE} in the environment")
    return url


@contextmanager
def told_on_failure(key: str) -> Iterator[None]:
    """Add to what is said under which key something may be reserved, where it ends badly."""
    try:
        yield
    except (KeyboardInterrupt, OSError, LedgerError) as error:
        error.add_note(
            f"{key!r} may be reserved: ask again with --key and --resume, which charges once"
        )
        raise


@click.group(cls=Group, invoke_without_command=True, help=_HELP)
@click.pass_context
def ledger(context: click.Context) -> None:
    """Print the overview where no command is given."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@ledger.command(cls=command.Command, short_help="Open a dataset with its budget.")
@click.argument("dataset")
@click.option("--budget", required=True, metavar="NOTION", help=_BUDGET)
@click.option("--adjacency", metavar="NAME", help="For which neighbours; add-remove by default.")
@click.option("--slack", metavar="D", help="Of an ApproxDP budget: the part for the conversion.")
@click.option("--rule", metavar="NAME", help="Of an ApproxDP budget: concentrated or whitehouse.")
@click.option("--expected", metavar="PLAN", help=_EXPECTED)
@click.option("--within", metavar="DATASET", help="The dataset that this one is a cap of.")
@place_flag
@flags.json_flag
@flags.verbose_flag
def init(
    dataset: str,
    budget: str,
    url: str | None,
    as_json: bool,
    slack: str | None,
    expected: str | None,
    **terms: str | None,
) -> None:
    """Open a dataset with its budget, in a ledger that is made where there is none.

    Give --expected where DP-SGD, or other releases from random samples, will be charged to an
    ApproxDP budget: one such plan, for example the plan file of a training run. It fixes the Renyi
    order at which costs add up, so that sampling counts. It is not charged and binds nobody, and
    other releases may be charged as well. Without it, each step of DP-SGD costs as if it read all
    the data, often a hundred times as much.

    What is opened stays as it is: the same again changes nothing, anything else is refused.
    """
    given: dict[str, Any] = {**terms, "budget": plans.notion(budget)}
    if slack is not None:
        given["slack"] = parse(slack)
    if expected is not None:
        given["expected"] = plans.load(expected).plan
    with waiting("opening"):
        made = opened(url, dataset, **given)
    _print_status([made], as_json, delta_of(None))


@ledger.command(cls=command.Command, short_help="Print what is left of budgets.")
@click.argument("datasets", nargs=-1, metavar="[DATASET]...")
@delta_flag
@place_flag
@flags.json_flag
@flags.verbose_flag
def status(datasets: tuple[str, ...], delta: str | None, url: str | None, as_json: bool) -> None:
    """Print what is left of budgets; of all where no dataset is named.

    "Left" says by how much the epsilon of all that is charged together, as a plan fixed in advance,
    may still rise; "room for", how often the budget covers once more what was reserved, of the
    latest five kinds of plans, and what a next one adds to the epsilon spent.
    "Next release" is what one more release may cost at once, in the budget's own terms.
    """
    at = delta_of(delta)
    _print_status(all_opened(url, datasets), as_json, at)


@ledger.command(cls=command.Command)
@click.argument("dataset")
@plans.plan_words
@click.option("--key", metavar="KEY", help="What the run is called; a new name by default.")
@click.option("--also", multiple=True, metavar="DATASET", help="A further dataset that it reads.")
@click.option("--resume", is_flag=True, help="Take up a KEY that was reserved before.")
@writing_flags
@flags.json_flag
def reserve(
    dataset: str,
    words: tuple[str, ...],
    key: str | None,
    also: tuple[str, ...],
    resume: bool,
    by: str | None,
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
    mechanism = plans.words_of(words).file().plan
    charged = opened(url, dataset)
    known = key if key is not None else uuid.uuid4().hex
    with told_on_failure(known):
        made = charged.reserve(mechanism, key=known, by=by, note=note, also=also, resume=resume)
        click.echo(_reservation(made) if as_json else made.key)
    if made.resumed and not as_json:
        click.echo(f"hockeystick: {made.key!r} was reserved before: charged once", err=True)


@ledger.command(cls=command.Command)
@click.argument("dataset")
@click.argument("key")
@plans.plan_words
@writing_flags
@flags.json_flag
def commit(
    dataset: str,
    key: str,
    words: tuple[str, ...],
    by: str | None,
    note: str,
    url: str | None,
    as_json: bool,
) -> None:
    """Record that what was reserved has run.

    Where only a part of it ran, say which by a plan: PLAN.toml steps=400. Each of its releases
    must be one that was reserved, no more often. Without a plan all of it counts.
    """
    ran = plans.words_of(words).file().plan if words else None
    held = opened(url, dataset).reservation(key, by=by)
    held.commit(ran=ran, note=note)
    _print_resolved(held, as_json)


@ledger.command(cls=command.Command, short_help="Give back what never began.")
@click.argument("dataset")
@click.argument("key")
@writing_flags
@flags.json_flag
def release(
    dataset: str, key: str, by: str | None, note: str, url: str | None, as_json: bool
) -> None:
    """Give back what was reserved: nothing of it was released, and nothing will be.

    No program can check that; whoever gives it back says so, and the ledger keeps who.
    """
    held = opened(url, dataset).reservation(key, by=by)
    held.release(note=note)
    _print_resolved(held, as_json)


@ledger.command(cls=command.Command, short_help="Print who did what, when and why.")
@click.argument("dataset")
@click.option("--last", metavar="N", help="Only the latest entries; all by default.")
@delta_flag
@place_flag
@flags.json_flag
def log(dataset: str, last: str | None, delta: str | None, url: str | None, as_json: bool) -> None:
    """Print what happened: who reserved, committed and released what, when and why."""
    at = delta_of(delta)
    shown = None if last is None else _count("last", last)
    entries = opened(url, dataset, read_only=True).history()
    latest = entries if shown is None else entries[-shown:]
    if as_json:
        listed = [asdict(entry) for entry in latest]
        click.echo(dumped({"version": hs.__version__, "entries": listed}))
        return
    from hockeystick.ledger.terms import terms_of
    from hockeystick.reports.ledger import entries_told

    terms = terms_of(entries[0].content, entries[0].price)
    told = entries_told(latest, terms, at)
    sheet = Sheet()
    _add_entries(sheet, told, _history_note(terms, at))
    sheet.show()


@ledger.command(cls=command.Command, short_help="Check the entries, and heads that were noted.")
@click.argument("datasets", nargs=-1, metavar="[DATASET]...")
@click.option("--head", metavar="HEAD", help="Of one dataset: a head that was noted before.")
@click.option("--noted", metavar="FILE", help=f"The heads of {_NOTED}.")
@place_flag
@flags.json_flag
def verify(
    datasets: tuple[str, ...], head: str | None, noted: str | None, url: str | None, as_json: bool
) -> None:
    """Go through the entries of datasets, of all where none is named.

    Hashes, sums, limits and what may follow what are checked anew. A head that was noted before,
    where nobody can change it, also shows what was cut off since. Exit status 1: not sound; 2: it
    cannot even be read.
    """
    if head is not None and (noted is not None or len(datasets) != 1):
        raise click.UsageError("--head is of one DATASET; --noted FILE has those of several")
    heads = {} if noted is None else _heads(noted)
    with waiting("verifying"):
        ledgers = all_opened(url, datasets)
        checks = [one.verify(head=heads.get(one.dataset, head)) for one in ledgers]
    gone = set() if datasets else heads.keys() - {one.dataset for one in ledgers}
    checks += [_gone(name, heads[name]) for name in sorted(gone)]
    if as_json:
        told = [_check_as_dict(one) for one in checks]
        click.echo(dumped({"version": hs.__version__, "datasets": told}))
    else:
        _sheet_of_checks(checks).show()
    if not all(one.sound for one in checks):
        click.get_current_context().exit(NOT_SOUND)


def _print_status(ledgers: list[Ledger], as_json: bool, delta: float | None) -> None:
    """Print what is left: a panel of one dataset, a table of several."""
    statuses = [one.status for one in ledgers]
    if as_json:
        told = [_status_as_dict(one, delta) for one in statuses]
        click.echo(dumped({"version": hs.__version__, "datasets": told}))
        return

    if len(statuses) == 1:
        from hockeystick.reports.ledger import rooms_of

        rooms = rooms_of(ledgers[0].history()[: statuses[0].entries], delta)
        _sheet_of_status(statuses[0], delta, rooms).show()
    else:
        _sheet_of_all(statuses, delta).show()


def _reservation(one: Reservation) -> str:
    """Return a reservation as JSON."""
    return dumped({"version": hs.__version__, **_reservation_as_dict(one)})


def _print_resolved(held: Reservation, as_json: bool) -> None:
    """Print what has become of a reservation."""
    click.echo(_reservation(held) if as_json else f"{held.key}: {held.state}")


def _gone(dataset: str, head: str) -> LedgerCheck:
    """Return what is to be said of a dataset that was noted, and is no more."""
    from hockeystick.ledger import LedgerCheck

    return LedgerCheck(dataset=dataset, head=head, problems=("it is not in the ledger any more",))


def _heads(path: str) -> Mapping[str, str]:
    """Return the heads that a file of statuses has, by dataset, or raise."""
    try:
        with open(path, encoding="utf-8") as file:
            told = json.load(file)
        heads = {str(one["dataset"]): str(one["head"]) for one in told["datasets"]}
    except (OSError, ValueError, KeyError, TypeError):
        raise ParameterError("noted", path, _NOTED) from None
    return heads


def _count(name: str, text: str) -> int:
    """Return a whole number from 1 on, or raise."""
    value = parse(text)
    if not isinstance(value, int) or value < 1:
        raise ParameterError(name, text, "a whole number from 1 on")
    return value


def _sheet_of_status(
    status: LedgerStatus, delta: float | None, rooms: Sequence[Room] = ()
) -> Sheet:
    """Return one dataset for people, in epsilon as well where a delta is known."""
    from hockeystick.reports.ledger import has_epsilon, status_facts

    sheet = Sheet(status.dataset)
    for label, text in status_facts(status, delta, rooms):
        add = sheet.fact if label in _SHOWN else sheet.more
        add(label, layout.one_line(text, "bold green" if label == "left" else ""))
    if delta is None and not has_epsilon(status.budget):
        sheet.fact("in epsilon", Text(_ASK, "dim"))
    return sheet


def _sheet_of_all(statuses: Sequence[LedgerStatus], delta: float | None) -> Sheet:
    """Return one line for each dataset; with -v its head too."""
    from hockeystick.reports.ledger import has_epsilon, status_facts

    sheet, table = Sheet(), layout.table("dataset", "left", ">open", ">entries")
    for one in statuses:
        (_, left), *_ = status_facts(one, delta)
        counted = f"{one.unresolved:,}", f"{one.entries:,}"
        table.add_row(Text(one.dataset), Text(left, "bold green"), *counted)
    sheet.block(table)
    if delta is None and not all(has_epsilon(one.budget) for one in statuses):
        sheet.block(Text(f"\nin epsilon, of budgets without a delta: {_ASK}", "dim"))
    if sheet.is_verbose:
        heads = [f"{one.dataset}: {one.head}" for one in statuses]
        sheet.bullets("heads, to be noted where nobody can change them", heads)
    return sheet


def _add_entries(sheet: Sheet, entries: Sequence[EntryTold], note: str) -> None:
    """Add one row for each entry, and a note below."""
    table = layout.table("", "when (UTC)", "", "what counts", "price, then spent", "who, why")
    for one in entries:
        done = Text(one.done, "bold").append(f"\n{one.key}" if one.key else "", "not bold")
        who = Text("\n").join(map(layout.one_line, filter(None, (one.by, one.note))))
        spent = f"{one.spent}:\n{one.epsilon}" if one.epsilon else one.spent
        costs = Text("\n").join(map(Text, filter(None, (one.price, spent))))
        table.add_row(str(one.seq), one.at, done, layout.one_line(one.what), costs, who)
    sheet.block(table)
    if note:
        sheet.block(Text(f"\n{note}", "dim"))


def _history_note(terms: Terms, delta: float | None) -> str:
    """Return what the epsilon in a history is, or how to ask for it; or nothing to add."""
    from hockeystick.reports.ledger import has_epsilon

    budget = terms.budget
    if has_epsilon(budget) and terms.order is None:
        return ""
    at = budget.delta if isinstance(budget, ApproxDP) else delta
    if at is None:
        return "in epsilon: hockeystick ledger log --delta 1e-6 shows it"
    told = "epsilon: of all that is spent by then, as a plan fixed in advance"
    return f"{told}, at delta {plain(at)}"


def _sheet_of_checks(checks: Sequence[LedgerCheck]) -> Sheet:
    """Return what verifications found."""
    sheet = Sheet()
    for one in checks:
        verdict = Text("sound", "bold green") if one.sound else Text("not sound", "bold red")
        sheet.block(Text.assemble(verdict, f"  {one.dataset}\n  {one.head}"))
        sheet.block(*(layout.one_line(f"  - {problem}") for problem in one.problems))
    return sheet


def _status_as_dict(status: LedgerStatus, delta: float | None = None) -> dict[str, Any]:
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


def _reservation_as_dict(one: Reservation) -> dict[str, Any]:
    """Return a reservation, ready for JSON."""
    return {
        "key": one.key,
        "state": str(one.state),
        "resumed": one.resumed,
        "datasets": list(one.together),
        "mechanism": describe(one.mechanism),
    }


def _check_as_dict(check: LedgerCheck) -> dict[str, Any]:
    """Return what a verification found, ready for JSON."""
    problems = list(check.problems)
    return {"dataset": check.dataset, "sound": check.sound, "head": check.head} | {
        "problems": problems
    }
