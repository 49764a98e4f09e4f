"""Plan files to begin with: every key with a comment that says what it is."""

from __future__ import annotations

import re
import textwrap
import tomllib
from collections.abc import Mapping
from doctest import DocTestParser
from inspect import Parameter, cleandoc
from typing import Any, Final

from hockeystick.errors import HockeystickError, PlanFileError
from hockeystick.io.building import parameters_of
from hockeystick.io.call_text import parse_plan
from hockeystick.io.saving import plan_text
from hockeystick.io.vocabulary import RELEASES
from hockeystick.mechanisms import DPSGD, Mechanism
from hockeystick.mechanisms.scope import unit_of

_WIDTH: Final = 88
_REPEAT: Final = "How often it runs."
_HEAD: Final = """#:schema ./plan.schema.json
# For editors: hockeystick check --schema > plan.schema.json
# For you:     hockeystick check {name}

title = "{title}"
# source = "https://example.org/report"
# notes = "What a reader should know besides."
delta = 1e-5                  # where to ask for epsilon: below 1 / {many}
# epsilon = 2                 # where to ask for delta; what `hockeystick solve` should meet
"""
_TRAINING: Final = """
[dpsgd]
examples = 60_000             # size of the training set
batch_size = 256              # expected size of a batch; or rate = 0.004
epochs = 60                   # passes over the data; or steps = 14_000
noise_multiplier = 1.1        # noise over clipping norm; left out, `hockeystick solve` finds it
sampling = "poisson"          # how batches are drawn: as your loader really does
adjacency = "add-remove"      # which data sets are neighbours
# examples_per_user = 1       # how many examples one person may have

# Whatever else is released of the same data, as often as needed:
# [[release]]
# mechanism = "Gaussian"
# noise_multiplier = 20
# repeat = 3
"""
# What the example in its docstring does not write out in one call.
_CALLS: Final[Mapping[str, str]] = {
    "BatchClipped": "BatchClipped(PoissonSubsampled(Gaussian(1.1), 0.01, 'zero-out'), 1000)",
    "Composed": "Composed((Gaussian(1), Gaussian(2)))",
    "FedCDP": "FedCDP(noise_multiplier=1, total_clients=100, clients_per_round=10, "
    "examples_per_client=100, batch_size=10, local_steps=10, rounds=10, sampling='two-stage')",
    "GOPA": "GOPA(0.4, 2, Graph.complete(100))",
    "GossipAveraging": "GossipAveraging(5, Graph.cycle(6), 9, party=2, observers=[0])",
    "MatrixFactorization": "MatrixFactorization(4.0, Encoder.square_root(1000, participations=2, "
    "separation=500))",
    "PriFedSync": "PriFedSync(clients=LocalTraining(examples=600, batch_size=16, "
    "noise_multiplier=2, local_steps=38), rounds=93)",
    "RandomStopping": "RandomStopping(Gaussian(5), Poisson(10))",
    "Repeated": "Repeated(Gaussian(2), 30)",
    "RevealedRound": "RevealedRound(FixedSizeSubsampled(Gaussian(3), 5, 500)**100, rate=0.1)",
}
# What docstrings say in the words of Python, and what a file has in its place.
_IN_TOML: Final = (
    (r"\bNone for\b", "left out:"),
    (r"\bin a tuple\b", "in an array"),
    (r"\btuples list\b", "arrays list"),
    (r"; a Fraction is kept exact\b", ""),
    (r"A mapping from (.*), to (.*), or an iterable of such pairs\b", r"Pairs of \1, and \2"),
    (r" Kept as a tuple of pairs in order\.", ""),
    (r"\bFalse\b", "false"),
)


def training_template(name: str = "plan.toml") -> str:
    """Return the text of a plan file for DP-SGD, to be filled in.

    Args:
        name: What the file will be called.
    """
    return _HEAD.format(title="My training run", name=name, many="examples") + _TRAINING


def template_of(mechanism: str, name: str = "plan.toml") -> str:
    """Return the text of a plan file for one mechanism or notion, to be filled in.

    Args:
        mechanism: Its name.
        name: What the file will be called.

    Raises:
        PlanFileError: If its docstring has no example to begin with.

    Example:
        >>> from hockeystick.io.templates import template_of
        >>> print(template_of("Laplace").partition("[[release]]")[2].strip())
        mechanism = "Laplace"
        # The noise's scale over the sensitivity, in [0, inf].
        scale = 1.0
        # How often it runs.
        # repeat = 1
    """
    if mechanism == DPSGD.__name__:
        return training_template(name)
    example = _example(mechanism)
    many = "clients" if getattr(example, "unit", None) == "client" else "examples"
    head = _HEAD.format(title=f"My {mechanism}", name=name, many=many)
    return f"{head}\n{_release(mechanism, example)}"


