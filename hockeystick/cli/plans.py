"""The plan that the words of a command stand for: ``[PLAN] [NAME=VALUE]...``."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import starmap
from typing import Any, Final, TypeVar, final

import click

from hockeystick._suggest import hint
from hockeystick.calibration import read_description
from hockeystick.calibration.solve.fields import locate, numeric_paths, spelled
from hockeystick.calibration.solve.fields import name_of as last_of
from hockeystick.calibration.sweeps.questions import with_fields
from hockeystick.cli import flags, of_group
from hockeystick.cli.of_group import OfGroup
from hockeystick.cli.refusal import wrong_parameter
from hockeystick.errors import HockeystickError, ParameterError, PlanFileError
from hockeystick.io import parse, parse_plan, shown
from hockeystick.io.building import Blanks, parameters_of, required_by
from hockeystick.io.call_text import computed_in, is_call_text, parse_real, plan_of_text
from hockeystick.io.plan_file import (
    MOST_BYTES,
    TABLES,
    PlanFile,
    content_of,
    plan_file_of,
    plan_in,
    plan_text,
    problems_in,
)
from hockeystick.io.vocabulary import ALTERNATIVES, IN_PYTHON_ONLY, RELEASES, TOP_KEYS
from hockeystick.mechanisms import DPSGD, Mechanism
from hockeystick.notions import NOTIONS, Notion

_Command = TypeVar("_Command", bound=Callable[..., Any])

STDIN: Final = "-"
# What a plan file may be called whose plan comes from elsewhere.
UNNAMED: Final = "plan.toml"
_JSON: Final = b"{"
_NAMED: Final = re.compile(r"([A-Za-z][\w-]*(?:\[\d+\])?(?:\.[\w-]+(?:\[\d+\])?)*)=(.*)", re.DOTALL)
_OF_FILE: Final = re.compile(r"release\[.*")
_TRAINING: Final = re.compile(rb"(?m)^\s*\[\s*dpsgd\s*\]|^\s*dpsgd\s*[.=]")
_IN_PYTHON: Final = re.compile(r"\s*DPSGD\s*\(")
# Fields of DPSGD whose value is a name or a truth value.
_WORDS: Final = ("sampling", "adjacency", "clipping")
_TRUTH: Final = {"true": True, "yes": True, "false": False, "no": False}
_HOW: Final = (
    "Give a plan file, a plan as 'Laplace(2)**3 @ Gaussian(4)', or the numbers of DP-SGD as "
    "rate=0.004 steps=14000 noise_multiplier=1.1"
)
_NO_FILE: Final = (
    f"{IN_PYTHON_ONLY} states a trade-off function, which no plan file and no text can hold: use "
    f"it in Python, hs.{IN_PYTHON_ONLY}(...)"
)


def plan_words(command: _Command) -> _Command:
    """Add the plan, and what replaces numbers in it."""
    return click.argument("words", metavar="[PLAN] [NAME=VALUE]...", nargs=-1)(command)


@final
@dataclass(frozen=True, slots=True)
class Source:
    """A plan, as the command line has it.

    Args:
        text: What was given for it.
        content: What the file or standard input holds; None where the text itself is the plan.
        is_json: Whether that was JSON, of which the content is the plan as a plan file has it.
    """

    text: str
    content: bytes | None
    is_json: bool = False

    @property
    def name(self) -> str:
        """What to call it."""
        name = name_of(self.text)
        return f"the plan of {name}" if self.is_json else name

    @property
    def file_name(self) -> str | None:
        """The name of the plan file, or of one that would have this plan; None of a text."""
        if self.content is None:
            return None
        return UNNAMED if self.text == STDIN or self.is_json else self.text

    @property
    def is_training(self) -> bool:
        """Whether it is DP-SGD, whose fields may be replaced by their names."""
        if self.content is None:
            return _IN_PYTHON.match(self.text) is not None
        return _TRAINING.search(self.content) is not None

    def plan_file(
        self,
        overrides: Mapping[str, object] | None = None,
        numbers: Mapping[str, object] | None = None,
        blanks: Blanks | None = None,
    ) -> PlanFile:
        """Return the plan, with what a file says about it.

        Args:
            overrides: Fields that replace those of the table [dpsgd], or of a DPSGD.
            numbers: Numbers that replace others of a plan file, by their paths.
            blanks: What collects the numbers that the plan leaves out.
        """
        if self.content is not None:
            try:
                return plan_in(self.content, self.name, overrides, numbers, blanks)
            except PlanFileError as error:
                if not (self.is_json or overrides or numbers or blanks):
                    _note_others(self, error)
                raise
        if numbers:
            raise click.UsageError(f"{next(iter(numbers))}: {self.text!r} is no plan file")
        return PlanFile(plan=plan_of_text(self.text, overrides or {}, blanks))

    def left_out(
        self,
        overrides: Mapping[str, object] | None = None,
        numbers: Mapping[str, object] | None = None,
    ) -> str | None:
        """Return the one number that the plan lacks, None where something else is wrong."""
        blanks = Blanks()
        try:
            self.plan_file(overrides, numbers, blanks)
        except HockeystickError:
            return None
        return blanks.names[0] if len(blanks.names) == 1 else None


def _note_others(given: Source, error: PlanFileError) -> None:
    """Note of an error of a plan file that there are others, and what lists them."""
    more = len(problems_in(given.content or b"")) - 1
    if more > 0:
        named = shlex.quote(given.text)
        verb = "lists them" if more > 1 else "tells it"
        error.add_note(f"{more} more: hockeystick check {named} {verb}")


@final
@dataclass(frozen=True, slots=True)
class Words:
    """A plan, and what replaces numbers in it.

    Args:
        plan: A file, a text that writes it out, or - for standard input; None for DP-SGD whose
            numbers are all given by name.
        values: Texts by their names: fields of DP-SGD, numbers by their paths in a plan as
            ``parts[1].scale``, or in a file as ``release[0].scale``.
    """

    plan: str | None
    values: Mapping[str, str]

    def file(self, blanks: Blanks | None = None, *, group: str | None = None) -> PlanFile:
        """Return the plan, with what a file says about it; of a group of records where one is."""
        return self.of(None if self.plan is None else source(self.plan), blanks, group=group)

    def of(
        self, given: Source | None, blanks: Blanks | None = None, *, group: str | None = None
    ) -> PlanFile:
        """Return the same of a source that was read before."""
        fields, of_file, of_plan = self._sorted(given)
        with _blamed({**fields, **of_file, **of_plan}):
            if given is None:
                file = _trained(fields, blanks)
            else:
                try:
                    file = given.plan_file(fields, of_file, blanks)
                except PlanFileError as error:
                    left_out = None if blanks else given.left_out(fields, of_file)
                    if left_out is not None:
                        hint = "is left out: hockeystick solve finds it"
                        raise PlanFileError(f"{error}; {left_out} {hint}") from None
                    raise
            applied = replace(file, plan=_applied(file.plan, of_plan))
        return of_group.for_group(applied, group)

    def _sorted(
        self, given: Source | None
    ) -> tuple[dict[str, Any], dict[str, object], dict[str, object]]:
        """Return values of DP-SGD by their fields, of a file by their paths, and of a plan."""
        fields: dict[str, Any] = {}
        of_file: dict[str, object] = {}
        of_plan: dict[str, object] = {}
        known = parameters_of(DPSGD)
        for name, text in self.values.items():
            value = _value(name, text)
            field = name.removeprefix("dpsgd.")
            if field != name or given is None or (given.is_training and name in known):
                if field not in known:
                    raise click.UsageError(f"DP-SGD has no {field}{hint(field, known)}")
                fields[field] = value
            else:
                (of_file if _OF_FILE.fullmatch(name) else of_plan)[name] = value
        if given is None and fields and "adjacency" not in fields:
            adjacency = flags.default("adjacency")
            fields |= {} if adjacency is None else {"adjacency": adjacency}
        return fields, of_file, of_plan


def words_of(texts: Sequence[str]) -> Words:
    """Return the words of a command about one plan, or raise."""
    plans, values = split(texts)
    if len(plans) > 1:
        raise click.UsageError(f"one plan is wanted, and NAME=VALUE; got {' and '.join(plans)}")
    return Words(plans[0] if plans else None, values)


def split(texts: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return plans, and the values by their names, or raise."""
    plans: list[str] = []
    values: dict[str, str] = {}
    for text in texts:
        found = _NAMED.fullmatch(text)
        if found is None:
            plans.append(text)
            continue
        name = found[1].replace("-", "_")
        if name in values:
            raise click.UsageError(f"{name} is given twice; give it once")
        values[name] = found[2].strip()
    return plans, values


