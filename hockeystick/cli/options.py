"""The options that commands share, and what they mean: a question, a default, a budget."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from hockeystick import _validate
from hockeystick.accountants.auto import ACCOUNTANTS
from hockeystick.adjacency import Adjacency
from hockeystick.answers import Decision, decide, require_verifier, suggested_delta, units_of
from hockeystick.answers.cautions import reservation
from hockeystick.conversions import TARGETS
from hockeystick.errors import ParameterError
from hockeystick.io import PlanFile, parse
from hockeystick.mechanisms import Mechanism
from hockeystick.numerics.numerals import plain
from hockeystick.results import Approximate, Certified, Quantity

MISSED: Final = 1
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
    "schema": _flag("--schema", "Print the JSON schema of plan files, for editors."),
    "short": _form("--short", "Print only the number, rounded to its safe side."),
    "target": _text("--target", "TARGET", "Or a notion or attack, as 'GDP(1)'."),
    "to": _text("--to", "NAME", f"One of {', '.join(TARGETS)}; by default all of them."),
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
    "FILES": {"param_decls": ["files"], "nargs": -1, "metavar": "[PLAN]..."},
    "GRID": {"param_decls": ["grid"], "metavar": "GRID.toml"},
    "KEY": {"param_decls": ["key"]},
    "LIKE": {"param_decls": ["like"], "metavar": "[LIKE]", "required": False},
    "NEW": {"param_decls": ["file"], "metavar": "[FILE]", "default": "plan.toml"},
    "PLAN": {"param_decls": ["words"], "nargs": -1, "metavar": "[PLAN] [NAME=VALUE]..."},
    "[PLAN]": {"param_decls": ["maybe"], "nargs": -1, "metavar": "[PLAN] [NAME=VALUE]..."},
    "PLANS": {"param_decls": ["words"], "nargs": -1, "metavar": "[PLAN]... [NAME=VALUE]..."},
    "SCORES": {"param_decls": ["scores"], "metavar": "SCORES"},
    "SWEPT": {"param_decls": ["grid"], "metavar": "[GRID.toml]", "required": False},
}


def check_forms(verify: bool = False) -> None:
    """Raise where --verify has no verifier, or more is asked for than the number of --short."""
    if verify:
        require_verifier()
    if is_given("short") and (is_given("json") or verify):
        raise click.UsageError("--short prints one number: leave out --json and --verify")


_TABLE: Final = "[tool.hockeystick]"
_CHECKED: Final[Mapping[str, Callable[[Any], Any]]] = {
    "delta": lambda value: _validate.real("delta", value),
    "adjacency": lambda value: _validate.one_of("adjacency", value, tuple(Adjacency)),
}


def default(name: str) -> Any:
    """Return what the environment, or else the nearest ``pyproject.toml``, says, if anything."""
    variable = f"HOCKEYSTICK_{name.upper()}"
    if text := os.environ.get(variable):
        source = f"{variable} in the environment"
        table: Mapping[str, Any] = {name: parse(text)}
    else:
        source, table = _project()
    if name not in table:
        return None
    try:
        value = _CHECKED[name](table[name])
    except ParameterError as error:
        raise click.UsageError(f"{source}: {error}") from None
    taken().append({"name": name, "value": value, "source": source})
    return value


def _project() -> tuple[str, Mapping[str, Any]]:
    """Return the nearest table of defaults, and what to call it."""
    here = Path.cwd()
    files = (folder / "pyproject.toml" for folder in (here, *here.parents))
    path = next(filter(Path.is_file, files), None)
    if path is None:
        return "", {}
    try:
        table = tomllib.loads(path.read_text("utf-8")).get("tool", {}).get("hockeystick", {})
        unknown = [f"{key} = {value!r}" for key, value in table.items() if key not in _CHECKED]
    except (OSError, ValueError, AttributeError) as error:
        raise click.UsageError(f"{path} cannot be read: {error}") from None
    source = f"{_TABLE} of {path}"
    if unknown:
        allowed = ", ".join(_CHECKED)
        raise click.UsageError(f"{source}: its keys must be of {allowed}; got {unknown[0]}")
    return source, table


def taken() -> list[dict[str, Any]]:
    """Return the defaults that were taken for the command that is under way, to be added to."""
    found: list[dict[str, Any]] = click.get_current_context().meta.setdefault(_TABLE, [])
    return found


def default_lines() -> list[str]:
    """Return the same in words, the first time that it is asked for."""
    said = "{name} = {value}: not given, taken from {source}"
    found = [said.format(**one) for one in taken()]
    taken().clear()
    return found


class Question(NamedTuple):
    """What is asked: epsilon at a delta, or delta at an epsilon."""

    name: str
    value: float

    @property
    def quantity(self) -> Quantity:
        """What the answer is."""
        return "epsilon" if self.name == "delta" else "delta"

    @property
    def asked(self) -> dict[str, Any]:
        """The same, as functions are given it."""
        return {self.name: self.value}


def question(file: PlanFile, **flags: Any) -> Question:
    """Return where to ask: at the one flag that is given, the file's, or else a default delta."""
    given = {name: value for name, value in flags.items() if value is not None}
    held = {name: getattr(file, name) for name in flags if getattr(file, name) is not None}
    found = given or held or {name: default(name) for name in flags if name == "delta"}
    if len(found) > 1:
        raise click.UsageError("delta and epsilon are both given; ask at one of them")
    name = next(iter(found or flags))
    if found.get(name) is None:
        units, sensible = units_of(file.plan), ""
        if name == "delta" and units is not None:
            sensible = f"; for {units}, {plain(suggested_delta(units))} or less is sensible"
        allowed = _validate.PARAMETERS[name].allowed
        raise click.UsageError(
            f"{name} must be given, as --{name} or in the plan file: {allowed}{sensible}"
        )
    return Question(name, _validate.real(name, found[name]))


def refuse_infinite(at: Question, *answers: Certified | Approximate | None) -> None:
    """Raise where delta 0 is asked for and nothing but an infinite epsilon has it."""
    proven = [one.lower for one in answers if isinstance(one, Certified)]
    if at == ("delta", 0.0) and math.inf in proven:
        raise ParameterError("delta", 0, "above 0: at 0, this plan's epsilon is infinite")


def budget_of(given: Any, quantity: Quantity) -> float | None:
    """Return the budget of a flag, or raise before anything is computed."""
    if given is None:
        return None
    return _validate.real("at_most", given, _validate.PARAMETERS[quantity])


def decided(
    answer: Certified | Approximate, plan: Mechanism, at: Question, at_most: float
) -> dict[str, Any]:
    """Return whether an answer is within a budget, and why that says little, if it does."""
    if isinstance(answer, Approximate):
        raise click.UsageError(
            f"--at-most needs a proven {answer.quantity}: {answer.accountant} only approximates it"
        )
    decision = decide(answer, at_most)
    delta = float(answer.upper if answer.quantity == "delta" else at.value)
    little = reservation(delta, units_of(plan)) if decision is Decision.MEETS else ""
    return {"at_most": at_most, "decision": decision, "reservation": little or None}
