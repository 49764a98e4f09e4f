"""A training loop that is private as its plan says, with the account of what really ran."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from threading import Lock
from typing import Any, Final, Literal, Self, final

import torch
from torch.utils import _pytree as trees

import hockeystick as hs
from hockeystick import _validate
from hockeystick.adapters.loop._account import Account
from hockeystick.adapters.torch import _checkpoint, _checks, _guard
from hockeystick.adapters.torch._arithmetic import Arithmetic, Noise
from hockeystick.adapters.torch._clipping import Clip, Constant, Tensors, joined
from hockeystick.adapters.torch._gradients import (
    LossFn,
    chunks,
    clipped_sum,
    individual,
    layers,
    sensible,
    whole,
)
from hockeystick.adapters.torch._loader import Batch, Loader
from hockeystick.adapters.torch._processes import Processes
from hockeystick.adapters.torch._replay import PrivateReplay, Train
from hockeystick.adapters.torch._tape import note
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.sampling.clipping import Clipping

_IN_REAL: Final = (
    "What is accounted for in real arithmetic is computed in floating point: what the rounding of "
    "sums, norms and noise tells of the data is not covered."
)
_ALONE: Final = (
    "Each example's gradient is the same in floats whichever examples share its microbatch; "
    "microbatch=1 ensures it."
)
_STATE: Final = frozenset({"account", "norm", "memory", "weights"})


@final
class Private:
    """A private training loop; made by ``make_private``.

    ``loader`` gives the batches, ``step`` uses them, ``spent`` says what that costs.
    """

    __slots__ = (
        "__weakref__",
        "_account",
        "_arithmetic",
        "_clip",
        "_free",
        "_loss",
        "_memory",
        "_microbatch",
        "_norm",
        "_path",
        "_processes",
        "_release",
        "_replay",
        "_seed",
        "_unguard",
        "loader",
        "model",
        "optimizer",
    )

    def __init__(
        self,
        model: Any,
        optimizer: Any,
        clip: Clip,
        arithmetic: Arithmetic,
        account: Account,
        release: _guard.Release,
        loader: Loader,
        microbatch: int | Literal["auto"] | None,
        seed: int | None,
        path: str | None,
        processes: Processes,
        replay: Callable[..., PrivateReplay],
    ) -> None:
        self.model, self.optimizer, self.loader = model, optimizer, loader
        self._account, self._arithmetic, self._clip = account, arithmetic, clip
        self._microbatch, self._seed, self._path = microbatch, seed, path
        self._processes, self._replay = processes, replay
        self._release = release
        self._norm: float = clip.norm
        self._memory: Tensors = {}
        self._loss: tuple[Any, int] = (0.0, 0)
        self._free = Lock()
        self._unguard = weakref.finalize(self, _guard.guarded(optimizer).remove)

    def __repr__(self) -> str:
        """Return the plan, how much of it ran, and in which arithmetic."""
        plan = self._account.plan
        ran = f"{self.steps} of {plan.total_steps} steps, in {self.arithmetic} arithmetic"
        return f"Private({plan}; {ran})"

    @property
    def arithmetic(self) -> str:
        """The arithmetic in which gradients are summed and noised: "exact" or "real"."""
        return self._arithmetic.name

    @property
    def steps(self) -> int:
        """The number of steps that are counted."""
        return self._account.counted

    @property
    def clipping_norm(self) -> float:
        """The clipping norm of the next step, a function of what was released."""
        return self._norm

    @property
    def plan(self) -> hs.DPSGD:
        """The plan of the steps that are counted, to be accounted for in any way."""
        return self._account.released

    @property
    def not_private_loss(self) -> float:
        """The mean loss of the last step's batch, nan if it had no example.

        Of several processes each has that of its own share.

        It is computed from the data without noise: no account covers who sees it, and no learning
        rate and no stop may depend on it.
        """
        total, examples = self._loss
        return float(total) / examples if examples else math.nan

    def epochs(self) -> Iterator[Iterator[Batch]]:
        """Give the batches that are left in epochs, as ``loader.epochs`` does.

        Between two of them the model may be evaluated and a scheduler may step.
        """
        return self.loader.epochs()

    def spent(self, delta: float) -> hs.Certified:
        """Return the epsilon of the steps that are counted, if it was planned to stop there.

        Whoever stops because of what was released has the epsilon of the whole plan, or the
        budget's: they hold for every stop on the way. Unless the arithmetic is exact, the answer
        says that it is one "in real arithmetic". In exact arithmetic it says, unless ``microbatch``
        is 1, that it assumes "gradients that no microbatch changes": an example's gradient is not
        rounded otherwise beside others.
        """
        answer = hs.epsilon(self.plan, _validate.one("delta", delta))
        if self._arithmetic.name == "real":
            more, how = _IN_REAL, "in real arithmetic"
        elif self._microbatch != 1:
            more, how = _ALONE, "assuming gradients that no microbatch changes"
        else:
            return answer
        name = f"{answer.accountant} {how}"
        return replace(answer, accountant=name, assumptions=(*answer.assumptions, more))

    def step(self, loss_fn: LossFn, batch: Batch) -> None:
        """Do one step: the batch's clipped gradients, counted, noised, and used by the optimizer.

        Args:
            loss_fn: ``loss_fn(output, *targets)`` for a batch of one example, a function of these
                and of the model, which it may call and whose parameters it may read: neither of
                the batch's size nor of its other examples.
            batch: What ``loader`` gave last.

        Raises:
            BudgetExhausted: If plan or budget have no step left; nothing is released.
            ParameterError: If the batch is another one, used before or changed, or the model or
                the optimizer have become such as ``make_private`` refuses; nothing is released.
            IncompatibleError: If it runs under autocast, during another step, in a process that was
                forked, or after ``close``, or another process stopped; if another loop trained the
                same parameters, ``loss_fn`` uses some that were taken out of the model before, or
                torch takes no single gradients of a part of it; nothing is released.
        """
        if not self._free.acquire(blocking=False):
            raise IncompatibleError("a step of this loop is under way: one runs at a time")
        try:
            self._step(loss_fn, batch)
        finally:
            self._free.release()

    def _step(self, loss_fn: LossFn, batch: Batch) -> None:
        """Do one step, while no other runs."""
        processes = self._processes
        with processes.together("step", lambda: self._facts(params)):
            processes.check()
            self._account.check()
            self.loader.check(batch)
            _checks.check_model(self.model)
            _checks.check_groups(self.optimizer, self.model)
            params, kept = _checks.copies(self.model)
            device = next(iter(params.values())).device
            _guard.check_precision(device)
            if self._seed is None:
                self._release.check(self.model)
            with _guard.secret_randomness(self._seed, batch.step, device):
                sums, queried = self._summed(loss_fn, batch, params, kept)
        sums = processes.summed(sums)
        queried = processes.summed(queried, largest=self._clip.largest)
        # From here on a kill leaves a step that is counted, whether or not it was released.
        with processes.together("count"):
            if processes.first:
                self._account.count()
        with processes.together("release"):
            if processes.first:
                gradients, answers = self._noised(batch.step, params, sums, queried)
            else:
                self._account.count()  # what the first one did
                gradients, answers = _blank(sums, params), _blank(queried, params)
        self._release.note(self.model, self.steps)
        self._use(processes.sent(gradients), processes.sent(answers))

    def _facts(self, params: Tensors) -> dict[str, Any]:
        """Return what the processes of a step have in common."""
        return {
            "run": self._account.run,
            "steps": self.steps,
            "weights": _checkpoint.digest(self.model),
            "trained parameters": list(params),
            "clipping norm": self._norm,
        }

    def as_replay(
        self,
        loss_fn: LossFn | None = None,
        *,
        train: Train | None = None,
        canaries: Iterable[Any] = (),
    ) -> PrivateReplay:
        """Return what ``hockeystick.audit.record`` replays: equal loops on copies of the model.

        Nothing of this loop changes, and no step of it is counted. Replays begin with the weights
        of this moment.

        Args:
            loss_fn: As in ``step``; or None where ``train`` is given.
            train: ``train(private)`` does all that the program does with its loop.
            canaries: Examples to add, beside one that is scaled and one that is undefined.

        Raises:
            ParameterError: If neither or both of a loss and a training are given.
            IncompatibleError: If several processes train the model.
        """
        if (loss_fn is None) == (train is None):
            raise ParameterError("loss_fn", loss_fn, "given, or train in its place")
        if self._processes.size > 1:
            raise IncompatibleError("a loop of several processes is replayed in a single one")

        def usual(private: Private) -> None:
            for batch in private.loader:
                private.step(loss_fn, batch)  # type: ignore[arg-type]  # as one of both is given

        found = usual if train is None else train
        return self._replay(self.model, self.optimizer, train=found, canaries=tuple(canaries))

    def close(self, *, final: bool = True) -> None:
        """End the loop: its journal is free for another one, and so is the optimizer.

        With a ledger the steps that are counted are committed, and the run is over.

        Args:
            final: False where another process is to go on with the run: its reservation stays, and
                counts in full.

        Raises:
            LedgerError: If the ledger cannot be written; the run then counts in full, and this may
                be called again.
            IncompatibleError: If there is a ledger, and this process was forked from the run's own,
                or somebody else has resolved the reservation.
        """
        self.loader.close()
        self._unguard()
        self._account.close(final=final)

    def __enter__(self) -> Self:
        """Return the loop, to be closed at the end."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the loop; where an exception ends it, it may be gone on with."""
        self.close(final=kind is None)

    def state_dict(self) -> dict[str, Any]:
        """Return the account and the clipping norm, for ``torch.save`` beside the model.

        It belongs to the model's weights of this moment, and to this run: another process goes on
        with it by the run's journal alone.
        """
        return {
            "account": self._account.state(),
            "norm": self._norm,
            "memory": {name: value.clone() for name, value in self._memory.items()},
            "weights": _checkpoint.digest(self.model),
        }

    def load_state_dict(self, state: Any) -> None:
        """Go on from a state of this run, after the weights; the count of steps never falls.

        Raises:
            ParameterError: If it is no such state, of another plan or run, or of other weights than
                the model has; nothing changes then.
        """
        if not isinstance(state, dict) or set(state) != _STATE:
            raise ParameterError("state", type(state).__name__, "what state_dict returned")
        norm, memory = Constant(state["norm"]).norm, dict(state["memory"])
        if state["weights"] != _checkpoint.digest(self.model):
            allowed = "that of the weights which the model has: load these first"
            raise ParameterError("state", "the state of other weights", allowed)
        self._account.load(state["account"])
        self._norm, self._memory = norm, memory

    def save(self) -> None:
        """Write model, optimizer and account to the checkpoint, in place of what it had.

        Of several processes the first one writes, whichever call it.

        Raises:
            ParameterError: If ``make_private`` was given no checkpoint.
        """
        path = self._checkpoint()
        if self._processes.first:
            _checkpoint.save(path, self.model, self.optimizer, self.state_dict())

    def load(self) -> None:
        """Go on from the checkpoint, with all steps that its journal has; in each process.

        Raises:
            ParameterError: If ``make_private`` was given no checkpoint, or it is of another plan or
                run.
        """
        with self._processes.together("load"):  # so that nothing changes unless all load
            path = self._checkpoint()
        with self._processes.together("load"):
            self.load_state_dict(_checkpoint.load(path, self.model, self.optimizer))

    def _checkpoint(self) -> str:
        """Return where the checkpoint is, or raise."""
        if self._path is None:
            raise ParameterError("checkpoint", None, "a path given to make_private")
        return self._path

    def _summed(
        self, loss_fn: LossFn, batch: Batch, params: Tensors, kept: Tensors
    ) -> tuple[Tensors, Tensors]:
        """Return the clipped sum of a batch's gradients, and that of the second query."""
        device = next(iter(params.values())).device
        examples = trees.tree_map(lambda part: part.to(device, non_blocking=True), batch.examples)
        queried = self._clip.blank(params)
        self._loss = 0.0, 0
        if not examples:
            return {name: torch.zeros_like(value) for name, value in params.items()}, queried
        sums: Tensors = {}
        by_batch = self._account.plan.clipping is Clipping.BATCH
        total = 0.0
        size = sensible(params) if self._microbatch == "auto" else self._microbatch
        for chunk in chunks(examples, size):
            computed = whole if by_batch else individual
            found, losses = computed(self.model, loss_fn, params, kept, chunk)
            total += losses
            if by_batch:
                sums = joined(sums, found)
                continue
            part, more = self._clipped(found)
            sums, queried = joined(sums, part), self._clip.joined(queried, more)
        self._loss = total, len(batch)
        return sums, queried

    def _clipped(self, gradients: Tensors) -> tuple[Tensors, Tensors]:
        """Return the clipped sum of gradients in rows, and that of the second query."""
        groups = layers(list(gradients)) if self._clip.per_layer else [list(gradients)]
        return clipped_sum(gradients, self._norm, groups, self._arithmetic, self._clip)

    def _noised(
        self, step: int, params: Tensors, sums: Tensors, queried: Tensors
    ) -> tuple[Tensors, Tensors]:
        """Return both sums with noise, over the expected size of a batch."""
        if self._account.plan.clipping is Clipping.BATCH:
            sums, _ = self._clipped({name: value.unsqueeze(0) for name, value in sums.items()})
        size = self.loader.sampler.expected(step)
        noisy = self._arithmetic.noise(self._seed, step, next(iter(params.values())).device)
        share = self._clip.share(self._norm, queried)
        noise_multiplier = self._noise_multiplier(step)
        deviation, other = _deviations(
            self._clip, self._arithmetic, noise_multiplier, self._norm, share
        )
        units = self._arithmetic.units(self._norm)
        gradients = _released(sums, deviation, size * units / self._norm, noisy, params)
        answers = _released(queried, other, size * self._clip.units(units), noisy, params)
        return gradients, answers

    def _use(self, gradients: Tensors, answers: Tensors) -> None:
        """Step, and learn from what was released."""
        note(self, gradients, answers)
        for name, value in self.model.named_parameters():
            value.grad = gradients.get(name)
        with _guard.stepping(self.optimizer):
            self.optimizer.step()
        self._norm = self._clip.learned(self._norm, self._memory, gradients, answers)

    def _noise_multiplier(self, step: int) -> float:
        """Return the plan's noise multiplier of a step."""
        plan = self._account.plan
        if plan.schedule is None:
            return plan.noise_multiplier
        return float(plan.schedule.factors(plan.total_steps)[step] * plan.noise_multiplier)


@lru_cache(maxsize=1024)
def _noises(clip: Clip, noise_multiplier: float) -> tuple[float, float]:
    """Return the noise of the gradients in clipping norms, and that of the second query."""
    return clip.multiplier(noise_multiplier), clip.noise(noise_multiplier)


def _deviations(
    clip: Clip, arithmetic: Arithmetic, noise_multiplier: float, norm: float, share: float = 1.0
) -> tuple[float, float]:
    """Return both as standard deviations in units."""
    own, other = _noises(clip, noise_multiplier)
    units = arithmetic.units(norm)
    gradient = arithmetic.deviation(own, units * share)
    return gradient, arithmetic.deviation(other, clip.units(units))


def _blank(sums: Tensors, params: Tensors) -> Tensors:
    """Return zeros in the place of what is released."""
    return {name: torch.zeros_like(params.get(name, value)) for name, value in sums.items()}


def _released(
    sums: Tensors, deviation: float, divisor: float, noisy: Noise, params: Tensors
) -> Tensors:
    """Return sums with noise, over what makes means of them; rounded once, at the very end."""
    return {
        name: noisy(value, deviation).div_(divisor).to(params.get(name, value))
        for name, value in sums.items()
    }
