"""The commands ``ledger ...``: budgets that jobs and machines share."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

import hockeystick as hs
from hockeystick.cli.as_json import dumped
from hockeystick.cli.flags import of_ledgers as flags
from hockeystick.cli.flags import options
from hockeystick.cli.flags.examples import Overview
from hockeystick.cli.flags.once import Once
from hockeystick.cli.flags.source import load, notion
from hockeystick.cli.terminal.waiting import waiting
from hockeystick.errors import ParameterError
from hockeystick.io import parse

if TYPE_CHECKING:
    from hockeystick.ledger import Ledger, LedgerCheck, Reservation

NOT_SOUND: Final = 1
_FORMATS: Final = ("jsonl", "csv")
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


@click.group(
    name="ledger",
    cls=Overview,
    invoke_without_command=True,
    help=_HELP,
    short_help="Keep privacy budgets that jobs and machines share.",
)
@click.pass_context
def group(context: click.Context) -> None:
    """Print the overview where no command is given."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@group.command(cls=Once, short_help="Open a dataset with its budget.")
@click.argument("dataset")
@click.option("--budget", required=True, metavar="NOTION", help=_BUDGET)
@click.option("--adjacency", metavar="NAME", help="For which neighbours; add-remove by default.")
@click.option("--slack", metavar="D", help="Of an ApproxDP budget: the part for the conversion.")
@click.option("--rule", metavar="NAME", help="Of an ApproxDP budget: concentrated or whitehouse.")
@click.option("--expected", metavar="PLAN", help=_EXPECTED)
@click.option("--within", metavar="DATASET", help="The dataset that this one is a cap of.")
@flags.place_flags
@options.json_flag
def init(
    dataset: str,
    budget: str,
    url: str | None,
    timeout: str,
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
    given: dict[str, Any] = {**terms, "budget": notion(budget)}
    if slack is not None:
        given["slack"] = parse(slack)
    if expected is not None:
        given["expected"] = load(expected).plan
    with waiting("opening"):
        opened = flags.opened(url, dataset, timeout, **given)
    _print_status([opened], as_json, flags.delta_of(None))


@group.command(cls=Once, short_help="Print what is left of budgets.")
@click.argument("datasets", nargs=-1, metavar="[DATASET]...")
@flags.delta_flag
@flags.place_flags
@options.json_flag
def status(
    datasets: tuple[str, ...], delta: str | None, url: str | None, timeout: str, as_json: bool
) -> None:
    """Print what is left of budgets; of all where no dataset is named.

    "Left" says by how much the epsilon of all that is charged together, as a plan fixed in advance,
    may still rise; "room for", how often the budget covers once more what was reserved, of the
    latest five kinds of plans, and what a next one adds to the epsilon spent.
    "Next release" is what one more release may cost at once, in the budget's own terms.
    """
    at = flags.delta_of(delta)
    _print_status(flags.all_opened(url, datasets, timeout), as_json, at)


@group.command(cls=Once)
@click.argument("dataset")
@options.plan_flags
@click.option("--key", metavar="KEY", help="What the run is called; a new name by default.")
@click.option("--also", multiple=True, metavar="DATASET", help="A further dataset that it reads.")
@click.option("--resume", is_flag=True, help="Take up a KEY that was reserved before.")
@flags.writing_flags
@options.json_flag
def reserve(
    dataset: str,
    plan_file: str | None,
    key: str | None,
    also: tuple[str, ...],
    resume: bool,
    by: str | None,
    note: str,
    url: str | None,
    timeout: str,
    as_json: bool,
    **plan: str | None,
) -> None:
    """Charge a plan that is about to run, and print its key.

    Once the key is printed, the charge is on the disk. A key that was reserved before is no leave
    to run again, and is refused. With --resume it is charged once, and standard error (in JSON,
    "resumed") says so: for a job whose release goes on, as from a checkpoint, or never began. Exit
    status 4: the budget does not cover it.
    """
    mechanism = options.plan_of(plan_file, plan).plan
    ledger = flags.opened(url, dataset, timeout)
    known = key if key is not None else uuid.uuid4().hex
    with flags.told_on_failure(known):
        made = ledger.reserve(mechanism, key=known, by=by, note=note, also=also, resume=resume)
        click.echo(_reservation(made) if as_json else made.key)
    if made.resumed and not as_json:
        click.echo(f"hockeystick: {made.key!r} was reserved before: charged once", err=True)


@group.command(cls=Once)
@click.argument("dataset")
@click.argument("key")
@options.plan_flags
@flags.writing_flags
@options.json_flag
def commit(
    dataset: str,
    key: str,
    plan_file: str | None,
    by: str | None,
    note: str,
    url: str | None,
    timeout: str,
    as_json: bool,
    **plan: str | None,
) -> None:
    """Record that what was reserved has run.

    Where only a part of it ran, say which by a plan: PLAN.toml --steps 400. Each of its releases
    must be one that was reserved, no more often. Without a plan all of it counts.
    """
    given = plan_file is not None or bool(options.written(plan))
    ran = options.plan_of(plan_file, plan).plan if given else None
    held = flags.opened(url, dataset, timeout).reservation(key, by=by)
    held.commit(ran=ran, note=note)
    _print_resolved(held, as_json)


@group.command(cls=Once, short_help="Give back what never began.")
@click.argument("dataset")
@click.argument("key")
@flags.writing_flags
@options.json_flag
def release(
    dataset: str, key: str, by: str | None, note: str, url: str | None, timeout: str, as_json: bool
) -> None:
    """Give back what was reserved: nothing of it was released, and nothing will be.

    No program can check that; whoever gives it back says so, and the ledger keeps who.
    """
    held = flags.opened(url, dataset, timeout).reservation(key, by=by)
    held.release(note=note)
    _print_resolved(held, as_json)


@group.command(cls=Once, short_help="Print who did what, when and why.")
@click.argument("dataset")
@click.option("--last", metavar="N", help="Only the latest entries; all by default.")
@flags.delta_flag
@flags.place_flags
@options.json_flag
def history(
    dataset: str, last: str | None, delta: str | None, url: str | None, timeout: str, as_json: bool
) -> None:
    """Print what happened: who reserved, committed and released what, when and why."""
    at = flags.delta_of(delta)
    shown = None if last is None else _count("last", last)
    entries = flags.opened(url, dataset, timeout, read_only=True).history()
    latest = entries if shown is None else entries[-shown:]
    if as_json:
        from hockeystick.cli.results import ledgered

        listed = [json.loads(line) for line in ledgered.as_lines(latest).splitlines()]
        click.echo(dumped({"version": hs.__version__, "entries": listed}))
        return
    from hockeystick.cli.panels import ledger_panel, render
    from hockeystick.ledger.terms import terms_of
    from hockeystick.reports.ledger import entries_told

    terms = terms_of(entries[0].content, entries[0].price)
    told = entries_told(latest, terms, at)
    table = ledger_panel.history_table(told, ledger_panel.history_note(terms, at))
    render.print_plainly(table, ledger_panel.WIDEST)


@group.command(cls=Once, short_help="Check the entries, and heads that were noted.")
@click.argument("datasets", nargs=-1, metavar="[DATASET]...")
@click.option("--head", metavar="HEAD", help="Of one dataset: a head that was noted before.")
@click.option("--noted", metavar="FILE", help=f"The heads of {_NOTED}.")
@flags.place_flags
@options.json_flag
def verify(
    datasets: tuple[str, ...],
    head: str | None,
    noted: str | None,
    url: str | None,
    timeout: str,
    as_json: bool,
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
        ledgers = flags.all_opened(url, datasets, timeout)
        checks = [one.verify(head=heads.get(one.dataset, head)) for one in ledgers]
    gone = set() if datasets else heads.keys() - {one.dataset for one in ledgers}
    checks += [_gone(name, heads[name]) for name in sorted(gone)]
    if as_json:
        from hockeystick.cli.results import ledgered

        told = [ledgered.check_as_dict(one) for one in checks]
        click.echo(dumped({"version": hs.__version__, "datasets": told}))
    else:
        from hockeystick.cli.panels import ledger_panel, render

        render.print_plainly(ledger_panel.check_table(checks))
    if not all(one.sound for one in checks):
        click.get_current_context().exit(NOT_SOUND)


@group.command(cls=Once, short_help="Price all that counts by this version.")
@click.argument("dataset")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@flags.writing_flags
@options.json_flag
def reprice(
    dataset: str,
    dry_run: bool,
    by: str | None,
    note: str,
    url: str | None,
    timeout: str,
    as_json: bool,
) -> None:
    """Price all that counts by this version, and record each price that has changed.

    Nothing else makes recorded prices fall or rise, and a newer version does nothing by itself.
    """
    ledger = flags.opened(url, dataset, timeout, read_only=dry_run)
    with waiting("pricing"):
        done = ledger.reprice(by=by, note=note, record=not dry_run)
    if as_json:
        from hockeystick.cli.results import ledgered

        told = {"dataset": dataset, **ledgered.repricing_as_dict(done)}
        click.echo(dumped({"version": hs.__version__, **told}))
    else:
        from hockeystick.cli.panels import ledger_panel, render

        render.print_plainly(ledger_panel.repricing_panel(dataset, done))


@group.command(cls=Once, short_help="Print all entries, for other programs.")
@click.argument("datasets", nargs=-1, metavar="[DATASET]...")
@click.option("--format", "form", default="jsonl", metavar="NAME", help="jsonl, or csv.")
@flags.place_flags
def export(datasets: tuple[str, ...], form: str, url: str | None, timeout: str) -> None:
    """Print all entries as the tables have them, in JSON lines or CSV.

    Other programs can read them and check the chain without hockeystick: the hash of an entry is
    SHA-256 of a JSON list of its other columns in their order, without spaces, in ASCII.
    """
    if form not in _FORMATS:
        raise ParameterError("format", form, f"one of {', '.join(_FORMATS)}")
    from hockeystick.cli.results import ledgered

    ledgers = flags.all_opened(url, datasets, timeout)
    entries = [entry for one in ledgers for entry in one.history()]
    text = ledgered.as_csv(entries) if form == "csv" else ledgered.as_lines(entries)
    click.echo(text.encode(), nl=False)


def _print_status(ledgers: list[Ledger], as_json: bool, delta: float | None) -> None:
    """Print what is left: a panel of one dataset, a table of several."""
    statuses = [one.status for one in ledgers]
    if as_json:
        from hockeystick.cli.results import ledgered

        told = [ledgered.status_as_dict(one, delta) for one in statuses]
        click.echo(dumped({"version": hs.__version__, "datasets": told}))
        return
    from hockeystick.cli.panels import ledger_panel, render

    if len(statuses) == 1:
        from hockeystick.reports.ledger import rooms_of

        rooms = rooms_of(ledgers[0].history()[: statuses[0].entries], delta)
        render.print_plainly(ledger_panel.status_panel(statuses[0], delta, rooms))
    else:
        render.print_plainly(ledger_panel.status_table(statuses, delta), ledger_panel.WIDEST)


def _reservation(one: Reservation) -> str:
    """Return a reservation as JSON."""
    from hockeystick.cli.results import ledgered

    return dumped({"version": hs.__version__, **ledgered.reservation_as_dict(one)})


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
