"""The flags that commands share."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar, final

import click

from hockeystick import _validate
from hockeystick.accountants.base import TOLERANCE
from hockeystick.accountants.registry import ACCOUNTANTS
from hockeystick.adjacency import Adjacency
from hockeystick.answers import Decision, decide, suggested_delta, units_of
from hockeystick.answers.cautions import reservation
from hockeystick.errors import ParameterError
from hockeystick.io import parse, shown
from hockeystick.io.plan_file import PlanFile
from hockeystick.mechanisms import Mechanism
from hockeystick.numerics.numerals import plain
from hockeystick.results import Approximate, Certified, Quantity

_Function = TypeVar("_Function", bound=Callable[..., Any])

VERBOSE: Final = "hockeystick.verbose"


def _show_more(context: click.Context, _: click.Parameter, given: bool) -> None:
    """Keep with the context whether all is to be shown."""
    context.meta[VERBOSE] = given


def accountant_flag(*, proven: bool = False) -> Callable[[_Function], _Function]:
    """Return the decorator that adds the accountant; only those that prove something if so."""
    names = [n for n, one in ACCOUNTANTS.items() if not proven or one.kind != "approximation"]
    text = f"One of {', '.join(names)}."
    return click.option("--accountant", default="auto", metavar="NAME", help=text)


def tolerance_flag(default: float = TOLERANCE) -> Callable[[_Function], _Function]:
    """Return the decorator that adds how narrow the answer is to be."""
    text = f"Relative width to go for; {default:g} by default."
    return click.option("--tolerance", metavar="TOL", help=text)


def question_flag(name: str) -> Callable[[_Function], _Function]:
    """Return the decorator that adds the flag for the delta or epsilon to ask at."""
    text = f"Ask at this {name}; by default the plan file's."
    return click.option(f"--{name}", metavar=name[0].upper(), help=text)


verify_flag = click.option(
    "--verify", is_flag=True, help="Have the answer verified by a second program."
)
short_flag = click.option(
    "--short", is_flag=True, help="Print only the number, rounded to its safe side."
)
json_flag = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
verbose_flag = click.option(
    "-v",
    "--verbose",
    is_flag=True,
    expose_value=False,
    callback=_show_more,
    help="Print all that is known of the answer.",
)


def refuse_beside_short(short: bool, **others: bool) -> None:
    """Raise where more is asked for than the one number of --short."""
    if short and any(others.values()):
        *first, last = (f"--{name.removeprefix('as_').replace('_', '-')}" for name in others)
        beside = f"{', '.join(first)} and {last}" if first else last
        raise click.UsageError(f"--short prints one number: leave out {beside}")


_FILE: Final = "pyproject.toml"
_TABLE: Final = "[tool.hockeystick]"
_TAKEN: Final = "hockeystick.defaults"
_TOLD: Final = "hockeystick.defaults.told"


def _adjacency(value: object) -> str:
    """Return the name of an adjacency, or raise."""
    return _validate.one_of("adjacency", value, tuple(Adjacency))


_CHECKED: Final[Mapping[str, Callable[[Any], Any]]] = {
    "delta": lambda value: _validate.real("delta", value),
    "adjacency": _adjacency,
}


@final
@dataclass(frozen=True, slots=True)
class Default:
    """A value that was not given, and where it comes from."""

    name: str
    value: Any
    source: str

    @property
    def line(self) -> str:
        """The same in words."""
        shown = self.value if isinstance(self.value, str) else plain(self.value)
        return f"{self.name} = {shown}: not given, taken from {self.source}"

    def as_dict(self) -> dict[str, Any]:
        """Return the same, ready for JSON."""
        return {"name": self.name, "value": self.value, "source": self.source}


def default(name: str) -> Any:
    """Return what the environment, or else the nearest ``pyproject.toml``, says; None for neither.

    Raises:
        click.UsageError: That is no such value, or the table has a key that means nothing.
    """
    found = _of_environment(name) or _of_project(name)
    if found is None:
        return None
    _taken()[name] = found
    return found.value


def taken() -> tuple[Default, ...]:
    """Return what was taken for the command that is under way."""
    return tuple(_taken().values())


def lines_once() -> tuple[str, ...]:
    """Return in words what was taken, the first time that it is asked for."""
    context = click.get_current_context(silent=True)
    if context is None or context.meta.get(_TOLD):
        return ()
    found = tuple(one.line for one in taken())
    context.meta[_TOLD] = bool(found)
    return found


def tell() -> None:
    """Say on standard error what was taken, where the answer has no room for it."""
    for line in lines_once():
        click.echo(f"hockeystick: {line}", err=True)


def _taken() -> dict[str, Default]:
    """Return what was taken, by its name, to be added to."""
    context = click.get_current_context(silent=True)
    kept: dict[str, Default] = {} if context is None else context.meta.setdefault(_TAKEN, {})
    return kept


def _of_environment(name: str) -> Default | None:
    """Return the value of the environment."""
    variable = f"HOCKEYSTICK_{name.upper()}"
    text = os.environ.get(variable)
    if not text:
        return None
    value = parse(text) if name == "delta" else text
    return Default(name, _checked(name, value, variable), f"{variable} in the environment")


def _of_project(name: str) -> Default | None:
    """Return the value of the nearest ``pyproject.toml``, here or above."""
    here = Path.cwd()
    path = next((one / _FILE for one in (here, *here.parents) if (one / _FILE).is_file()), None)
    table = {} if path is None else _table(path)
    if name not in table:
        return None
    where = f"{_TABLE} of {path}"
    return Default(name, _checked(name, table[name], where), where)


def _table(path: Path) -> Mapping[str, Any]:
    """Return the project's table, or raise for a key that means nothing."""
    try:
        told = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise click.UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{path} is no TOML: {error}") from None
    tools = told.get("tool", {})
    table = tools.get("hockeystick", {}) if isinstance(tools, dict) else {}
    keys = ", ".join(_CHECKED)
    if not isinstance(table, dict):
        raise click.UsageError(f"{path}: tool.hockeystick must be a table of {keys}; got {table!r}")
    for key, value in table.items():
        if key not in _CHECKED:
            raise click.UsageError(
                f"{_TABLE} of {path}: its keys must be of {keys}; got {key} = {value!r}"
            )
    return table


