"""Judge a random sample: `python -m tests.judge --count 5000 --seed 1`."""

from __future__ import annotations

import argparse
import re
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TextIO

from tests.judge.judging import Outcome, Tally, asked, numbered

_CHUNK = 25


def _say(text: str, stream: TextIO = sys.stdout) -> None:
    stream.write(f"{text}\n")
    stream.flush()


def _is_about(pattern: str, seed: int, index: int) -> bool:
    return not pattern or re.search(pattern, numbered(seed, index).line) is not None


def _several(indices: list[int], seed: int, seconds: float) -> list[Outcome]:
    return [asked(seed, index, seconds) for index in indices]


def _table(tally: Tally) -> str:
    lines = [f"{'mechanism':28} {'operation':24} asked above below refused faulty"]
    for (kind, operation), row in sorted(tally.rows.items()):
        lines.append(f"{kind:28} {operation:24} " + " ".join(f"{n:5}" for n in row))
    lines.append(f"{'all':28} {'':24} " + " ".join(f"{n:5}" for n in tally.totals))
    return "\n".join(lines)


def main() -> int:
    """Ask, judge, print; the exit status tells whether anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    parser.add_argument("--seconds", type=float, default=2.0, help="limit for one answer")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--about", default="", help="ask only lines with this regular expression")
    given = parser.parse_args()
    tally, start, slowest = Tally(), time.perf_counter(), []
    chosen = [k for k in range(given.count) if _is_about(given.about, given.seed, k)]
    chunks = [chosen[first : first + _CHUNK] for first in range(0, len(chosen), _CHUNK)]
    work = partial(_several, seed=given.seed, seconds=given.seconds)
    _say(f"seed {given.seed}, {len(chosen)} questions")
    with ProcessPoolExecutor(given.workers) as pool:
        for place, found in enumerate(pool.map(work, chunks)):
            for one in found:
                tally.add(one)
                slowest.append((one.seconds, one.line))
                if one.faults:
                    more = f" (and {len(one.faults) - 1} more)" if one.faults[1:] else ""
                    _say(f"VIOLATION {one.line}   # {one.faults[0]}{more}")
            if place % 8 == 7:
                done = (place + 1) * _CHUNK
                passed = time.perf_counter() - start
                _say(f"{done} of {len(chosen)}, {passed:.0f} s", sys.stderr)
    _say(_table(tally))
    _say("\nrefusals:")
    for reason, count in tally.refusals.most_common(60):
        _say(f"{count:5}  {reason}")
    _say("\nslowest:")
    for seconds, line in sorted(slowest, reverse=True)[:12]:
        _say(f"{seconds:6.1f} s  {line}")
    asked_in_all, above, below, refused, faulty = tally.totals
    _say(
        f"\nseed {given.seed}: {asked_in_all} questions in {time.perf_counter() - start:.0f} s, "
        f"{above} upper ends and {below} lower ends judged, {refused} refused, {faulty} at fault"
    )
    return 1 if tally.faulty else 0


if __name__ == "__main__":
    sys.exit(main())
