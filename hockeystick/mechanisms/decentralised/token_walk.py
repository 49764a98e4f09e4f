"""Network privacy: a model that walks from party to party, and is seen by those it meets."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Final, final

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.base import Mechanism, registered, set_fields
from hockeystick.mechanisms.scope import ONE_CLIENT, ONE_RECORD, Fact
from hockeystick.numerics import decimal
from hockeystick.numerics.multiprecision import working_digits
from hockeystick.numerics.numerals import plain

_POSITIVE: Final = {"domain": Domain("eta", 0, math.inf, (1e-4, 10), low_open=True, high_open=True)}


def check_contraction(run: NoisyIterations | TokenWalk, convex: bool) -> None:
    """Raise unless gradient steps contract and neighbours are compared step by step."""
    if not isinstance(convex, bool):
        raise ParameterError("convex", convex, "True or False")
    if not convex:
        raise IncompatibleError(
            "amplification by iteration is proven for convex losses alone: a gradient step of a "
            "loss that is not convex may drive two models apart; account for each step as "
            "released, by Gaussian(noise_multiplier / 2) under replace-one"
        )
    if decimal(run.step_size) * decimal(run.smoothness) > 2:
        raise IncompatibleError(
            f"step_size times smoothness must be at most 2, where gradient steps contract; "
            f"{plain(run.step_size)} times {plain(run.smoothness)} is more"
        )
    if run.adjacency is Adjacency.ADD_REMOVE:
        raise IncompatibleError(
            "amplification by iteration compares as many steps with and without a record: use "
            "adjacency 'replace-one' or 'zero-out', not 'add-remove'"
        )


def change(adjacency: Adjacency) -> int:
    """Return the sensitivity of a step, in units of the bound of the gradients."""
    return 2 if adjacency is Adjacency.REPLACE_ONE else 1


def convexity_assumptions(noise: float, step_size: float, smoothness: float) -> tuple[str, ...]:
    """Return what must hold of every step, as sentences for a reviewer."""
    return (
        "Each step is w <- Pi(w - eta (gradient + Z)) with one record's gradient, Pi a projection "
        f"onto a convex set or none, and eta = {plain(step_size)} in all of them.",
        "Each record's loss is convex in w, its gradients have norm at most L throughout, which "
        f"clipping does not bring about, and it is {plain(smoothness)}-smooth.",
        f"Z is fresh Gaussian noise of the standard deviation {plain(noise)} L in each coordinate.",
        "The order of the steps does not depend on the data.",
    )


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class NoisyIterations(Mechanism):
    """Projected noisy gradient steps on convex losses, one record each, the last model released.

    ``w_t = Pi(w_(t-1) - eta (grad l(w_(t-1), x_t) + Z_t))``, ``Z_t ~ N(0, s^2 L^2 I)``, t = 1..n,
    for losses that are convex, beta-smooth with ``eta beta <= 2``, and have gradients of norm at
    most L; s is the noise multiplier. Only w_n is seen. The record at position t is then covered
    by the noise of its own step and of all later ones: with ``m = n + 1 - t`` steps and c = 2 under
    replace-one, 1 under zero-out, it has ``mu = c / (s sqrt(m))``, so ``D_alpha <= c^2 alpha / (2
    s^2 m)``, for replacing ``2 alpha / (s^2 m)``.

    Proof. Steps and projections contract. Let X and X' be the runs without and with the other
    record, X' driven by noise N; equal up to step t, then at distance at most ``c eta L``
    under the same noise. Let Y start with X', and from step t, for ``k = 1..m``, step as
    ``Y <- (1 - a_k) step(Y) + a_k step'(X') + N`` with ``a_k = 1/(m + 1 - k)``, so that Y ends as
    X'. As step(Y) and step'(X') are within the last distance of Y and X' (for k = 1 within
    ``c eta L``), and the distance shrinks by ``1 - a_k``, each of the m steps moves Y by at most
    ``c eta L / m`` more than step(Y) does, and is then covered by fresh noise ``eta s L``. So Y is
    to X as m adaptively composed Gaussian mechanisms of ``mu = c / (s m)``: ``c / (s sqrt(m))``.

    Guarantees:
        An upper bound, mu-GDP, for every dimension, convex set and choice of the other losses. The
        lower end is that of linear losses without projection: ``mu = c / (s sqrt(n))``. So it is
        exact for the first record.

    Args:
        noise_multiplier: Standard deviation s of each step's noise over the bound L of the
            gradients, in [0, inf]: 0 reveals the last record's gradient.
        steps: The number n of steps, and of records, an integer from 0 to 10^15.
        position: The record's place t, an integer from 1 to n; the last, the worst, if not given.
        step_size: eta, the same in all steps, a finite number > 0.
        smoothness: beta, in the same units, a finite number > 0, with ``eta beta <= 2``.
        convex: False is refused, as nothing is then proven.
        released: "last"; "all" is refused, as each step then costs what it costs alone.
        adjacency: "replace-one" or "zero-out".

    References:
        Feldman, Mironov, Talwar and Thakurta, "Privacy Amplification by Iteration", 2018, theorem
        23 (the divergences); Bok, Su and Altschuler, "Shifted Interpolation for Differential
        Privacy", 2024, theorem 3.1 (the interpolation).

    Example:
        >>> import hockeystick as hs
        >>> run = hs.mechanisms.NoisyIterations(10.0, 1000, position=1, step_size=0.1, smoothness=1)
        >>> round(hs.epsilon(run, delta=1e-6).upper, 12)
        0.020524550675
    """

    rises_with: ClassVar[tuple[str, ...]] = ("position",)
    falls_with: ClassVar[tuple[str, ...]] = ("noise_multiplier", "steps")
    unordered: ClassVar[tuple[str, ...]] = ("step_size", "smoothness")
    noise_multiplier: float
    steps: int
    position: int | None = field(metadata={"domain": whole_numbers("t", 1, (1, 1000))})
    step_size: float = field(metadata=_POSITIVE)
    smoothness: float = field(metadata=_POSITIVE)
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    scope: ClassVar[tuple[Fact, ...]] = (Fact("unit", ONE_RECORD),)

    def __init__(
        self,
        noise_multiplier: float,
        steps: float,
        position: float | None = None,
        *,
        step_size: float,
        smoothness: float,
        convex: bool = True,
        released: str = "last",
        adjacency: Adjacency | str = Adjacency.REPLACE_ONE,
    ) -> None:
        set_fields(self, locals())
        if self.position and self.position > self.steps:
            allowed = f"an integer from 1 to steps, {self.steps}"
            raise ParameterError("position", position, allowed)
        check_contraction(self, convex)
        if _validate.one_of("released", released, ("last", "all")) == "all":
            raise IncompatibleError(
                "released models are not covered by later noise: account for each step as "
                "released, by Gaussian(noise_multiplier / 2) under replace-one"
            )

    @property
    def covering(self) -> int:
        """How many steps' noise covers the record: its own, and all later ones; 0 of no steps."""
        return self.steps + 1 - self.position if self.position else min(self.steps, 1)

    @property
    def assumptions(self) -> tuple[str, ...]:
        place = "the last" if self.position is None else f"number {self.position:,}"
        return (
            self.adjacency.meaning,
            *convexity_assumptions(self.noise_multiplier, self.step_size, self.smoothness),
            f"Each record is in one of the {self.steps:,} steps; the guarantee is for {place}.",
            "Only the last model is seen by anyone, and nothing else that depends on the others.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        noise = f"noise multiplier {self.noise_multiplier:g}"
        place = () if self.position is None else (f"record {self.position}",)
        return "noisy iterations", (noise, f"{self.steps} steps", *place, self.adjacency)


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class TokenWalk(Mechanism):
    """One contribution to a model that parties hand on, as other parties of the network see it.

    Whoever holds the model w makes a noisy gradient step on data of its own, ``w <- Pi(w - eta
    (gradient + Z))``, ``Z ~ N(0, s^2 L^2 I)``, and hands w on: under "complete" to a party drawn
    uniformly from all n, itself included; under "ring" to the next of n. The adversary is c
    colluding observers, who see w whenever one of them is given it, all of their own noise, and the
    whole path of the model. Losses are as ``NoisyIterations`` needs them: convex, beta-smooth with
    ``eta beta <= 2``, gradients of norm at most L.

    A party that contributes at most K times, such as one that hands the model on with noise alone
    from then on, costs at most ``TokenWalk(...) ** K``; ``excess`` is for walks without such a cap.

    Proof. Show w to the observers also whenever it reaches the party itself, just before its step.
    Then each contribution starts from a known w, and is covered by the noise of its own step and of
    all before w is shown again: i in all, so that it costs mu = ``k / (s sqrt(i))``, k = 2 under
    replace-one and 1 under zero-out, by the proof at ``NoisyIterations``. Contributions compose
    adaptively. On the ring i is the distance d. On the complete graph w is shown again after each
    handing on with probability ``p = (c + 1)/n``, so that i is geometric, independent of the data
    and of other contributions, and seen: ``D_alpha = ln(sum p (1-p)^(i-1) exp(alpha (alpha - 1)
    mu_i^2 / 2)) / (alpha - 1)``.

    Guarantees:
        An upper bound: the mixture over i itself, which is seen, where i up to 12 is told apart and
        larger ones are rounded down, by a fifth at most up to a hundred parties. The lower end is
        that of linear losses in a walk to which the party contributes once, which goes on until an
        observer has seen it; on the ring that is the same for the party next after the observer.

        On the complete graph the ends are about a factor of 2 apart: the upper end counts no noise
        from before the contribution, and shows w at the party's return, ``(c + 1)/n`` in place of
        ``c/n``. Neither end is known to be attained by several contributions.

    Edge cases:
        Noise multiplier 0 reveals the gradient; inf releases nothing. The next party on the ring
        sees what is released locally, ``Gaussian(noise_multiplier / 2)`` under replace-one.

    Args:
        noise_multiplier: Standard deviation s of each step's noise over the bound L of the
            gradients, in [0, inf].
        parties: The number n of parties, an integer from 2 to 10^15. Where none hands the model to
            itself, give one less than there are: i is then no smaller.
        topology: "complete" or "ring".
        observers: How many parties c of the complete graph collude, an integer from 1 to n - 1;
            1 if not given.
        distance: Of the ring, how many steps after the party's the first observer has w, an integer
            from 1 to n - 1; 1, the worst, if not given.
        step_size: eta, the same in all steps, a finite number > 0.
        smoothness: beta, in the same units, a finite number > 0, with ``eta beta <= 2``.
        convex: False is refused, as nothing is then proven.
        adjacency: "replace-one" or "zero-out": what changes is the data of one party.

    References:
        Cyffers and Bellet, "Privacy Amplification by Decentralization", AISTATS 2022, whose
        constants are not used here: two contributions between which no observer sees the model
        share noise, which is why p has c + 1 and not c.

    Example:
        >>> import hockeystick as hs
        >>> walk = hs.mechanisms.TokenWalk(10.0, 100, step_size=0.1, smoothness=1)
        >>> hs.epsilon(walk, 1e-6).upper < hs.epsilon(hs.Gaussian(5), 1e-6).lower
        True
    """

    falls_with: ClassVar[tuple[str, ...]] = ("noise_multiplier", "parties", "distance")
    unordered: ClassVar[tuple[str, ...]] = ("step_size", "smoothness")
    noise_multiplier: float
    parties: int = field(metadata={"domain": whole_numbers("n", 2, (10, 10_000))})
    topology: str
    observers: int | None = field(metadata={"domain": whole_numbers("c", 1, (1, 100))})
    distance: int | None = field(metadata={"domain": whole_numbers("d", 1, (1, 1000))})
    step_size: float = field(metadata=_POSITIVE)
    smoothness: float = field(metadata=_POSITIVE)
    adjacency: Adjacency = Adjacency.REPLACE_ONE

    def __init__(
        self,
        noise_multiplier: float,
        parties: float,
        topology: str = "complete",
        *,
        observers: float | None = None,
        distance: float | None = None,
        step_size: float,
        smoothness: float,
        convex: bool = True,
        adjacency: Adjacency | str = Adjacency.REPLACE_ONE,
    ) -> None:
        kind = _validate.one_of("topology", topology, ("complete", "ring"))
        _refuse_the_other(kind, observers=observers, distance=distance)
        ring = kind == "ring"
        first = 1 if ring and distance is None else distance
        others = observers if ring else 1 if observers is None else observers
        set_fields(self, locals() | {"topology": kind, "observers": others, "distance": first})
        for name, found in (("observers", self.observers), ("distance", self.distance)):
            if found is not None and found >= self.parties:
                allowed = f"an integer from 1 to parties - 1, {self.parties - 1}"
                raise ParameterError(name, found, allowed)
        check_contraction(self, convex)

    def excess(self, steps: float, visits: float) -> float:
        """Return a bound of the probability that a walk visits one party too often.

        Of a walk of T steps on the complete graph: ``P[Bin(T, 1/n) > K]``, by its first term
        and the ratio of the next to it. Then ``TokenWalk(...) ** K @ ApproxDP(0, excess)`` bounds
        what a party without a cap costs.

        Args:
            steps: The number T of steps, an integer from 0 to 10^15.
            visits: The number K, an integer from 0 to 10^15.

        Raises:
            IncompatibleError: On the ring, where visits are no chance: one in each round.

        Example:
            >>> import hockeystick as hs
            >>> walk = hs.mechanisms.TokenWalk(10.0, 100, step_size=0.1, smoothness=1)
            >>> round(walk.excess(steps=1000, visits=40), 16)
            1.103e-13
        """
        count = _validate.count("steps", steps)
        most = _validate.count("visits", visits, whole_numbers("K", 0, (1, 100)))
        if self.topology == "ring":
            raise IncompatibleError("on a ring a party is visited once a round, not by chance")
        return _binomial_tail(count, Fraction(1, self.parties), most)

    @property
    def scope(self) -> tuple[Fact, ...]:
        if self.observers is None:
            return (Fact("unit", ONE_CLIENT), Fact("distance", self.distance))
        return (Fact("unit", ONE_CLIENT), Fact("colluding", self.observers))

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            self.adjacency.meaning.replace("one example", "the data of one party"),
            *convexity_assumptions(self.noise_multiplier, self.step_size, self.smoothness),
            self._view,
            "Nobody else tells what models they saw, and none is published; the last one may be, "
            "where the contribution before it is accounted for as released.",
        )

    @property
    def _view(self) -> str:
        if self.topology == "ring":
            return (
                f"The model goes round {self.parties:,} parties in a fixed order, and the first of "
                f"those who collude that has it comes {self.distance:,} steps after the party."
            )
        return (
            f"Each next party is drawn uniformly from all {self.parties:,}, the holder included; "
            f"at most {self.observers:,} collude, and see the model when one of them is given it; "
            "the path may be seen as well."
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        noise = f"noise multiplier {self.noise_multiplier:g}"
        if self.topology == "ring":
            network = (f"ring of {self.parties} parties", f"distance {self.distance}")
        else:
            several = () if self.observers == 1 else (f"{self.observers} observers",)
            network = (f"complete graph of {self.parties} parties", *several)
        return "token walk", (noise, *network, self.adjacency)


def _refuse_the_other(topology: str, *, observers: object, distance: object) -> None:
    if topology == "ring" and observers is not None:
        raise IncompatibleError(
            "on a ring the first observer after the party decides, however many collude: give its "
            "distance, not the number of observers"
        )
    if topology == "complete" and distance is not None:
        raise IncompatibleError("on a complete graph there is no distance; give it for a ring")


def _binomial_tail(trials: int, chance: Fraction, most: int) -> float:
    """Return an upper bound of the chance that a binomial variable exceeds a number."""
    from hockeystick.numerics.multiprecision import mp

    first = most + 1
    if first > trials:
        return 0.0
    ratio = (trials - first) * chance / ((first + 1) * (1 - chance))
    if ratio >= 1:
        return 1.0
    with working_digits(40):
        p = mp.mpf(chance.numerator) / chance.denominator
        logs = mp.loggamma(trials + 1) - mp.loggamma(first + 1) - mp.loggamma(trials - first + 1)
        logs += first * mp.log(p) + (trials - first) * mp.log1p(-p)
        total = mp.exp(logs) / (1 - mp.mpf(ratio.numerator) / ratio.denominator)
        return min(float(total) * (1.0 + 2.0**-50) + 5e-324, 1.0)
