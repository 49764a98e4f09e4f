"""The private training loop: what a step does, and how a run is gone on with.

Noise is drawn afresh in each step (DP-SGD), or correlated from step to step (DP-FTRL).
"""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any, Final, Literal, Self, final

import torch
from torch.utils import _pytree as trees

import hockeystick as hs
from hockeystick import _files, _validate
from hockeystick.adapters.loop import Path, as_now
from hockeystick.adapters.torch import _checks
from hockeystick.adapters.torch._batches import Batch, Loader, Row
from hockeystick.adapters.torch._clipping import (
    LossFn,
    choose_layers,
    chunks,
    clipped_sum,
    individual,
    next_norm,
    outputs_of,
    sensible,
    single_gradients,
)
from hockeystick.adapters.torch._factors import Layers, Rows, Tensors
from hockeystick.adapters.torch._noise import Correlated, Noisy, Real, secret_randomness
from hockeystick.adapters.torch._own_loop import Batches, OwnLoop
from hockeystick.adapters.torch._self_test import PrivateReplay
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.sampling.poisson import Clipping
from hockeystick.release.clipping import Clip, Constant, Quantile
from hockeystick.release.counting import length_of

Microbatch = int | Literal["auto"] | None
_ROUNDING: Final = 1e-6  # of an epoch's last step, where the rate as a float is not exact
_STATE: Final = frozenset({"account", "norm", "memory", "weights"})
_CHECKPOINT: Final = ("model", "optimizer", "private")
_STEPPING: Final[weakref.WeakSet[Any]] = weakref.WeakSet()  # the optimizers whose loops step
_BY_STEP: Final = (
    "the optimizer of a private loop steps by private.step alone: these gradients are neither "
    "clipped nor noised nor counted; close the loop first"
)
_IN_REAL: Final = (
    "What is accounted for in real arithmetic is computed in floating point: what the rounding of "
    "sums, norms and noise tells of the data is not covered."
)
_ALONE: Final = (
    "Each example's gradient is the same in floats whichever examples share its microbatch; "
    "microbatch=1 ensures it."
)
_OWN: Final = (
    "The loss of a batch is the {} of losses, each of one example's outputs and targets alone, and "
    "what rounding tells of how many there are is not covered, unless it is a sum."
)
_NEIGHBOURS: Final = (
    "Noise is over the clipping norm, and an example's group is its own: neighbours differ by one "
    "example that is zeroed, or, where groups are given that stay what they are, added or removed; "
    "one that is replaced is not covered."
)


