"""Judge a random sample: `python -m tests.judge --count 5000 --seed 1`."""

import argparse
import sys
import time

from tests.judge.judging import asked


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    parser.add_argument("--seconds", type=float, default=2.0, help="limit for one answer")
    given = parser.parse_args()
    above = below = refused = faulty = 0
    for index in range(given.count):
        one = asked(given.seed, index, seconds=given.seconds)
        above, below = above + one.upper, below + one.lower
        refused, faulty = refused + one.refused, faulty + bool(one.faults)
        for fault in one.faults[:1]:
            sys.stdout.write(f"VIOLATION {one.line}   # {fault}\n")
    sys.stdout.write(
        f"seed {given.seed}: {given.count} questions, {above} upper ends and {below} lower ends "
        f"judged, {refused} refused, {faulty} at fault\n"
    )
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
