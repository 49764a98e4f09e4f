"""The options that commands share, and what they mean: a question, a default, a budget."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import click

from hockeystick import _validate
from hockeystick.accountants.auto import ACCOUNTANTS
from hockeystick.adjacency import Adjacency
from hockeystick.answers import Decision, decide, suggested_delta, units_of
from hockeystick.answers.cautions import reservation
from hockeystick.conversions import TARGETS
from hockeystick.errors import ParameterError
from hockeystick.io import PlanFile, parse
from hockeystick.mechanisms import Mechanism
from hockeystick.numerics.numerals import plain
from hockeystick.results import Approximate, Certified, Quantity

_Function = TypeVar("_Function", bound=Callable[..., Any])

MISSED: Final = 1
LEDGER: Final = "HOCKEYSTICK_LEDGER"


def _keep(context: click.Context, option: click.Parameter, given: bool) -> None:
    """Keep with the context whether a flag about what is printed is given."""
    context.meta[f"hockeystick.{option.name}"] = given


def is_given(name: str) -> bool:
    """Return whether "verbose", "short" or "json" is given to the command that is under way."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(f"hockeystick.{name}"))


def _flag(*flags: str, text: str, **more: Any) -> dict[str, Any]:
    return {"param_decls": flags, "is_flag": True, "help": text, **more}


def _form(*flags: str, text: str) -> dict[str, Any]:
    """Return a flag about what is printed, which no command is given itself."""
    return _flag(*flags, text=text, expose_value=False, callback=_keep)


def _text(*flags: str, metavar: str, text: str = "", **more: Any) -> dict[str, Any]:
    return {"param_decls": flags, "metavar": metavar, "help": text, **more}


def _number(flag: str, metavar: str, text: str, **more: Any) -> dict[str, Any]:
    return _text(flag, metavar=metavar, text=text, type=parse, **more)


