"""Freeze answers, or compare today's with the frozen ones.

--write asks every question anew, --write --missing only those that the table lacks: the latter goes
on where an interrupted run ended. --check says what changed, and exits with 1 where an answer is
neither the same nor narrower; with --slack 1e-12 any end may be so far from where it was, as it is
from machine to machine, and with --wider 1e-9 an interval may become so wide. Times are only
reported: the kinds of answers that take more than 1.1 times as long, also when asked again.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import signal
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import Final, TypeVar

from benchmarks.frozen.answers import Frozen, TooLong, frozen, told
from benchmarks.frozen.comparing import difference, same_number, truths
from benchmarks.frozen.table import read, write
from hockeystick.kernels import compiled

_SLOWER: Final = 1.1
_ROUNDS: Final = 3  # how often the answers of a kind are asked again before it is called slower
_NO_LIMIT: Final = 600.0
_SAVED: Final = 200  # answers, after which the table is written
_Told = TypeVar("_Told")


def main() -> int:
    """Return the exit status: 1 where an answer changed as it must not."""
    parser = argparse.ArgumentParser(description=__doc__)
    does = parser.add_mutually_exclusive_group(required=True)
    does.add_argument("--write", action="store_true", help="make the table")
    does.add_argument("--check", action="store_true", help="compare with the table")
    parser.add_argument("--missing", action="store_true", help="write only what the table lacks")
    parser.add_argument("--about", default="", help="only questions or kinds with this text")
    parser.add_argument("--sample", type=int, help="check so many, drawn at random")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    parser.add_argument("--slack", type=Decimal, default=Decimal(0), help="relative, for any end")
    parser.add_argument("--wider", type=Decimal, default=Decimal(0), help="relative, to a width")
    parser.add_argument("--limit", type=float, default=2.0, help="seconds; slower is not written")
    parser.add_argument("--asks", type=int, default=3, help="how often, where that is quick")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    if given.write:
        return _write(given)
    table = read()
    asked = [one for one in table.values() if _is_about(one, given.about)]
    if given.sample is not None:
        asked = random.Random(given.seed).sample(asked, min(given.sample, len(asked)))
        _say(f"seed {given.seed}")
    return _check(table, asked, given)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _is_about(one: Frozen, text: str) -> bool:
    return text in one.kind or text in one.question


def _write(given: argparse.Namespace) -> int:
    from benchmarks.frozen.questions import questions

    table = read()
    every = {question: Frozen(kind, question, "", 0.0) for kind, question in questions()}
    wanted = [one for one in every.values() if _is_about(one, given.about)]
    wanted = [one for one in wanted if not (given.missing and one.question in table)]
    random.Random(given.seed).shuffle(wanted)  # so that what an interrupt leaves is a fair part
    ask = partial(_asked, asks=given.asks, limit=given.limit)
    with suppress(KeyboardInterrupt):
        for place, (asked, found) in enumerate(_in_processes(wanted, ask, given.workers), 1):
            table.pop(asked.question, None)
            if found is None:
                _say(f"left out, over {given.limit:g} s: {asked.question}")
            else:
                table[asked.question] = found
            if place % _SAVED == 0:
                write(table[question] for question in every if question in table)
    write(table[question] for question in every if question in table)
    return 0


def _check(table: dict[str, Frozen], asked: Sequence[Frozen], given: argparse.Namespace) -> int:
    known = truths(table.values())
    new: dict[str, Frozen] = {}
    changes: Counter[str] = Counter()
    failed = 0
    ask = partial(_asked, asks=1, limit=_NO_LIMIT)
    with suppress(KeyboardInterrupt):  # what there is by then is kept
        for before, found in _in_processes(asked, ask, given.workers):
            answer = "! it takes minutes" if found is None else found.answer
            truth = known.get(same_number(before.question))
            right, change = difference(before, answer, given.slack, truth, given.wider)
            if found is not None:
                new[before.question] = found
            changes[change or "the same"] += 1
            failed += not right
            if not right:
                _say(f"CHANGED, {change}: {before.question}\n  {before.answer}\n  {answer}")
    _say(", ".join(f"{count} {change}" for change, count in changes.most_common()))
    with suppress(KeyboardInterrupt):  # what there is by then is kept
        _tell_times(table, new, given.workers)
    return 1 if failed else 0


def _tell_times(table: dict[str, Frozen], new: dict[str, Frozen], workers: int) -> None:
    for _ in range(_ROUNDS):
        slower = _slower(table, new)
        again = [new[q] for q in new if new[q].kind in slower and new[q].time > table[q].time]
        ask = partial(_asked, asks=3, limit=_NO_LIMIT)
        for before, found in _in_processes(again, ask, workers) if again else ():
            if found is not None and found.time < before.time:
                new[before.question] = found
    spent, now = (sum(one[q].time for q in new) / 1e3 for one in (table, new))
    _say(f"{now:.1f} s of the processor, {spent:.1f} s in the table")
    for kind, (before_time, after_time) in sorted(_slower(table, new).items()):
        _say(f"slower, {after_time / before_time:.2f} times: {kind}, {after_time:.3g} ms in all")


def _slower(table: dict[str, Frozen], new: dict[str, Frozen]) -> dict[str, tuple[float, float]]:
    sums: dict[str, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for question, one in new.items():
        before, after = sums[one.kind]
        sums[one.kind] = before + table[question].time, after + one.time
    return {kind: both for kind, both in sums.items() if both[1] > _SLOWER * both[0]}


def _asked(one: Frozen, asks: int, limit: float) -> Frozen | None:
    try:
        return frozen(one.kind, one.question, asks, limit)
    except TooLong:
        return None


def _warm() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    compiled.load()
    for accountant in ("auto", "contour", "prv", "rdp"):
        plan = "hs.PoissonSubsampled(hs.Gaussian(1.0), 0.1)**3"
        told(f"hs.epsilon({plan}, 1e-5, accountant={accountant!r})")


def _in_processes(
    asked: Sequence[Frozen], ask: Callable[[Frozen], _Told], workers: int
) -> Iterator[tuple[Frozen, _Told]]:
    start = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(workers, _warm) as pool:
        for place, (one, found) in enumerate(zip(asked, pool.imap(ask, asked, 4), strict=True), 1):
            yield one, found
            if place % 50 == 0 or place == len(asked):
                sys.stderr.write(f"\r{place} of {len(asked)}, {time.perf_counter() - start:.0f} s ")
                sys.stderr.flush()
    sys.stderr.write("\n")
