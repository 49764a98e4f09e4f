"""From the description of a mechanism to what is known of its worst pair of neighbours.

Everything is written from the definitions: what comes out on data with the record and on data
without it (or with another one in its place). Of several records that differ, ``distance`` of them,
attacks alone are known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tests.judge import epochs, guarantees, noises, samplings, selections
from tests.judge.cases import Family, composed, exactly, of_laplace, of_noise, of_terms, repeated
from tests.judge.profiles import failing, gaussian, listed, mp, number

SAMPLINGS = {**samplings.SAMPLINGS, **epochs.EPOCHS}


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
def truth(spec: Spec, distance: int = 1) -> Truth:
    """What is known of a mechanism, of so many records that differ."""
    return Truth(tuple(family(one, distance) for one in _places(spec)))


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


def family(spec: Spec, distance: int = 1) -> Family:
    if spec.kind == "Composed":
        return composed([family(part, distance) for part in spec.parts])
    if spec.kind == "Repeated":
        return repeated(family(spec.parts[0], distance), int(spec.values[0]))
    if spec.kind == "RevealedSample" or spec.kind == "RevealedRound":
        return _revealed(family(spec.parts[0], distance), spec, distance)
    if spec.kind == "RandomStopping":
        return selections.tuned(family(spec.parts[0], distance), *spec.values)
    if spec.kind in SAMPLINGS:
        inner = family(spec.parts[0], 1) if spec.parts else None
        noise = _noise_of(spec.parts[0]) if spec.parts else None
        return SAMPLINGS[spec.kind](spec.values, _neighbours(spec), inner, noise, distance)
    return LEAVES[spec.kind](distance, *spec.values)


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


def _revealed(inner: Family, spec: Spec, distance: int) -> Family:
    """One record's chance alone: of a group nothing is known here."""
    if distance > 1:
        return Family(())
    rate = float(spec.values[0])
    exact = samplings.rate_of(spec.values[0])
    top = inner.dominating
    return Family(
        tuple(one.revealed(rate, exact) for one in inner.attacks),
        None if top is None else top.revealed(rate, exact),
    )


def _gaussian(distance: int, noise: float) -> Family:
    if noise == 0.0:
        return exactly(of_terms(listed((1, 0), (0, 1))))
    if noise == math.inf:
        return exactly(of_terms(gaussian(0)))
    return exactly(of_terms(gaussian((distance / number(noise)) ** 2)))


def _laplace(distance: int, scale: float) -> Family:
    if scale == 0.0:
        return exactly(of_terms(listed((1, 0), (0, 1))))
    if scale == math.inf:
        return exactly(of_terms(gaussian(0)))
    return exactly(of_laplace(scale, float(distance), distance / number(scale)))


def _integers(name: str) -> Callable[..., Family]:
    def made(distance: int, parameter: float, shift: int = 1) -> Family:
        return exactly(of_terms(noises.integer_pair(name, parameter, shift * distance)))

    return made


def _response(distance: int, epsilon: float, categories: int = 2) -> Family:
    """Any answer may become any other one, however many times it is changed."""
    true = mp.exp(number(epsilon))
    total = true + categories - 1
    same = (categories - 2) / total
    p = (true / total, 1 / total, same)
    return exactly(of_terms(listed(p, (p[1], p[0], same))))


def _bits(distance: int, epsilon: float, kind: str) -> Family:
    e = number(epsilon)
    p = mp.exp(e / 2) / (1 + mp.exp(e / 2)) if kind == "symmetric" else mp.mpf(1) / 2
    q = 1 - p if kind == "symmetric" else 1 / (1 + mp.exp(e))
    one, other = (p, 1 - p), (q, 1 - q)
    first = [a * b for a in one for b in other]
    second = [a * b for a in other for b in one]
    return exactly(of_terms(listed(first, second)))


def _rappor(distance: int, flip: float, hashes: int) -> Family:
    """Two values that share no bit: 2 k of them differ."""
    wrong = number(flip) / 2
    bit = of_terms(listed((1 - wrong, wrong), (wrong, 1 - wrong)))
    return repeated(exactly(bit), 2 * hashes)


def _sinh(distance: int, rho: float, width: float) -> Family:
    return exactly(of_noise(noises.SinhNormal(rho, width), float(distance)))


def _joint(distance: int, multipliers: tuple[float, ...]) -> Family:
    square = sum(((distance / number(one)) ** 2 for one in multipliers), mp.mpf(0))
    return exactly(of_terms(gaussian(square)))


def _multivariate(distance: int, scale: float, dimension: int) -> Family:
    """In one dimension Laplace; in more the sum over a cell structure is left to closed forms."""
    if dimension == 1:
        return _laplace(distance, scale)
    bound = of_terms(failing(distance / number(scale), mp.mpf(0)))
    return Family((selections.radial(scale, dimension, distance),), bound)


def _mixture(
    distance: int, noise: float, moves: tuple[float, ...], chances: tuple[float, ...]
) -> Family:
    if distance > 1:
        return Family(())
    case = samplings.random_shift(noise, moves, chances)
    return exactly(case)


LEAVES: dict[str, Callable[..., Family]] = {
    "Gaussian": _gaussian,
    "Laplace": _laplace,
    "DiscreteGaussian": _integers("DiscreteGaussian"),
    "DiscreteLaplace": _integers("DiscreteLaplace"),
    "Skellam": _integers("Skellam"),
    "RandomizedResponse": _response,
    "UnaryEncoding": _bits,
    "RAPPOR": _rappor,
    "SinhNormal": _sinh,
    "JointGaussian": _joint,
    "MultivariateLaplace": _multivariate,
    "GaussianMixture": _mixture,
    **selections.LEAVES,
    **guarantees.LEAVES,
}
