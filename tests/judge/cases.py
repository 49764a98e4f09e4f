"""One ordered pair of output distributions, and what is known of the worst of a mechanism."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tests.judge import noises
from tests.judge.outcomes import NOTHING, Outcomes, union
from tests.judge.profiles import MOST_TERMS, Laplace, Profile, Real, Sampled, Terms, gaussian, mp

MOST_ATTACKS = 6


@dataclass(frozen=True, eq=False)
class Case:
    """A pair: in closed form where it is known so, and as a list that it dominates."""

    profile: Profile | None
    make_low: Callable[[], Outcomes]

    @cached_property
    def low(self) -> Outcomes:
        return self.make_low()

    def lower(self, epsilon: float) -> Any:
        """A number that the worse of both orders is not below; the truth in closed form."""
        if self.profile is not None:
            e = mp.mpf(epsilon)
            return max(self.profile.delta(e), self.profile.swapped().delta(e))
        return max(self.low.delta(epsilon), self.low.swapped().delta(epsilon))

    def renyi(self, order: float) -> float:
        """A number that the larger Renyi divergence of both orders is not below."""
        return max(self.low.renyi(order), self.low.swapped().renyi(order))

    def times(self, other: Case) -> Case:
        both = self._listed_with(other)
        if both is not None:
            return of_terms(both)
        return Case(None, lambda: self.low.times(other.low))

    def _listed_with(self, other: Case) -> Terms | None:
        """The product in closed form, where it is one of few terms."""
        one, two = self.profile, other.profile
        if not (isinstance(one, Terms) and isinstance(two, Terms)):
            return None
        return one.times(two) if len(one.terms) * len(two.terms) <= MOST_TERMS else None

    def power(self, count: int) -> Case:
        if count == 1:
            return self
        if isinstance(self.profile, Terms):
            found = _power(self.profile, count)
            if found is not None:
                return of_terms(found)
        return Case(None, lambda: self.low.power(count))

    def sampled(self, rate: float, exact: Real) -> Case:
        if isinstance(self.profile, Terms):
            found = self.profile.sampled(exact)
            if found is not None:
                return of_terms(found)
        base = self.profile
        profile = None if base is None else Sampled(base, exact)
        return Case(profile, lambda: self.low.mixed(rate))

    def revealed(self, rate: float, exact: Real) -> Case:
        """Run with the probability rate, and all see whether."""
        if isinstance(self.profile, Terms):
            return of_terms(self.profile.revealed(exact))
        return Case(None, lambda: self.low.revealed(rate))


def _power(terms: Terms, count: int) -> Terms | None:
    """A power by doubling, None where it has too many terms."""
    result: Terms | None = None
    base = terms
    while count:
        if count & 1:
            if result is not None and len(result.terms) * len(base.terms) > 20 * MOST_TERMS:
                return None
            result = base if result is None else result.times(base)
        count >>= 1
        if count:
            if len(base.terms) ** 2 > 20 * MOST_TERMS:
                return None
            base = base.times(base)
    if result is None:
        return gaussian(0)
    return result if len(result.terms) <= MOST_TERMS else None


def of_terms(terms: Terms) -> Case:

    def low() -> Outcomes:
        by_square: dict[float, list[tuple[float, float]]] = {}
        for p, q, square in terms.terms:
            by_square.setdefault(float(square), []).append((float(p), float(q)))
        parts = []
        for square, weights in by_square.items():
            inner = noises.Gaussian(1.0).dominated(square**0.5) if square else NOTHING
            p, q = np.array(weights).T
            outer = Outcomes(np.outer(p, inner.p).ravel(), np.outer(q, inner.q).ravel())
            parts.append((1.0, outer.fewer()))
        return union(parts).fewer()

    return Case(terms, low)


def of_laplace(scale: float, most: Real) -> Case:
    return Case(Laplace(most), lambda: noises.Laplace(scale).dominated(1.0))


@dataclass(frozen=True, eq=False)
class Family:
    """What is known of the worst pair of neighbours.

    Each attack is a pair that neighbours reach. ``dominating`` is one that no neighbours exceed,
    also as a part of compositions; ``once`` are pairs the worst of which no neighbours exceed in
    one run; ``bound`` an upper bound of delta in one run.
    """

    attacks: tuple[Case, ...]
    dominating: Case | None = None
    once: tuple[Case, ...] = ()
    bound: Callable[[float], float] | None = field(default=None)

    def lower(self, epsilon: float) -> Any:
        return max((one.lower(epsilon) for one in self.attacks), default=0.0)

    @property
    def tops(self) -> tuple[Case, ...]:
        """Pairs the worst of which no neighbours exceed, if they are all in closed form."""
        found = self.once or ((self.dominating,) if self.dominating else ())
        return found if all(one.profile is not None for one in found) else ()

    @property
    def bounded(self) -> bool:
        return bool(self.tops) or self.bound is not None

    def upper(self, epsilon: float) -> Any:
        found: list[Any] = [1.0]
        if self.tops:
            found.append(max(one.lower(epsilon) for one in self.tops))
        if self.bound is not None:
            found.append(self.bound(epsilon))
        return min(found)

    def renyi(self, order: float) -> float:
        return max((one.renyi(order) for one in self.attacks), default=0.0)


def exactly(case: Case) -> Family:
    return Family((case,), case)


def composed(families: Sequence[Family]) -> Family:
    """Releases of the same data: attacks side by side, and what dominates."""
    if len(families) == 1:
        return families[0]
    chosen = max(len(one.attacks) for one in families) if all(f.attacks for f in families) else 0
    attacks = [
        _product(one.attacks[index % len(one.attacks)] for one in families)
        for index in range(min(chosen, MOST_ATTACKS))
    ]
    tops = [one.dominating for one in families]
    known = [one for one in tops if one is not None]
    dominating = _product(known) if len(known) == len(tops) else None
    return Family(tuple(attacks), dominating)


def repeated(family: Family, count: int) -> Family:
    if count == 1:
        return family
    tops = family.dominating
    return Family(
        tuple(one.power(count) for one in family.attacks[:MOST_ATTACKS]),
        None if tops is None else tops.power(count),
    )


def _product(cases: Iterable[Case]) -> Case:
    found: Case | None = None
    for one in cases:
        found = one if found is None else found.times(one)
    assert found is not None
    return found
