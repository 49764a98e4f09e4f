"""A private training loop with correlated noise: DP-FTRL, with or without samples of a cycle."""

from __future__ import annotations

import math
import os
import secrets
import weakref
from collections.abc import Iterable
from dataclasses import replace
from threading import Lock
from typing import Any, Final, final

import torch
from torch.utils import _pytree as trees

import hockeystick as hs
from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.adapters.torch import _checkpoint, _checks, _guard
from hockeystick.adapters.torch._arithmetic import Real
from hockeystick.adapters.torch._clipping import Constant, Tensors, joined
from hockeystick.adapters.torch._correlated_noise._rounds import Batches, Plan, encoder_of
from hockeystick.adapters.torch._gradients import (
    LossFn,
    chunks,
    clipped_sum,
    individual,
    layers,
    sensible,
)
from hockeystick.adapters.torch._random import normals
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import CyclicPoisson, MatrixFactorization
from hockeystick.release import CorrelatedNoise
from hockeystick.release.charging import ChargedRun
from hockeystick.release.counting import Counter, fingerprint

_BATCH: Final = Domain(
    symbol="m", low=0, high=math.inf, low_open=True, high_open=True, typical=(16, 16_384)
)
_MICROBATCH: Final = whole_numbers("b", 1, (8, 1024))
_SEED: Final = Domain(symbol="seed", low=0, high=2**63 - 1, typical=(0, 2**31), whole=True)
_KEY_BITS: Final = 128
_KIND: Final = "hockeystick-correlated"
_FIELDS: Final = frozenset(
    {"kind", "plan", "not_private", "norm", "run", "steps", "key", "weights"}
)
_IN_REAL: Final = (
    "What is accounted for in real arithmetic is computed in floating point: what the rounding of "
    "sums, norms and noise tells of the data is not covered."
)
_NEIGHBOURS: Final = (
    "Noise is over the clipping norm, and an example's group is its own: neighbours differ by one "
    "example that is zeroed, or, where groups are given that stay what they are, added or removed; "
    "one that is replaced is not covered."
)
_REAL: Final = Real()


