"""The one walk over a plan: what composes, repeats or splits is evaluated from its parts.

At the end the index of all mechanisms, to read.
"""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from hockeystick.adjacency import Adjacency
from hockeystick.mechanisms.base import Composed, Mechanism, Parallel, Plan, Repeated, registered_in
from hockeystick.mechanisms.sampling.poisson import PoissonSubsampled
from hockeystick.mechanisms.streams.encoders import Encoder
from hockeystick.mechanisms.streams.sensitivity import Pattern, Squares

Runs: TypeAlias = tuple[tuple[Mechanism, int], ...]
Value = TypeVar("Value")


class Node(NamedTuple):
    """A part of a plan, and where it stands in the plan."""

    mechanism: Mechanism
    path: str

    def __str__(self) -> str:
        return f"{self.path} ({self.mechanism})"


class Algebra(Protocol[Value]):
    """What a value of single releases makes of compositions, repetitions and splits of the data."""

    def expanded(self, mechanism: Mechanism) -> Mechanism:
        """Return what is evaluated instead of a mechanism; the mechanism itself if nothing is."""

    def single(self, node: Node) -> Value:
        """Return the value of one release."""

    def composed(self, node: Node, parts: list[Value]) -> Value:
        """Return the value of releases of the same data."""

    def repeated(self, node: Node, once: Value, count: int) -> Value:
        """Return the value of that many independent runs."""

    def split(self, node: Node, name: str, parts: list[Value]) -> Value:
        """Return the value of releases of disjoint parts of the data."""


def evaluate(mechanism: Mechanism, algebra: Algebra[Value], path: str = "plan") -> Value:
    """Return the value of a plan, from those of its single releases."""
    node = Node(mechanism, path)
    if isinstance(mechanism, Composed | Parallel):
        values = [
            evaluate(part, algebra, f"{path}.parts[{index}]")
            for index, part in enumerate(mechanism.parts)
        ]
        if isinstance(mechanism, Composed):
            return algebra.composed(node, values)
        return algebra.split(node, mechanism.split, values)
    if isinstance(mechanism, Repeated):
        once = evaluate(mechanism.inner, algebra, f"{path}.inner")
        return algebra.repeated(node, once, mechanism.count)
    other = algebra.expanded(mechanism)
    return algebra.single(node) if other is mechanism else evaluate(other, algebra, path)


class _Runs:
    def expanded(self, mechanism: Mechanism) -> Mechanism:
        # A replaced example moves a sample of all data twice as far as the noise is counted in.
        if isinstance(mechanism, PoissonSubsampled):
            whole = mechanism.rate == 1 and mechanism.adjacency is not Adjacency.REPLACE_ONE
            return mechanism.inner if whole else mechanism
        return mechanism.expanded if isinstance(mechanism, Plan) else mechanism

    def single(self, node: Node) -> Runs:
        return ((node.mechanism, 1),)

    def composed(self, node: Node, parts: list[Runs]) -> Runs:
        return tuple(run for part in parts for run in part)

    def repeated(self, node: Node, once: Runs, count: int) -> Runs:
        return tuple((mechanism, runs * count) for mechanism, runs in once if runs * count)

    def split(self, node: Node, name: str, parts: list[Runs]) -> Runs:
        return self.single(node)


def runs_of(mechanism: Mechanism) -> Runs:
    """Return the single releases that a plan composes, each with how often it runs."""
    return evaluate(mechanism, _Runs())


def with_least_encoders(part: Any) -> Any:
    """Return a plan, or a part of it, whose encoders move no more than somebody is known to."""
    if isinstance(part, tuple):
        return tuple(map(with_least_encoders, part))
    if isinstance(part, Encoder):
        pattern = Pattern(part.participations, part.separation)
        ends = Squares(part.least_square, part.least_square)
        return Encoder(part.words, part.rounds, pattern, ends, part.strategy)
    if not isinstance(part, Mechanism) or not is_dataclass(part):
        return part
    changed = {}
    for one in fields(part):
        value = getattr(part, one.name)
        least = with_least_encoders(value)
        if least is not value and least != value:
            changed[one.name] = least
    return replace(part, **changed) if changed else part


def assumptions_of(mechanism: Mechanism) -> tuple[str, ...]:
    """Return what must hold for a mechanism's description to apply, without repetitions."""
    return tuple(dict.fromkeys(mechanism.assumptions))


_PACKAGE: Final = "hockeystick.mechanisms"
# In the order of the reference; what is of none of them composes others.
_FAMILIES: Final = {
    "noise": "Noise on an answer",
    "sampling": "Random samples of the data",
    "training": "Training",
    "streams": "Sums over time (DP-FTRL)",
    "selection": "Selection",
    "local": "Local reports, also shuffled",
    "federated": "Federated training",
    "decentralised": "Decentralised",
    "": "Plans",
}


def index() -> str:
    """Return every mechanism with its first sentence, by family, as a text.

    All names are in ``hockeystick.mechanisms``, those of federated training in its ``federated``
    as well, and plan files and the command know each by its name.

    Example:
        >>> import hockeystick as hs
        >>> print(*hs.mechanisms.index().splitlines()[:2], sep=", ")
        Noise on an answer,   DiscreteGaussian: An integer plus discrete Gaussian noise.
    """
    lines: dict[str, list[str]] = {family: [] for family in _FAMILIES}
    for name, kind in registered_in(_PACKAGE).items():
        if issubclass(kind, Mechanism):
            family = kind.__module__.removeprefix(f"{_PACKAGE}.").split(".")[0]
            place = family if family in lines else ""
            lines[place].append(f"  {name}: {first_sentence(kind)}")
    return "\n\n".join("\n".join([_FAMILIES[family], *lines[family]]) for family in lines)


def first_sentence(kind: type) -> str:
    """Return the first line of a class's text."""
    return (inspect.getdoc(kind) or "").partition("\n")[0].replace("``", "")
