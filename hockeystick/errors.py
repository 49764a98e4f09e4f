"""The exceptions that the library raises on purpose: all share one base, each says one line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Final

_LISTED: Final = re.compile(r"'([^']+)'")
# What papers and other libraries call parameters and neighbours.
_ALIASES: Final = {
    "noise_multiplier": ("sigma", "z", "noise"),
    "scale": ("noise",),
    "epsilon": ("eps",),
    "rate": ("q", "sample_rate", "sampling_probability"),
    "examples": ("n", "num_examples"),
    "steps": ("t", "num_steps"),
    "rounds": ("t", "num_steps"),
    "batch_size": ("lot_size", "batch"),
    "add_remove": ("add_or_remove", "unbounded"),
    "replace_one": ("bounded", "substitution", "replace"),
    "zero_out": ("replace_special",),
}


def hint(name: object, names: Iterable[str]) -> str:
    """Return which of the names is meant, to follow an error; nothing if none is near."""
    if not isinstance(name, str):
        return ""
    text, known = _plain(name), {_plain(one): one for one in names}
    found = [one for one, others in _ALIASES.items() if text in others and one in known]
    found += difflib.get_close_matches(text, known, n=1, cutoff=0.7)
    return f" (did you mean {known[found[0]]!r}?)" if found else ""


def same_name(value: str, names: Iterable[str]) -> str:
    """Return the name that differs from a text in capitals and dashes alone, else the text."""
    return {_plain(one): one for one in names}.get(_plain(value), value)


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_")


def _shown(value: object) -> str:
    """Return the value as one short line, whatever it is."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, int) and value.bit_length() > 128:
        sign = "a negative integer" if value < 0 else "an integer"
        return f"{sign} of {value.bit_length()} bits"
    try:
        text = " ".join(repr(value).split())
    except Exception:
        return f"an unprintable {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."


class HockeystickError(Exception):
    """The base of every exception that the library raises on purpose."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ParameterError(HockeystickError, ValueError):
    """A parameter lies outside its domain.

    Args:
        name: The parameter's name in the public interface, or several joined by ", ".
        value: What was given, unchanged.
        allowed: What is allowed, worded to follow "must be".
        names: Names among which the error guesses what was meant, besides those in quotes.

    Example:
        >>> import hockeystick as hs
        >>> hs.Gaussian(noise_multiplier=-1)
        Traceback (most recent call last):
        ...
        hockeystick.errors.ParameterError: noise_multiplier must be a number >= 0 or inf; got -1
    """

    def __init__(
        self, name: str, value: object, allowed: str, *, names: Iterable[str] = ()
    ) -> None:
        super().__init__(name, value, allowed)
        self.name = name
        self.value = value
        self.allowed = allowed
        self._names = tuple(names)

    def __str__(self) -> str:
        listed = (*_LISTED.findall(self.allowed), *self._names)
        text = f"{self.name} must be {self.allowed}; got {_shown(self.value)}"
        return text + hint(self.value, listed)


class IncompatibleError(HockeystickError, ValueError):
    """The parts of a plan cannot be accounted together; says why and what to do instead."""


class NoGroupFormError(IncompatibleError):
    """No mechanism is known that costs one record what this one costs a group of records."""


class InfeasibleError(HockeystickError):
    """No value of a parameter makes a plan meet a target.

    Args:
        sentence: What cannot be reached, and why.
        best: The value of the parameter that comes nearest.
        lower: Proven lower end of what the plan has there, in the target's own quantity.
        upper: Proven upper end.
    """

    def __init__(self, sentence: str, best: float, lower: float, upper: float) -> None:
        super().__init__(sentence, best, lower, upper)
        self.best = best
        self.lower = lower
        self.upper = upper


class UnsupportedError(HockeystickError):
    """The accountant knows no analysis for a part of the plan.

    Args:
        accountant: The accountant's name.
        path: Where in the plan the part stands, and what it is.
        reason: Why there is no analysis, or what to use instead.
    """

    def __init__(self, accountant: str, path: str, reason: str) -> None:
        super().__init__(accountant, path, reason)
        self.accountant = accountant
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"accountant {self.accountant!r} cannot account for {self.path}: {self.reason}"


class BudgetExhausted(HockeystickError):  # noqa: N818 - named as the guarantee it keeps
    """A step was refused before it ran, since the budget does not cover it.

    Args:
        asked: What the step would cost, a guarantee.
        spent: What has been spent before it.
        left: What one more step may cost.
        step: What was to run, in words.
        told: What there is and what to do, in words, in place of the three guarantees.
    """

    def __init__(
        self, asked: object, spent: object, left: object, step: str, told: str = ""
    ) -> None:
        super().__init__(asked, spent, left, step, told)
        self._told = told
        self.asked = asked
        self.spent = spent
        self.left = left
        self.step = step

    def __str__(self) -> str:
        amounts = (self.asked, self.spent, self.left)
        asked, spent, left = (one if isinstance(one, str) else repr(one) for one in amounts)
        told = f"it would cost {asked}; spent are {spent}, and left for one step {left}"
        return f"the budget does not cover {self.step}: {self._told or told}"


class PlanFileError(HockeystickError):
    """A plan file cannot be read, or does not describe a plan."""


class AnswerError(HockeystickError, ValueError):
    """What was to be verified cannot be read, or is no answer that could be verified."""


class LedgerError(HockeystickError):
    """A ledger cannot be used as it is: missing, busy, damaged, foreign, newer or read-only."""
