"""The plan that the words of a command stand for, and what it costs several records together."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, final

import click

import hockeystick as hs
from hockeystick import _validate
from hockeystick.adjacency import Adjacency
from hockeystick.calibration.sweeps.questions import with_fields
from hockeystick.cli import options
from hockeystick.errors import HockeystickError, ParameterError, PlanFileError
from hockeystick.io import PlanFile, parse, parse_plan
from hockeystick.io.call_text import is_call_text, plan_of_text
from hockeystick.io.plan_file import MOST_BYTES, content_of, document_of, plan_in, shown
from hockeystick.io.vocabulary import Blanks, parameters_of
from hockeystick.mechanisms.base import Plan
from hockeystick.mechanisms.scope import Fact, unit_of
from hockeystick.notions import Notion

# What a plan assumes of a single record, and a group does not.
_ALONE: Final = "Nobody has more than one "
_THEOREMS: Final = (
    "Gaussian noise: k times less of it; rho-zCDP: k^2 rho, Bun and Steinke 2016, proposition 1.9; "
    "samples: PoissonSubsampledGroup"
)
# What asks about a plan, and is none of its numbers.
_ASKED: Final = {"delta", "epsilon"}
_SIZE: Final = _validate.whole_numbers("K", 1, (2, 10))


@final
@dataclass(frozen=True, slots=True)
class OfGroup(Plan):
    """A plan for one record, asked what it costs any ``size`` >= 2 of its records together."""

    plan: hs.Mechanism
    size: int

    @property
    def mechanism(self) -> hs.Mechanism:
        """A mechanism that costs one record what the plan costs the group."""
        return _grown(self.plan, self.size)

    @property
    def adjacency(self) -> Adjacency | None:
        return self.plan.adjacency

    @property
    def scope(self) -> tuple[Fact, ...]:
        return self.plan.scope

    @property
    def theorem(self) -> str:
        """Why the group costs no more than the mechanism."""
        return f"for {self.together}, by each part's own form for a group ({_THEOREMS})"

    @property
    def assumptions(self) -> tuple[str, ...]:
        group = (
            f"What is protected is {self.together}: nobody has more than {self.size}.",
            f"What follows describes the plan for a single {unit_of(self.plan)}.",
        )
        rest = (one for one in self.plan.assumptions if not one.startswith(_ALONE))
        return (*group, *rest)

    @property
    def together(self) -> str:
        """What the plan protects all of."""
        return f"any {self.size} {unit_of(self.plan)}s together"

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return f"{self.together}, of {self.plan}", ()


def _grown(plan: hs.Mechanism, size: int) -> hs.Mechanism:
    """Return what costs one record what a plan costs the group, for which all parts have a form.

    A plan that stands for another one is not opened, unless all of a group may be in each of its
    samples: where records take turns, its parts are those of one record, and not of a group.
    """
    if isinstance(plan, hs.Composed):
        return hs.Composed(_grown(part, size) for part in plan.parts)
    if isinstance(plan, hs.Repeated):
        return _grown(plan.inner, size) ** plan.count
    if isinstance(plan, hs.mechanisms.FedSDP):
        return _grown(plan.mechanism, size)
    if isinstance(plan, hs.DPSGD) and plan.examples_per_user > 1:
        raise click.UsageError(
            f"Give --group or examples_per_user, not both; the plan has {plan.examples_per_user}"
        )
    if isinstance(plan, hs.DPSGD) and plan.sampling is hs.mechanisms.Sampling.POISSON:
        extra = None if plan.extra is None else _grown(plan.extra, size)
        return replace(plan, examples_per_user=size, extra=extra)
    if isinstance(plan, hs.PoissonSubsampled) and isinstance(plan.inner, hs.Gaussian):
        return hs.mechanisms.PoissonSubsampledGroup(plan.inner, plan.rate, size, plan.adjacency)
    return plan.for_group(size)


def _for_group(file: PlanFile, size: int) -> PlanFile:
    if size == 1:
        return file
    grown = _grown(file.plan, size)
    # Training says so itself where it is all of the plan.
    alone = isinstance(grown, hs.DPSGD) and grown.extra is None
    return replace(file, plan=grown if alone else OfGroup(file.plan, size))


def for_one(file: PlanFile) -> PlanFile:
    """Return a plan file that can be written: the plan for one record, and a note of the group."""
    plan = file.plan
    if not isinstance(plan, OfGroup):
        return file
    note = f"For {plan.together}: ask with --group {plan.size}."
    return replace(file, plan=plan.plan, notes=_noted(file, note))


def _noted(file: PlanFile, note: str) -> str:
    return note if file.notes is None else f"{file.notes} {note}"


def on_a_page(file: PlanFile, besides: Mapping[str, object]) -> tuple[PlanFile, OfGroup | None]:
    """Return what a page is about, the plan that costs one record as much, and the group if any.

    Title and notes say whom; what is asked ``besides``, by its flag, is about one record alone.
    """
    plan = file.plan
    if not isinstance(plan, OfGroup):
        return file, None
    for flag, given in besides.items():
        if given is not None:
            raise click.UsageError(f"Give --group or {flag}, not both: {flag} is about one record")
    notes = _noted(file, f"The numbers are for {plan}: {plan.theorem}.")
    title = None if file.title is None else f"{file.title} (for {plan.together})"
    return replace(file, plan=plan.mechanism, title=title, notes=notes), plan


STDIN: Final = "-"
_NAMED: Final = re.compile(r"([A-Za-z][\w-]*(?:\[\d+\])?(?:\.[\w-]+(?:\[\d+\])?)*)=(.*)", re.DOTALL)
# The plan where NAME=VALUE alone is given.
_TRAINING: Final = "DPSGD()"
_IN_PYTHON: Final = re.compile(r"\s*DPSGD\s*\(")
_HOW: Final = (
    "Give a plan file, a plan as 'Laplace(2)**3 @ Gaussian(4)', or the numbers of DP-SGD as "
    "rate=0.004 steps=14000 noise_multiplier=1.1"
)


def standard_input(most: int = -1) -> bytes:
    """Return what there is to be read."""
    return b"" if sys.stdin is None else sys.stdin.buffer.read(most)


@final
@dataclass(frozen=True, slots=True)
class Source:
    """A plan as the command line has it.

    Args:
        text: The plan in Python, or the name of a file.
        content: What the file holds; None where the text is the plan.
        values: What replaces fields of DP-SGD, or what stands at paths in the plan.
        group: How many records are to be protected together.
    """

    text: str
    content: bytes | None
    values: Mapping[str, str] = field(default_factory=dict)
    group: int = 1

    @classmethod
    def of(cls, text: str, values: Mapping[str, str] | None = None, group: Any = None) -> Source:
        """Return what a word stands for, of which a file is read."""
        size = 1 if group is None else _validate.count("group", group, _SIZE)
        content = None
        if text == STDIN:
            content = standard_input(MOST_BYTES + 1)
        elif not is_call_text(text):
            content = content_of(text)
        return cls(text, content, values or {}, size)

    @property
    def name(self) -> str:
        """What to call it."""
        if self.text == _TRAINING:
            return "DP-SGD"
        return "standard input" if self.text == STDIN else shown(self.text)

    @property
    def words(self) -> list[str]:
        """What was given for it."""
        plan = [] if self.text == _TRAINING else [self.text]
        group = [] if self.group == 1 else ["--group", str(self.group)]
        return [*plan, *(f"{name}={text}" for name, text in self.values.items()), *group]

    @property
    def _is_training(self) -> bool:
        """Whether it is DP-SGD, whose fields may be replaced by their names."""
        if self.content is None:
            return _IN_PYTHON.match(self.text) is not None
        with suppress(PlanFileError):
            return "dpsgd" in document_of(self.content)
        return False

    def file(self, blanks: Blanks | None = None) -> PlanFile:
        """Return the plan, with what a file says about it; ``blanks`` collects what it lacks."""
        fields: dict[str, Any] = {}
        of_plan: dict[str, Any] = {}
        known = parameters_of(hs.DPSGD) if self._is_training else {}
        for name, text in self.values.items():
            own = name.removeprefix("dpsgd.")
            is_own = own in known or own != name or self.text == _TRAINING
            target = fields if is_own and own not in _ASKED else of_plan
            target[own if is_own else name] = _value(text)
        if self.text == _TRAINING and "adjacency" not in fields:
            adjacency = options.default("adjacency")
            fields |= {} if adjacency is None else {"adjacency": adjacency}
        if self.content is None:
            file = PlanFile(plan=plan_of_text(self.text, fields, blanks))
        else:
            file = plan_in(self.content, self.name, fields, blanks)
        try:
            file = replace(file, plan=with_fields(file.plan, of_plan)) if of_plan else file
        except ParameterError:
            if asked := _ASKED & of_plan.keys():
                flags = " and ".join(f"--{name}" for name in sorted(asked))
                raise click.UsageError(f"where to ask is said by {flags}, not NAME=VALUE") from None
            raise
        return _for_group(file, self.group)

    def left_out(self) -> str | None:
        """Return the one number that the plan lacks, None where something else is wrong."""
        blanks = Blanks()
        try:
            self.file(blanks)
        except HockeystickError:
            return None
        return blanks.names[0] if len(blanks.names) == 1 else None


def source(words: Sequence[str], group: Any = None) -> Source:
    """Return the one plan of a command's words, or raise."""
    texts, values = _split(words)
    if len(texts) > 1:
        raise click.UsageError(f"one plan is wanted, and NAME=VALUE; got {' and '.join(texts)}")
    return Source.of(texts[0], values, group)


def sources(words: Sequence[str], group: Any = None) -> list[Source]:
    """Return the plans of a command's words, each with all NAME=VALUE, or raise."""
    texts, values = _split(words)
    return [Source.of(text, values, group) for text in texts]


def _split(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    texts: list[str] = []
    values: dict[str, str] = {}
    for word in words:
        found = _NAMED.fullmatch(word)
        if found is None:
            texts.append(word)
            continue
        name = found[1].replace("-", "_")
        if name in values:
            raise click.UsageError(f"{name} is given twice; give it once")
        values[name] = found[2].strip()
    if not words:
        raise click.UsageError(_HOW)
    return texts or [_TRAINING], values


def notion(text: str) -> Notion:
    """Return the notion that a text writes out, or raise."""
    plan = parse_plan(text)
    if not isinstance(plan, Notion):
        raise click.UsageError(f"{text!r} is no notion; write 'ApproxDP(epsilon=3, delta=1e-5)'")
    return plan


def _value(text: str) -> Any:
    """Return the number or the truth value that a text stands for, or else the text."""
    return {"true": True, "false": False}.get(text.lower(), parse(text))