def make_correlated(
    model: Any,
    optimizer: Any,
    dataset: Any,
    plan: Plan,
    *,
    batch_size: float,
    clipping: Constant | float = 1.0,
    groups: Iterable[int] | None = None,
    microbatch: int | None = None,
    journal: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    not_private: bool = False,
) -> Correlated:
    """Return a training loop whose noise is correlated from step to step as a plan says (DP-FTRL).

    The examples are in groups, fixed in advance; step t, from 0 on, uses group ``t mod b``: all of
    it (``MatrixFactorization``), or a Poisson sample of it (``CyclicPoisson``). It sums the clipped
    gradients, adds row t of ``C^-1 Z``, where the entries of Z have standard deviation
    noise_multiplier * clipping norm, divides by ``batch_size`` and lets the optimizer step. What is
    released is a function of ``C X + Z``.

    Guarantees:
        What the optimizer gets has the guarantee of ``plan``, and after fewer steps that of
        ``private.spent``, in real arithmetic: sums, norms and noise are in floating point, the
        noise in doubles, by a generator with a secret key of 128 bits (63 on an accelerator). The
        rest is as for ``make_private``: an example's gradient must come from the weights and that
        example alone, and losses and batches are not private.

        Groups must not depend on the data: by default place i of the dataset is in group
        ``i mod b``, which is what zero-out adjacency asks for, where nobody's place depends on
        others. Under add-remove, where an example that goes moves up those after it, give
        ``groups`` that stay what they are, such as by a hash of who it is: a ``CyclicPoisson``
        under add-remove is refused without. ``MatrixFactorization`` names no adjacency, so that
        this is the caller's to see to.

        Past noise is secret state: whoever goes on from an older state with new noise releases
        two sums with the same past noise, which no account covers. So a state is loaded only where
        no step was released after it.

    Edge cases:
        A group or a sample without examples gives pure noise. A gradient that is infinite or
        undefined counts as 0. A step that fails after its noise was drawn ends the loop.

    Args:
        model: A module, as for ``make_private``.
        optimizer: Any optimizer of its parameters that takes one gradient for each step.
        dataset: Examples by number, each the input alone or a tuple of it and targets.
        plan: ``MatrixFactorization`` with an encoder made from a strategy, whose ``separation`` is
            the number b of groups where there are several participations, and else its rounds; or
            ``CyclicPoisson``.
        batch_size: What noisy sums are divided by, a finite number above 0 that the data do not
            decide, such as the expected size of a batch.
        clipping: The clipping norm C, or a ``Constant``.
        groups: The group of each example, a number from 0 to b - 1; None for place modulo b, not
            under add-remove.
        microbatch: The most examples whose gradients are in memory at once; None for as many as
            have gradients of 32 MiB (on an accelerator of 1 GiB), at least 8.
        journal: A file that counts the steps durably, for a process that may be killed; another
            process goes on by it and the state that was saved after the last step.
        seed: A number from which batches and noise are computed again in the same way: for tests
            alone. Epsilon is inf.
        not_private: True, by who gives a seed.

    Returns:
        The loop: ``while private.left: private.step(loss_fn)``.

    Raises:
        ParameterError: If an argument is outside its domain, a layer mixes examples, or a journal
            is another run's or in use.
        IncompatibleError: If an example would take part more often than the plan says, or another
            loop trained the same parameters.

    References:
        Kairouz, McMahan, Song, Thakkar, Thakurta and Xu, "Practical and Private (Deep) Learning
        without Sampling or Shuffling", 2021; Choquette-Choo et al., "(Amplified) Banded Matrix
        Factorization", 2023.

    Example:
        >>> import torch
        >>> import hockeystick as hs
        >>> from hockeystick.adapters.torch import make_correlated
        >>> model = torch.nn.Linear(2, 2)
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> dataset = torch.utils.data.TensorDataset(torch.randn(40, 2), torch.randint(2, (40,)))
        >>> plan = hs.mechanisms.CyclicPoisson(
        ...     2.0, (1.0, 0.5), rounds=6, cycle=2, rate=0.5, adjacency="zero-out"
        ... )
        >>> private = make_correlated(model, optimizer, dataset, plan, batch_size=10)
        >>> while private.left:
        ...     private.step(torch.nn.functional.cross_entropy)
        >>> private.spent(delta=1e-5).upper == hs.epsilon(plan, delta=1e-5).upper
        True
    """
    if not isinstance(plan, MatrixFactorization | CyclicPoisson):
        raise ParameterError("plan", plan, "a MatrixFactorization or a CyclicPoisson")
    if plan.noise_multiplier == math.inf:
        raise ParameterError("noise_multiplier", plan.noise_multiplier, "finite")
    _checks.check_model(model)
    _checks.trained(model)
    _checks.check_optimizer(optimizer, model)
    clip = clipping if isinstance(clipping, Constant) else Constant(clipping)
    size = None if microbatch is None else _validate.count("microbatch", microbatch, _MICROBATCH)
    if (seed is not None) is not not_private:
        allowed = "True where a seed is given, from which all noise is known, and only there"
        raise ParameterError("not_private", not_private, allowed)
    fixed = None if seed is None else _validate.count("seed", seed, _SEED)
    batches = Batches(dataset, plan, groups, fixed)
    divisor = _validate.real("batch_size", batch_size, _BATCH)
    return Correlated(model, optimizer, plan, batches, clip, divisor, size, journal)