@final
@dataclass(eq=False, repr=False)
class Private:
    """A private training loop; made by ``make_private`` or ``make_correlated``."""

    model: Any
    optimizer: Any
    loader: Loader
    _clip: Clip
    _arithmetic: Real
    _release: _checks.Release
    _microbatch: Microbatch
    _path: Path | None
    _split: bool  # whether each process has some rows of each parameter
    _replay: Callable[..., PrivateReplay]

    def __post_init__(self) -> None:
        loader, self._free = self.loader, Lock()
        self._noting: Callable[..., None] | None = None  # in replays
        self._account, self._processes, self._seed = loader.account, loader.processes, loader.seed
        self._norm, self._memory, self._loss = self._clip.norm, Tensors(), (0.0, 0)
        self._layers: Layers | None = None
        self._summed: Any = None  # the parameters, and the sums that the next step releases
        self._gradients, self._written = Tensors(), dict[str, int]()
        self._released: tuple[Tensors, Tensors] | None = None
        self._own: OwnLoop | None = None
        this = weakref.ref(self)
        hooks = (
            self.optimizer.register_step_pre_hook(partial(_before_step, this)),
            self.optimizer.register_step_post_hook(partial(_after_step, this)),
        )
        self._unguard = weakref.finalize(self, lambda: [hook.remove() for hook in hooks])

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
        known = self._arithmetic.correlated and self._seed is not None
        return self._account.released @ hs.PureDP(math.inf) if known else self._account.released

    @property
    def not_private_loss(self) -> float:
        """The mean loss of the last step's examples in this process, without noise.

        No account covers who sees it, and no learning rate and no stop may depend on it.
        """
        total, examples = self._loss
        return float(total) / examples if examples else math.nan

    def epochs(self) -> Iterator[Iterator[Batch]]:
        """Give the batches that are left in epochs of ``1/rate`` steps; a part of one first."""
        total, ended, end = length_of(self._account.plan), 0, 0
        while self.steps < total:
            while end <= self.steps:
                ended += 1
                end = min(math.ceil(ended / self.loader.sampler.share - _ROUNDING), total)
            yield self.loader.batches(end)
            if self.steps < end:
                self.loader.refuse(f"an epoch of {end} steps was left after {self.steps}")

    def spent(self, delta: float) -> hs.Certified:
        """Return the epsilon of the steps that are counted, if it was planned to stop there.

        Whoever stops because of what was released has that of the whole plan, or the budget's.
        """
        answer = hs.epsilon(self.plan, _validate.one("delta", delta))
        more = (_NEIGHBOURS,) if self._arithmetic.correlated and answer.adjacency is None else ()
        if self._own is not None:
            more = (*more, _OWN.format(self._own.reduction))
        if self._arithmetic.name == "real":
            more, how = (*more, _IN_REAL), "in real arithmetic"
        elif self._own is not None and self._own.reduction == "mean":
            more, how = (*more, _ALONE), "assuming a mean that is not rounded"
        elif self._microbatch != 1:
            more, how = (*more, _ALONE), "assuming gradients that no microbatch changes"
        else:
            how = ""
        name = f"{answer.accountant} {how}".rstrip()
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
            ParameterError: If batch, model or optimizer are none that this loop takes any more.
            IncompatibleError: If it runs under autocast, during another step, after ``close`` or in
                a fork; if another process stopped, or another loop trained the same parameters; if
                torch takes no single gradients; if correlated noise cannot go on.
            OSError: If the operating system has no random bits; the step may be counted by then.
        """
        if not self._free.acquire(blocking=False):
            raise IncompatibleError("a step of this loop is under way: one runs at a time")
        try:
            self._sum(loss_fn, self.loader.next() if batch is None else batch)
            self._release_sums()
            _STEPPING.add(self.optimizer)
            self.optimizer.step()
            self._end_step()
        finally:
            _STEPPING.discard(self.optimizer)
            self._released = None
            self._free.release()

    def own_loop(
        self, *, reduction: Literal["mean", "sum"] = "mean"
    ) -> tuple[torch.nn.Module, Batches]:
        """Return a model and batches for a loop of one's own, whose optimizer's steps are private.

        For each batch of ``inputs, *targets``, call the model with the inputs as they are, compute
        a loss of its outputs, and call ``loss.backward()`` and ``optimizer.step()``, each once. A
        batch may have no rows; its step is one of noise.

        Guarantees:
            As for ``step``, where the loss of a batch is the mean or the sum, as ``reduction``
            says, of losses each of one example's outputs and targets: no mean over the words of all
            texts, and no outputs that are held against one another.

        Raises:
            ParameterError: By the model, if its inputs are not the batch that was given last.
            IncompatibleError: By ``backward`` or ``step``, after a second backward pass, without
                one, or with gradients that the loss has of weights themselves; by the next batch,
                if no step used the last one.
        """
        own = self._own = OwnLoop(self, reduction)
        return own, Batches(self, own.give)

    def _outputs(self, inputs: Any, key: int) -> tuple[Any, int | None]:
        """Return a model's outputs for a batch, and of how many examples at once."""
        params, kept = _checks.copies(self.model, {})
        size = self._at_once(params)
        device = next(iter(params.values())).device
        with secret_randomness(key, self.steps, device), single_gradients(self.model):
            found = outputs_of(self.model, params, kept, inputs, size)
        return found, size

    def _at_once(self, params: Tensors) -> int | None:
        layers = self._layers or Layers(self.model)
        return sensible(params, layers) if self._microbatch == "auto" else self._microbatch

    def _sum(
        self,
        loss_fn: LossFn,
        batch: Batch,
        examples: Row | None = None,
        key: int | None = None,
        size: int | None = None,
    ) -> None:
        """Sum a batch's clipped gradients, for the optimizer's next step to release.

        In a loop of one's own, of other examples with the batch's inputs, by the key with which
        they were computed, of so many at once.
        """
        processes, gathered = self._processes, self._gathered()
        facts = {"run": self._account.run, "steps": self.steps, "clipping norm": self._norm}
        with processes.together("step", lambda: facts | {"weights": _checks.digest(self.model)}):
            processes.check()
            self._account.check()
            self.loader.check(batch)
            _checks.check_model(self.model)
            _checks.check_optimizer(self.optimizer, self.model)
            params, kept = _checks.copies(self.model, gathered)
            facts["trained parameters"] = list(params)
            self._arithmetic.check(self.steps, params)
            device = next(iter(params.values())).device
            _checks.check_precision(device, is_exact=self._arithmetic.name == "exact")
            if self._seed is None:
                self._release.check(self.model)
            given = batch.examples if examples is None else examples
            drawing = secret_randomness(self._seed if key is None else key, batch.step, device)
            with drawing, _checks.unhooked(self.model), single_gradients(self.model):
                sums, queried = self._clipped(loss_fn, given, params, kept, size)
        sums = processes.summed(sums, by_rows=self._split)
        self._summed = params, sums, processes.summed(queried)

    def _gathered(self) -> Tensors:
        return self._processes.gathered(self.model) if self._split else {}

    def _clipped(
        self, loss_fn: LossFn, batch: Row, params: Tensors, kept: Tensors, size: int | None
    ) -> tuple[Tensors, Tensors]:
        device = next(iter(params.values())).device
        examples = trees.tree_map(lambda part: part.to(device, non_blocking=True), batch)
        given = self.model, loss_fn, params, kept
        layers = self._layers or Layers(self.model)
        if self._layers is None and examples:
            self._layers = layers
            if self._arithmetic.name == "real" and not self._by_batch:
                choose_layers(*given, examples, layers)
        size = size or self._at_once(params)
        by_batch = self._by_batch
        sums, queried, total = Tensors(), Tensors(), 0.0
        for chunk in chunks(examples, size):
            found: Any
            found, losses = individual(*given, chunk, layers, by_batch, size == 1)
            total, more = total + losses, Tensors()
            if not by_batch:
                found, more = clipped_sum(found, self._norm, self._arithmetic, self._clip)
            for sofar, new in ((sums, found), (queried, more)):
                sofar |= {n: sofar[n] + value if n in sofar else value for n, value in new.items()}
        self._loss = total, len(trees.tree_leaves(examples)[0]) if examples else 0
        return sums, queried

    def _release_sums(self) -> None:
        """Count a step, and give the optimizer the noisy means of what was summed for it."""
        params, sums, queried = self._summed
        processes, step, self._summed = self._processes, self.steps, None
        # From here on a kill leaves a step that is counted, whether or not it was released.
        with processes.together("count"):
            if processes.first:
                self._account.count()
        with processes.together("release"):
            if not processes.first:
                self._account.count()  # what the first one did
            if processes.first or self._split:
                gradients, answers = self._noised(step, params, sums, queried)
            else:
                gradients, answers = (
                    {name: torch.zeros_like(params.get(name, one)) for name, one in parts.items()}
                    for parts in (sums, queried)
                )
            if self._split:
                gradients = _checks.in_shards(self.model, gradients)
        self._release.note(self.model, self.steps)
        if not self._split:
            gradients, answers = processes.sent(gradients), processes.sent(answers)
        if self._noting is not None:
            self._noting(self, gradients, answers)
        for name, value in self.model.named_parameters():
            value.grad = gradients.get(name)
        self._gradients, self._released = gradients, (gradients, answers)
        self._written = {name: one._version for name, one in gradients.items()}

    def _is_released(self) -> bool:
        """Return whether the optimizer has what was released for it, and nothing else."""
        return self._released is not None and all(
            value.grad is None
            if name not in self._gradients
            else value.grad is self._gradients[name] and value.grad._version == self._written[name]
            for name, value in self.model.named_parameters()
        )

    def _end_step(self) -> None:
        """Take over what was released, once the optimizer has used it."""
        if self._released is not None:
            self._norm = next_norm(self._clip, self._norm, self._memory, *self._released)
            self._arithmetic.done(self.steps)
            self._written = {name: one._version for name, one in self._released[0].items()}
            self._released = None

    @property
    def _by_batch(self) -> bool:
        return getattr(self._account.plan, "clipping", None) is Clipping.BATCH

    def _noised(
        self, step: int, params: Tensors, sums: Tensors, queried: Tensors
    ) -> tuple[Tensors, Tensors]:
        if self._by_batch:
            alone = {name: Rows(value.unsqueeze(0)) for name, value in sums.items()}
            sums, _ = clipped_sum(alone, self._norm, self._arithmetic, self._clip)
        size, units = self.loader.sampler.expected(step), self._arithmetic.units(self._norm)
        divisor = size if self._arithmetic.correlated else size * units / self._norm
        noise = self._noise_multiplier(step)
        own, other = deviations(self._clip, self._arithmetic, noise, self._norm)
        noisy = self._arithmetic.noise(self._seed, step, params)
        gradients = _released(sums, own, divisor, noisy, params)
        size *= _query_units(self._clip, units)
        return gradients, _released(queried, other, size, noisy, params)

    def _noise_multiplier(self, step: int) -> float:
        plan: Any = self._account.plan
        schedule = getattr(plan, "schedule", None)
        factor = 1.0 if schedule is None else schedule.factors(plan.total_steps)[step]
        return float(factor * plan.noise_multiplier)

    def as_replay(
        self,
        loss_fn: LossFn | None = None,
        *,
        train: Callable[[Any], object] | None = None,
        canaries: Iterable[Any] = (),
    ) -> PrivateReplay:
        """Return what ``hockeystick.audit.record`` replays: equal loops on copies of the model.

        Give ``loss_fn`` as in ``step``, or ``train(private)`` that does all that the program does
        with its loop; ``canaries`` are examples to add.
        """
        if (loss_fn is None) == (train is None):
            raise ParameterError("loss_fn", loss_fn, "given, or train in its place")
        if self._processes.size > 1 or self._split or self._arithmetic.correlated:
            raise IncompatibleError("correlated noise and several processes are not replayed")

        def usual(private: Private) -> None:
            for batch in private.loader:
                private.step(loss_fn, batch)  # type: ignore[arg-type]  # as one of both is given

        return self._replay(self, train or usual, tuple(canaries))

    def close(self, *, final: bool = True) -> None:
        """End the loop: its journal is free for another one, and so is the optimizer.

        Unless another process is to go on (``final=False``), a ledger commits what is counted;
        after a LedgerError this may be called again.
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
        with it only by the journal of the run. Where noise is correlated, it holds the key of all
        noise, which whoever sees it can subtract.
        """
        self._arithmetic.check(self.steps)
        return {
            "account": self._account.state(),
            "norm": self._norm,
            "memory": {name: value.clone() for name, value in self._memory.items()},
            "weights": _checks.digest(self.model, gathered=self._gathered()),
            **self._arithmetic.state(),
        }

    def load_state_dict(self, state: Any) -> None:
        """Go on from a state of this run, after the weights; the count of steps never falls.

        Raises:
            ParameterError: If it is no such state, of another plan or run, of other weights, or,
                where noise is correlated, of before a step that was counted. Nothing changes then.
        """
        state, rows = as_now(state), self._arithmetic
        if not isinstance(state, dict) or set(state) != _STATE | set(rows.state()):
            raise ParameterError("state", type(state).__name__, "what state_dict returned")
        norm, memory = Constant(state["norm"]).norm, dict(state["memory"])
        if state["weights"] != _checks.digest(self.model, gathered=self._gathered()):
            allowed = "that of the weights which the model has: load these first"
            raise ParameterError("state", "the state of other weights", allowed)
        if rows.correlated and norm != self._norm:
            raise ParameterError("norm", norm, f"{self._norm!r}, as here")
        self._account.load(state["account"], exactly=rows.correlated)
        if isinstance(rows, Correlated):
            noise = rows.deviation(self._noise_multiplier(0), norm)
            rows.load(state["key"], self.steps, _checks.trained(self.model), noise)
        self._norm, self._memory = norm, memory

    def save(self) -> None:
        """Write model, optimizer and account to the checkpoint; of several processes the first."""
        path = self._checkpoint()
        if self._processes.first:
            parts = self.model.state_dict(), self.optimizer.state_dict(), self.state_dict()
            with _files.replacing(path) as part:
                torch.save(dict(zip(_CHECKPOINT, parts, strict=True)), part)

    def load(self) -> None:
        """Go on from the checkpoint, with all steps that its journal has; in each process."""
        with self._processes.together("load"):  # so that nothing changes unless all load
            path = self._checkpoint()
        with self._processes.together("load"):
            model, optimizer, private = _read(path)
            self.model.load_state_dict(model)
            self.optimizer.load_state_dict(optimizer)
            self.load_state_dict(private)

    def _checkpoint(self) -> str:
        if self._path is None:
            raise ParameterError("checkpoint", None, "a path given to make_private by counting=")
        return os.fspath(self._path)


