"""The page: a template without figures, and tables of what was measured."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import Final

from benchmarks.pages import duration, rounded_up, table
from benchmarks.reporting import soundness, timing
from benchmarks.reporting.measured import Measured
from benchmarks.reporting.sides import DELTA_SHARE, EPSILON_ERROR, OWN, SIDES, is_answer
from benchmarks.reporting.soundness import Judged
from benchmarks.reporting.timing import Timed

TEMPLATE: Final = Path(__file__).with_name("template.md")
NOTHING: Final = "–"
BEGIN: Final = "<!-- summary, written by make bench -->"
END: Final = "<!-- end of the summary -->"
CLOSE: Final = 0.01
WORST: Final = 3
WIDTHS: Final = (1e-12, 1e-9, 1e-6, 1e-3, 1e-2, 0.1, 1.0)


def page(found: Measured) -> str:
    """Return the report."""
    template = Template(TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(_settings(found) | _tables(found))


def _settings(found: Measured) -> dict[str, str]:
    return {
        "repeats": str(found.effort.repeats),
        "limit": f"{found.effort.limit:g} s",
        "solve_limit": f"{found.effort.solve_limit:g} s",
        "long_share": f"{timing.LONG:.0%}",
        "epsilon_error": f"{EPSILON_ERROR:g}",
        "delta_share": f"{DELTA_SHARE:g}",
        "usual_delta": f"{soundness.USUAL_DELTA:g}",
        "widths": str(len(found.widths)),
        "budget_epsilon": f"{timing.BUDGET.epsilon:g}",
        "budget_delta": f"{timing.BUDGET.delta:g}",
    }


def _tables(found: Measured) -> dict[str, str]:
    absent = ", ".join(found.absent)
    return {
        "machine": table(("", "here"), found.machine.items()),
        "versions": table(("library", "version"), found.versions.items()),
        "absent": f"Not installed, so not asked: {absent}." if absent else "All sides were asked.",
        "summary": summary(found),
        "plans": plans(),
        "usual_answers": usual(found.usual, _printed),
        "usual_seconds": usual(found.usual, _beside),
        "sound_usual": sound(found.judged, usual=True),
        "sound_small": sound(found.judged, usual=False),
        "failures": failures(found.judged),
        "below": below(found.judged),
        "widths_table": widths(found),
        "growth": "\n\n".join(growth(curve) for curve in found.growth),
        "solved": solved(found.solved),
    }


def plans() -> str:
    """Return the usual plans."""
    return table(
        ("plan", "rate", "noise multiplier", "steps", "delta"),
        (
            (name, f"{one.rate:.4g}", f"{one.noises[0]:g}", f"{one.steps:,}", f"{one.delta:g}")
            for name, one in timing.USUAL.items()
        ),
    )


def summary(found: Measured) -> str:
    """Return the table that other pages show: a usual plan, and the random ones."""
    plan, usual = next(iter(found.usual.items()))
    head = (
        *("accountant", "promises", f"epsilon of {plan}", f"time for {plan}"),
        *(f"random plans answered in {found.effort.limit:g} s", "of these below the truth"),
        f"within {CLOSE:.0%} above it",
    )
    promises = {side.name: side.promise for side in SIDES}
    return table(
        head,
        (
            (name, promises[name], *_upper_and_time(usual[name]), *_standing(ones))
            for name, ones in found.judged.items()
            if name in usual
        ),
    )


def _upper_and_time(timed: Timed) -> tuple[str, str]:
    if timed.failure:
        return timed.failure, NOTHING
    return rounded_up(timed.answer[1], 6), duration(timed.seconds)


def _standing(found: list[Judged]) -> tuple[str, str, str]:
    answered = [one for one in found if one.answered]
    small = sum(one.too_small for one in answered)
    close = sum(one.excess <= CLOSE for one in answered) - small
    return f"{len(answered)} of {len(found)}", str(small), str(close)


def quoted(text: str) -> str:
    """Return the summary between its marks.

    Raises:
        ValueError: if a mark is not there.
    """
    _, _, rest = text.partition(BEGIN)
    inside, mark, _ = rest.partition(END)
    if not mark:
        raise ValueError(f"the summary has no {BEGIN} or no {END}")
    return inside


def with_summary(text: str, report: str) -> str:
    """Return a text whose summary is the report's."""
    return text.replace(f"{BEGIN}{quoted(text)}{END}", f"{BEGIN}{quoted(report)}{END}")


def usual(found: dict[str, dict[str, Timed]], cell: Callable[[Timed, Timed], str]) -> str:
    """Return a cell for what each side made of each usual plan, beside what was made of it here."""
    return table(
        ("accountant", "promises", *found),
        (
            (
                *(side.name, side.promise),
                *(cell(times[side.name], times[OWN.name]) for times in found.values()),
            )
            for side in SIDES
            if all(side.name in times for times in found.values())
        ),
    )