def _value(name: str, text: str) -> Any:
    """Return the value of a text: a number, unless its name says otherwise."""
    last = name.rpartition(".")[2]
    if last in _WORDS:
        return text
    if last == "drop_last" and text.lower() in _TRUTH:
        return _TRUTH[text.lower()]
    return parse(text)


def _trained(fields: dict[str, Any], blanks: Blanks | None) -> PlanFile:
    """Return the plan of DP-SGD that names and values alone describe."""
    if not fields:
        raise click.UsageError(_HOW)
    known = fields if blanks is None else blanks.filled(DPSGD, fields)
    if "noise_multiplier" not in known:
        raise click.UsageError("Missing noise_multiplier=Z")
    make: Callable[..., DPSGD] = DPSGD
    return PlanFile(plan=make(**known))


def _applied(plan: Mechanism, values: Mapping[str, object]) -> Mechanism:
    """Return the plan with numbers in place, or raise."""
    for path in values:
        if isinstance(plan, DPSGD) and path in ALTERNATIVES:
            continue
        try:
            locate(plan, path)
        except ParameterError as error:
            known = [one for way in numeric_paths(plan) for one in (spelled(way), last_of(way))]
            said = f"{path}: this must be {error.allowed}{hint(path, known)}"
            raise click.UsageError(said) from None
    return with_fields(plan, values) if values else plan