_ACCOUNTANTS: Final = f"One of {', '.join(ACCOUNTANTS)}."
_URL: Final = f"SQLite file, or postgresql://USER@HOST/DATABASE; by default ${LEDGER}."
_HEAD: Final = "A head that was noted before."
_TO: Final = f"One of {', '.join(TARGETS)}; by default all of them."
OPTIONS: Final[Mapping[str, dict[str, Any]]] = {
    "accountant": _text("--accountant", metavar="NAME", text=_ACCOUNTANTS, default="auto"),
    "adjacency": _text("--adjacency", metavar="NAME", text="Neighbours; add-remove by default."),
    "also": _text(
        "--also", metavar="DATASET", text="Another dataset that it reads.", multiple=True
    ),
    "at_most": _number("--at-most", "X", "Exit status 1 unless it is proven to be at most this."),
    "audit": _text("--audit", "scores", metavar="SCORES", text="The scores of an attack on it."),
    "budget": _text("--budget", metavar="NOTION", text="'ApproxDP(2, 1e-6)'.", required=True),
    "confidence": _number("--confidence", "C", "How sure to be; 0.95 by default.", default="0.95"),
    "dataset": _text("--dataset", metavar="NAME", text="The dataset that it reads, of the ledger."),
    "delta": _number("--delta", "D", "Ask at this delta; by default the plan file's."),
    "digits": _number("--digits", "N", "Compute so many digits."),
    "epsilon": _number("--epsilon", "E", "Ask at this epsilon; by default the plan file's."),
    "expected": _text(
        "--expected", metavar="PLAN", text="A plan as most sampled releases will be."
    ),
    "force": _flag("--force", text="Replace the file if it is there already."),
    "fpr": _text("--fpr", metavar="P,...", text="False positive rates; one is read in words."),
    "group": _number("--group", "K", "Protect any K records (or clients) together; 1 by default."),
    "head": _text("--head", metavar="HEAD", text=_HEAD),
    "json": _form("--json", text="Print JSON."),
    "key": _text("--key", metavar="KEY", text="What the run is called; a new name by default."),
    "ledger": _text("--ledger", "url", metavar="URL", text=_URL, envvar=LEDGER),
    "list": _flag("--list", "list_all", text="Only list all mechanisms and notions."),
    "note": _text("--note", metavar="TEXT", text="Why, for the entry.", default=""),
    "one_run": _flag("--one-run", text="All scores come from one run with fair coins."),
    "orders": _text("--orders", metavar="A,B,...", text="Of RenyiDP; of TCDP the largest, omega."),
    "out": _text("-o", "--out", metavar="FILE"),
    "parameter": _text(
        "--parameter", metavar="NAME", text="What to solve for; parts[1].scale, say."
    ),
    "port": _number("--port", "N", "Where it is served; by default anywhere.", default="0"),
    "resume": _flag("--resume", text="Take up a KEY that was reserved before."),
    "samplings": _flag("--samplings", text="Compare ways of drawing batches of this size."),
    "schema": _flag("--schema", text="Print the JSON schema of plan files, for editors."),
    "short": _form("--short", text="Print only the number, rounded to its safe side."),
    "target": _text("--target", metavar="TARGET", text="Or a notion or attack, as 'GDP(1)'."),
    "to": _text("--to", metavar="NAME", text=_TO),
    "tolerance": _number("--tolerance", "TOL", "Relative width to go for."),
    "verbose": _form("-v", "--verbose", text="Print all that is known of the answer."),
    "verify": _flag("--verify", text="Have the answer verified by a second program."),
    "whole": _flag("--whole", text="Let only whole values count: whole epochs, say."),
    "within": _text("--within", metavar="DATASET", text="The dataset that this one is a cap of."),
    "workers": _number(
        "--workers", "N", "Work in N processes; by default in this one.", default="1"
    ),
}
ARGUMENTS: Final[Mapping[str, dict[str, Any]]] = {
    "DATASET": {"param_decls": ["dataset"]},
    "DATASETS": {"param_decls": ["datasets"], "nargs": -1, "metavar": "[DATASET]..."},
    "FILE": {"param_decls": ["file"], "metavar": "FILE"},
    "FILES": {"param_decls": ["plans"], "nargs": -1, "metavar": "[PLAN]..."},
    "GRID": {"param_decls": ["grid"], "metavar": "GRID.toml"},
    "KEY": {"param_decls": ["key"]},
    "LIKE": {"param_decls": ["like"], "metavar": "[LIKE]", "required": False},
    "NEW": {"param_decls": ["file"], "metavar": "[FILE]", "default": "plan.toml"},
    "PLAN": {"param_decls": ["words"], "nargs": -1, "metavar": "[PLAN] [NAME=VALUE]..."},
    "PLANS": {"param_decls": ["words"], "nargs": -1, "metavar": "[PLAN]... [NAME=VALUE]..."},
    "SCORES": {"param_decls": ["scores"], "metavar": "SCORES"},
    "SWEPT": {"param_decls": ["grid"], "metavar": "[GRID.toml]", "required": False},
}


def takes(names: str, **helps: str) -> Callable[[_Function], _Function]:
    """Return the decorator that adds arguments (in capitals) and options by their names.

    ``helps`` are options whose text is another one for this command.
    """

    def added(command: _Function) -> _Function:
        for name in reversed(names.split()):
            given = dict(ARGUMENTS[name] if name in ARGUMENTS else OPTIONS[name])
            given |= {"help": helps[name]} if name in helps else {}
            add = click.argument if name in ARGUMENTS else click.option
            command = add(*given.pop("param_decls"), **given)(command)
        return command

    return added


def refuse_beside_short(*others: bool) -> None:
    """Raise where more is asked for than the one number of --short."""
    if is_given("short") and (is_given("json") or any(others)):
        raise click.UsageError("--short prints one number: leave out --json and --verify")


_FILE: Final = "pyproject.toml"
_TABLE: Final = "[tool.hockeystick]"
_TAKEN: Final = "hockeystick.defaults"
_CHECKED: Final[Mapping[str, Callable[[Any], Any]]] = {
    "delta": lambda value: _validate.real("delta", value),
    "adjacency": lambda value: _validate.one_of("adjacency", value, tuple(Adjacency)),
}


def default(name: str) -> Any:
    """Return what the environment, or else the nearest ``pyproject.toml``, says; None for neither.

    Raises:
        click.UsageError: That is no such value, or the table has a key that means nothing.
    """
    variable = f"HOCKEYSTICK_{name.upper()}"
    text = os.environ.get(variable)
    if text:
        value: Any = parse(text) if name == "delta" else text
        where, source = variable, f"{variable} in the environment"
    else:
        here = Path.cwd()
        path = next((one / _FILE for one in (here, *here.parents) if (one / _FILE).is_file()), None)
        table = {} if path is None else _table(path)
        if name not in table:
            return None
        value, where = table[name], f"{_TABLE} of {path}"
        source = where
    try:
        checked = _CHECKED[name](value)
    except ParameterError as error:
        raise click.UsageError(f"{where}: {error}") from None
    _taken()[name] = {"name": name, "value": checked, "source": source}
    return checked


