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
from hockeystick.errors import ParameterError
from hockeystick.io import PlanFile, parse
from hockeystick.mechanisms import Mechanism
from hockeystick.numerics.numerals import plain
from hockeystick.results import Approximate, Certified, Quantity

_Function = TypeVar("_Function", bound=Callable[..., Any])

MISSED: Final = 1
LEDGER: Final = "HOCKEYSTICK_LEDGER"
_VERBOSE: Final = "hockeystick.verbose"


def _keep_verbose(context: click.Context, _: click.Parameter, given: bool) -> None:
    """Keep with the context whether all is to be shown."""
    context.meta[_VERBOSE] = given


def is_verbose() -> bool:
    """Return whether all is to be shown."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_VERBOSE))


def _flag(name: str, text: str) -> dict[str, Any]:
    """Return an option that is given or not."""
    return {"param_decls": [f"--{name}"], "is_flag": True, "help": text}


def _option(name: str, metavar: str, text: str, default: str | None = None) -> dict[str, Any]:
    """Return an option with a value."""
    return {"param_decls": [f"--{name}"], "metavar": metavar, "help": text, "default": default}


_URL: Final = f"SQLite file, or postgresql://USER@HOST/DATABASE; by default ${LEDGER}."
_OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "accountant": _option("accountant", "NAME", f"One of {', '.join(ACCOUNTANTS)}.", "auto"),
    "at_most": _option("at-most", "X", "Exit status 1 unless it is proven to be at most this."),
    "confidence": _option("confidence", "C", "How sure to be; 0.95 by default.", "0.95"),
    "delta": _option("delta", "D", "Ask at this delta; by default the plan file's."),
    "epsilon": _option("epsilon", "E", "Ask at this epsilon; by default the plan file's."),
    "force": _flag("force", "Replace the file if it is there already."),
    "group": _option("group", "K", "Protect any K records (or clients) together; 1 by default."),
    "head": _option("head", "HEAD", "A head that was noted before."),
    "json": _flag("json", "Print JSON.") | {"param_decls": ["--json", "as_json"]},
    "ledger": _option("ledger", "URL", _URL)
    | {"param_decls": ["--ledger", "url"], "envvar": LEDGER},
    "note": _option("note", "TEXT", "Why, for the entry.", ""),
    "out": _option("out", "FILE", "") | {"param_decls": ["-o", "--out"]},
    "short": _flag("short", "Print only the number, rounded to its safe side."),
    "tolerance": _option("tolerance", "TOL", "Relative width to go for."),
    "verbose": _flag("verbose", "Print all that is known of the answer.")
    | {"param_decls": ["-v", "--verbose"], "expose_value": False, "callback": _keep_verbose},
    "verify": _flag("verify", "Have the answer verified by a second program."),
    "workers": _option("workers", "N", "Work in N processes; by default in this one.", "1"),
}


def options(*names: str, **helps: str) -> Callable[[_Function], _Function]:
    """Return the decorator that adds shared options; ``helps`` are some with texts of their own."""

    def added(command: _Function) -> _Function:
        for name in reversed([*names, *helps]):
            text = {"help": helps[name]} if name in helps else {}
            given = {**_OPTIONS[name], **text}
            command = click.option(*given.pop("param_decls"), **given)(command)
        return command

    return added


plan_words = click.argument("words", metavar="[PLAN] [NAME=VALUE]...", nargs=-1)


def refuse_beside_short(short: bool, *others: bool) -> None:
    """Raise where more is asked for than the one number of --short."""
    if short and any(others):
        raise click.UsageError("--short prints one number: leave out --json, --verify and --mu")


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


def question(name: str, given: str | None, file: PlanFile) -> Question:
    """Return the delta or epsilon to ask at: the flag's, the file's, or else a default delta."""
    value = getattr(file, name) if given is None else parse(given)
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


def one_question(file: PlanFile, delta: str | None, epsilon: str | None) -> Question:
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


def budget_of(text: str | None, quantity: Quantity) -> float | None:
    """Return the budget of a flag, or raise before anything is computed."""
    given: Any = None if text is None else parse(text)
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