@contextmanager
def _blamed(given: Mapping[str, object]) -> Iterator[None]:
    """Name the path where it is a number given by one that is wrong."""
    try:
        yield
    except HockeystickError as error:
        wrong = wrong_parameter(error)
        paths = [path for path in given if wrong and path.rpartition(".")[2] == wrong.name]
        if wrong is not None and paths and given[paths[0]] == wrong.value:
            raise click.UsageError(f"{paths[0]}: {error}") from None
        raise


def name_of(text: str) -> str:
    """Return what to call what was given for a plan."""
    return "standard input" if text == STDIN else shown(text)


def source(text: str) -> Source:
    """Return a source, of which a file is read."""
    if is_call_text(text):
        return Source(text, None)
    if text == STDIN:
        piped = b"" if sys.stdin is None else sys.stdin.buffer.read(MOST_BYTES + 1)
        return _of_content(text, piped, name_of(text))
    _refuse_bare(text)
    return _of_content(text, content_of(text), name_of(text))


def _of_content(text: str, content: bytes, name: str) -> Source:
    """Return a source that holds a plan file, or JSON that stands for one."""
    if not content.lstrip().startswith(_JSON):
        return Source(text, content)

    written = toml_of(content, name)
    return Source(text, content) if written is None else Source(text, written, is_json=True)


def notion(text: str) -> Notion:
    """Return the notion that a text writes out, or raise."""
    if not isinstance(parse(text), str):
        example = f"ApproxDP({text.strip()}, 1e-5)"
        raise click.UsageError(f"{text!r} is only a number: write for example {example!r}")
    known = ", ".join(name for name in NOTIONS if name in RELEASES)
    wanted = f"write one of {known} with its numbers, such as 'ApproxDP(epsilon=3, delta=1e-5)'"
    try:
        plan = parse_plan(text)
    except PlanFileError as error:
        if any(name in text or name in str(error).partition("(did")[2] for name in NOTIONS):
            raise
        raise click.UsageError(f"{text!r} is no notion of privacy; {wanted}") from None
    if not isinstance(plan, Notion):
        raise click.UsageError(f"{text!r} is no notion; {wanted}")
    return plan