def template_of_plan(plan: Mechanism, name: str = "plan.toml") -> str:
    """Return the text of a plan file that holds a plan, each key with a comment.

    Args:
        plan: The plan.
        name: What the file will be called.

    Raises:
        PlanFileError: If no file can hold it.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.io.templates import template_of_plan
        >>> print(template_of_plan(hs.Laplace(2.0) ** 5).partition("[[release]]")[2].strip())
        mechanism = "Laplace"
        # The noise's scale over the sensitivity, in [0, inf].
        scale = 2.0
        # How often it runs.
        repeat = 5
    """
    tables = tomllib.loads(plan_text(plan))
    releases = tables.get("release", [])
    kinds = [*(["DPSGD"] if "dpsgd" in tables else []), *(one["mechanism"] for one in releases)]
    title = f"My {kinds[0]}" if len(kinds) == 1 else "My plan"
    many = "clients" if unit_of(plan) == "client" else "examples"
    head = _HEAD.format(title=title, name=name, many=many)
    told = [
        _table(kind, one) for kind, one in zip(kinds, [*_first(tables), *releases], strict=True)
    ]
    return "\n".join([head, *told])


def _first(tables: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the table of training, if there is one."""
    return [tables["dpsgd"]] if "dpsgd" in tables else []


def _example(name: str) -> Mechanism:
    """Return a plan to begin with: the one of the table, or else of the docstring."""
    if name in _CALLS:
        return parse_plan(_CALLS[name])
    for example in DocTestParser().get_examples(RELEASES[name].__doc__ or ""):
        call = _call(name, example.source)
        try:
            return parse_plan(call)
        except HockeystickError:
            continue
    raise PlanFileError(f"there is no template for {name}")


def _call(name: str, text: str) -> str:
    """Return the first call of a name in a text, as far as its brackets go."""
    start = text.find(f"{name}(")
    depth = 0
    for end in range(start + len(name), len(text) if start >= 0 else 0):
        depth += (text[end] in "([{") - (text[end] in ")]}")
        if depth == 0:
            return " ".join(text[start : end + 1].split())
    return ""


def _release(name: str, plan: Mechanism) -> str:
    """Return the tables of one release, each key of the first under what it means."""
    return _table(name, tomllib.loads(plan_text(plan))["release"][0])


def _table(name: str, table: Mapping[str, Any]) -> str:
    """Return the table of training or a release, each key under what it means for a mechanism."""
    import tomli_w

    is_training = "mechanism" not in table
    above = "dpsgd" if is_training else "release"
    is_known = table.get("mechanism", name) == name
    meanings = meanings_of(RELEASES[name]) if is_known else {}
    lines, tables = [f"[{above}]" if is_training else f"[[{above}]]"], []
    for key, value in table.items():
        text = tomli_w.dumps({key: value}).strip()
        if text.startswith("["):
            tables.append("\n" + tomli_w.dumps({above: {key: value}}).strip())
        else:
            lines += [*_comment(_REPEAT if key == "repeat" else meanings.get(key, "")), text]
    lines += _left_out(RELEASES[name], table, meanings) if is_known else []
    repeat = [] if "repeat" in table or is_training else [*_comment(_REPEAT), "# repeat = 1"]
    return "\n".join([*lines, *repeat, *tables, ""])


def _left_out(kind: Any, table: Mapping[str, Any], meanings: Mapping[str, str]) -> list[str]:
    """Return, as comments, what may be given besides, and what it is by default."""
    lines: list[str] = []
    for key, one in parameters_of(kind).items():
        if key in table:
            continue
        default = _toml(one)
        lines += _comment(meanings.get(key, ""))
        lines.append(f"# {key} = {default}" if default else f"# {key} = ...")
    return lines


def _toml(parameter: Parameter) -> str:
    """Return a default as TOML has it, nothing where it has no such thing."""
    default = parameter.default
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, str):
        return f'"{default}"'
    return repr(default) if isinstance(default, int | float) else ""


def meanings_of(kind: object) -> dict[str, str]:
    """Return what the docstring of a class says of each argument."""
    found = re.search(r"(?s)\nArgs:\n(.*?)(?:\n\S|\Z)", cleandoc(kind.__doc__ or ""))
    told = re.findall(r"(?ms)^    (\w+): (.*?)(?=^    \w|\Z)", found[1] if found else "")
    return {name: _as_a_file_has_it(text) for name, text in told}


def _as_a_file_has_it(text: str) -> str:
    """Return what a docstring says, on one line, in the words of TOML in place of Python's."""
    said = " ".join(text.replace("``", "").split())
    for pattern, written in _IN_TOML:
        said = re.sub(pattern, written, said)
    return said


def _comment(text: str) -> list[str]:
    """Return a text as lines of comment."""
    return textwrap.wrap(
        text, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
    )
