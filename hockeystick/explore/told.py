"""What the page is told: answers in words and columns, every end rounded to its safe side."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final

from hockeystick.answers.cautions import cautions_at
from hockeystick.answers.shown import meaning
from hockeystick.errors import PlanFileError
from hockeystick.explore.answers import READ_AT, Attack, Solved
from hockeystick.explore.controls import choices_of, sliders_of
from hockeystick.explore.figures import drawn
from hockeystick.explore.state import State
from hockeystick.io.plan_file import plan_text
from hockeystick.mechanisms import DPSGD, Sampling
from hockeystick.numerics.numerals import at_most, interval, plain
from hockeystick.reports import Point
from hockeystick.reports.figures import is_wide, shown
from hockeystick.reports.words import per_cent
from hockeystick.results import Certified
from hockeystick.tradeoffs.reading import percent_at_most

Told = dict[str, Any]
FILE_NAME: Final = "plan.toml"
# What a plan is made of that no flag can say.
_NO_FLAGS: Final = ("schedule", "batch_schedule", "extra")


def plan_told(state: State, words: Sequence[str], is_slow: bool) -> Told:
    """Return a plan in words, as a file and as a command, and where its controls stand."""
    return {
        "part": "plan",
        "words": list(words),
        "toml": _toml(state),
        "command": command_of(state),
        "values": _values(state),
        "slow": is_slow,
    }


def headline_told(
    state: State, answer: Certified, *, is_final: bool = True, is_slow: bool = False
) -> Told:
    """Return epsilon: its upper end to quote, the proven interval, and what to know besides."""
    lower, upper = interval(answer.lower, answer.upper)
    is_bounded = answer.upper < math.inf
    known = cautions_at(state.plan, epsilon=answer.upper, delta=state.delta)
    return {
        "part": "headline",
        "final": is_final,
        "slow": is_slow,
        "bounded": is_bounded,
        "epsilon": at_most(answer.upper),
        "number": answer.upper if is_bounded else None,
        "delta": plain(state.delta),
        "interval": f"exactly {upper}" if lower == upper else f"from {lower} to {upper}",
        "accountant": answer.accountant,
        "meaning": meaning(answer.lower, answer.upper, state.delta),
        "cautions": [{"text": one.text, "mild": one.is_mild} for one in known],
    }


def attack_told(found: Attack) -> Told:
    """Return what an attacker could learn: the curve, true positive rates, the advantage."""
    rates = zip(READ_AT, found.finds, strict=True)
    return {
        "part": "trade-off",
        "columns": drawn("trade-off", found.misses),
        "wide": is_wide(found.misses),
        "finds": {per_cent(plain(rate)): percent_at_most(power) for rate, power in rates},
        "advantage": percent_at_most(found.advantage),
    }


def curve_told(name: str, points: Sequence[Point], *, unit: str = "", done: bool = True) -> Told:
    """Return a curve of epsilons; what is infinite has no place in a picture."""
    known = shown(points, log=name == "noise")
    return {
        "part": name,
        "columns": drawn(name, known),
        "wide": is_wide(known),
        "unit": unit,
        "done": done,
    }


def solved_told(found: Solved, target: float, delta: float) -> Told:
    """Return a number that was solved for."""
    label = found.name.replace("_", " ")
    return {
        "part": "solved",
        "name": found.name,
        "value": found.value,
        "words": f"{label} {plain(found.value)}: epsilon is at most {at_most(found.upper)}, "
        f"within {plain(target)}, at delta = {plain(delta)}",
    }


def refused_told(part: str, message: str) -> Told:
    """Return why a part has no answer."""
    return {"part": part, "refused": message}


def command_of(state: State) -> str:
    """Return the command line that gives the same epsilon.

    Flags say it where they can; else it reads the plan file of the page.
    """
    plan, delta = state.plan, ["--delta", repr(state.delta)]
    if not isinstance(plan, DPSGD) or any(getattr(plan, name) is not None for name in _NO_FLAGS):
        return shlex.join(["hockeystick", "epsilon", FILE_NAME, *delta])
    flags = []
    for field in fields(plan):
        value = getattr(plan, field.name)
        if value not in (None, field.default, Sampling.POISSON):
            flags += [f"--{field.name.replace('_', '-')}", _flag(value)]
    return shlex.join(["hockeystick", "epsilon", *flags, *delta])


def _values(state: State) -> dict[str, float | str]:
    """Return where the controls stand; what no slider can reach has no place."""
    sliders = {one.name: one.value for one in sliders_of(state) if one.value < math.inf}
    return {**sliders, **{one.name: one.value for one in choices_of(state)}}


def _flag(value: Any) -> str:
    """Return a value as a flag has it."""
    return value if isinstance(value, str) else plain(value)


def _toml(state: State) -> str | None:
    """Return the plan as a file, None where no file can hold it."""
    try:
        return plan_text(state.file)
    except PlanFileError:
        return None