def _checked(name: str, value: object, where: str) -> Any:
    """Return a value that may be, or raise with where it stands."""
    try:
        return _CHECKED[name](value)
    except ParameterError as error:
        raise click.UsageError(f"{where}: {error}") from None


@final
@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: epsilon at a delta, or delta at an epsilon."""

    name: str
    value: float

    @property
    def quantity(self) -> Quantity:
        """What the answer is."""
        return "epsilon" if self.name == "delta" else "delta"


def question(name: str, given: str | None, file: PlanFile) -> Question:
    """Return the delta or epsilon to ask at: the flag's, the file's, or else a default delta."""
    value = getattr(file, name) if given is None else parse(given)
    if value is None and name == "delta":
        value = default(name)
    if value is None:
        allowed = _validate.PARAMETERS[name].allowed
        raise click.UsageError(
            f"{name} must be given, as --{name} or in the plan file: {allowed}{_hint(name, file)}"
        )
    return Question(name, _validate.real(name, value))


def one_question(given: dict[str, str | None], file: PlanFile) -> Question:
    """Return the one question of the flags, or else the one of the file."""
    flags = [name for name, text in given.items() if text is not None]
    names = flags or [name for name in given if getattr(file, name) is not None]
    if len(names) > 1:
        raise click.UsageError(f"{' and '.join(names)} are both given; ask at one of them")
    name = names[0] if names else "delta"
    return question(name, given[name], file)


def _hint(name: str, file: PlanFile) -> str:
    """Return which delta would be sensible, where the plan says how many it protects."""
    units = units_of(file.plan)
    if name != "delta" or units is None:
        return ""
    sensible = f"{plain(suggested_delta(units))} or less is sensible"
    return f"; for {units}, {sensible}, and always below 1 / {units.count:,}"


def refuse_infinite(
    at: Question, *answers: Certified | Approximate | None, held: str | None = None
) -> None:
    """Raise where delta 0 is asked for and nothing but an infinite epsilon has it.

    Args:
        at: Where it is asked.
        answers: What came of it.
        held: The plan file that asks there, if no flag does.
    """
    if at == Question("delta", 0.0) and any(
        isinstance(answer, Certified) and answer.lower == math.inf for answer in answers
    ):
        error = ParameterError("delta", 0, "above 0: at 0, this plan's epsilon is infinite")
        if held is not None:
            name = "standard input" if held == "-" else shown(held)
            error.add_note(f"it is that of {name}, and --delta gives another")
        raise error


_Command = TypeVar("_Command", bound=Callable[..., Any])
MISSED: Final = 1


@final
@dataclass(frozen=True, slots=True)
class Decided:
    """A budget, whether an answer is within it, and why that says little, if it does."""

    at_most: float
    decision: Decision
    reservation: str = ""

    @property
    def meets(self) -> bool:
        """Whether it is, by proof."""
        return self.decision is Decision.MEETS

    @property
    def exit_status(self) -> int:
        """0 where the budget is met, else 1."""
        return 0 if self.meets else MISSED


def at_most_flag(quantity: str) -> Callable[[_Command], _Command]:
    """Return the decorator that adds the flag for the budget of a quantity."""
    text = f"Say whether {quantity} is proven to be at most this; exit status 1 if it is not."
    names = ("--at-most", "--budget-epsilon") if quantity == "epsilon" else ("--at-most",)
    return click.option(*names, "at_most", metavar=quantity[0].upper(), help=text)


def budget_of(name: str, quantity: Quantity, text: str | None) -> float | None:
    """Return the budget of a flag, or raise before anything is computed."""
    if text is None:
        return None
    given: Any = parse(text)
    return _validate.real(name, given, _validate.PARAMETERS[quantity])


def decided(
    answer: Certified | Approximate, plan: Mechanism, at: Question, at_most: float | None
) -> Decided | None:
    """Return whether an answer is within the budget, where there is one."""
    if at_most is None:
        return None
    if isinstance(answer, Approximate):
        raise click.UsageError(
            f"--at-most needs a proven {answer.quantity}: {answer.accountant} only approximates it"
        )
    decision = decide(answer, at_most)
    if decision is not Decision.MEETS:
        return Decided(at_most, decision)
    delta = float(answer.upper if answer.quantity == "delta" else at.value)
    return Decided(at_most, decision, reservation(delta, units_of(plan)))