def _before_step(this: Any, optimizer: Any, places: Any, named: Any) -> Any:
    """Release what is summed for a step in a loop of one's own, or refuse the step."""
    loop = this()
    if loop is None or not _checks.are_of(optimizer, loop.model):
        return None
    if loop._is_released():
        return None
    if loop._own is None and loop._summed is None:
        if optimizer not in _STEPPING:
            raise IncompatibleError(_BY_STEP)
        return None
    closure, loss = named.get("closure", next(iter(places[1:]), None)), None
    if loop._own is not None:
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        loop._own.sum()
    loop._release_sums()
    return None if closure is None else ((optimizer, lambda: loss), {})


def _after_step(this: Any, optimizer: Any, *_: object) -> None:
    loop = this()
    if loop is not None and _checks.are_of(optimizer, loop.model):
        loop._end_step()


def deviations(
    clip: Clip, arithmetic: Real, noise_multiplier: float, norm: float
) -> tuple[float, float]:
    """Return the deviations of the noise on gradients and second query, each in its units."""
    own, other = clip.noises(noise_multiplier)
    units = arithmetic.units(norm)
    return arithmetic.deviation(own, units), arithmetic.deviation(other, _query_units(clip, units))


def _query_units(clip: Clip, whole: float) -> float:
    """Return how many units of its sum are 1 in the second query, whole in a clipping norm."""
    return 2.0 if isinstance(clip, Quantile) else whole


def _released(
    sums: Tensors, deviation: float, divisor: float, noisy: Noisy, params: Tensors
) -> Tensors:
    """Return sums with noise, over what makes means of them; rounded once, at the very end."""
    return {
        name: noisy(name, value, deviation).div_(divisor).to(params.get(name, value))
        for name, value in sums.items()
    }


def _read(path: str) -> list[Any]:
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception:  # torch's own differ by where a file is cut
        found = None
    if not isinstance(found, dict) or set(found) != set(_CHECKPOINT):
        raise ParameterError("checkpoint", path, "a file that private.save wrote")
    return [found[name] for name in _CHECKPOINT]
