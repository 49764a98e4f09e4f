"""Two years of a team's releases on one ledger: 40 training runs, weekly statistics, a repricing.

A million people, a budget of (8, 1e-7), and requests as a team has them: training runs of many
rates, noises and lengths, of which some stop early, crash or are called off; a count, a mean and a
histogram each week. Everything is reserved and resolved in a real ledger; nothing is trained, since
what runs cost does not depend on data. At the end, what is left is compared with what other ways
of accounting would have left of the same releases.

Of the library's own history there is no older price to show, so that the first year is priced by a
stand-in for an older version: every price a tenth higher, which is a bound as well. Repricing by
the library as it is then gives the tenth back.

    python examples/ledger/two_years.py            # the table
    python examples/ledger/two_years.py --page     # the same for the documentation
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from unittest.mock import patch

import hockeystick as hs
from hockeystick.ledger import EntryKind, Repricing, dataset
from hockeystick.ledger.amounts import storable
from hockeystick.reports.ledger import ledgered

BUDGET: Final = hs.ApproxDP(epsilon=8.0, delta=1e-7)
PEOPLE: Final = 1_000_000
WEEKS, RUNS = 104, 40
BATCHES, EPOCHS, NOISES = (512, 1024, 2048), (3.0, 5.0, 10.0), (0.9, 1.1, 1.4)
STATISTICS: Final = {
    "count": hs.Laplace(200.0),
    "mean": hs.Gaussian(60.0),
    "histogram": hs.Gaussian(50.0),
}
TYPICAL: Final = hs.DPSGD(examples=PEOPLE, batch_size=1024, epochs=5.0, noise_multiplier=1.1)
OLDER: Final = Fraction(11, 10)
# Every fourth run stops early; every tenth crashes, and every tenth is called off.
_EARLY, _CRASHED, _CALLED_OFF = 4, 10, 10
_MOST: Final = 1 << 14

Cost = Callable[[Sequence[hs.Mechanism]], float]


@dataclass(frozen=True)
class Request:
    """What somebody wants to run, and what becomes of it."""

    week: int
    key: str
    plan: hs.Mechanism
    ran: hs.Mechanism | None = None
    fate: str = "commit"


@dataclass(frozen=True)
class Row:
    """What one way of accounting says of two years."""

    name: str
    proves: str
    spent: float
    stops: int | None
    further: int


def expected() -> hs.Mechanism:
    """Return what a team can know on the first day: typical runs, and the statistics."""
    weekly = hs.Composed(tuple(one**WEEKS for one in STATISTICS.values()))
    return TYPICAL**RUNS @ weekly


def requests(weeks: int = WEEKS, runs: int = RUNS, seed: int = 27) -> list[Request]:
    """Return all requests in the order in which they come."""
    chance = random.Random(seed)
    found = [
        Request(week, f"{name}, week {week}", plan)
        for week in range(1, weeks + 1)
        for name, plan in STATISTICS.items()
    ]
    found += [_run(number, weeks, runs, chance) for number in range(1, runs + 1)]
    return sorted(found, key=lambda one: one.week)


def _run(number: int, weeks: int, runs: int, chance: random.Random) -> Request:
    """Return a training run: how it was planned, and how it ended."""
    week = 1 + (number - 1) * weeks // runs
    plan = hs.DPSGD(
        examples=PEOPLE,
        batch_size=chance.choice(BATCHES),
        epochs=chance.choice(EPOCHS),
        noise_multiplier=chance.choice(NOISES),
    )
    share = chance.uniform(0.3, 0.8)
    key = f"run {number}"
    if number % _CRASHED == 0:
        return Request(week, key, plan, fate="crash")
    if number % _CALLED_OFF == 5:
        return Request(week, key, plan, fate="call off")
    if number % _EARLY == 0:
        ran = replace(plan, epochs=None, steps=max(1, round(share * plan.total_steps)))
        return Request(week, key, plan, ran)
    return Request(week, key, plan)


def live(ledger: hs.Ledger, asked: Sequence[Request]) -> None:
    """Reserve each request before it runs, and resolve it as it ends."""
    for one in asked:
        by = "ana" if one.key.startswith("run") else "cron"
        held = ledger.reserve(one.plan, key=one.key, by=by, note=f"week {one.week}")
        if one.fate == "commit":
            held.commit(ran=one.ran, note="" if one.ran is None else "stopped early")
        elif one.fate == "call off":
            held.release(note="the queue was cancelled before it began")


@contextmanager
def older_library() -> Iterator[None]:
    """Price everything a tenth higher, as a version with looser bounds would."""
    own = dataset._price_of_part

    def price(measure: Any, part: hs.Mechanism) -> tuple[Fraction, ...]:
        return tuple(storable(cost * OLDER) for cost in own(measure, part))

    with patch.object(dataset, "_price_of_part", price):
        yield


def two_years(file: Path, asked: Sequence[Request]) -> tuple[hs.Ledger, Repricing]:
    """Live through all requests, half of them with an older library, and reprice between."""
    half = max(one.week for one in asked) // 2
    with older_library():
        before = hs.Ledger(file, "people", BUDGET, expected=expected())
        live(before, [one for one in asked if one.week <= half])
    ledger = hs.Ledger(file, "people")
    done = ledger.reprice(by="bea", note="a newer library with tighter bounds")
    live(ledger, [one for one in asked if one.week > half])
    return ledger, done


def counted(ledger: hs.Ledger) -> dict[str, hs.Mechanism]:
    """Return what counts of each reservation, in the order in which they were made."""
    last = {one.key: one for one in ledger.history() if one.kind != EntryKind.OPEN}
    return {key: one.mechanism for key, one in last.items() if one.mechanism is not None}


def together(plans: Sequence[hs.Mechanism]) -> hs.Mechanism:
    """Return plans as one, equal ones as a repetition."""
    counts = Counter(plans)
    return hs.Composed(tuple(plan**count for plan, count in counts.items()))


def stated(delta: float) -> Callable[[hs.Mechanism], hs.Mechanism]:
    """Return what a mechanism is by itself: an (epsilon, delta) guarantee at a share of delta."""
    known: dict[hs.Mechanism, hs.Mechanism] = {}

    def state(plan: hs.Mechanism) -> hs.Mechanism:
        if plan not in known:
            # Laplace noise needs no delta: those of the others add up to less than it.
            at = 0.0 if isinstance(plan, hs.Laplace) else delta
            known[plan] = hs.ApproxDP(hs.epsilon(plan, at).upper, at)
        return known[plan]

    return state


def planned(accountant: str) -> Cost:
    """Return the epsilon of releases as one plan, by an accountant."""
    return lambda plans: float(
        hs.epsilon(together(plans), BUDGET.delta, accountant=accountant, tolerance=1e-4).upper
    )


def composed(accountant: str, share: float, releases: int) -> Cost:
    """Return the epsilon of guarantees stated one by one, whose deltas have a share of delta."""
    state = stated(share * BUDGET.delta / releases)
    return lambda plans: float(
        hs.epsilon(together([*map(state, plans)]), BUDGET.delta, accountant=accountant).upper
    )


def ways(releases: int) -> dict[str, tuple[str, Cost]]:
    """Return other ways of accounting: what each proves, and its epsilon of releases."""
    return {
        "exact composition (`ledger.price()`)": ("planned", planned("auto")),
        "RDP, best order of a grid": ("planned", planned("rdp")),
        "zCDP (sampling not counted)": ("adaptive", planned("zcdp")),
        "advanced composition": ("planned", composed("advanced", 0.5, releases)),
        "basic composition": ("adaptive", composed("basic", 1.0, releases)),
    }


def largest(holds: Callable[[int], bool], most: int) -> int:
    """Return the largest number up to one for which something holds that holds for 0 or never."""
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def row_of(name: str, proves: str, cost: Cost, weeks: Sequence[int], plans: Any) -> Row:
    """Return what one way of accounting says."""
    spent = cost(plans)
    if spent > BUDGET.epsilon:
        passed = largest(lambda n: n == 0 or cost(plans[:n]) <= BUDGET.epsilon, len(plans))
        return Row(name, proves, spent, weeks[passed], 0)
    most, more = 1, [TYPICAL]
    while most < _MOST and cost([*plans, *more * most]) <= BUDGET.epsilon:
        most *= 2
    further = largest(lambda n: cost([*plans, *more * n]) <= BUDGET.epsilon, most)
    return Row(name, proves, spent, None, further)


def row_of_ledger(ledger: hs.Ledger) -> Row:
    """Return what the ledger says: its filter at the one order that was chosen on the first day."""
    found = ledgered(ledger)
    assert isinstance(found.status.spent, hs.ApproxDP)
    spent = float(found.status.spent.epsilon)
    further = largest(lambda n: n == 0 or found.asked_for(TYPICAL**n)[1], _MOST)
    return Row("this ledger: a filter at one order", "adaptive", spent, None, further)


def compared(ledger: hs.Ledger, asked: Sequence[Request]) -> list[Row]:
    """Return what each way of accounting says of what counts in the ledger."""
    counts = counted(ledger)
    week_of = {one.key: one.week for one in asked}
    weeks, plans = [week_of[key] for key in counts], list(counts.values())
    others = (
        row_of(name, proves, cost, weeks, plans)
        for name, (proves, cost) in ways(len(asked)).items()
    )
    return [row_of_ledger(ledger), *others]


def cells(row: Row) -> tuple[str, ...]:
    """Return a row as texts; epsilons rounded up, and what is left rounded down."""
    spent = f"{upward(row.spent):,.2f}"
    left = f"{max(BUDGET.epsilon - upward(row.spent), 0.0):.2f}"
    stops = "never" if row.stops is None else f"week {row.stops}"
    return row.name, row.proves, spent, left, f"{row.further:,}", stops


def upward(value: float) -> float:
    """Return a number rounded up to hundredths."""
    return float(-(Fraction(repr(value)) * -100 // 1)) / 100


HEAD: Final = ("accounting", "proves", "epsilon", "left of 8", "further runs", "stops the team")


def as_page(rows: Sequence[Row]) -> str:
    """Return the table in Markdown."""
    lines = (HEAD, ("---", "---", "--:", "--:", "--:", "---"), *map(cells, rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def told(ledger: hs.Ledger, done: Repricing) -> str:
    """Return what happened, in a few sentences."""
    kinds = Counter(str(one.kind) for one in ledger.history())
    assert isinstance(done.spent, hs.ApproxDP)
    assert isinstance(done.repriced, hs.ApproxDP)
    old, new = upward(done.spent.epsilon), upward(done.repriced.epsilon)
    return (
        f"{kinds['reserve']} reservations: {kinds['commit']} committed, {kinds['release']} given "
        f"back, {ledger.status.unresolved} never resolved after a crash, which count in full. "
        f"After the first year {len(done.changed)} prices fell, and with them epsilon as a plan "
        f"from {old:.2f} to {new:.2f}."
    )


def main() -> None:
    """Live through two years, and print what is left."""
    from rich.console import Console
    from rich.table import Table

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--page", action="store_true", help="print Markdown")
    page = parser.parse_args().page
    with TemporaryDirectory() as folder:
        asked = requests()
        ledger, done = two_years(Path(folder) / "ledger.db", asked)
        assert ledger.verify().sound
        rows, said = compared(ledger, asked), told(ledger, done)
    console = Console(soft_wrap=page, highlight=False, markup=False)
    if page:
        console.print(f"{said}\n\n{as_page(rows)}")
        return
    table = Table(*HEAD)
    for row in rows:
        table.add_row(*cells(row))
    console.print(said)
    console.print(table)


if __name__ == "__main__":
    main()
