"""The plan that the words of a command stand for: ``[PLAN] [NAME=VALUE]...``."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, final

import click

from hockeystick._suggest import hint
from hockeystick.calibration.solve.fields import locate, name_of, numeric_paths, spelled
from hockeystick.calibration.sweeps.questions import with_fields
from hockeystick.cli import options
from hockeystick.cli.group import for_group
from hockeystick.errors import HockeystickError, ParameterError, PlanFileError
from hockeystick.io import PlanFile, parse, parse_plan
from hockeystick.io.building import Blanks, parameters_of
from hockeystick.io.call_text import is_call_text, plan_of_text
from hockeystick.io.plan_file import MOST_BYTES, content_of, document_of, plan_in, shown
from hockeystick.io.vocabulary import ALTERNATIVES
from hockeystick.mechanisms import DPSGD, Mechanism
from hockeystick.notions import Notion

STDIN: Final = "-"
_NAMED: Final = re.compile(r"([A-Za-z][\w-]*(?:\[\d+\])?(?:\.[\w-]+(?:\[\d+\])?)*)=(.*)", re.DOTALL)
_IN_PYTHON: Final = re.compile(r"\s*DPSGD\s*\(")
# Fields of DPSGD whose value is a name.
_WORDS: Final = ("sampling", "adjacency", "clipping")
_HOW: Final = (
    "Give a plan file, a plan as 'Laplace(2)**3 @ Gaussian(4)', or the numbers of DP-SGD as "
    "rate=0.004 steps=14000 noise_multiplier=1.1"
)


@final
@dataclass(frozen=True, slots=True)
class Source:
    """A plan, as the command line has it.

    Args:
        text: What was given for it.
        content: What the file or standard input holds; None where the text itself is the plan.
    """

    text: str
    content: bytes | None

    @classmethod
    def of(cls, text: str) -> Source:
        """Return what a word stands for, of which a file is read."""
        if is_call_text(text):
            return cls(text, None)
        if text == STDIN:
            return cls(text, b"" if sys.stdin is None else sys.stdin.buffer.read(MOST_BYTES + 1))
        return cls(text, content_of(text))

    @property
    def name(self) -> str:
        """What to call it."""
        return "standard input" if self.text == STDIN else shown(self.text)

    @property
    def is_training(self) -> bool:
        """Whether it is DP-SGD, whose fields may be replaced by their names."""
        if self.content is None:
            return _IN_PYTHON.match(self.text) is not None
        with suppress(PlanFileError):
            return "dpsgd" in document_of(self.content)
        return False

    def file(
        self, values: Mapping[str, str] | None = None, blanks: Blanks | None = None
    ) -> PlanFile:
        """Return the plan, with what a file says about it.

        Args:
            values: Texts by the names of what they replace: a field of DP-SGD, or a path in the
                file, as release[0].scale, or in the plan, as parts[1].scale.
            blanks: What collects the numbers that the plan leaves out.
        """
        fields: dict[str, Any] = {}
        of_file: dict[str, Any] = {}
        of_plan: dict[str, Any] = {}
        for name, text in (values or {}).items():
            field = name.removeprefix("dpsgd.")
            if field != name or (self.is_training and name in parameters_of(DPSGD)):
                fields[field] = _value(field, text)
            else:
                (of_file if name.startswith("release[") else of_plan)[name] = _value(name, text)
        if self.content is not None:
            file = plan_in(self.content, self.name, fields, of_file, blanks)
        elif of_file:
            raise click.UsageError(f"{next(iter(of_file))}: {self.text!r} is no plan file")
        else:
            file = PlanFile(plan=plan_of_text(self.text, fields, blanks))
        return replace(file, plan=_replaced(file.plan, of_plan))

    def left_out(self) -> str | None:
        """Return the one number that the plan lacks, None where something else is wrong."""
        blanks = Blanks()
        try:
            self.file(blanks=blanks)
        except HockeystickError:
            return None
        return blanks.names[0] if len(blanks.names) == 1 else None


def read(words: Sequence[str]) -> tuple[Source | None, dict[str, str]]:
    """Return what is given for one plan, and the values by their names, or raise."""
    plans, values = split(words)
    if len(plans) > 1:
        raise click.UsageError(f"one plan is wanted, and NAME=VALUE; got {' and '.join(plans)}")
    return Source.of(plans[0]) if plans else None, values


def split(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the words that stand for plans, and the values by their names, or raise."""
    plans: list[str] = []
    values: dict[str, str] = {}
    for word in words:
        found = _NAMED.fullmatch(word)
        if found is None:
            plans.append(word)
            continue
        name = found[1].replace("-", "_")
        if name in values:
            raise click.UsageError(f"{name} is given twice; give it once")
        values[name] = found[2].strip()
    return plans, values


def plan_of(words: Sequence[str], group: str | None = None) -> PlanFile:
    """Return the plan of a command's words; of a group of records where one is given."""
    return for_group(plan_file(*read(words)), group)


def plan_file(
    source: Source | None, values: Mapping[str, str], blanks: Blanks | None = None
) -> PlanFile:
    """Return a plan with values in place; without a source, values alone describe DP-SGD."""
    if source is not None:
        return source.file(values, blanks)
    if not values:
        raise click.UsageError(_HOW)
    known = parameters_of(DPSGD)
    for name in values:
        if name not in known:
            raise click.UsageError(f"DP-SGD has no {name}{hint(name, known)}")
    fields = {name: _value(name, text) for name, text in values.items()}
    if "adjacency" not in fields and (adjacency := options.default("adjacency")) is not None:
        fields["adjacency"] = adjacency
    fields = fields if blanks is None else blanks.filled(DPSGD, fields)
    if "noise_multiplier" not in fields:
        raise click.UsageError("Missing noise_multiplier=Z")
    make: Callable[..., DPSGD] = DPSGD
    return PlanFile(plan=make(**fields))


def notion(text: str) -> Notion:
    """Return the notion that a text writes out, or raise."""
    plan = parse_plan(text)
    if not isinstance(plan, Notion):
        raise click.UsageError(f"{text!r} is no notion; write 'ApproxDP(epsilon=3, delta=1e-5)'")
    return plan


def _value(name: str, text: str) -> Any:
    """Return the value of a text: a number, unless its name says otherwise."""
    last = name.rpartition(".")[2]
    if last == "drop_last" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    return text if last in _WORDS else parse(text)


def _replaced(plan: Mechanism, values: Mapping[str, object]) -> Mechanism:
    """Return the plan with numbers in place, or raise."""
    for path in values:
        if isinstance(plan, DPSGD) and path in ALTERNATIVES:
            continue
        try:
            locate(plan, path)
        except ParameterError as error:
            known = [one for way in numeric_paths(plan) for one in (spelled(way), name_of(way))]
            message = f"{path}: this must be {error.allowed}{hint(path, known)}"
            raise click.UsageError(message) from None
    return with_fields(plan, values) if values else plan
