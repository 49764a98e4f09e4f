"""The exact profile of several runs over a few outcomes, by rational enumeration."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from mpmath import mp

Pairs = dict[tuple[int, ...], tuple[Fraction, Fraction]]


def decimals(numbers: Sequence[float]) -> list[Fraction]:
    """Return numbers as the decimals that they print as."""
    return [Fraction(repr(one)) for one in numbers]


def runs(pair: Sequence[Sequence[Fraction]], count: int) -> list[tuple[Any, Any]]:
    """Return the masses of what so many runs may give, under P and under Q."""
    p, q = pair
    found: Pairs = {(0,) * len(p): (Fraction(1), Fraction(1))}
    for _ in range(count):
        longer: Pairs = {}
        for seen, (under_p, under_q) in found.items():
            for at, (one, other) in enumerate(zip(p, q, strict=True)):
                key = (*seen[:at], seen[at] + 1, *seen[at + 1 :])
                had = longer.get(key, (Fraction(0), Fraction(0)))
                longer[key] = had[0] + under_p * one, had[1] + under_q * other
        found = longer
    return [masses for masses in found.values() if any(masses)]


def delta(pairs: Sequence[tuple[Any, Any]], epsilon: Any) -> Any:
    """Return the larger of both hockey-stick divergences, to mpmath's precision."""
    grown = mp.inf if epsilon == mp.inf else mp.exp(epsilon)
    ways = (pairs, [(q, p) for p, q in pairs])
    return max(mp.fsum(_excess(_real(p), _real(q), grown) for p, q in way) for way in ways)


def knots(pairs: Sequence[tuple[Any, Any]]) -> list[Any]:
    """Return the losses >= 0, finite ones, where the profile bends."""
    ratios = {p / q for p, q in pairs if p and q}
    return sorted(abs(mp.log(_real(one))) for one in ratios)


def _excess(p: Any, q: Any, grown: Any) -> Any:
    return p if q == 0 else max(p - grown * q, mp.zero) if grown < mp.inf else mp.zero


def _real(value: Any) -> Any:
    return mp.mpf(value.numerator) / value.denominator if isinstance(value, Fraction) else value
