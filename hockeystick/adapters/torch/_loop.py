"""The private training loop: what one step does, what that costs, and how a run is gone on with.

Noise is drawn afresh in each step (DP-SGD), or correlated from step to step (DP-FTRL).
All else is shared: batches, clipping, counting, checkpoints, and processes that train together.
"""

from __future__ import annotations

import hashlib
import math
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from threading import Lock
from typing import Any, Final, Literal, Self, final

import torch
from torch.utils import _pytree as trees

import hockeystick as hs
from hockeystick import _files, _validate
from hockeystick.adapters.loop import KIND, VERSION, Account
from hockeystick.adapters.torch import _checks
from hockeystick.adapters.torch._batches import Batch, Loader
from hockeystick.adapters.torch._clipping import Clip, Constant, Tensors, joined
from hockeystick.adapters.torch._gradients import (
    LossFn,
    chunks,
    clipped_sum,
    individual,
    sensible,
    whole,
)
from hockeystick.adapters.torch._noise import Arithmetic, Noise, Rows, secret_randomness
from hockeystick.adapters.torch._processes import Processes
from hockeystick.adapters.torch._self_test import PrivateReplay, Train, note
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.sampling.poisson import Clipping
from hockeystick.release.counting import length_of

Microbatch = int | Literal["auto"] | None
_STATE: Final = frozenset({"account", "norm", "memory", "weights"})
_CHECKPOINT: Final = frozenset({"model", "optimizer", "private"})
_IN_REAL: Final = (
    "What is accounted for in real arithmetic is computed in floating point: what the rounding of "
    "sums, norms and noise tells of the data is not covered."
)
_ALONE: Final = (
    "Each example's gradient is the same in floats whichever examples share its microbatch; "
    "microbatch=1 ensures it."
)
_NEIGHBOURS: Final = (
    "Noise is over the clipping norm, and an example's group is its own: neighbours differ by one "
    "example that is zeroed, or, where groups are given that stay what they are, added or removed; "
    "one that is replaced is not covered."
)


