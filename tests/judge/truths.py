"""From the description of a mechanism to what is known of its worst pair of neighbours.

Everything is written from the definitions: what comes out on data with the record and on data
without it (or with another one in its place).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tests.judge import guarantees, noises, samplings
from tests.judge.cases import Family, composed, exactly, of_laplace, of_terms, repeated
from tests.judge.profiles import gaussian, listed, mp, number


@dataclass(frozen=True)
class Spec:
    """A mechanism by its kind, numbers, parts and adjacency."""

    kind: str
    values: tuple[Any, ...] = ()
    parts: tuple[Spec, ...] = ()
    adjacency: str = ""


@dataclass(frozen=True)
class Truth:
    """The worst of all places that a record may be in."""

    places: tuple[Family, ...]

    def lower(self, epsilon: float) -> Any:
        return max(one.lower(epsilon) for one in self.places)

    @property
    def bounded(self) -> bool:
        return all(one.bounded for one in self.places)

    def upper(self, epsilon: float) -> Any:
        return max(one.upper(epsilon) for one in self.places)

    def renyi(self, order: float) -> float:
        return max(one.renyi(order) for one in self.places)

    @property
    def attacked(self) -> bool:
        return any(one.attacks for one in self.places)


@lru_cache(maxsize=512)
def truth(spec: Spec) -> Truth:
    return Truth(tuple(family(one) for one in _places(spec)))


def _places(spec: Spec) -> list[Spec]:
    """The mechanism with ``Parallel`` replaced by a part, the same for all of one name."""
    names = sorted(_splits(spec))
    found = [spec]
    for name, count in names:
        found = [_chosen(one, name, index) for one in found for index in range(count)]
    return found


def _splits(spec: Spec) -> set[tuple[str, int]]:
    own = {(spec.values[0], len(spec.parts))} if spec.kind == "Parallel" else set()
    return own.union(*(_splits(part) for part in spec.parts))


def _chosen(spec: Spec, name: str, index: int) -> Spec:
    parts = tuple(_chosen(part, name, index) for part in spec.parts)
    if spec.kind == "Parallel" and spec.values[0] == name:
        return parts[min(index, len(parts) - 1)]
    return Spec(spec.kind, spec.values, parts, spec.adjacency)


def family(spec: Spec) -> Family:
    if spec.kind == "Composed":
        return composed([family(part) for part in spec.parts])
    if spec.kind == "Repeated":
        return repeated(family(spec.parts[0]), int(spec.values[0]))
    if spec.kind == "RevealedSample" or spec.kind == "RevealedRound":
        return _revealed(family(spec.parts[0]), spec)
    if spec.kind in samplings.SAMPLINGS:
        inner = family(spec.parts[0]) if spec.parts else None
        noise = _noise_of(spec.parts[0]) if spec.parts else None
        drawn = samplings.Drawn(spec.values, _neighbours(spec), inner, noise)
        return samplings.SAMPLINGS[spec.kind](drawn)
    return LEAVES[spec.kind](*spec.values)


def _neighbours(spec: Spec) -> str:
    """The adjacency; to a release of which a guarantee is all that is known zero is any value."""
    known = spec.parts[0].kind if spec.parts else ""
    zeroed = spec.kind == "FixedSizeSubsampled" and spec.adjacency == "zero-out"
    return "replace-one" if zeroed and known in guarantees.LEAVES else spec.adjacency


def _noise_of(spec: Spec) -> noises.Noise | None:
    made: dict[str, Callable[..., noises.Noise]] = {
        "Gaussian": noises.Gaussian,
        "Laplace": noises.Laplace,
    }
    if spec.kind not in made or not 0.0 < spec.values[0] < math.inf:
        return None
    return made[spec.kind](*spec.values)


def _revealed(inner: Family, spec: Spec) -> Family:
    rate = float(spec.values[0])
    exact = samplings.rate_of(spec.values[0])
    top = inner.dominating
    return Family(
        tuple(one.revealed(rate, exact) for one in inner.attacks),
        None if top is None else top.revealed(rate, exact),
    )


def _gaussian(noise: float) -> Family:
    if noise == 0.0:
        return exactly(of_terms(listed((1, 0), (0, 1))))
    if noise == math.inf:
        return exactly(of_terms(gaussian(0)))
    return exactly(of_terms(gaussian((1 / number(noise)) ** 2)))


def _laplace(scale: float) -> Family:
    if scale == 0.0:
        return exactly(of_terms(listed((1, 0), (0, 1))))
    if scale == math.inf:
        return exactly(of_terms(gaussian(0)))
    return exactly(of_laplace(scale, 1 / number(scale)))


def _integers(name: str) -> Callable[..., Family]:
    def made(parameter: float, shift: int = 1) -> Family:
        return exactly(of_terms(noises.integer_pair(name, parameter, shift)))

    return made


def _response(epsilon: float, categories: int = 2) -> Family:
    """Any answer may become any other one, however many times it is changed."""
    true = mp.exp(number(epsilon))
    total = true + categories - 1
    same = (categories - 2) / total
    p = (true / total, 1 / total, same)
    return exactly(of_terms(listed(p, (p[1], p[0], same))))


LEAVES: dict[str, Callable[..., Family]] = {
    "Gaussian": _gaussian,
    "Laplace": _laplace,
    "DiscreteGaussian": _integers("DiscreteGaussian"),
    "DiscreteLaplace": _integers("DiscreteLaplace"),
    "Skellam": _integers("Skellam"),
    "RandomizedResponse": _response,
    **guarantees.LEAVES,
}
