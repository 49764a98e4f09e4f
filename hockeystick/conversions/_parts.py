"""What a plan consists of, for notions that add up over a composition."""

from __future__ import annotations

from functools import singledispatch
from typing import TypeAlias

from hockeystick.adjacency import Adjacency
from hockeystick.mechanisms import Composed, Mechanism, Plan, PoissonSubsampled, Repeated

Parts: TypeAlias = tuple[tuple[Mechanism, int], ...]


@singledispatch
def parts_of(mechanism: Mechanism) -> Parts:
    """Return what is released, with how often: for a single release itself."""
    return ((mechanism, 1),)


@parts_of.register
def _(mechanism: Composed) -> Parts:
    return tuple(one for part in mechanism.parts for one in parts_of(part))


@parts_of.register
def _(mechanism: Repeated) -> Parts:
    return tuple((part, n * mechanism.count) for part, n in parts_of(mechanism.inner) if n)


@parts_of.register
def _(mechanism: Plan) -> Parts:
    return parts_of(mechanism.mechanism)


@parts_of.register
def _(mechanism: PoissonSubsampled) -> Parts:
    # Where every example is drawn, the sample is all data; but a replaced one moves it twice as far
    # as the noise is counted in.
    whole = mechanism.rate == 1.0 and mechanism.adjacency is not Adjacency.REPLACE_ONE
    return parts_of(mechanism.inner) if whole else ((mechanism, 1),)
