"""Write the oracle's answers: `python -m tests.oracles.generate`. Interrupted, it resumes.

special_plans.json holds chosen hard plans, random_plans.json a seeded sample. Rates, noise
multipliers and deltas are floats whose exact values are meant; steps are integers. Each direction
holds `epsilon` as a string of 20 digits ("0" where delta(0) <= delta) with method "levy", or the
strings `lower` and `upper` with method "lattice" where `levy` cannot answer.
"""

from __future__ import annotations

import json
import math
import random
import sys
import time
from pathlib import Path
from typing import Any

from mpmath import mp

from tests.oracles.lattice import lattice
from tests.oracles.levy import Direction, LevyError, Plan, epsilons, renyi_epsilon

HERE = Path(__file__).parent
SEED = 20240229
COUNT = 300
DIGITS = 20
DIRECTIONS: tuple[Direction, ...] = ("remove", "add")

SPECIAL: tuple[tuple[float, float, int, float], ...] = (
    (1e-6, 0.8, 10**9, 1e-10),
    (0.01, 1.0, 1000, 1e-100),
    (0.01, 1.0, 1000, 1e-300),
    (0.01, 1.0, 10, 1e-5),
    (1e-6, 0.7, 10**7, 1e-8),
    (3.2e-4, 1.5, 109, 5e-10),
    (6.1e-5, 0.83, 4840, 1.8e-8),
)


def _sample(count: int) -> list[tuple[float, float, int, float]]:
    """Seeded plans, every parameter log-uniform: (rate, noise multiplier, steps, delta)."""
    source = random.Random(SEED)

    def log_uniform(low: float, high: float) -> float:
        return math.exp(source.uniform(math.log(low), math.log(high)))

    return [
        (
            log_uniform(1e-5, 0.5),
            log_uniform(0.5, 10),
            round(log_uniform(30, 1e6)),
            log_uniform(1e-30, 1e-4),
        )
        for _ in range(count)
    ]


def _bracket(plan: Plan, delta: float, direction: Direction) -> dict[str, str]:
    """Lower and upper ends of epsilon from the lattice, made twice: the second nearer the root."""
    rate, scale = plan.rough
    guess = renyi_epsilon(plan, math.log(delta))
    for _ in range(2):
        curves = lattice(rate, scale, plan.steps, direction, epsilon=guess)
        ends = curves.epsilon(delta)
        guess = max(ends.upper, 1e-9)
    return {"method": "lattice", "lower": repr(ends.lower), "upper": repr(ends.upper)}


def _answer(rate: float, noise_multiplier: float, steps: int, delta: float) -> dict[str, Any]:
    """One row of a file."""
    plan = Plan(rate, noise_multiplier, steps)
    row: dict[str, Any] = {
        "rate": rate,
        "noise_multiplier": noise_multiplier,
        "steps": steps,
        "delta": delta,
    }
    try:
        found = epsilons(plan, delta)
    except LevyError:
        return row | {d: _bracket(plan, delta, d) for d in DIRECTIONS}
    for direction, value in found.items():
        text = mp.nstr(value, DIGITS) if value else "0"
        row[direction] = {"method": "levy", "epsilon": text}
    return row


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    """Replace the file in one move."""
    lines = ",\n".join(json.dumps(row) for row in rows)
    partial = path.with_suffix(".partial")
    partial.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    partial.replace(path)


def _fill(path: Path, plans: list[tuple[float, float, int, float]]) -> None:
    """Append the answers that the file lacks, one by one."""
    rows = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    for plan in plans[len(rows) :]:
        start = time.perf_counter()
        rows.append(_answer(*plan))
        _write(path, rows)
        seconds = time.perf_counter() - start
        sys.stderr.write(f"{path.stem} {len(rows)}: {plan} {seconds:.1f} s\n")


def main() -> None:
    """Both files, the special plans first."""
    _fill(HERE / "special_plans.json", list(SPECIAL))
    _fill(HERE / "random_plans.json", _sample(COUNT))


if __name__ == "__main__":
    main()
