"""What commands take: plans and groups, options, defaults, questions and budgets."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, NamedTuple, final

import click

import hockeystick as hs
from hockeystick import _validate
from hockeystick.accountants.auto import ACCOUNTANTS
from hockeystick.adjacency import Adjacency
from hockeystick.calibration.sweeps.questions import with_fields
from hockeystick.conversions import TARGETS
from hockeystick.errors import ParameterError, PlanFileError
from hockeystick.io import PlanFile, parse_plan
from hockeystick.io.call_text import is_call_text, parse, plan_of_text
from hockeystick.io.codec import Blanks, parameters_of
from hockeystick.io.plan_file import MOST_BYTES, content_of, document_of, plan_in
from hockeystick.mechanisms.base import Plan
from hockeystick.mechanisms.scope import Fact, unit_of
from hockeystick.notions import Notion
from hockeystick.results import Approximate, Certified, Quantity

LEDGER: Final = "HOCKEYSTICK_LEDGER"


def _keep(context: click.Context, option: click.Parameter, given: bool) -> None:
    context.meta[f"hockeystick.{option.name}"] = given


def is_given(name: str) -> bool:
    """Return whether "verbose", "short" or "json" is given to the command that is under way."""
    return bool(click.get_current_context().meta.get(f"hockeystick.{name}"))


def _text(flags: str, metavar: str | None, text: str = "", **more: Any) -> dict[str, Any]:
    return {"param_decls": flags.split(), "metavar": metavar, "help": text, **more}


def _flag(flags: str, text: str, **more: Any) -> dict[str, Any]:
    return _text(flags, None, text, is_flag=True, **more)


_number: Final = partial(_text, type=parse)
# A flag about what is printed, which no command is given itself.
_form: Final = partial(_flag, expose_value=False, callback=_keep)
_URL: Final = f"SQLite file, or postgresql://USER@HOST/DATABASE; by default ${LEDGER}."
OPTIONS: Final[Mapping[str, dict[str, Any]]] = {
    "accountant": _text(
        "--accountant", "NAME", f"One of {', '.join(ACCOUNTANTS)}.", default="auto"
    ),
    "adjacency": _text("--adjacency", "NAME", "Neighbours; add-remove by default."),
    "also": _text("--also", "DATASET", "Another dataset it reads.", multiple=True),
    "at_most": _number("--at-most", "X", "Exit status 1 unless it is proven to be at most this."),
    "audit": _text("--audit scores", "SCORES", "The scores of an attack on it."),
    "budget": _text("--budget", "NOTION", "'ApproxDP(2, 1e-6)'.", required=True),
    "confidence": _number("--confidence", "C", "How sure to be; 0.95 by default.", default="0.95"),
    "dataset": _text("--dataset", "NAME", "The dataset that it reads, of the ledger."),
    "delta": _number("--delta", "D", "Ask at this delta; by default the plan file's."),
    "digits": _number("--digits", "N", "Compute so many digits."),
    "epsilon": _number("--epsilon", "E", "Ask at this epsilon; by default the plan file's."),
    "expected": _text("--expected", "PLAN", "A plan as most sampled releases."),
    "force": _flag("--force", "Replace the file if it is there already."),
    "fpr": _text("--fpr", "P,...", "False positive rates; one is read in words."),
    "group": _number("--group", "K", "Protect any K records (or clients) together; 1 by default."),
    "head": _text("--head", "HEAD", "A head that was noted before."),
    "json": _form("--json", "Print JSON."),
    "key": _text("--key", "KEY", "What the run is called; a new name by default."),
    "ledger": _text("--ledger url", "URL", _URL, envvar=LEDGER),
    "list": _flag("--list list_all", "Only list all mechanisms and notions."),
    "note": _text("--note", "TEXT", "Why, for the entry.", default=""),
    "one_run": _flag("--one-run", "All scores come from one run with fair coins."),
    "orders": _text("--orders", "A,B,...", "Of RenyiDP; of TCDP the largest, omega."),
    "out": _text("-o --out", "FILE"),
    "parameter": _text("--parameter", "NAME", "What to solve for, as parts[1].scale."),
    "port": _number("--port", "N", "Where it is served; by default anywhere.", default="0"),
    "resume": _flag("--resume", "Take up a KEY that was reserved before."),
    "short": _form("--short", "Print only the number, rounded to its safe side."),
    "target": _text("--target", "TARGET", "Or a notion or attack, as 'GDP(1)'."),
    "to": _text("--to", "NAME", f"One of {', '.join(TARGETS)}.", required=True),
    "tolerance": _number("--tolerance", "TOL", "Relative width to go for."),
    "verbose": _form("-v --verbose", "Print all that is known of the answer."),
    "verify": _flag("--verify", "Have the answer verified by a second program."),
    "whole": _flag("--whole", "Let only whole values count: whole epochs, say."),
    "within": _text("--within", "DATASET", "The dataset that this one is a cap of."),
    "workers": _number("--workers", "N", "Work in N processes; 1 by default.", default="1"),
}
ARGUMENTS: Final[Mapping[str, dict[str, Any]]] = {
    "DATASET": {"param_decls": ["dataset"]},
    "DATASETS": {"param_decls": ["datasets"], "nargs": -1, "metavar": "[DATASET]..."},
    "FILE": {"param_decls": ["file"], "metavar": "FILE"},
    "FILES": {"param_decls": ["files"], "nargs": -1, "metavar": "PLAN...", "required": True},
    "GRID": {"param_decls": ["grid"], "metavar": "GRID.toml"},
    "KEY": {"param_decls": ["key"]},
    "LIKE": {"param_decls": ["like"], "metavar": "[LIKE]", "required": False},
    "NEW": {"param_decls": ["file"], "metavar": "[FILE]", "default": "plan.toml"},
    "PLAN": {"param_decls": ["plan"], "nargs": -1, "metavar": "[PLAN] [NAME=VALUE]..."},
    "[PLAN]": {"param_decls": ["maybe"], "nargs": -1, "metavar": "[PLAN] [NAME=VALUE]..."},
    "SCORES": {"param_decls": ["scores"], "metavar": "SCORES"},
}


def check_forms(verify: bool) -> None:
    """Raise where --verify has no verifier, or more is asked for than the number of --short."""
    if verify:
        hs.answers.require_verifier()
    if is_given("short") and (is_given("json") or verify):
        raise click.UsageError("--short prints one number: leave out --json and --verify")


_SIZE: Final = _validate.whole_numbers("K", 1, (2, 10))
# What a plan assumes of a single record, and a group does not.
_ALONE: Final = "Nobody has more than one "


@final
@dataclass(frozen=True, slots=True)
class OfGroup(Plan):
    """A plan for one record, asked what it costs any ``size`` >= 2 of its records together."""

    plan: hs.Mechanism
    size: int

    @property
    def mechanism(self) -> hs.Mechanism:
        """What costs one record what the plan costs the group."""
        return self.plan.for_group(self.size)

    @property
    def adjacency(self) -> Adjacency | None:
        return self.plan.adjacency

    @property
    def scope(self) -> tuple[Fact, ...]:
        return self.plan.scope

    @property
    def assumptions(self) -> tuple[str, ...]:
        group = (
            f"What is protected is {self.together}: nobody has more than {self.size}.",
            f"What follows describes the plan for a single {unit_of(self.plan)}.",
        )
        return (*group, *(one for one in self.plan.assumptions if not one.startswith(_ALONE)))

    @property
    def together(self) -> str:
        """What the plan protects all of."""
        return f"any {self.size} {unit_of(self.plan)}s together"

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return f"{self.together}, of {self.plan}", ()


def for_one(file: PlanFile) -> PlanFile:
    """Return a plan file that can be written: the plan for one record."""
    plan = file.plan
    return replace(file, plan=plan.plan) if isinstance(plan, OfGroup) else file


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
    """A plan as the command line has it: a text in Python, or the name of a file with its content.

    The values replace fields of DP-SGD, or what stands at paths; the group is protected together.
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
        return {_TRAINING: "DP-SGD", STDIN: "standard input"}.get(self.text, self.text)

    @property
    def words(self) -> list[str]:
        """What was given for it."""
        plan = [] if self.text == _TRAINING else [self.text]
        return [*plan, *(f"{name}={text}" for name, text in self.values.items())]

    @property
    def _is_training(self) -> bool:
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
            target = fields if name in known or self.text == _TRAINING else of_plan
            target[name] = {"true": True, "false": False}.get(text.lower(), parse(text))
        if self.content is None:
            file = PlanFile(plan=plan_of_text(self.text, fields, blanks))
        else:
            file = plan_in(self.content, self.name, fields, blanks)
        file = replace(file, plan=with_fields(file.plan, of_plan)) if of_plan else file
        if self.group == 1:
            return file
        grown = file.plan.for_group(self.group)
        # Training says so itself where it is all of the plan.
        alone = isinstance(grown, hs.DPSGD) and grown.extra is None
        return replace(file, plan=grown if alone else OfGroup(file.plan, self.group))