@final
@dataclass(slots=True, weakref_slot=True, eq=False, repr=False)
class Private:
    """A private training loop; made by ``make_private`` or ``make_correlated``."""

    model: Any
    optimizer: Any
    loader: Loader
    _clip: Clip
    _arithmetic: Arithmetic
    _account: Account[Any]
    _release: _checks.Release
    _rows: Rows | None
    _microbatch: Microbatch
    _seed: int | None
    _path: str | None
    _processes: Processes
    _replay: Callable[..., PrivateReplay]
    _norm: float = field(init=False)
    _memory: Tensors = field(init=False, default_factory=dict)
    _loss: tuple[Any, int] = field(init=False, default=(0.0, 0))
    _free: Any = field(init=False, default_factory=Lock)
    _unguard: Any = field(init=False)

    def __post_init__(self) -> None:
        self._norm = self._clip.norm
        self._unguard = weakref.finalize(self, _checks.guarded(self.optimizer).remove)

    def __repr__(self) -> str:
        plan = self._account.plan
        ran = f"{self.steps} of {length_of(plan)} steps, in {self.arithmetic} arithmetic"
        return f"Private({plan}; {ran})"

    @property
    def arithmetic(self) -> str:
        """The arithmetic of sums and noise: "exact" or "real"."""
        return self._arithmetic.name

    @property
    def run(self) -> str:
        return self._account.run

    @property
    def steps(self) -> int:
        """The number of steps that are counted."""
        return self._account.counted

    @property
    def left(self) -> int:
        """The number of steps that are left of the plan and within the budget."""
        return len(self.loader)

    @property
    def clipping_norm(self) -> float:
        """The clipping norm of the next step, a function of what was released."""
        return self._norm

    @property
    def plan(self) -> Any:
        """The plan of the steps that are counted, to be accounted for in any way."""
        known = self._rows is not None and self._seed is not None
        return self._account.released @ hs.PureDP(math.inf) if known else self._account.released

    @property
    def not_private_loss(self) -> float:
        """The mean loss of the last step's batch, or of this process's share; nan of no example.

        It is computed without noise: no account covers who sees it, and no learning rate and no
        stop may depend on it.
        """
        total, examples = self._loss
        return float(total) / examples if examples else math.nan

    def epochs(self) -> Iterator[Iterator[Batch]]:
        """Give the batches that are left in epochs, between which a model may be evaluated."""
        return self.loader.epochs()

    def spent(self, delta: float) -> hs.Certified:
        """Return the epsilon of the steps that are counted, if it was planned to stop there.

        Whoever stops because of what was released has the epsilon of the whole plan, or the
        budget's. The answer says where it holds in real arithmetic alone, or for gradients that no
        microbatch changes: ``microbatch=1`` ensures these.
        """
        answer = hs.epsilon(self.plan, _validate.one("delta", delta))
        more: tuple[str, ...] = ()
        if self._rows is not None and answer.adjacency is None:
            more = (_NEIGHBOURS,)
        if self.arithmetic == "real":
            more, how = (*more, _IN_REAL), "in real arithmetic"
        elif self._microbatch != 1:
            more, how = (_ALONE,), "assuming gradients that no microbatch changes"
        else:
            return answer
        name = f"{answer.accountant} {how}"
        return replace(answer, accountant=name, assumptions=(*answer.assumptions, *more))

    def step(self, loss_fn: LossFn, batch: Batch | None = None) -> None:
        """Do one step: the batch's clipped gradients, counted, noised, and used by the optimizer.

        Args:
            loss_fn: ``loss_fn(output, *targets)`` for a batch of one example, a function of these
                and of the model, which it may call and whose parameters it may read, but neither of
                the batch's size nor of its other examples.
            batch: What ``loader`` gave last; None for the one that it gives next.

        Raises:
            BudgetExhausted: If plan or budget have no step left; as below, nothing is released.
            ParameterError: If the batch is another one, used before or changed, or the model or
                the optimizer have become such as ``make_private`` refuses.
            IncompatibleError: If it runs under autocast, during another step, in a process that was
                forked, or after ``close``, or another process stopped; if another loop trained the
                same parameters, or torch takes no single gradients of a part of model or loss; if
                noise is correlated, and a step failed or a state is to be loaded first.
            OSError: If the operating system has no random bits; the step may be counted by then.
        """
        if not self._free.acquire(blocking=False):
            raise IncompatibleError("a step of this loop is under way: one runs at a time")
        try:
            self._step(loss_fn, self.loader.next() if batch is None else batch)
        finally:
            self._free.release()

    def _step(self, loss_fn: LossFn, batch: Batch) -> None:
        processes = self._processes
        with processes.together("step", lambda: self._facts(params)):
            processes.check()
            self._account.check()
            self.loader.check(batch)
            _checks.check_model(self.model)
            _checks.check_groups(self.optimizer, self.model)
            params, kept = _checks.copies(self.model)
            if self._rows is not None:
                self._rows.check(self.steps, params)
            device = next(iter(params.values())).device
            _checks.check_precision(device)
            if self._seed is None:
                self._release.check(self.model)
            with secret_randomness(self._seed, batch.step, device):
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
        return {
            "run": self._account.run,
            "steps": self.steps,
            "weights": _digest(self.model),
            "trained parameters": list(params),
            "clipping norm": self._norm,
        }

    def _summed(
        self, loss_fn: LossFn, batch: Batch, params: Tensors, kept: Tensors
    ) -> tuple[Tensors, Tensors]:
        device = next(iter(params.values())).device
        examples = trees.tree_map(lambda part: part.to(device, non_blocking=True), batch.examples)
        queried = self._clip.blank(params)
        self._loss = 0.0, 0
        if not examples:
            return {name: torch.zeros_like(value) for name, value in params.items()}, queried
        sums: Tensors = {}
        total = 0.0
        size = sensible(params) if self._microbatch == "auto" else self._microbatch
        for chunk in chunks(examples, size):
            computed = whole if self._by_batch else individual
            found, losses = computed(self.model, loss_fn, params, kept, chunk)
            total += losses
            if not self._by_batch:
                found, more = clipped_sum(found, self._norm, self._arithmetic, self._clip)
                queried = self._clip.joined(queried, more)
            sums = joined(sums, found)
        self._loss = total, len(batch)
        return sums, queried

    @property
    def _by_batch(self) -> bool:
        return getattr(self._account.plan, "clipping", None) is Clipping.BATCH

    def _noised(
        self, step: int, params: Tensors, sums: Tensors, queried: Tensors
    ) -> tuple[Tensors, Tensors]:
        if self._by_batch:
            alone = {name: value.unsqueeze(0) for name, value in sums.items()}
            sums, _ = clipped_sum(alone, self._norm, self._arithmetic, self._clip)
        size = self.loader.sampler.expected(step)
        units = self._arithmetic.units(self._norm)
        share = self._clip.share(self._norm, queried)
        deviation, other = _deviations(
            self._clip, self._arithmetic, self._noise_multiplier(step), self._norm, share
        )
        if self._rows is not None:
            row = self._rows.next(step, params, deviation)
            noisy = {name: row[name].add_(value).div_(size) for name, value in sums.items()}
            return {name: value.to(params[name]) for name, value in noisy.items()}, {}
        drawn = self._arithmetic.noise(self._seed, step, next(iter(params.values())).device)
        gradients = _released(sums, deviation, size * units / self._norm, drawn, params)
        answers = _released(queried, other, size * self._clip.units(units), drawn, params)
        return gradients, answers

    def _use(self, gradients: Tensors, answers: Tensors) -> None:
        note(self, gradients, answers)
        for name, value in self.model.named_parameters():
            value.grad = gradients.get(name)
        with _checks.stepping(self.optimizer):
            self.optimizer.step()
        self._norm = self._clip.learned(self._norm, self._memory, gradients, answers)
        if self._rows is not None:
            self._rows.done(self.steps)

    def _noise_multiplier(self, step: int) -> float:
        plan: Any = self._account.plan
        schedule = getattr(plan, "schedule", None)
        factor = 1.0 if schedule is None else schedule.factors(plan.total_steps)[step]
        return float(factor * plan.noise_multiplier)

    def as_replay(
        self,
        loss_fn: LossFn | None = None,
        *,
        train: Train | None = None,
        canaries: Iterable[Any] = (),
    ) -> PrivateReplay:
        """Return what ``hockeystick.audit.record`` replays: equal loops on copies of the model.

        Nothing of this loop changes. Give ``loss_fn`` as in ``step``, or ``train(private)`` that
        does all that the program does with its loop; ``canaries`` are examples to add.

        Raises:
            ParameterError: If neither or both of a loss and a training are given.
            IncompatibleError: If several processes train the model, or noise is correlated.
        """
        if (loss_fn is None) == (train is None):
            raise ParameterError("loss_fn", loss_fn, "given, or train in its place")
        if self._processes.size > 1:
            raise IncompatibleError("a loop of several processes is replayed in a single one")
        if self._rows is not None:
            raise IncompatibleError("noise that is correlated from step to step is not replayed")

        def usual(private: Private) -> None:
            for batch in private.loader:
                private.step(loss_fn, batch)  # type: ignore[arg-type]  # as one of both is given

        found = usual if train is None else train
        return self._replay(self.model, self.optimizer, train=found, canaries=tuple(canaries))

    def close(self, *, final: bool = True) -> None:
        """End the loop: its journal is free for another one, and so is the optimizer.

        Unless another process is to go on (``final=False``), a ledger commits what is counted.

        Raises:
            LedgerError: If the ledger cannot be written; this may be called again.
            IncompatibleError: If there is a ledger, and this process was forked from the run's own,
                or somebody else has resolved the reservation.
        """
        self.loader.close()
        self._unguard()
        self._account.close(final=final)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(final=kind is None)

    def state_dict(self) -> dict[str, Any]:
        """Return the account and the clipping norm, for ``torch.save`` beside the model.

        It belongs to the model's weights of this moment, and to this run: another process goes on
        with it by the run's journal alone. Where noise is correlated it has the key of all noise,
        with which that can be taken off: it is as secret as the data, whatever was released.

        Raises:
            IncompatibleError: If noise is correlated, and the loop cannot go on.
        """
        found = {
            "account": self._account.state(),
            "norm": self._norm,
            "memory": {name: value.clone() for name, value in self._memory.items()},
            "weights": _digest(self.model),
        }
        if self._rows is not None:
            self._rows.check(self.steps)
            found["key"] = self._rows.key
        return found

    def load_state_dict(self, state: Any) -> None:
        """Go on from a state of this run, after the weights; the count of steps never falls.

        Raises:
            ParameterError: If it is no such state, of another plan or run, of other weights, or,
                where noise is correlated, of before a step that was counted. Nothing changes then.
        """
        state = _as_now(state)
        rows = self._rows
        if not isinstance(state, dict) or set(state) != _STATE | ({"key"} if rows else set()):
            raise ParameterError("state", type(state).__name__, "what state_dict returned")
        norm, memory = Constant(state["norm"]).norm, dict(state["memory"])
        if state["weights"] != _digest(self.model):
            allowed = "that of the weights which the model has: load these first"
            raise ParameterError("state", "the state of other weights", allowed)
        if rows is not None and norm != self._norm:
            raise ParameterError("norm", norm, f"{self._norm!r}, as here")
        self._account.load(state["account"], exactly=rows is not None)
        if rows is not None:
            noise = self._arithmetic.deviation(self._noise_multiplier(0), norm)
            rows.load(state["key"], self.steps, _checks.trained(self.model), noise)
        self._norm, self._memory = norm, memory

    def save(self) -> None:
        """Write model, optimizer and account to the checkpoint, which must be given, in its place.

        Of several processes the first one writes, whichever call it.
        """
        path = self._checkpoint()
        if self._processes.first:
            found = {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "private": self.state_dict(),
            }
            with _files.replacing(path) as part:
                torch.save(found, part)

    def load(self) -> None:
        """Go on from the checkpoint, with all steps that its journal has; in each process.

        Raises:
            ParameterError: If there is no checkpoint, or it is of another plan or run.
        """
        with self._processes.together("load"):  # so that nothing changes unless all load
            path = self._checkpoint()
        with self._processes.together("load"):
            found = _read(path)
            self.model.load_state_dict(found["model"])
            self.optimizer.load_state_dict(found["optimizer"])
            self.load_state_dict(found["private"])

    def _checkpoint(self) -> str:
        if self._path is None:
            raise ParameterError("checkpoint", None, "a path given to make_private by counting=")
        return self._path


