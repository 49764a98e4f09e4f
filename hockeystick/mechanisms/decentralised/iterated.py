"""One pass of noisy gradient steps of which only the last model is released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.decentralised.convex import (
    checked_adjacency,
    checked_steps,
    convexity_assumptions,
)
from hockeystick.mechanisms.registry import registered
from hockeystick.mechanisms.scope import ONE_RECORD, Fact

_POSITION: Final = whole_numbers("t", 1, (1, 1000))


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

    Edge cases:
        Noise multiplier 0 reveals the last record's gradient; inf, or no steps, releases nothing.

    Args:
        noise_multiplier: Standard deviation s of each step's noise over the bound L of the
            gradients, in [0, inf].
        steps: The number n of steps, and of records, an integer from 0 to 10^15.
        position: The record's place t, an integer from 1 to n; the last, the worst, if not given.
        step_size: eta, the same in all steps, a finite number > 0.
        smoothness: beta, in the same units, a finite number > 0.
        convex: False is refused, as nothing is then proven.
        released: "last"; "all" is refused, as each step then costs what it costs alone.
        adjacency: "replace-one" or "zero-out".

    Raises:
        ParameterError: If a parameter is outside its domain.
        IncompatibleError: If the losses are not convex, ``eta beta > 2``, all models are released,
            or under add-remove.

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

    rises_with = ("position",)
    falls_with = ("noise_multiplier", "steps")
    unordered = ("step_size", "smoothness")

    noise_multiplier: float
    steps: int
    position: int | None
    step_size: float
    smoothness: float
    adjacency: Adjacency = Adjacency.REPLACE_ONE

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
        count = _validate.count("steps", steps)
        eta, beta = checked_steps(step_size, smoothness, convex)
        _refuse_all(_validate.one_of("released", released, ("last", "all")))
        values = (
            _validate.real("noise_multiplier", noise_multiplier),
            count,
            None if position is None else _place(position, count),
            eta,
            beta,
            checked_adjacency(adjacency),
        )
        for name, value in zip(NoisyIterations.__slots__, values, strict=True):
            object.__setattr__(self, name, value)

    @property
    def covering(self) -> int:
        """How many steps' noise covers the record: its own, and all later ones; 0 of no steps."""
        return self.steps + 1 - self.position if self.position else min(self.steps, 1)

    @property
    def scope(self) -> tuple[Fact, ...]:
        """That one record is protected; who sees the last model is left open."""
        return (Fact("unit", ONE_RECORD),)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold in the training code for the release to be as described."""
        place = "the last" if self.position is None else f"number {self.position:,}"
        return (
            self.adjacency.meaning,
            *convexity_assumptions(self.noise_multiplier, self.step_size, self.smoothness),
            f"Each record is in one of the {self.steps:,} steps; the guarantee is for {place}.",
            "Only the last model is seen by anyone, and nothing else that depends on the others.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        """Return the name, the noise, the steps and the record's place."""
        noise = f"noise multiplier {self.noise_multiplier:g}"
        place = () if self.position is None else (f"record {self.position}",)
        return "noisy iterations", (noise, f"{self.steps} steps", *place, self.adjacency)


def _place(position: object, steps: int) -> int:
    """Return the record's place, or raise if there is no such step."""
    place = _validate.count("position", position, _POSITION)
    if place > steps:
        raise ParameterError("position", position, f"an integer from 1 to steps, {steps}")
    return place


def _refuse_all(released: str) -> None:
    """Raise where all models are released."""
    if released == "all":
        raise IncompatibleError(
            "released models are not covered by later noise: account for each step as released, by "
            "Gaussian(noise_multiplier / 2) under replace-one"
        )
