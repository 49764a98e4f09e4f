"""Verify a thousand random answers, and the same with an end moved to the wrong side.

    python benchmarks/verify_answers.py --count 1000 --seed 1 --workers 2 --to answers.jsonl

Every plan is drawn log-uniformly: rates 1e-5 to 0.9, noise 0.4 to 20, 1 to 1e7 runs, delta 1e-30 to
1e-2. An altered answer has its upper end lowered, or its lower end raised, by the larger of 1e-8 of
its value and ten widths.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import random
import signal
import statistics
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

import hockeystick as hs
from hockeystick import verifier
from hockeystick.calibration import describe

RELATIVE = 1e-8
WIDTHS = 10
PATIENCE = 120  # seconds
STATUSES = ("verified", "not covered", "refuted")


def log_uniform(draw: random.Random, low: float, high: float) -> float:
    """Return a number of four digits, log-uniform between two."""
    return float(f"{math.exp(draw.uniform(math.log(low), math.log(high))):.4g}")


def whole(draw: random.Random, low: float, high: float) -> int:
    """Return a whole number, log-uniform between two."""
    return round(math.exp(draw.uniform(math.log(low), math.log(high))))


def sampled(draw: random.Random, adjacency: str) -> hs.Mechanism:
    """Return many steps on Poisson samples with Gaussian noise."""
    noise, rate = log_uniform(draw, 0.4, 20), log_uniform(draw, 1e-5, 0.9)
    return hs.PoissonSubsampled(hs.Gaussian(noise), rate=rate, adjacency=adjacency) ** whole(
        draw, 1, 1e7
    )


def training(draw: random.Random, adjacency: str) -> hs.Mechanism:
    """Return a DP-SGD plan, every other one with a schedule."""
    examples = whole(draw, 100, 1e7)
    rate = log_uniform(draw, max(1e-5, 1 / examples), 0.9)
    batch = max(1, min(round(rate * examples), examples))
    schedule = None
    steps = whole(draw, 1, 1e7)
    if draw.random() < 0.5:
        steps = whole(draw, 10, 1e5)
        factors = [round(draw.uniform(0.7, 1.8), 2) for _ in range(draw.randint(2, 6))]
        counts = [steps // len(factors)] * (len(factors) - 1)
        counts.append(steps - sum(counts))
        schedule = hs.schedules.Piecewise(list(zip(counts, factors, strict=True)))
    return hs.DPSGD(
        examples=examples,
        batch_size=batch,
        steps=steps,
        noise_multiplier=log_uniform(draw, 0.4, 20),
        adjacency=adjacency,
        schedule=schedule,
    )


def fixed_size(draw: random.Random, adjacency: str) -> hs.Mechanism:
    """Return many steps on samples of fixed size."""
    examples = whole(draw, 10, 1e6)
    batch = min(max(1, round(log_uniform(draw, 1e-5, 0.9) * examples)), examples - 1)
    step = hs.FixedSizeSubsampled(
        hs.Gaussian(log_uniform(draw, 0.4, 20)), batch, examples, adjacency=adjacency
    )
    return step ** whole(draw, 1, 1e5)


def guarantee(draw: random.Random, adjacency: str) -> hs.Mechanism:
    """Return runs of which only a guarantee is known, or plain Gaussian noise."""
    epsilon = log_uniform(draw, 1e-3, 2)
    one = draw.choice(
        [
            hs.Gaussian(log_uniform(draw, 0.4, 20)),
            hs.GDP(log_uniform(draw, 0.01, 3)),
            hs.PureDP(epsilon),
            hs.ApproxDP(epsilon, log_uniform(draw, 1e-40, 1e-12)),
        ]
    )
    return one ** whole(draw, 1, 1e4)


def discrete(draw: random.Random, adjacency: str) -> hs.Mechanism:
    """Return runs with integer noise, or randomized responses."""
    one = draw.choice(
        [
            hs.RandomizedResponse(log_uniform(draw, 1e-3, 3), draw.randint(2, 10)),
            hs.DiscreteGaussian(log_uniform(draw, 0.4, 20), draw.randint(1, 3)),
            hs.DiscreteLaplace(log_uniform(draw, 0.4, 20), draw.randint(1, 3)),
        ]
    )
    return one ** whole(draw, 1, 1e4)


def laplace(draw: random.Random, adjacency: str) -> hs.Mechanism:
    """Return runs with Laplace noise, half of them on Poisson samples."""
    one: hs.Mechanism = hs.Laplace(log_uniform(draw, 0.4, 20))
    if draw.random() < 0.5:
        one = hs.PoissonSubsampled(one, rate=log_uniform(draw, 1e-3, 0.9))
    return one ** whole(draw, 1, 1e5)


def mixture(draw: random.Random, adjacency: str) -> hs.Mechanism:
    """Return steps on samples together with other releases."""
    others = [
        draw.choice((guarantee, discrete, laplace))(draw, "add-remove")
        for _ in range(draw.randint(1, 2))
    ]
    plan = sampled(draw, "add-remove")
    for other in others:
        plan = plan @ (other.inner if isinstance(other, hs.Repeated) else other)
    return plan


KINDS = {
    sampled: 35,
    training: 20,
    mixture: 15,
    guarantee: 8,
    discrete: 8,
    fixed_size: 8,
    laplace: 6,
}


def answer(draw: random.Random) -> tuple[str, dict[str, Any]]:
    """Return a random answer's kind and its document."""
    kind = draw.choices(list(KINDS), list(KINDS.values()))[0]
    adjacencies = ("replace-one", "zero-out", "add-remove")
    plan = kind(draw, draw.choice(adjacencies))
    delta = log_uniform(draw, 1e-30, 1e-2)
    found = hs.epsilon(plan, delta=delta)
    at = {"delta": delta}
    if draw.random() < 0.15 and 0 < found.upper < math.inf:
        at = {"epsilon": float(f"{found.upper:.3g}")}
        found = hs.delta(plan, epsilon=at["epsilon"])
    told = {key: "inf" if value == math.inf else value for key, value in found.as_dict().items()}
    head = {"schema": "hockeystick-answer/1", "version": hs.__version__, "at": at}
    return kind.__name__, {**head, "description": describe(plan), **told}


