"""Plan files to begin with: every key with a comment that says what it is."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Mapping
from contextlib import suppress
from doctest import DocTestParser
from inspect import cleandoc
from typing import Any, Final

from hockeystick.errors import HockeystickError, PlanFileError
from hockeystick.io.building import parameters_of
from hockeystick.io.call_text import parse_plan
from hockeystick.io.plan_file import tables_of
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
    "PriFedSync": "PriFedSync(clients=LocalTraining(examples=600, batch_size=16, "
    "noise_multiplier=2, local_steps=38), rounds=93)",
    "RandomStopping": "RandomStopping(Gaussian(5), Poisson(10))",
    "Repeated": "Repeated(Gaussian(2), 30)",
    "RevealedRound": "RevealedRound(FixedSizeSubsampled(Gaussian(3), 5, 500)**100, rate=0.1)",
}


def training_template(name: str = "plan.toml") -> str:
    """Return the text of a plan file for DP-SGD, to be filled in."""
    return _HEAD.format(title="My training run", name=name, many="examples") + _TRAINING


def template_of(mechanism: str, name: str = "plan.toml") -> str:
    """Return the text of a plan file for one mechanism or notion, to be filled in.

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
    return template_of_plan(_example(mechanism), name)


def template_of_plan(plan: Mechanism, name: str = "plan.toml") -> str:
    """Return the text of a plan file that holds a plan, each key with a comment."""
    tables = tables_of(plan)
    every = [*([tables["dpsgd"]] if "dpsgd" in tables else []), *tables.get("release", [])]
    kinds = [table.get("mechanism", DPSGD.__name__) for table in every]
    title = f"My {kinds[0]}" if len(kinds) == 1 else "My plan"
    many = "clients" if unit_of(plan) == "client" else "examples"
    head = _HEAD.format(title=title, name=name, many=many)
    return "\n".join([head, *map(_table, kinds, every)])


def _example(name: str) -> Mechanism:
    """Return a plan to begin with: the one of the table, or else of the docstring."""
    documented = DocTestParser().get_examples(RELEASES[name].__doc__ or "")
    for text in [_CALLS[name]] if name in _CALLS else [one.source for one in documented]:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(name):
                with suppress(HockeystickError):
                    return parse_plan(ast.unparse(node))
    raise PlanFileError(f"there is no template for {name}")


def _table(kind: str, table: Mapping[str, Any]) -> str:
    """Return the table of training or a release, each key under what it means for a mechanism."""
    import tomli_w

    is_training = "mechanism" not in table
    above = "dpsgd" if is_training else "release"
    meanings = meanings_of(RELEASES[kind]) | {"repeat": _REPEAT}
    lines, tables = [f"[{above}]" if is_training else f"[[{above}]]"], []
    for key, value in table.items():
        text = tomli_w.dumps({key: value}).strip()
        if text.startswith("["):
            tables.append("\n" + tomli_w.dumps({above: {key: value}}).strip())
        else:
            lines += [*_comment(meanings.get(key, "")), text]
    defaults = {key: one.default for key, one in parameters_of(RELEASES[kind]).items()}
    for key, default in (defaults if is_training else defaults | {"repeat": 1}).items():
        if key not in table:
            is_plain = isinstance(default, bool | str | int | float)
            text = tomli_w.dumps({key: default}).strip() if is_plain else f"{key} = ..."
            lines += [*_comment(meanings.get(key, "")), f"# {text}"]
    return "\n".join([*lines, *tables, ""])


def meanings_of(kind: object) -> dict[str, str]:
    """Return what the docstring of a class says of each argument."""
    found = re.search(r"(?s)\nArgs:\n(.*?)(?:\n\S|\Z)", cleandoc(kind.__doc__ or ""))
    pairs = re.findall(r"(?ms)^    (\w+): (.*?)(?=^    \w|\Z)", found[1] if found else "")
    return {name: " ".join(text.replace("``", "").split()) for name, text in pairs}


def _comment(text: str) -> list[str]:
    """Return a text as lines of comment."""
    return textwrap.wrap(
        text, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
    )
