"""Protocols of parties without a server that all trust, run in one process, with exact noise.

``gopa_round`` and ``gossip_average`` take a finite number for each party and the interval of these,
whose nearer end those outside count as. Noise is finite, in units of the interval's width.

**Projected noisy gradient steps in floats, whose rounding the noise covers** (``noisy_iterations``,
``token_walk``). A step takes w to ``Pi(w - eta (g(w) + Z))``. Here the sum before Pi is a multiple
of a power of two, ``x' = round((w - eta g(w)) / h) h + round(N) h`` with ``w = Pi(x)``, all in
floats. As ``k + round(N) = round(k + N)``, the real number ``k + N`` before its rounding is a state
of its own: one step takes it to the next by some map psi, and adds Gaussian noise. Were nothing
rounded, psi would contract. As it is off by at most e, ``|psi(a) - psi(b)| <= |a - b| + 2 e``, and
a record moves it by at most ``c eta L + 2 e``. In the proof of amplification by iteration (see
``NoisyIterations``), the m steps that cover a record then cover ``c eta L + 2 m e``, in m equal
parts as before: the first distance is at least such a part, and each later one falls by a part less
2 e. So ``1 + 2 m e / (c eta L)`` times the noise that the mechanism says gives what it guarantees.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final, NamedTuple, final

import numpy as np

from hockeystick import _validate
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.decentralised import gossip
from hockeystick.mechanisms.decentralised.gossip import GOPA, GossipAveraging
from hockeystick.mechanisms.decentralised.token_walk import NoisyIterations, TokenWalk, change
from hockeystick.numerics import decimal, largest_reading
from hockeystick.numerics.rounding import float_up
from hockeystick.release._values import of_kind, root_up, row_of, shaped, yes_or_no
from hockeystick.release.counting import Charged, book, checked_charge
from hockeystick.release.samplers import Bits, rounded_gaussian, secret_bits, uniform_integers
from hockeystick.release.samplers.bits import COUNT, POSITIVE, Bools, Floats, Integers

Gradient = Callable[[Any, int], Any]
# The largest scale of rounded noise that is drawn here, 2^43 steps.
_SCALE_BITS: Final = 43
_FINITE: Final = _validate.Domain("x", -math.inf, math.inf, (0, 1), low_open=True, high_open=True)
# All noise of a round of GOPA is larger by this, which covers that pairwise noise has steps,
_GOPA_WIDER: Final = Fraction(1, 2**20)
# and that of gossip by this.
_GOSSIP_WIDER: Final = Fraction(1, 2**16)
_MOST_ROUNDS: Final = 10_000
# Between these, squares are normal floats.
_LENGTH: Final = _validate.Domain(symbol="L", low=1e-100, high=1e100, typical=(0.1, 100))
_MODEL: Final = "a row of one or more finite numbers within the radius"
_GRADIENT: Final = "a row of finite numbers, as long as the model, of norm at most lipschitz"
# Relative to the bound of the gradients: what a gradient in floats is off by, and the grid's step.
_GRADIENT_BITS: Final = 30
# The most that rounding may add to the noise of a step.
_MOST_WIDER: Final = Fraction(1, 2**10)


class _Steps(NamedTuple):
    """The interval [low, high] in ``2^bits`` steps."""

    low: float
    high: float
    bits: int

    def of(self, values: Any, parties: int) -> Integers:
        """Return a value for each party, clipped, in steps; or raise."""
        given = row_of("values", values, parties)
        parts = (np.clip(given, self.low, self.high) - self.low) / (self.high - self.low)
        return np.clip(np.rint(np.ldexp(parts, self.bits)), 0, 2**self.bits).astype(np.int64)

    def scale(self, noise_multiplier: float, wider: Fraction) -> float:
        """Return a noise's standard deviation in steps, larger by a factor ``1 + wider``."""
        return float_up(largest_reading(noise_multiplier) * (1 + wider) * 2**self.bits)

    def value(self, steps: Fraction) -> float:
        """Return a number of steps from the lower end as a value."""
        return self.low + (self.high - self.low) * float(steps / 2**self.bits)