def defaults() -> list[dict[str, Any]]:
    """Return what was taken for the command that is under way."""
    return list(_taken().values())


def default_lines() -> list[str]:
    """Return the same in words, the first time that it is asked for."""
    found = [
        f"{one['name']} = {one['value']}: not given, taken from {one['source']}"
        for one in defaults()
    ]
    _taken().clear()
    return found


def _taken() -> dict[str, dict[str, Any]]:
    """Return what was taken, by its name, to be added to."""
    context = click.get_current_context(silent=True)
    kept: dict[str, Any] = {} if context is None else context.meta.setdefault(_TAKEN, {})
    return kept


def _table(path: Path) -> Mapping[str, Any]:
    """Return the project's table, or raise for a key that means nothing."""
    try:
        document = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise click.UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{path} is no TOML: {error}") from None
    tools = document.get("tool", {})
    table = tools.get("hockeystick", {}) if isinstance(tools, dict) else {}
    keys = ", ".join(_CHECKED)
    if not isinstance(table, dict):
        raise click.UsageError(f"{path}: tool.hockeystick must be a table of {keys}; got {table!r}")
    for key, value in table.items():
        if key not in _CHECKED:
            message = f"{_TABLE} of {path}: its keys must be of {keys}; got {key} = {value!r}"
            raise click.UsageError(message)
    return table


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


def question(name: str, given: Any, file: PlanFile) -> Question:
    """Return the delta or epsilon to ask at: the flag's, the file's, or else a default delta."""
    value = getattr(file, name) if given is None else given
    if value is None and name == "delta":
        value = default(name)
    if value is None:
        allowed, units = _validate.PARAMETERS[name].allowed, units_of(file.plan)
        sensible = ""
        if name == "delta" and units is not None:
            sensible = f"; for {units}, {plain(suggested_delta(units))} or less is sensible"
        raise click.UsageError(
            f"{name} must be given, as --{name} or in the plan file: {allowed}{sensible}"
        )
    return Question(name, _validate.real(name, value))


def one_question(file: PlanFile, delta: Any = None, epsilon: Any = None) -> Question:
    """Return the one question of the flags, or else the one of the file."""
    given = {"delta": delta, "epsilon": epsilon}
    names = [name for name, text in given.items() if text is not None]
    names = names or [name for name in given if getattr(file, name) is not None]
    if len(names) > 1:
        raise click.UsageError("delta and epsilon are both given; ask at one of them")
    name = names[0] if names else "delta"
    return question(name, given[name], file)


def refuse_infinite(at: Question, *answers: Certified | Approximate | None) -> None:
    """Raise where delta 0 is asked for and nothing but an infinite epsilon has it."""
    if at == ("delta", 0.0) and any(
        isinstance(one, Certified) and one.lower == math.inf for one in answers
    ):
        raise ParameterError("delta", 0, "above 0: at 0, this plan's epsilon is infinite")


class Budget(NamedTuple):
    """A budget, whether an answer is within it, and why that says little, if it does."""

    at_most: float
    decision: Decision
    reservation: str = ""


def budget_of(given: Any, quantity: Quantity) -> float | None:
    """Return the budget of a flag, or raise before anything is computed."""
    if given is None:
        return None
    return _validate.real("at_most", given, _validate.PARAMETERS[quantity])


def decided(
    answer: Certified | Approximate, plan: Mechanism, at: Question, at_most: float | None
) -> Budget | None:
    """Return whether an answer is within the budget, where there is one."""
    if at_most is None:
        return None
    if isinstance(answer, Approximate):
        raise click.UsageError(
            f"--at-most needs a proven {answer.quantity}: {answer.accountant} only approximates it"
        )
    decision = decide(answer, at_most)
    if decision is not Decision.MEETS:
        return Budget(at_most, decision)
    delta = float(answer.upper if answer.quantity == "delta" else at.value)
    return Budget(at_most, decision, reservation(delta, units_of(plan)))
