"""What this library releases, audited: each function on worst neighbours; and with planted bugs.

    pip install 'hockeystick[torch,opacus]'
    python examples/audit/own_releases.py
    python examples/audit/own_releases.py --planted

The first asks whether any of the functions does worse than its certified trade-off curve, with one
confidence for all rows. The second plants mistakes, and counts the trials until each is refuted.
"""

from __future__ import annotations

import argparse
import logging
import warnings
from collections.abc import Iterable
from importlib.util import find_spec

from audited import CONFIDENCE, DELTA, Audited, Found, audits, certified
from choice_releases import choices, comparisons, reports, searches, streams
from click import echo
from noise_releases import gradients, numbers, statistics
from party_releases import federations, loops, networks

EVERYTHING = (
    *(numbers, statistics, gradients, choices, comparisons, searches, streams, reports),
    *(networks, federations, loops),
)
NEEDED = {"adapters.torch": "torch", "adapters.opacus": "opacus"}


def own() -> list[Audited]:
    """Return all rows that can be run here."""
    rows = [row for family in EVERYTHING for row in family()]
    return [row for row in rows if all(find_spec(NEEDED.get(one, "numpy")) for one in row.runs)]


def table(found: Iterable[Found]) -> int:
    """Print what audits of claims found, and return how many are refuted."""
    echo("| runs | claimed | trials | epsilon, certified | found, at least | verdict |")
    echo("|---|---|---:|---:|---:|---|")
    refuted = 0
    for one in found:
        name, plan = one.audited.name, one.audited.plan
        assert one.verdict.epsilon is not None
        values = f"{certified(plan):.3f} | {one.verdict.epsilon.value:.3f}"
        echo(f"| {name} | {plan} | {one.trials} | {values} | {type(one.verdict).__name__} |")
        refuted += one.refuted
    return refuted


def quiet() -> None:
    """Leave out what torch and Opacus say of empty batches and of their generators."""
    warnings.filterwarnings("ignore", module="opacus|torch|party_releases")
    logging.disable(logging.ERROR)


def main() -> None:
    """Print one of the two tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--share", type=float, default=1.0, help="of the trials of each row")
    parser.add_argument("--planted", action="store_true", help="audit planted bugs")
    asked = parser.parse_args()
    quiet()
    if asked.planted:
        from mistakes import report

        report()
    else:
        echo(f"confidence {CONFIDENCE:g} for all rows together, epsilon at delta {DELTA:g}\n")
        table(audits(own(), asked.share))


if __name__ == "__main__":
    main()