def _steps_of(interval: Any, *noise_multipliers: float) -> _Steps:
    """Return an interval in steps so fine as some noise can be drawn in them, or raise."""
    pair = isinstance(interval, tuple) and len(interval) == 2
    low, high = _validate.reals("interval", interval, _FINITE) if pair else (0.0, 0.0)
    if not low < high or not math.isfinite(high - low):
        raise ParameterError("interval", interval, "a pair of finite numbers, the lower one first")
    most = max(*noise_multipliers, 1.0)
    if most >= 2.0**_SCALE_BITS:
        raise ParameterError("mechanism", f"noise of {most:g}", "noise below 2^43 interval widths")
    return _Steps(low, high, _SCALE_BITS - math.frexp(most)[1])


def _check_finite(mechanism: Any, *names: str) -> None:
    for name in names:
        if getattr(mechanism, name) == math.inf:
            raise ParameterError(name, math.inf, "finite where noise is drawn")


@final
@dataclass(frozen=True, slots=True)
class GopaRound:
    """What a round of GOPA made public: as what it was charged, who published, what, and the mean.

    In the mechanism those who dropped out hide nobody.
    """

    mechanism: GOPA
    parties: tuple[int, ...]
    published: tuple[float, ...]
    mean: float


def gopa_round(
    mechanism: GOPA,
    values: Any,
    *,
    interval: tuple[float, float] = (0.0, 1.0),
    dropouts: Iterable[int] = (),
    rollback: bool = True,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> GopaRound:
    """Run a round of GOPA on the values of all parties, some of whom may drop out.

    Every two neighbours draw noise that one adds and the other subtracts, each party draws its own;
    then those who have not dropped out, one at least, publish. With ``rollback`` the neighbours of
    those who did leave out the noise shared with them, so that the rest cancels; without, it stays
    in the mean (Sabater, Bellet and Ramon, Machine Learning 2022, algorithm 1 and section 6).

    Guarantees:
        That of the mechanism in the result, for what is published and all that colluders know: with
        ``rollback``, GOPA where those who dropped out collude; without, as if all published.

        The values are integers k, one party's own noise is ``round(N)`` and pairwise noise is
        ``round(D)``. As ``k + round(N) + m = round(k + N + m)`` for integers m, all that is
        published is a function of the N and the round(D). A change of k is covered by moving N by a
        and the D of each edge by an *integer* f; ``round(D) + f = round(D + f)``, so that this
        costs ``mu^2 = |a|^2 / s^2 + |f|^2 / t^2``. Rounding the best f moves each entry by at most
        1/2, and the quadratic by at most ``(sum_v d_v^2 / s^2 + E / t^2) / 4``, which the noise
        exceeds, ``1 + 2^-20`` times the mechanism's; ``IncompatibleError`` where steps tell more.

        Rounds whose dropouts differ are charged for different colluders, and no account takes both:
        compose ``hs.convert(round.mechanism, hs.GDP)``, which hold for who is honest in every one.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.mechanisms.GOPA(0.5, 10.0, hs.mechanisms.Graph.complete(50))
        >>> found = hs.release.gopa_round(plan, [0.25] * 50, dropouts=[3])
        >>> len(found.published), abs(found.mean - 0.25) < 1
        (49, True)
    """
    known = of_kind(mechanism, GOPA)
    gone = gossip.checked_parties("dropouts", dropouts, known.graph.parties, fewest=0)
    left_out = gone if yes_or_no("rollback", rollback) else frozenset()
    hidden = known.colluders | left_out
    if len(hidden) == known.graph.parties:
        raise IncompatibleError("nobody who is honest is left to publish anything")
    _check_finite(known, "noise_multiplier", "pairwise_multiplier")
    steps = _steps_of(interval, known.noise_multiplier, known.pairwise_multiplier)
    _check_shared(known, steps)
    start, charged = steps.of(values, known.graph.parties), replace(known, colluders=hidden)
    book(checked_charge(charge), charged)
    noisy = start + _shared_noise(known, steps, left_out, bits)
    left = tuple(party for party in range(known.graph.parties) if party not in gone)
    total = sum(int(noisy[party]) for party in left)
    published = tuple(steps.value(Fraction(int(noisy[party]))) for party in left)
    return GopaRound(charged, left, published, steps.value(Fraction(total, len(left))))


def _shared_noise(mechanism: GOPA, steps: _Steps, gone: frozenset[int], bits: Bits) -> Integers:
    graph = mechanism.graph
    total = np.zeros(graph.parties, dtype=np.int64)
    if mechanism.noise_multiplier:
        own = steps.scale(mechanism.noise_multiplier, _GOPA_WIDER)
        total += rounded_gaussian(own, graph.parties, bits=bits)
    if mechanism.pairwise_multiplier:
        shared = steps.scale(mechanism.pairwise_multiplier, _GOPA_WIDER)
        drawn = rounded_gaussian(shared, graph.size, bits=bits)
        pairs = graph.pairs
        drawn[np.isin(pairs, sorted(gone)).any(axis=1)] = 0
        np.add.at(total, pairs[:, 0], drawn)
        np.subtract.at(total, pairs[:, 1], drawn)
    return total


def _check_shared(mechanism: GOPA, steps: _Steps) -> None:
    """Raise where steps may add too much to ``mu^2 >= 1 / (n s^2)``; in units of ``1 / s^2``."""
    graph = mechanism.graph
    if not mechanism.noise_multiplier or not mechanism.pairwise_multiplier:
        return
    degrees = np.bincount(graph.pairs.ravel(), minlength=graph.parties)
    ratio = (decimal(mechanism.noise_multiplier) / decimal(mechanism.pairwise_multiplier)) ** 2
    added = (sum(int(degree) ** 2 for degree in degrees) + graph.size * ratio) / 4
    if added * graph.parties > 2 * _GOPA_WIDER * 4**steps.bits:
        told = f"tells more of these {graph.parties:,} parties"
        raise IncompatibleError(f"pairwise noise too small beside the parties' own {told}")


@final
@dataclass(frozen=True, slots=True)
class GossipRun:
    """What was charged, each party's value at the end, and what observers were sent in each round.

    By sender, as exact fractions of the interval's width above its lower end.
    """

    mechanism: GossipAveraging
    averages: tuple[float, ...]
    seen: tuple[Mapping[int, Fraction], ...]


def gossip_average(
    mechanism: GossipAveraging,
    values: Any,
    *,
    interval: tuple[float, float] = (0.0, 1.0),
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> GossipRun:
    """Run gossip averaging on the values of all parties, in exact arithmetic, up to 10^4 rounds.

    (Cyffers, Even, Bellet and Massoulie, "Muffliato", NeurIPS 2022, algorithm 1, not accelerated.)

    Guarantees:
        That of the mechanism, for its party against its observers, though all is in steps. Messages
        are functions of the integers ``k + round(N) = round(k + N)``, without rounding; observers
        see M times these. A change d of k is covered by moving N by an integer a with ``M (d + a) =
        0``, which costs ``|a|``: ``d + a`` is to be an integer vector of the complement, near the
        projection of d. Those that span it have lengths l_j, so that one is within ``sum l_j / 2``.
        The noise is ``1 + 2^-16`` times what the mechanism says, which covers that where ``sum l_j
        / 2 <= 2^-16 |P d|``; elsewhere the last digits of the exact messages would tell more, and
        the run is refused before anything is charged. Other parties and observers have the
        guarantees of their mechanisms where not refused, and of ``Gaussian(noise_multiplier)``.

    Example:
        >>> import hockeystick as hs
        >>> path = hs.mechanisms.Graph.path(4)
        >>> plan = hs.mechanisms.GossipAveraging(0.5, path, rounds=90, party=2, observers=[0])
        >>> found = hs.release.gossip_average(plan, [0.5] * 4)
        >>> max(found.averages) - min(found.averages) < 0.1
        True
    """
    known = of_kind(mechanism, GossipAveraging)
    _check_finite(known, "noise_multiplier")
    if known.rounds > _MOST_ROUNDS:
        raise ParameterError("rounds", known.rounds, f"at most {_MOST_ROUNDS:,} where they run")
    steps = _steps_of(interval, known.noise_multiplier)
    _check_messages(known, steps)
    noisy = steps.of(values, known.graph.parties)
    book(checked_charge(charge), known)
    if known.noise_multiplier:
        scale = steps.scale(known.noise_multiplier, _GOSSIP_WIDER)
        noisy += rounded_gaussian(scale, known.graph.parties, bits=bits)
    matrix = gossip.gossip_matrix(known.graph, known.weights)
    near = {one for party in known.observers for one in matrix.neighbours[party]}
    senders, held = sorted(near - known.observers), noisy.astype(object)
    denominator, seen = 2**steps.bits, []
    for _ in range(known.rounds):
        seen.append({party: Fraction(int(held[party]), denominator) for party in senders})
        held, denominator = matrix.times(held), denominator * matrix.denominator
    unit = Fraction(2**steps.bits, denominator)
    averages = tuple(steps.value(int(one) * unit) for one in held)
    return GossipRun(known, averages, tuple(seen))


def _check_messages(mechanism: GossipAveraging, steps: _Steps) -> None:
    """Raise where exact messages in steps tell more than they do of real numbers."""
    if gossip.is_sent_to_observers(mechanism):
        return
    observers = mechanism.observers
    span = gossip.observed_span(mechanism.graph, mechanism.weights, mechanism.rounds, observers)
    if span is not None:
        least, most = span.squared_projection(mechanism.party)
        if least == most and least in (0, 1):
            return
        away = sum(span.kernel_lengths())
        if away * away <= 4 * _GOSSIP_WIDER**2 * least * 4**steps.bits:
            return
    told = "take fewer rounds, or account for it as Gaussian(noise_multiplier)"
    raise IncompatibleError(f"exact messages may tell more of party {mechanism.party}: {told}")


class Projected(NamedTuple):
    """Steps of size eta on a ball around 0, with noise of a scale in steps of ``2^exponent``."""

    step_size: float
    lipschitz: float
    radius: float
    exponent: int
    scale: float

    def stepped(self, model: Floats, gradient: Floats, bits: Bits) -> Floats:
        """Return the next model: the nearest point of the ball."""
        with np.errstate(over="ignore"):
            moved = np.rint(np.ldexp(model - self.step_size * gradient, -self.exponent))
        noise = rounded_gaussian(self.scale, len(model), bits=bits) if self.scale else 0
        point = np.ldexp(moved + noise, self.exponent)
        length = _length(point)
        return point if length <= self.radius else point * (self.radius / length)

    def checked(self, gradient: Any, size: int) -> Floats:
        """Return a gradient, or raise: one that is too long would cost more than was charged."""
        most = self.lipschitz * (1 + 2.0**-_GRADIENT_BITS)
        row = shaped("gradient", gradient, _GRADIENT, lambda one: one.shape == (size,))
        return shaped("gradient", row, _GRADIENT, lambda one: _length(one) <= most)


def _length(point: Floats) -> float:
    with np.errstate(over="ignore"):
        return float(np.linalg.norm(point))


def _begun(
    mechanism: NoisyIterations | TokenWalk, start: Any, gradient: Any, steps: int, *bounds: float
) -> tuple[Floats, Projected]:
    model = shaped("start", start, _MODEL, lambda row: row.ndim == 1 and row.size)
    rule = projected_steps(mechanism, model.size, steps, *bounds)
    if _length(model) > rule.radius:
        raise ParameterError("start", f"one of {model.size} numbers", _MODEL)
    if not callable(gradient):
        raise ParameterError("gradient", gradient, "a function of a model and of whose data it is")
    return model, rule


def projected_steps(
    mechanism: NoisyIterations | TokenWalk, size: int, steps: int, lipschitz: float, radius: float
) -> Projected:
    """Return steps whose rounding the noise covers, or raise where it would be too much."""
    bound = _validate.real("lipschitz", lipschitz, _LENGTH)
    ball = _validate.real("radius", radius, _LENGTH)
    noise, eta = mechanism.noise_multiplier, mechanism.step_size
    _check_finite(mechanism, "noise_multiplier")
    length = Fraction(eta) * Fraction(bound)
    if not _LENGTH.low <= length <= _LENGTH.high:
        raise ParameterError("step_size", eta, "from 1e-100 to 1e100, times lipschitz")
    finest = math.frexp(float(length))[1] - _GRADIENT_BITS - size.bit_length() // 2 - 1
    coarse = math.frexp(max(noise, 1.0) * float(length))[1] - _SCALE_BITS
    grid = max(finest, coarse)
    off = _off(size, length, Fraction(ball), grid)
    wider = 2 * steps * off / (change(mechanism.adjacency) * length)
    if wider > _MOST_WIDER:
        told = f"rounding in {steps:,} steps of {size:,} numbers would add much to the noise"
        raise IncompatibleError(f"{told}: take fewer steps, less noise or a smaller radius")
    scale = float_up(largest_reading(noise) * (1 + wider) * length / Fraction(2.0**grid))
    return Projected(eta, bound, ball, grid, scale)


def _off(size: int, length: Fraction, radius: Fraction, exponent: int) -> Fraction:
    """Return how far a step in floats is from that of real numbers, in L2."""
    # Rounding to the grid before and after the noise, sqrt(d) h / 2 each; the gradient, 2^-30 eta
    # L; the sum, the projection and its norm, (d + 16) 2^-52 of the sizes.
    floats = (size + 16) * (radius + length) * Fraction(1, 2**52)
    rounded = root_up(size) * Fraction(2.0**exponent)
    return rounded + length * Fraction(1, 2**_GRADIENT_BITS) + floats


def noisy_iterations(
    mechanism: NoisyIterations,
    start: Any,
    gradient: Gradient,
    *,
    lipschitz: float,
    radius: float,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> Floats:
    """Run projected noisy gradient steps, one record each, and return the last model.

    Gradients in floats are to be within ``2^-30 L`` of those of a convex, smooth loss as the
    mechanism assumes. The noise is larger by what rounding adds, at most a thousandth;
    ``IncompatibleError`` says that it would be more. A gradient that is longer than L ends the run
    with an error, though the charge stays; clipping it would not be a contraction (Feldman,
    Mironov, Talwar and Thakurta, FOCS 2018, algorithm 1, PNSGD).

    Start is chosen without the data, in the ball around 0 of that radius, where models stay;
    ``gradient(model, t)`` is of the record of step t = 0, 1, ..., alone, of a norm <= lipschitz, L.

    Example:
        >>> import hockeystick as hs
        >>> run = hs.mechanisms.NoisyIterations(2.0, 50, step_size=0.1, smoothness=1)
        >>> hs.release.noisy_iterations(run, [0], lambda w, t: w / 4, lipschitz=1, radius=2).shape
        (1,)
    """
    known = of_kind(mechanism, NoisyIterations)
    model, rule = _begun(known, start, gradient, known.steps, lipschitz, radius)
    book(checked_charge(charge), known)
    for place in range(known.steps):
        own = rule.checked(gradient(model.copy(), place), model.size)
        model = rule.stepped(model, own, bits)
    return model


@final
@dataclass(frozen=True, slots=True, eq=False)
class WalkRun:
    """What a walk left behind, each part of it known to some of the parties only.

    By step who had the model, whether its data were in it, the model given; and the last model.
    """

    path: Integers
    contributed: Bools
    models: Floats = field(repr=False)
    last: Floats

    def seen_by(self, observers: Iterable[int]) -> Integers:
        """Return the steps before which an observer was given the model, and so knows the next."""
        return np.flatnonzero(np.isin(self.path, list(observers)))


def token_walk(
    mechanism: TokenWalk,
    start: Any,
    gradient: Gradient,
    *,
    steps: int,
    visits: int,
    lipschitz: float,
    radius: float,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> WalkRun:
    """Run a walk of T steps: whoever has the model makes a noisy step and hands it on.

    On the complete graph the next holder is drawn uniformly from all parties; on the ring it is the
    next one, from party 0 on. A party contributes the first ``visits`` times that it has the model,
    by ``gradient(model, u)`` of party u's data alone; from then on its steps are noise alone. All
    else is as for ``noisy_iterations``. ``mechanism ** visits`` is charged, and holds for each
    party against the observers that the mechanism is about (Cyffers and Bellet, "Privacy
    Amplification by Decentralization", AISTATS 2022, algorithms 2 and 4).

    Example:
        >>> import hockeystick as hs
        >>> walk = hs.mechanisms.TokenWalk(5.0, 20, step_size=0.1, smoothness=1)
        >>> bounds = {"lipschitz": 1, "radius": 2, "steps": 60, "visits": 5}
        >>> hs.release.token_walk(walk, [0.0], lambda w, u: (w - u / 20) / 4, **bounds).models.shape
        (60, 1)
    """
    known = of_kind(mechanism, TokenWalk)
    count = _validate.count("steps", steps, COUNT)
    most = _validate.count("visits", visits, POSITIVE)
    model, rule = _begun(known, start, gradient, count, lipschitz, radius)
    book(checked_charge(charge), known**most)
    if known.topology == "ring":
        path = np.arange(count, dtype=np.int64) % known.parties
    else:
        path = uniform_integers(known.parties, count, bits=bits)
    contributed, models = np.zeros(count, dtype=bool), np.zeros((count, model.size))
    visited: dict[int, int] = {}
    for place, party in enumerate(path.tolist()):
        models[place] = model
        visited[party] = visited.get(party, 0) + 1
        contributed[place] = visited[party] <= most
        own = gradient(model.copy(), party) if contributed[place] else np.zeros(model.size)
        model = rule.stepped(model, rule.checked(own, model.size), bits)
    return WalkRun(path, contributed, models, model)
