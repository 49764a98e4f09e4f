"""A model that parties hand on, each after a noisy step on data of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.mechanisms.decentralised.token_walk import TokenWalk
from hockeystick.release._values import of_kind
from hockeystick.release.charging import Charged, book, checked_charge
from hockeystick.release.decentralised._projected import (
    Gradient,
    checked_gradient,
    model_size,
    projected_steps,
)
from hockeystick.release.samplers import Bits, secret_bits, uniform_integers

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STEPS: Final = whole_numbers("T", 0, (100, 10_000))
_VISITS: Final = whole_numbers("K", 1, (1, 100))


@final
@dataclass(frozen=True, slots=True, eq=False)
class WalkRun:
    """What a walk left behind. Each part of it is known to some of the parties only.

    Args:
        path: Who had the model, step by step.
        contributed: Whether that party's data were in its step, or noise alone.
        models: The model that each was given, a row for each step.
        last: The model after the last step.
    """

    path: NDArray[np.int64]
    contributed: NDArray[np.bool_]
    models: NDArray[np.float64] = field(repr=False)
    last: NDArray[np.float64]

    def seen_by(self, observers: Iterable[int]) -> NDArray[np.int64]:
        """Return the steps before which one of the observers was given the model.

        They know their own noise, and so the model after those steps as well.

        Args:
            observers: The parties that put together what they see.
        """
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
    """Run a walk: whoever has the model makes a noisy step and hands it on.

    On the complete graph the next holder is drawn uniformly from all parties; on the ring it is the
    next one, from party 0 on. A party contributes the first ``visits`` times that it has the model;
    from then on its steps are noise alone, with a gradient of 0.

    Guarantees:
        ``mechanism ** visits`` for each party against the observers that the mechanism is about,
        rounding included, as with ``noisy_iterations``: all steps of the walk are counted there.
        The path is drawn exactly, without a look at the data.

    Edge cases:
        No steps return the start. A step with a gradient of 0 is one of a convex, smooth loss.

    Args:
        mechanism: The mechanism, which has the parties, the step size and the noise.
        start: The first model, chosen without the data, a row within the radius.
        gradient: ``gradient(model, u)`` of party u's data alone.
        steps: The number T of steps, an integer >= 0.
        visits: How many times K a party contributes at most, an integer >= 1.
        lipschitz: The bound L of the gradients' norms, a number > 0.
        radius: That of the ball around 0 in which the models stay, a number > 0.
        charge: ``Accountant``, ``Filter``, ``Ledger`` or another with ``step(mechanism)``, which is
            charged with all visits before the first step.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        The path, the models that were handed on, and the last one.

    Raises:
        ParameterError: If an argument is outside its domain, or a gradient is; for a gradient the
            charge stays.
        IncompatibleError: If rounding would take more noise than a thousandth; nothing is charged.
        OSError: If the operating system has no random bits to give; the charge stays.

    References:
        Cyffers and Bellet, "Privacy Amplification by Decentralization", AISTATS 2022, algorithms 2
        (the ring) and 4 (stochastic gradient descent on the complete graph).

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> walk = hs.mechanisms.TokenWalk(5.0, 20, step_size=0.1, smoothness=1)
        >>> run = hs.release.token_walk(
        ...     walk,
        ...     [0.0],
        ...     lambda w, u: (w - u / 20) / 4,
        ...     steps=60,
        ...     visits=5,
        ...     lipschitz=1,
        ...     radius=2,
        ... )
        >>> run.models.shape, bool(np.bincount(run.path[run.contributed]).max() <= 5)
        ((60, 1), True)
    """
    known = of_kind(mechanism, TokenWalk)
    count = _validate.count("steps", steps, _STEPS)
    most = _validate.count("visits", visits, _VISITS)
    size = model_size(start)
    rule = projected_steps(known, size, count, lipschitz, radius)
    model, step = rule.start(start), checked_gradient(gradient)
    book(checked_charge(charge), known**most)
    path = _path(known, count, bits)
    contributed, models = np.zeros(count, dtype=bool), np.zeros((count, size))
    visited: dict[int, int] = {}
    for place, party in enumerate(path.tolist()):
        models[place] = model
        visited[party] = visited.get(party, 0) + 1
        contributed[place] = visited[party] <= most
        own = step(model.copy(), party) if contributed[place] else np.zeros(size)
        model = rule.stepped(model, rule.checked(own, size), bits)
    return WalkRun(path, contributed, models, model)


def _path(mechanism: TokenWalk, steps: int, bits: Bits) -> NDArray[np.int64]:
    """Return who has the model, step by step."""
    if mechanism.topology == "ring":
        return np.arange(steps, dtype=np.int64) % mechanism.parties
    return uniform_integers(mechanism.parties, steps, bits=bits)