def source(words: Sequence[str], group: Any = None) -> Source:
    """Return the plan of a command's words, with all NAME=VALUE, or raise."""
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
    if len(texts) > 1:
        raise click.UsageError(f"one plan is wanted, and NAME=VALUE; got {' and '.join(texts)}")
    return Source.of(texts[0] if texts else _TRAINING, values, group)


def notion(text: str) -> Notion:
    """Return the notion that a text writes out, or raise."""
    plan = parse_plan(text)
    if not isinstance(plan, Notion):
        raise click.UsageError(f"{text!r} is no notion; write 'ApproxDP(epsilon=3, delta=1e-5)'")
    return plan


class Question(NamedTuple):
    """What is asked: epsilon at a delta, or delta at an epsilon."""

    name: str
    value: float
    quantity: Quantity
    # The same, as functions are given it.
    asked: dict[str, float]


def question(file: PlanFile, **flags: Any) -> Question:
    """Return where to ask: at the one flag that is given, or else where the file says."""
    given = {name: value for name, value in flags.items() if value is not None}
    held = {name: getattr(file, name) for name in flags if getattr(file, name) is not None}
    found = given or held
    if len(found) > 1:
        raise click.UsageError("delta and epsilon are both given; ask at one of them")
    for name, value in found.items():
        number = _validate.real(name, value)
        return Question(name, number, "epsilon" if name == "delta" else "delta", {name: number})
    name = next(iter(flags))
    allowed = _validate.PARAMETERS[name].allowed
    raise click.UsageError(f"{name} must be given, as --{name} or in the plan file: {allowed}")


def refuse_infinite(at: Question, *answers: Certified | Approximate | None) -> None:
    """Raise where delta 0 is asked for and nothing but an infinite epsilon has it."""
    proven = [one.lower for one in answers if isinstance(one, Certified)]
    if at.asked == {"delta": 0.0} and math.inf in proven:
        raise ParameterError("delta", 0, "above 0: at 0, this plan's epsilon is infinite")


def limit_of(at_most: Any, quantity: Quantity) -> float | None:
    """Return what --at-most says, or raise before anything is computed."""
    domain = _validate.PARAMETERS[quantity]
    return None if at_most is None else _validate.real("at_most", at_most, domain)