def _printed(timed: Timed, _: Timed) -> str:
    if timed.failure:
        return timed.failure
    lower, upper = timed.answer
    printed = rounded_up(upper, 8)
    return f"{printed} ({(upper - lower) / upper:.0e})" if lower > 0.0 else printed


def _beside(timed: Timed, own: Timed) -> str:
    if timed.failure:
        return timed.failure
    return f"{duration(timed.seconds)} ({timed.seconds / own.seconds:.3g})"


def sound(found: dict[str, list[Judged]], *, usual: bool) -> str:
    """Return how each side does against the truth, for usual deltas or for smaller ones."""
    head = (
        *("accountant", "promises", "plans", "answered", "too small", "too large"),
        *("lowest ratio", "median excess", "largest excess"),
    )
    promises = {side.name: side.promise for side in SIDES}
    return table(
        head,
        (
            (name, promises[name], *_sound([one for one in ones if one.case.usual is usual]))
            for name, ones in found.items()
        ),
    )


def _sound(found: list[Judged]) -> tuple[str, ...]:
    answered = [one for one in found if one.answered]
    small = sum(one.too_small for one in answered)
    excesses = [one.excess for one in answered if not one.too_small]
    share = f" ({small / len(answered):.0%})" if answered else ""
    return (
        str(len(found)),
        str(len(answered)),
        f"{small}{share}",
        str(sum(one.too_large for one in answered)),
        f"{min(one.ratio for one in answered):.6g}" if answered else NOTHING,
        f"{statistics.median(excesses):.1e}" if excesses else NOTHING,
        f"{max(excesses):.1e}" if excesses else NOTHING,
    )


def failures(found: dict[str, list[Judged]]) -> str:
    """Return why there were no answers."""
    rows = []
    for name, ones in found.items():
        reasons = Counter(one.failure for one in ones if one.failure)
        said = ", ".join(f"{reason} ({count})" for reason, count in reasons.most_common())
        rows.append((name, said or NOTHING))
    return table(("accountant", "reason (plans)"), rows)


def below(found: dict[str, list[Judged]]) -> str:
    """Return the worst of the numbers below the truth, with their plans."""
    own = {one.case: one for one in found[OWN.name]}
    head = (
        *("accountant", "rate", "noise multiplier", "steps", "delta", "printed", "truth"),
        *("hockeystick", "below its lower end"),
    )
    rows = []
    for name, ones in found.items():
        for one in soundness.worst(ones, WORST):
            rate, noises, steps, delta = one.case.question
            (lower, upper), printed = own[one.case].ends, one.ends[1]
            plan = (name, repr(rate), repr(noises[0]), str(steps), repr(delta))
            ends = (f"{printed:.9g}", f"{one.case.truth:.9g}", f"[{lower:.9g}, {upper:.9g}]")
            rows.append((*plan, *ends, "yes" if printed < lower else "no"))
    return table(head, rows) if rows else "None."


def widths(found: Measured) -> str:
    """Return the shares of plans whose upper ends are close to the truth."""
    everything = {f"{OWN.name}, {len(found.widths)} plans": found.widths} | found.judged
    head = ("accountant", *(f"≤ {width:g}" for width in WIDTHS), "no answer", "too small")
    return table(head, ((name, *_shares(ones)) for name, ones in everything.items()))


def _shares(found: list[Judged]) -> tuple[str, ...]:
    total = max(len(found), 1)
    above = [one.excess for one in found if one.answered and not one.too_small]
    return (
        *(f"{sum(one <= width for one in above) / total:.0%}" for width in WIDTHS),
        f"{sum(not one.answered for one in found) / total:.0%}",
        f"{sum(one.too_small for one in found) / total:.0%}",
    )


def growth(curve: timing.Curve) -> str:
    """Return how cost grows along an axis."""
    sizes = sorted({size for found in curve.found.values() for size in found})
    return table(
        (curve.axis, *(f"{size:g}" for size in sizes)),
        (
            (name, *(_cell(found.get(size)) for size in sizes))
            for name, found in curve.found.items()
        ),
    )


def _cell(timed: Timed | None) -> str:
    if timed is None:
        return NOTHING
    return timed.failure or duration(timed.seconds)


def solved(found: dict[str, timing.Solved]) -> str:
    """Return what each side finds for the noise."""
    own = found[OWN.name].timed
    head = (
        "accountant",
        "noise multiplier",
        "certified epsilon there",
        "within the budget",
        "time",
    )
    return table(
        head, ((name, *_noise(one), _beside(one.timed, own)) for name, one in found.items())
    )


def _noise(one: timing.Solved) -> tuple[str, str, str]:
    if one.timed.failure or one.certified is None or not is_answer(one.certified):
        return NOTHING, NOTHING, NOTHING
    lower, upper = one.certified
    budget = timing.BUDGET.epsilon
    kept = "yes" if upper <= budget else ("no" if lower > budget else "not decided")
    return f"{one.timed.answer:.8g}", f"[{lower:.9g}, {upper:.9g}]", kept
