"""What is asked first in a fresh process is answered as in one that has loaded everything."""

from __future__ import annotations

import inspect
import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from functools import cache, cached_property
from typing import Any, Final

import numpy as np
import pytest

import hockeystick as hs
from tests.examples import EXAMPLES

SERVER: Final = r"""
import importlib, json, os, pickle, pkgutil, re, sys, warnings
import mpmath, numba, numpy, scipy.special

def member(x, name, given):
    found = getattr(x, name)
    value = found if given is None else found(*given)
    return f"{type(value).__name__} {value!r}"

def said(function, given):
    try:
        text = globals()[function](*pickle.loads(bytes.fromhex(given)))
    except Exception as error:
        text = f"{type(error).__name__} {error}"
    return re.sub(" at 0x[0-9a-f]+", "", text)

def forked(*question):
    reader, writer = map(os.fdopen, os.pipe(), "rw")
    if os.fork() == 0:
        with writer:
            writer.write(said(*question))
        os._exit(0)
    writer.close()
    with reader:
        text = reader.read()
    return text if os.wait()[1] == 0 else "died"

warnings.simplefilter("ignore")
room = importlib.import_module(sys.argv[1])
loaded = sys.argv[2:] == ["loaded"]
if loaded:
    for one in pkgutil.walk_packages(room.__path__, "hockeystick."):
        if not one.name.startswith(("hockeystick.adapters", "hockeystick.__main__")):
            importlib.import_module(one.name)
for line in sys.stdin:
    print(json.dumps((said if loaded else forked)(*json.loads(line))), flush=True)
"""

# What several inherit is asked of the first of them, a group of each: it goes other ways for plans.
OBJECTS: Final = (
    hs.tradeoffs.G(0.5),
    hs.tradeoff(hs.Laplace(2)),
    hs.tradeoffs.LaplaceTradeOff(2.0),
    hs.tradeoffs.SampledGaussianTradeOff(1.0, 0.1),
    hs.tradeoffs.ApproxTradeOff(1.0, 1e-6),
    hs.tradeoffs.ApproxTradeOff(1.0, 1e-6).group(3),
    hs.tradeoffs.ApproxTradeOff(1.0, 1e-6).subsample(0.1),
    hs.tradeoffs.discrete_tradeoff([0.7, 0.3], [0.4, 0.6]),
    hs.tradeoffs.tradeoff_of_deltas([(0.0, 0.3), (1.0, 0.1)]),
    hs.tradeoffs.mixture([(0.5, hs.tradeoffs.G(0.5)), (0.5, hs.tradeoffs.G(1.0))]),
    hs.tradeoffs.IDENTITY,
    hs.Certified(1.0, 1.5, 2.0, quantity="epsilon", accountant="rdp", at=1e-5),
    hs.Approximate(1.0, quantity="delta", accountant="gdp", at=1.0),
    hs.calibrate(hs.Gaussian(1), "noise_multiplier", hs.GDP(1)),
    *EXAMPLES,
)
OPERATORS: Final = (
    *("matmul", "pow", "ge", "le", "call", "str", "repr", "format", "float"),
    *("iter", "len", "getitem"),
)
# What is given for a parameter that has no default.
VALUES: Final = {
    "alpha": 0.1,
    "baseline": 0.1,
    "count": 2,
    "delta": 1e-5,
    "epsilon": 1.0,
    "fpr": 0.1,
    "index": 0,
    "log_alpha": -2.0,
    "log_fpr": -2.0,
    "order": 2.0,
    "origin": hs.notions.Origin("bound", "a theorem"),
    "prior": 0.5,
    "rate": 0.1,
    "rest": np.array([0.1]),
    "runs": 2,
    "size": 2,
    "slope": -1.5,
    "spec": ".3f",
    "steps": 2,
    "visits": 2,
}


Process = subprocess.Popen[str]
Given = tuple[object, ...] | None


def started(*arguments: str) -> Process:
    """Return a server that has loaded a room, or everything."""
    return subprocess.Popen(
        [sys.executable, "-c", SERVER, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


# They end where their input does, with the tests.
kept = cache(started)


def said(process: Process, function: str, *given: object) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps([function, pickle.dumps(given).hex()]) + "\n")
    process.stdin.flush()
    text: str = json.loads(process.stdout.readline())
    return text


def room_of(x: object) -> str:
    """Return the room that making such an object loads."""
    if isinstance(x, hs.tradeoffs.TradeOff):
        return "hockeystick.tradeoffs"
    return "hockeystick.mechanisms" if isinstance(x, hs.Mechanism) else "hockeystick"


def members(x: object) -> Iterator[tuple[str, object, Given]]:
    """Yield each public method, property and operator: its name, itself, and what it is given."""
    for name in dir(type(x)):
        found = inspect.getattr_static(type(x), name)
        if name.startswith("_") and name.strip("_") not in OPERATORS:
            continue
        if isinstance(found, property | cached_property):
            yield name, found, None
        elif inspect.isfunction(found):
            needed = [
                one.name
                for one in list(inspect.signature(found).parameters.values())[1:]
                if one.default is one.empty
                and one.kind is not one.VAR_POSITIONAL
                and one.kind is not one.VAR_KEYWORD
            ]
            yield name, found, tuple(x if one == "other" else VALUES[one] for one in needed)


def implemented() -> Iterator[Any]:
    """Yield each that is written down once, with the first object that has it."""
    seen = list[object]()
    for x in OBJECTS:
        for name, found, given in members(x):
            if found not in seen or name == "group":
                seen.append(found)
                yield pytest.param(x, name, given, id=f"{type(x).__name__}.{name}")


@pytest.mark.parametrize(("x", "name", "given"), [*implemented()])
def test_a_method_that_is_called_first_does_what_it_does_where_everything_is_loaded(
    x: object, name: str, given: Given
) -> None:
    first = said(kept(room_of(x)), "member", x, name, given)
    assert first == said(kept("hockeystick", "loaded"), "member", x, name, given)