@final
class Correlated(ChargedRun):
    """A private training loop with correlated noise; made by ``make_correlated``."""

    __slots__ = (
        "__weakref__",
        "_batches",
        "_clip",
        "_counter",
        "_divisor",
        "_free",
        "_key",
        "_microbatch",
        "_noise",
        "_plan",
        "_release",
        "_unguard",
        "_usable",
        "model",
        "optimizer",
    )

    def __init__(
        self,
        model: Any,
        optimizer: Any,
        plan: Plan,
        batches: Batches,
        clip: Constant,
        divisor: float,
        microbatch: int | None,
        journal: str | os.PathLike[str] | None,
    ) -> None:
        super().__init__()
        self.model, self.optimizer = model, optimizer
        self._plan, self._batches, self._clip = plan, batches, clip
        self._divisor, self._microbatch = divisor, microbatch
        fixed = batches.seed
        self._key = secrets.randbits(_KEY_BITS) if fixed is None else fixed
        self._noise: dict[str, CorrelatedNoise] = {}
        CorrelatedNoise(encoder_of(plan))  # which refuses encoders without a strategy
        shown = "" if journal is None else fingerprint(plan)
        title = f"{_KIND}{'' if fixed is None else '-not-private'} {shown}"
        self._counter = Counter(plan, journal, title)
        self._usable = self.steps == 0
        # No other loop's plan has a place here.
        self._release = _guard.Release(self.run, plan, None)
        if fixed is None:
            self._release.check(model)
        self._release.note(model, self.steps)
        self._free = Lock()
        self._unguard = weakref.finalize(self, _guard.guarded(optimizer).remove)

    def __repr__(self) -> str:
        """Return the plan, and how much of it ran."""
        return f"Correlated({self._plan}; {self.steps} of {self.steps + self.left} steps)"

    @property
    def run(self) -> str:
        """The name of the run."""
        return self._counter.run

    @property
    def steps(self) -> int:
        """The number of steps that are counted."""
        return self._counter.counted

    @property
    def left(self) -> int:
        """The number of steps that are left of the plan."""
        return self._counter.limit - self.steps

    @property
    def plan(self) -> hs.mechanisms.Mechanism:
        """The plan of the steps that are counted."""
        return self._counter.released

    def spent(self, delta: float) -> hs.Certified:
        """Return the epsilon of the steps that are counted, if it was planned to stop there.

        Whoever stops because of what was released has the epsilon of the whole plan. The answer
        says that it is one "in real arithmetic".
        """
        plan = self.plan if self._batches.seed is None else self.plan @ hs.PureDP(math.inf)
        answer = hs.epsilon(plan, _validate.one("delta", delta))
        name = f"{answer.accountant} in real arithmetic"
        neighbours = (_NEIGHBOURS,) if answer.adjacency is None else ()
        told = (*answer.assumptions, *neighbours, _IN_REAL)
        return replace(answer, accountant=name, assumptions=told)

    def step(self, loss_fn: LossFn) -> None:
        """Do one step: the batch's clipped gradients, counted, noised, and used by the optimizer.

        Args:
            loss_fn: As for ``make_private``'s ``step``.

        Raises:
            ParameterError: If the model or the optimizer have become such as ``make_correlated``
                refuses; nothing is released.
            IncompatibleError: If the plan is done, the loop closed or ended by an error, a state
                is to be loaded first, another loop trained the same parameters, or it runs under
                autocast, during another step or in a process that was forked; nothing is released.
        """
        if not self._free.acquire(blocking=False):
            raise IncompatibleError("a step of this loop is under way: one runs at a time")
        try:
            self._step(loss_fn)
        finally:
            self._free.release()

    def _step(self, loss_fn: LossFn) -> None:
        """Do one step, while no other runs."""
        self._check()
        _checks.check_model(self.model)
        _checks.check_groups(self.optimizer, self.model)
        params, kept = _checks.copies(self.model)
        if self._noise and set(self._noise) != set(params):
            allowed = "the module whose parameters the first step trained: noise goes on with each"
            raise ParameterError("model", "other trained parameters", allowed)
        device = next(iter(params.values())).device
        _guard.check_precision(device)
        if self._batches.seed is None:
            self._release.check(self.model)
        with _guard.secret_randomness(self._batches.seed, self.steps, device):
            sums = self._summed(loss_fn, params, kept)
        self._usable = False  # unless the step comes to its end
        rows = self._rows(self.steps, params)
        self._counter.count()
        self._release.note(self.model, self.steps)
        for name, value in self.model.named_parameters():
            noisy = (sums[name] + rows[name]).div_(self._divisor) if name in rows else None
            value.grad = None if noisy is None else noisy.to(value)
        with _guard.stepping(self.optimizer):
            self.optimizer.step()
        self._usable = True

    def _check(self) -> None:
        """Raise where no further step may be released."""
        self._counter.check()
        if not self._usable:
            raise IncompatibleError(
                "this loop was ended by an error, or its journal has steps whose noise is not "
                "known here: load the state that was saved after the last of them"
            )

    def _summed(self, loss_fn: LossFn, params: Tensors, kept: Tensors) -> Tensors:
        """Return the clipped sum of the gradients of the next step's batch, in doubles."""
        sums = {name: torch.zeros_like(value).double() for name, value in params.items()}
        found = self._batches.examples(self.steps)
        device = next(iter(params.values())).device
        examples = trees.tree_map(lambda part: part.to(device), found)
        for chunk in chunks(examples, self._microbatch or sensible(params)) if examples else ():
            gradients, _ = individual(self.model, loss_fn, params, kept, chunk)
            names = list(gradients)
            parts = layers(names) if self._clip.per_layer else [names]
            part, _ = clipped_sum(gradients, self._clip.norm, parts, _REAL, self._clip)
            sums = joined(sums, part)
        return sums

    def _rows(self, step: int, params: Tensors) -> Tensors:
        """Return the next row of noise for each parameter."""
        deviation = _REAL.deviation(self._plan.noise_multiplier, self._clip.norm)
        drawn = normals(self._key, step, next(iter(params.values())).device)
        if not self._noise:
            self._noise = {name: CorrelatedNoise(encoder_of(self._plan)) for name in params}
        return {
            name: self._noise[name].next(drawn(value.shape).mul_(deviation))
            for name, value in params.items()
        }

    def state_dict(self) -> dict[str, Any]:
        """Return the account and the key of all noise, for ``torch.save`` beside the model.

        It is as secret as the data, whatever was released: with the key the noise can be taken off.

        Raises:
            IncompatibleError: If the loop was ended by an error, or has no state yet.
        """
        if self._counter.closed or not self._usable:
            raise IncompatibleError("a loop that cannot go on has no state to go on from")
        return {**self._facts(), "key": self._key, "weights": _checkpoint.digest(self.model)}

    def _facts(self) -> dict[str, Any]:
        """Return what a state has in common with this loop."""
        return {
            "kind": _KIND,
            "plan": fingerprint(self._plan),
            "not_private": self._batches.seed is not None,
            "norm": self._clip.norm,
            "run": self.run,
            "steps": self.steps,
        }

    def load_state_dict(self, state: Any) -> None:
        """Go on from the state after the last step of this run, after the weights.

        All rows of noise so far are computed again, from the key.

        Raises:
            ParameterError: If it is no such state, of another plan or run, of other weights than
                the model has, or of before a step that was counted: noise after that would be
                drawn on the same past noise once more. Nothing changes then.
        """
        if not isinstance(state, dict) or set(state) != _FIELDS:
            raise ParameterError("state", type(state).__name__, "what state_dict returned")
        for name, own in self._facts().items():
            if state[name] != own:
                allowed = f"{own!r}, as here"
                if name == "steps":
                    allowed += (
                        ": from an older state, past noise would be used for other steps as well"
                    )
                raise ParameterError(name, state[name], allowed)
        if state["weights"] != _checkpoint.digest(self.model):
            allowed = "that of the weights which the model has: load these first"
            raise ParameterError("state", "the state of other weights", allowed)
        if type(state["key"]) is not int or not 0 <= state["key"] < 2**_KEY_BITS:
            raise ParameterError("key", type(state["key"]).__name__, "what state_dict returned")
        self._key, self._noise = state["key"], {}
        params = _checks.trained(self.model)
        for step in range(self.steps):
            self._rows(step, params)
        self._usable = True

    def close(self) -> None:
        """End the loop: its journal is free for another process, and so is the optimizer."""
        self._unguard()
        self._counter.close()
