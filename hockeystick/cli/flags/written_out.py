"""What to write for the flags of a plan, where a command takes plans that are written out alone."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

_NUMBERS: Final = (
    "examples",
    "batch_size",
    "rate",
    "epochs",
    "steps",
    "noise_multiplier",
    "batch_cap",
    "examples_per_user",
)
_NAMES: Final = ("sampling", "clipping", "adjacency")
_SAID: Final = "drop_last"
_IN_THE_PLAN: Final = (
    ": what the plan says itself is changed there; noise alone has no adjacency, but the "
    "sensitivity of the neighbours meant, as Gaussian(5 / sqrt(2))"
)


def written_out(words: Sequence[str], flag: str) -> str:
    """Return the hint that writes flags of DP-SGD out; nothing where the flag is none of a plan.

    Example:
        >>> written_out(("--rate", "0.1", "--steps=9", "--to", "GDP"), "--rate")
        ": write the plan out: hockeystick convert 'DPSGD(rate=0.1, steps=9)' --to GDP"
    """
    fields: dict[str, str] = {}
    rest: list[str] = []
    left = list(words)
    while left:
        name, given, value = left.pop(0).partition("=")
        field = name.removeprefix("--").replace("-", "_")
        if not name.startswith("--") or field not in (*_NUMBERS, *_NAMES, _SAID):
            rest.append(name + given + value)
            continue
        if field == _SAID:
            fields[field] = "True"
            continue
        value = value if given or not left else left.pop(0)
        fields[field] = value if field in _NUMBERS else f'"{value}"'
    if flag.removeprefix("--").replace("-", "_") not in fields:
        return ""
    if any("(" in word or word.endswith(".toml") for word in rest):
        return _IN_THE_PLAN
    plan = f"DPSGD({', '.join(f'{name}={value}' for name, value in fields.items())})"
    return f": write the plan out: {shlex.join(['hockeystick', 'convert', plan, *rest])}"