def altered(document: dict[str, Any], draw: random.Random) -> dict[str, Any] | None:
    """Return the answer with an end on the wrong side, or nothing where no end can be moved."""
    lower, upper = float(document["lower"]), float(document["upper"])
    if not 0 < upper < math.inf:
        return None
    shift = max(RELATIVE * upper, WIDTHS * (upper - lower))
    if draw.random() < 0.5 and lower > 0 and (document["quantity"] == "epsilon" or upper < 1):
        moved = max(lower + shift, upper + shift)
        return {**document, "lower": lower + shift, "upper": moved}
    if upper - shift <= 0:
        return None
    return {
        **document,
        "upper": upper - shift,
        "lower": max(0.0, min(lower, upper - shift) - shift),
    }


def judged(document: dict[str, Any]) -> dict[str, Any]:
    """Return the verdict on a document, and the processor's seconds that it took."""
    start = time.process_time()
    verdict = verifier.verify(json.dumps(document))
    seconds = time.process_time() - start
    return {
        "status": verdict.status,
        "reason": verdict.reason,
        "seconds": seconds,
        "balls": [check.ball for check in verdict.checks],
    }


class LateError(Exception):
    """A trial took longer than anyone waits."""


def ring(*_: object) -> None:
    """Raise, by the alarm."""
    raise LateError


def trial(seed: str) -> dict[str, Any]:
    """Return what became of one random answer and of its alteration."""
    signal.signal(signal.SIGALRM, ring)
    signal.alarm(PATIENCE)
    try:
        return tried(seed)
    except hs.errors.HockeystickError as error:
        return {"seed": seed, "kind": "refused", "reason": str(error)}
    except LateError:
        return {"seed": seed, "kind": "late"}
    finally:
        signal.alarm(0)


def tried(seed: str) -> dict[str, Any]:
    """Return the same, or raise."""
    draw = random.Random(seed)
    start = time.perf_counter()
    kind, document = answer(draw)
    told: dict[str, Any] = {"seed": seed, "kind": kind, "library": time.perf_counter() - start}
    told |= {"document": document, "verdict": judged(document)}
    wrong = altered(document, draw)
    if wrong is not None and told["verdict"]["status"] == "verified":
        told["altered"] = {**judged(wrong), "ends": [wrong["lower"], wrong["upper"]]}
    return told


def table(trials: list[dict[str, Any]]) -> str:
    """Return what became of the trials, in Markdown."""
    answered = [told for told in trials if "verdict" in told]
    seconds = sorted(told["verdict"]["seconds"] for told in answered)
    by_kind = Counter((told["kind"], told["verdict"]["status"]) for told in answered)
    rows = [
        f"| {kind} | " + " | ".join(str(by_kind[kind, status]) for status in STATUSES) + " |"
        for kind in sorted({kind for kind, _ in by_kind})
    ]
    moved = Counter(told["altered"]["status"] for told in answered if "altered" in told)
    reasons = Counter(
        (told["kind"], told["verdict"]["reason"])
        for told in answered
        if told["verdict"]["status"] != "verified"
    )
    other = Counter(told["kind"] for told in trials if "verdict" not in told)
    return "\n".join(
        [
            f"{len(answered)} answers; with none, or no verdict in {PATIENCE} s: {dict(other)}.",
            "",
            "| kind | " + " | ".join(STATUSES) + " |",
            "| :-- | --: | --: | --: |",
            *rows,
            "",
            f"Processor time of a verdict: median {statistics.median(seconds):.2f} s, 95th"
            f" percentile {seconds[int(0.95 * len(seconds))]:.1f} s, most {seconds[-1]:.0f} s.",
            f"With an end on the wrong side: {dict(moved)}.",
            "",
            *(f"- {count} {kind}: {reason}" for (kind, reason), count in reasons.most_common()),
        ]
    )


def main() -> None:
    """Run the trials and print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--to", type=Path, default=Path("answers.jsonl"))
    args = parser.parse_args()
    seeds = [f"{args.seed}:{k}" for k in range(args.count)]
    trials = []
    with (
        multiprocessing.Pool(args.workers) as pool,
        args.to.open("w") as file,
        Progress(console=Console(stderr=True)) as progress,
    ):
        task = progress.add_task("verdicts", total=len(seeds))
        for told in pool.imap_unordered(trial, seeds):
            trials.append(told)
            file.write(json.dumps(told) + "\n")
            file.flush()
            progress.advance(task)
    sys.stdout.write(table(trials) + "\n")


if __name__ == "__main__":
    main()