def load(text: str) -> PlanFile:
    """Return the plan that a text stands for."""
    return source(text).plan_file()


def _refuse_bare(text: str) -> None:
    """Raise where the name of a mechanism is given alone, and no file has it."""
    if os.path.exists(text):
        return
    if text in RELEASES:
        wanted = ", ".join(f"{name}=..." for name in required_by(RELEASES[text])) or "..."
        raise click.UsageError(f"{text} needs its numbers: write '{text}({wanted})'")
    if text.upper() == IN_PYTHON_ONLY:
        raise click.UsageError(_NO_FILE)
    near = hint(text, RELEASES) if text.isidentifier() else ""
    if near:
        raise click.UsageError(f"{text!r} is neither a plan file nor a mechanism{near}")


_TEXTS: Final = TOP_KEYS[:3]
_QUESTIONS: Final = TOP_KEYS[3:]


def toml_of(content: bytes, name: str) -> bytes | None:
    """Return the plan file that JSON stands for; None where it stands for none.

    An answer stands for the plan that it is of, asked where it was; a solution for the plan with
    the value that was found.

    Args:
        content: What a file holds.
        name: What to call it.

    Raises:
        PlanFileError: If it stands for a plan, and for none that is right or that a file can hold.
    """
    try:
        told = json.loads(content, parse_float=parse_real, object_pairs_hook=_once)
        file = _plan_file(told)
        return None if file is None else plan_text(file).encode()
    except json.JSONDecodeError as error:
        raise PlanFileError(f"{name}:{error.lineno}: no valid JSON: {error.msg}") from None
    except HockeystickError as error:
        raise PlanFileError(f"{name}: {error}") from None
    except (ValueError, RecursionError):
        return None


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object whose keys are there once, or raise."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise PlanFileError(f"{key!r} is there twice")
        found[key] = value
    return found


def _plan_file(told: Mapping[str, Any]) -> PlanFile | None:
    """Return the plan of an object; None where it has none."""
    if "description" in told:
        _refuse_group(told.get("plan"))
        at = _asked(told)
        said: dict[str, Any] = {key: told[key] for key in _TEXTS if isinstance(told.get(key), str)}
        said |= {key: float(at[key]) for key in _QUESTIONS if key in at}
        return PlanFile(plan=read_description(told["description"]), **said)
    if "type" in told:
        return PlanFile(plan=read_description(told))
    if any(name in told for name in TABLES):
        return plan_file_of(computed_in(_given(told)), {})
    _refuse_rows(told.get("rows"))
    return None


def _refuse_rows(rows: object) -> None:
    """Raise for answers at several values, which are of as many plans."""
    if not isinstance(rows, list):
        return
    of_each = [one["parameters"] for one in rows if isinstance(one, dict) and "parameters" in one]
    if of_each and all(isinstance(one, dict) and one for one in of_each):
        flags = " ".join(starmap(_flag, of_each[0].items()))
        raise PlanFileError(
            f"this holds several plans, in {len(rows)} rows, and one is wanted: ask for one value "
            f"of each number, such as {flags}, and give that answer"
        )


def _flag(name: str, value: object) -> str:
    """Return how one value of a parameter is asked for."""
    if name in _QUESTIONS:
        return f"--{name} {value}"
    return f"{name}={value}" if name.isidentifier() else f"'{name}={value}'"


def _refuse_group(plan: object) -> None:
    """Raise for an answer that is about several records: its description is of one who costs so."""
    if isinstance(plan, dict) and plan.get("mechanism") == OfGroup.__name__:
        flag = f"--group {plan.get('size')}"
        raise PlanFileError(f"this answer is for a group: give the plan that it is of, and {flag}")


def _given(node: Any) -> Any:
    """Return what has a value: JSON says null where a plan file has no line."""
    if isinstance(node, dict):
        return {key: _given(one) for key, one in node.items() if one is not None}
    return [_given(one) for one in node] if isinstance(node, list) else node


def _asked(told: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return where an answer was asked; of a solution, the delta of its target."""
    budget = told.get("budget", {})
    return told.get("at") or {key: budget[key] for key in ("delta",) if key in budget}