@lru_cache(maxsize=1024)
def _noises(clip: Clip, noise_multiplier: float) -> tuple[float, float]:
    """Return the noise of the gradients in clipping norms, and that of the second query."""
    return clip.multiplier(noise_multiplier), clip.noise(noise_multiplier)


def _deviations(
    clip: Clip, arithmetic: Arithmetic, noise_multiplier: float, norm: float, share: float = 1.0
) -> tuple[float, float]:
    own, other = _noises(clip, noise_multiplier)
    units = arithmetic.units(norm)
    gradient = arithmetic.deviation(own, units * share)
    return gradient, arithmetic.deviation(other, clip.units(units))


def _blank(sums: Tensors, params: Tensors) -> Tensors:
    return {name: torch.zeros_like(params.get(name, value)) for name, value in sums.items()}


def _released(
    sums: Tensors, deviation: float, divisor: float, noisy: Noise, params: Tensors
) -> Tensors:
    """Return sums with noise, over what makes means of them; rounded once, at the very end."""
    return {
        name: noisy(value, deviation).div_(divisor).to(params.get(name, value))
        for name, value in sums.items()
    }


def _digest(model: Any) -> str:
    found = hashlib.sha256()
    for name, value in chain(model.named_parameters(), model.named_buffers()):
        found.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        plain = value.detach().cpu().contiguous().reshape(-1)
        found.update(plain.view(torch.uint8).numpy())
    return found.hexdigest()


def _read(path: str) -> dict[str, Any]:
    allowed = "a file that private.save wrote"
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:  # torch's own differ by where a file is cut
        raise ParameterError("checkpoint", path, allowed) from error
    if not isinstance(found, dict) or set(found) != _CHECKPOINT:
        raise ParameterError("checkpoint", path, allowed)
    return found


def _as_now(state: Any) -> Any:
    """Return a state as it is now, of one as loops with correlated noise had them."""
    before = {"kind", "plan", "not_private", "norm", "run", "steps", "key", "weights"}
    if not isinstance(state, dict) or set(state) != before:
        return state
    account = {name: state[name] for name in ("plan", "not_private", "run", "steps")}
    account |= {"version": VERSION, "arithmetic": "real", "kind": state["kind"]}
    if state["kind"] == "hockeystick-correlated":
        account["kind"] = KIND
    kept = {name: state[name] for name in ("norm", "key", "weights")}
    return {"account": account, "memory": {}, **kept}
