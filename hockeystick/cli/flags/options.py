"""The flags that the commands share, and the plan that they and a file amount to."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

import click

from hockeystick.accountants.base import TOLERANCE
from hockeystick.accountants.registry import ACCOUNTANTS
from hockeystick.accountants.summary import LEAST_RATE
from hockeystick.adjacency import Adjacency
from hockeystick.cli.flags import completing, of_group
from hockeystick.cli.flags.once import GIVEN
from hockeystick.cli.flags.settings import settings
from hockeystick.cli.flags.source import Source, source
from hockeystick.errors import IncompatibleError, ParameterError, PlanFileError
from hockeystick.io import parse
from hockeystick.io.building import Blanks
from hockeystick.io.plan_file import PlanFile
from hockeystick.io.vocabulary import ALTERNATIVES
from hockeystick.mechanisms import DPSGD, Clipping, Sampling

_Command = TypeVar("_Command", bound=Callable[..., Any])

_FLAGS: Final = {
    "examples": ("N", "Size of the training set."),
    "batch_size": (
        "N",
        "Expected size of a batch (or give --rate). A loader (Opacus) with batches of B of N "
        "examples has ceil(N/B): for it give --rate 1/13 if these are 13.",
    ),
    "rate": (
        "Q",
        "Probability of an example to be in a batch (or give --batch-size); with Opacus, 1/98 for "
        "a loader of 98 batches.",
    ),
    "epochs": (
        "E",
        "Length of the training in passes over the data (or give --steps); in epsilon and delta, "
        "several as 10,20,30, and so with any number.",
    ),
    "steps": ("T", "Length of the training in steps (or give --epochs)."),
    "noise_multiplier": ("Z", "Standard deviation of the noise over the clipping norm."),
    "sampling": ("NAME", f"How batches are drawn: {', '.join(Sampling)}; the first by default."),
    "clipping": ("NAME", f"What is clipped: {', '.join(Clipping)}; the first by default."),
    "batch_cap": ("N", "Most examples that a Poisson batch keeps; by default all."),
    "examples_per_user": (
        "K",
        "Most examples that one user has: protects all of them, and is part of a plan of DP-SGD; "
        "--group is for any plan.",
    ),
    "adjacency": (
        "NAME",
        f"Which data sets are neighbours: {', '.join(Adjacency)}; the first by default.",
    ),
}
_DROP_LAST: Final[Mapping[str, Any]] = {
    "is_flag": True,
    "flag_value": "yes",
    "default": None,
    "help": "Shuffled epochs leave out the examples beyond their last whole batch.",
}
_SETTINGS: Final = "settings"
# What is said of any plan, and is no field of DPSGD.
_OF_ANY: Final = (_SETTINGS, of_group.NAME)
_SET: Final = (
    "Set any number of the plan, by its path: release[0].scale=3, parts[1].inner.rate=0.1; may be "
    "given several times. Of epsilon and delta, several values give a row each: "
    "release[0].scale=1,2,3."
)
# Stands for every sampling where they are compared.
EVERY: Final = "all"
# What the size of a batch is a share of, and what says the share itself.
_BESIDE_SIZE: Final = (
    ", as --batch-size is a size; or, in place of both, --rate 1/LEN for a loader of LEN batches"
)
# Which adjacency to take for shuffled batches.
_WHICH: Final = (
    "; zero-out: a record's gradient counts as nothing, which is nearest to the add-remove of "
    "Poisson batches; replace-one: it is exchanged for any other, which costs more"
)
# A flag that has no value.
_SAID: Final = "drop_last"
# The flags whose value is a name, one of these.
_NAMES: Final = {
    "sampling": tuple(Sampling),
    "adjacency": tuple(Adjacency),
    "clipping": tuple(Clipping),
}


def plan_flags(command: _Command) -> _Command:
    """Add the plan file and the flags that describe a plan or override the file's [dpsgd]."""
    return _with_plan(command, {})


def comparison_flags(command: _Command) -> _Command:
    """Add the same, with a --sampling that needs no name and then stands for all of them."""
    text = f"{_FLAGS['sampling'][1]} Without a name, or as {EVERY!r}: compare them all."
    alone = {"metavar": "[NAME]", "help": text, "is_flag": False, "flag_value": EVERY}
    return _with_plan(command, {"sampling": alone})


