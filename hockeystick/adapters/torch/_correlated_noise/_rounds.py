"""The rounds of a plan with correlated noise: whose turn it is, and how its noise is correlated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias, final

import numpy as np
import torch

from hockeystick.adapters.loop._random import bits
from hockeystick.adapters.torch import _checks
from hockeystick.adapters.torch._collate import row, stacked
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import CyclicPoisson, Encoder, MatrixFactorization
from hockeystick.numerics import decimal
from hockeystick.release.counting import length_of
from hockeystick.release.samplers import bernoulli

Plan: TypeAlias = MatrixFactorization | CyclicPoisson


@final
class Batches:
    """The examples of each step, of groups that are fixed."""

    __slots__ = ("_dataset", "_members", "_rate", "seed")

    def __init__(
        self, dataset: Any, plan: Plan, groups: Iterable[int] | None, seed: int | None
    ) -> None:
        examples, cycle = _checks.examples_of(dataset), cycle_of(plan)
        if groups is None and cycle > 1 and plan.adjacency is Adjacency.ADD_REMOVE:
            allowed = (
                "given under add-remove, where an example that goes moves up the places of those "
                "after it; or let the plan be under zero-out"
            )
            raise ParameterError("groups", groups, allowed)
        places = np.arange(examples)
        own = places % cycle if groups is None else _checked_groups(groups, examples, cycle)
        self._members = [places[own == group] for group in range(min(cycle, length_of(plan)))]
        self._dataset, self.seed = dataset, seed
        self._rate = decimal(plan.rate) if isinstance(plan, CyclicPoisson) else None

    def examples(self, step: int) -> tuple[Any, ...]:
        """Return a step's examples, stacked; nothing of no example."""
        places = self._members[step % len(self._members)]
        if self._rate is not None:
            source = bits(self.seed, "batch", step)
            places = places[np.asarray(bernoulli(self._rate, len(places), bits=source), dtype=bool)]
        if type(self._dataset) is torch.utils.data.TensorDataset:
            return tuple(self._dataset[torch.from_numpy(places)]) if len(places) else ()
        return stacked(row(self._dataset[place], None, None) for place in places.tolist())


def _checked_groups(groups: Iterable[int], examples: int, cycle: int) -> Any:
    """Return the group of each example, or raise."""
    own = np.asarray(list(groups))
    whole = own.shape == (examples,) and own.dtype.kind in "iu"
    if not whole or (own.size and not (own.min() >= 0 and own.max() < cycle)):
        allowed = f"an integer from 0 to {cycle - 1} for each of {examples:,} examples"
        raise ParameterError("groups", f"{own.dtype} of shape {own.shape}", allowed)
    return own


def cycle_of(plan: Plan) -> int:
    """Return the number of groups, or raise where an example would take part too often."""
    if isinstance(plan, CyclicPoisson):
        return plan.cycle
    encoder = plan.encoder
    cycle = encoder.separation if encoder.participations > 1 else encoder.rounds
    times = -(-encoder.rounds // cycle)
    if times > encoder.participations:
        raise IncompatibleError(
            f"with {cycle:,} groups an example of the first takes part in {times:,} of "
            f"{encoder.rounds:,} rounds, and the encoder is for {encoder.participations:,}"
        )
    return cycle


def encoder_of(plan: Plan) -> Encoder:
    """Return the encoder that the noise is correlated by."""
    if isinstance(plan, CyclicPoisson):
        return Encoder.toeplitz(plan.coefficients[: plan.bands], plan.rounds)
    return plan.encoder
