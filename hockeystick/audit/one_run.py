"""Audits in one run: many canaries at once, each included by the toss of a coin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from scipy import special

from hockeystick._validate import count, real, whole_numbers
from hockeystick.audit.bounds import premises_of, tradeoff_of
from hockeystick.audit.region import SPARE, at_least
from hockeystick.audit.results import Consistent, LowerBound, Refuted
from hockeystick.audit.scores import Array, checked_scores, error_probability, flags, mixed_seed
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import Mechanism
from hockeystick.tradeoffs import Profile, TradeOff

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
_BY_F: Final = "Mahloujifar, Melis and Chaudhuri 2024, algorithm 3 (docs/theory/audit)"
_FIXED: Final = ", guesses fixed in advance"
_SEVERAL: Final = ", {} numbers of guesses fixed in advance, by Bonferroni's inequality"
_ASSUMPTIONS: Final = (
    "Each canary was included with probability 1/2, independently of all others.",
    "The scores depend on who was included only through what the mechanism put out.",
    "Neighbours differ in one canary: included, or not.",
)
_FEWEST_GUESSES: Final = 8
_RATIO: Final = 3
_LINES: Final = 160
_MOST_CORNERS: Final = 1000
# Deltas that are told less precisely than this, among many, are asked for one by one.
_WIDE: Final = 1e-4
_LEAST_DELTA: Final = 1e-12
_LARGEST_EPSILON: Final = 60.0
# Of a family of trade-off functions, one for each parameter in an array: the least rate x >= 0
# with 1 - f(x) >= r, or less than it.
Inverse: TypeAlias = Callable[[Array, Array], Array]

_PARTS: Final = 64
_ROUNDS: Final = 6
_LARGEST: Final = 64.0
_WIDTH: Final = 1e-8
_LEAST_MASS: Final = 1e-290


def one_run(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    delta: float,
    confidence: float = 0.95,
    guesses: int | None = None,
    seed: int = 0,
) -> LowerBound:
    """Return a lower bound on epsilon from one run with many canaries.

    The best bound that holds for all mechanisms that are (epsilon, delta)-DP. Of m canaries the
    highest scores are guessed "in", the lowest "out", r in all; ties are broken by the seed.

    Guarantees:
        With probability at least ``confidence`` the mechanism is not (epsilon', delta)-DP for any
        epsilon' below the value, if canaries are included as assumed. Canaries share one run and
        need not be independent of one another.

    Args:
        scores: One score for each canary, shape (m,); larger means "in".
        included: Whether each canary was included, shape (m,), truth values.
        delta: Where epsilon is asked, in [0, 1].
        confidence: In (0, 1).
        guesses: How many guesses to make, from 1 to m, fixed before the scores are seen; without
            it m/2, m/6, m/18, ..., which hold together.
        seed: What breaks ties.

    References:
        Steinke, Nasr and Jagielski, "Privacy auditing with one (1) training run", NeurIPS 2023.

    Example:
        >>> from hockeystick import audit
        >>> scores, included = [1.0] * 500 + [0.0] * 500, [True] * 480 + [False] * 520
        >>> 2.0 < audit.one_run(scores, included, delta=1e-5, guesses=1000).value < 4.0
        True
    """
    at = real("delta", delta)
    alpha, went = outcomes(scores, included, confidence, guesses, seed)
    return LowerBound(
        max(epsilon_by_binomial(one, at, alpha) for one in went),
        "epsilon",
        float(confidence),
        "sharp form of Steinke, Nasr and Jagielski 2023 (docs/theory/audit)" + _in_advance(went),
        method="binomial",
        delta=at,
        trials=went[0].canaries,
        assumptions=_ASSUMPTIONS,
    )


def one_run_mu(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    confidence: float = 0.95,
    guesses: int | None = None,
    seed: int = 0,
) -> LowerBound:
    """Return a lower bound on mu from one run with many canaries.

    With probability at least ``confidence`` the mechanism is not mu'-GDP for any mu' below the
    value. The epsilon that a mu has bounds that of the mechanism only where its trade-off function
    is that of a Gaussian. Arguments are those of ``one_run``, the source ``falsify_one_run``'s.

    Example:
        >>> from hockeystick import audit
        >>> print(f"{audit.one_run_mu([0.0, 1.0] * 100, [False, True] * 100).value:.3f}")
        1.296
    """
    alpha, went = outcomes(scores, included, confidence, guesses, seed)
    return LowerBound(
        max(largest_rejected(one, alpha, of_gaussians) for one in went),
        "mu",
        float(confidence),
        _BY_F + _in_advance(went),
        method="f-dp",
        trials=went[0].canaries,
        assumptions=_ASSUMPTIONS,
    )


def falsify_one_run(
    plan: Mechanism | TradeOff,
    scores: ArrayLike,
    included: ArrayLike,
    *,
    confidence: float = 0.95,
    guesses: int | None = None,
    seed: int = 0,
) -> Refuted | Consistent:
    """Return whether one run with many canaries contradicts the certified trade-off function.

    If what ran is what the plan describes, for neighbours that differ in one canary, the answer is
    ``Refuted`` with probability at most ``1 - confidence``. ``Consistent`` guarantees nothing. The
    plan is as for ``falsify``, other arguments as for ``one_run`` (Mahloujifar, Melis and
    Chaudhuri, "Auditing f-differential privacy in one run", 2024).

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick import audit
        >>> scores, included = [1.0] * 500 + [0.0] * 500, [True] * 480 + [False] * 520
        >>> print(audit.falsify_one_run(hs.Gaussian(2.0), scores, included, guesses=1000))
        refuted with confidence 0.95: ...
    """
    inverse = inverse_of(tradeoff_of("plan", plan))
    alpha, went = outcomes(scores, included, confidence, guesses, seed)
    found = any(bool(rejected(one, alpha, inverse, np.zeros(1))[0]) for one in went)
    return (Refuted if found else Consistent)(
        f"the certified trade-off function of {plan}",
        float(confidence),
        _BY_F + _in_advance(went),
        method="f-dp",
        trials=went[0].canaries,
        assumptions=(*_ASSUMPTIONS, *premises_of(plan)),
    )


@dataclass(frozen=True, slots=True)
class Guesses:
    """How many canaries there were, how many were guessed, and how many of these rightly."""

    canaries: int
    made: int
    correct: int


def outcomes(
    scores: ArrayLike, included: ArrayLike, confidence: float, guesses: int | None, seed: int
) -> tuple[float, list[Guesses]]:
    """Return the error probability of each number of guesses, and how it went."""
    # Ties are in an order that no one can have arranged.
    known = checked_scores("scores", scores)
    took_part = flags("included", included, (known.size,))
    mixed = mixed_seed(seed, known, took_part.astype(np.float64))
    order = np.random.default_rng([mixed, 3]).permutation(known.size)
    right = took_part[order[np.argsort(-known[order], kind="stable")]]
    alpha, went = error_probability(confidence), []
    for made in _numbers(guesses, known.size):
        first = (made + 1) // 2
        last = right.size - (made - first)
        correct = int(right[:first].sum()) + int((~right[last:]).sum())
        went.append(Guesses(right.size, made, correct))
    return alpha / len(went), went


def _numbers(guesses: int | None, canaries: int) -> list[int]:
    if guesses is not None:
        known = count("guesses", guesses, whole_numbers("r", 1, (10, 10_000)))
        if known > canaries:
            raise ParameterError("guesses", guesses, f"at most the number of canaries, {canaries}")
        return [known]
    found = [max(canaries // 2, 1)]
    while found[-1] // _RATIO >= _FEWEST_GUESSES:
        found.append(found[-1] // _RATIO)
    return found


def _in_advance(went: list[Guesses]) -> str:
    return _FIXED if len(went) == 1 else _SEVERAL.format(len(went))


def inverse_of(f: TradeOff) -> Inverse:
    """Return lines below the inverse of ``1 - f``, which its proven deltas give."""
    top = min(float(f.epsilon(_LEAST_DELTA).upper), _LARGEST_EPSILON)
    profiles = (f.forward,) if f.is_symmetric else (f.forward, f.backward)
    corners = np.concatenate([one.breakpoints[:_MOST_CORNERS] for one in profiles])
    epsilons = np.union1d(np.linspace(0.0, top, _LINES), corners[corners <= top])
    deltas = np.max([_upper_deltas(one, epsilons) for one in profiles], axis=0)
    return of_lines(epsilons, deltas)


def _upper_deltas(profile: Profile, epsilons: Array) -> Array:
    found = profile.at(epsilons)
    width, upper = found.upper - found.lower, found.upper.copy()
    for at in np.argsort(-width)[: np.count_nonzero(width > _WIDE)][:_LINES]:
        upper[at] = min(upper[at], profile.precisely(float(epsilons[at]))[2])
    return upper


def epsilon_by_binomial(guesses: Guesses, delta: float, alpha: float) -> float:
    """Return the end of the epsilons from 0 on that are all rejected at a level.

    With ``W ~ Bin(r, e^eps / (e^eps + 1))``, (eps, delta)-DP has

        P[V >= v] <= P[W >= v] (1 + m delta P[W < v] / (v P[W = v])),

    which some such mechanism attains, up to 1: docs/theory/audit. The right side is bounded over
    cells of epsilons.
    """
    low, width = 0.0, 1.0
    while width > _WIDTH and low < _LARGEST:
        edges = low + width * np.arange(_PARTS + 1, dtype=np.float64)
        kept = _tail_bound(guesses, delta, edges) <= alpha
        failing = np.flatnonzero(np.logical_not(kept))
        low = float(edges[failing[0] if failing.size else -1])
        width = width / _PARTS if failing.size else width
    return low


def _tail_bound(guesses: Guesses, delta: float, edges: Array) -> Array:
    """Return an upper end of the right side in each cell between edges.

    In epsilon, ``P[W >= v]`` and its ratio to ``P[W = v]`` rise, and ``P[W < v]`` falls.
    """
    chance = 1.0 / (1.0 + np.exp(-edges))
    v, r = guesses.correct, guesses.made
    tail = at_least(np.array(float(v)), r, chance)
    upper = tail[1:] * (1.0 + SPARE)
    if delta == 0.0 or v < 1:
        return np.asarray(upper)
    below = 1.0 - tail[:-1] * (1.0 - SPARE)
    failures = guesses.canaries * delta / v
    return np.asarray(upper + failures * _ratio(v, r, edges[1:], upper) * below)


def _ratio(v: int, r: int, edges: Array, tail: Array) -> Array:
    """Return an upper end of ``P[W >= v] / P[W = v]``, also where the mass is no float.

    Each term of the sum is at most ``x = e^eps (r - v) / (v + 1)`` times the one before.
    """
    from scipy.stats import binom

    mass = np.asarray(binom.pmf(v, r, 1.0 / (1.0 + np.exp(-edges))), dtype=np.float64)
    divided = tail / np.maximum(mass * (1.0 - SPARE), _LEAST_MASS)
    x = np.exp(edges) * (r - v) / (v + 1.0) * (1.0 + SPARE)
    geometric = np.where(x < 1.0, 1.0 / np.maximum(1.0 - x, SPARE), np.inf) * (1.0 + SPARE)
    return np.minimum(np.where(mass > _LEAST_MASS, divided, np.inf), geometric)


def rejected(guesses: Guesses, alpha: float, inverse: Inverse, parameters: Array) -> Array:
    """Return for which parameters so many right guesses have a probability below a level.

    With ``p_j = P[V = j]`` and ``T = {j, j + 1, ...}``, f-DP for every canary, averaged, has

        sum over i >= j of i p_i / m <= fbar(sum over i >= j - 1 of (r - i) p_i / m),  fbar = 1 - f,

    as the outputs that make a guess right, j in all, make it wrong and leave j - 1 where the canary
    is flipped. Starting with mass alpha at v, the least mass that this asks for below v, step by
    step, must not exceed 1 in all.

    Mahloujifar, Melis and Chaudhuri, ICML 2025 (arXiv 2410.22235), algorithm 3; docs/theory/audit.
    """
    m, made = float(guesses.canaries), guesses.made
    right = np.full(parameters.shape, alpha * guesses.correct / m)
    wrong = np.full(parameters.shape, alpha * (made - guesses.correct) / m)
    for i in range(guesses.correct - 1, -1, -1):
        needed = inverse(np.minimum(right, 1.0), parameters) * (1.0 - SPARE)
        new = np.maximum(wrong, needed)
        if bool((new == wrong).all()):
            break
        right = right + i / (made - i) * (new - wrong)
        wrong = new
    return np.asarray(right + wrong > made / m * (1.0 + SPARE))


def largest_rejected(guesses: Guesses, alpha: float, inverse: Inverse) -> float:
    """Return the end of the parameters from 0 on that are rejected: the larger, the less so."""
    low, width = 0.0, _LARGEST / _PARTS
    for _ in range(_ROUNDS):
        grid = low + width * np.arange(1, _PARTS + 1, dtype=np.float64)
        kept = np.flatnonzero(np.logical_not(rejected(guesses, alpha, inverse, grid)))
        steps = int(kept[0]) if kept.size else _PARTS
        low, width = low + width * steps, width / _PARTS
    return low


def of_gaussians(rates: Array, mu: Array) -> Array:
    """Return ``Phi(PhiInv(r) - mu)``, the inverse for mu-GDP."""
    return np.asarray(special.ndtr(np.asarray(special.ndtri(rates)) - mu))


def of_lines(epsilons: Array, deltas: Array) -> Inverse:
    """Return the inverse for what is (epsilon, delta)-DP for all of several pairs."""
    shrink, grow = np.exp(-epsilons), np.exp(np.minimum(epsilons, 700.0))

    def inverse(rates: Array, parameters: Array) -> Array:
        r = rates[..., np.newaxis]
        # Both lines of (epsilon, delta)-DP, less their round-off.
        low = (r * (1.0 - 2.0**-50) - deltas) * shrink
        high = 1.0 - deltas - grow * (1.0 - r) - 2.0**-50 * (1.0 + grow)
        return np.asarray(np.maximum(np.maximum(low, high).max(axis=-1), 0.0))

    return inverse