def _with_plan(command: _Command, special: Mapping[str, Mapping[str, Any]]) -> _Command:
    """Add the plan file and the flags, some of them in a way of their own."""
    command = click.option(_flag(_SAID), _SAID, **_DROP_LAST)(command)
    for name, (metavar, text) in reversed(_FLAGS.items()):
        how = special.get(name, {"metavar": metavar, "help": text})
        names = completing.among(_NAMES.get(name, ()))
        command = click.option(_flag(name), name, shell_complete=names, **how)(command)
    command = click.option("--set", _SETTINGS, multiple=True, metavar="PATH=X", help=_SET)(command)
    return click.argument(
        "plan_file", metavar="[PLAN]", required=False, shell_complete=completing.files
    )(command)


def question(name: str) -> Callable[[_Command], _Command]:
    """Return the decorator that adds the flag for the delta or epsilon to ask at."""
    asked = {"delta": "epsilon", "epsilon": "delta"}[name]
    text = f"Ask for {asked} at this {name}; by default at the plan file's."
    return click.option(_flag(name), name, metavar=name[0].upper(), help=text)


def accountant_flags(command: _Command) -> _Command:
    """Add the flags that say how to account."""
    digits = (
        "Compute this many digits in arbitrary precision; 50 take seconds, 100 half a minute. "
        "Numbers mean the decimals that they print as."
    )
    names = f"One of {', '.join(ACCOUNTANTS)}; auto by default."
    tolerance = f"Relative width of the interval to go for; {TOLERANCE:g} by default."
    command = click.option("--digits", metavar="N", help=digits)(command)
    command = click.option("--tolerance", metavar="TOL", help=tolerance)(command)
    return click.option(
        "--accountant",
        default="auto",
        metavar="NAME",
        help=names,
        shell_complete=completing.among(ACCOUNTANTS),
    )(command)


def gaussian_flags(command: _Command) -> _Command:
    """Add the flags that ask for the mu that sums the plan up."""
    text = (
        "Also print the mu of the Gaussian trade-off function below the plan's own, and the regret "
        "of summing it up by that; seconds more."
    )
    rate = f"Let mu hold where both error rates are at least this; {LEAST_RATE:g} by default."
    command = click.option("--least-rate", metavar="P", help=rate)(command)
    return click.option("--mu", is_flag=True, help=text)(command)


verify_flag = click.option(
    "--verify",
    is_flag=True,
    help="Have the answer verified by a second program; the exit status is that of verify.",
)
short_flag = click.option(
    "--short", is_flag=True, help="Print only the number to quote, on its safe side, for scripts."
)
answer_json_flag = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Answer in JSON, for programs: the number to quote is its .upper (jq -r .upper), and with "
    "several values each .rows[].upper.",
)
json_flag = click.option("--json", "as_json", is_flag=True, help="Answer in JSON, for programs.")


def refuse_beside_short(short: bool, **others: bool) -> None:
    """Raise where more is asked for than the one number of --short."""
    if short and any(others.values()):
        *first, last = (_flag(name.removeprefix("as_")) for name in others)
        beside = f"{', '.join(first)} and {last}" if first else last
        raise click.UsageError(f"--short prints one number: leave out {beside}")


def plan_of(
    plan: str | Source | None, flags: Mapping[str, Any], blanks: Blanks | None = None
) -> PlanFile:
    """Return the plan that a file, or a text that writes it out, and flags beside it describe."""
    texts = {name: text for name, text in flags.items() if name not in _OF_ANY and text is not None}
    numbers = settings(flags.get(_SETTINGS, ()))
    given_fields = {
        name: True if name == _SAID else text if name in _NAMES else parse(text)
        for name, text in texts.items()
    }
    fields = {**given_fields, **numbers.of_dpsgd}
    _refuse_both_of_two(texts)
    given = source(plan) if isinstance(plan, str) else plan
    with numbers.blamed():
        if given is None:
            file = _of_flags(fields if blanks is None else blanks.filled(DPSGD, fields))
        else:
            try:
                file = given.plan_file(fields, numbers.of_file, blanks)
            except PlanFileError as error:
                left_out = None if blanks else given.left_out(fields, numbers.of_file)
                if left_out is not None:
                    hint = "is left out: hockeystick solve finds it"
                    raise PlanFileError(f"{error}; {left_out} {hint}") from None
                raise of_group.pointing(error, fields) from None
        applied = replace(file, plan=numbers.applied(file.plan))
    return of_group.for_group(applied, flags.get(of_group.NAME))


def _of_flags(fields: dict[str, Any]) -> PlanFile:
    """Return the plan that flags alone describe."""
    if not fields:
        raise click.UsageError(
            "Give a plan file, or --noise-multiplier, --epochs or --steps, and --rate or "
            "--batch-size with --examples; or a plan as 'Laplace(2)**3 @ Gaussian(4)'"
        )
    if "noise_multiplier" not in fields:
        raise click.UsageError("Missing --noise-multiplier")
    make: Callable[..., DPSGD] = DPSGD
    try:
        return PlanFile(plan=make(**fields))
    except ParameterError as error:
        _refuse_neither_of_two(error)
        if error.name == "examples" and error.value is None and "batch_size" in fields:
            raise click.UsageError(f"Missing --examples{_BESIDE_SIZE}") from None
        raise
    except IncompatibleError as error:
        if fields.get("sampling") == Sampling.SHUFFLE and "adjacency" not in fields:
            raise IncompatibleError(f"{error}{_completed(fields)}{_WHICH}") from None
        raise


def _completed(fields: Mapping[str, Any]) -> str:
    """Return the command that was given with the sizes and the adjacency of shuffled batches."""
    context = click.get_current_context(silent=True)
    if context is None or GIVEN not in context.meta:
        return ""
    given = list(context.meta[GIVEN])
    if "rate" in fields:
        given = _with_sizes(given, fields["rate"], fields.get("examples"))
    words = ["hockeystick", str(context.info_name), *given]
    return (
        f", as {shlex.join([*words, '--adjacency', 'zero-out'])} (and --drop-last if the loader "
        "leaves out its last batch)"
    )


def _with_sizes(words: list[str], rate: Any, examples: Any) -> list[str]:
    """Return the words of a command with sizes in place of its rate: N and B are to be filled in.

    Where the number of examples is given, the size of a batch is the nearest to the rate.
    """
    flag = _flag("rate")
    at = next(place for place, word in enumerate(words) if word.partition("=")[0] == flag)
    if examples is None:
        sizes = [_flag("examples"), "N", _flag("batch_size"), "B"]
    else:
        sizes = [_flag("batch_size"), str(max(1, round(rate * examples)))]
    return words[:at] + sizes + words[at + (1 if "=" in words[at] else 2) :]


def _refuse_both_of_two(given: Mapping[str, str]) -> None:
    """Raise where two flags are given that say the same in different ways."""
    for pair_of_names in ALTERNATIVES.items():
        if given.keys() >= set(pair_of_names):
            pair = {_flag(name): given[name] for name in pair_of_names}
            got = " and ".join(map(" ".join, pair.items()))
            raise click.UsageError(f"Give {' or '.join(pair)}, not both; got {got}")


def _refuse_neither_of_two(error: ParameterError) -> None:
    """Raise with the names of the flags where neither of two alternatives is given."""
    names = error.name.split(" or ")
    if error.value is None and len(names) == 2:
        raise click.UsageError(f"Missing {' or '.join(map(_flag, names))}") from None


def written(flags: Mapping[str, Any]) -> list[str]:
    """Return flags that are given, as they are written."""
    given = {name: text for name, text in flags.items() if name != _SETTINGS and text is not None}
    words = [
        word
        for name, text in given.items()
        for word in ([_flag(name)] if name == _SAID else [_flag(name), text])
    ]
    return words + [word for text in flags.get(_SETTINGS, ()) for word in ("--set", text)]


def _flag(name: str) -> str:
    """Return a parameter's name as a flag."""
    return "--" + name.replace("_", "-")
