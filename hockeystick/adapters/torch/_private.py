"""A training loop that is private as its plan says, with the account of what really ran."""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from threading import Lock
from types import MappingProxyType
from typing import Any, Final, Literal, Self, final

import torch
from torch.utils import _pytree as trees

import hockeystick as hs
from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.adapters.loop._account import Account
from hockeystick.adapters.loop._sampler import Sampler, checked_plan
from hockeystick.adapters.torch import _checkpoint, _checks, _guard
from hockeystick.adapters.torch._arithmetic import Arithmetic, Noise, Real
from hockeystick.adapters.torch._clipping import (
    Clip,
    Constant,
    Tensors,
    extremes,
    joined,
    not_accounted,
)
from hockeystick.adapters.torch._exact import Exact
from hockeystick.adapters.torch._fetch import fetching_of
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
from hockeystick.ledger import LedgerCharge
from hockeystick.ledger.reserved_run import on_ledger
from hockeystick.mechanisms.sampling.clipping import Clipping

_MICROBATCH: Final = whole_numbers("b", 1, (8, 1024))
_LENGTH: Final = whole_numbers("L", 1, (8, 4096))
_SEED: Final = Domain(symbol="seed", low=0, high=2**63 - 1, typical=(0, 2**31), whole=True)
_ARITHMETICS: Final = {one.name: one for one in (Exact(), Real())}
_IN_REAL: Final = (
    "What is accounted for in real arithmetic is computed in floating point: what the rounding of "
    "sums, norms and noise tells of the data is not covered."
)
_ALONE: Final = (
    "Each example's gradient is the same in floats whichever examples share its microbatch; "
    "microbatch=1 ensures it."
)
_NO_OPTIONS: Final[Mapping[str, Any]] = MappingProxyType({})
_STATE: Final = frozenset({"account", "norm", "memory", "weights"})


def make_private(
    model: Any,
    optimizer: Any,
    dataset: Any,
    plan: hs.DPSGD,
    *,
    clipping: Clip | float = 1.0,
    budget: hs.ApproxDP | None = None,
    arithmetic: str = "exact",
    microbatch: int | Literal["auto"] | None = "auto",
    collate: Callable[..., Any] | None = None,
    pad_to: int | None = None,
    loading: Mapping[str, Any] = _NO_OPTIONS,
    checkpoint: str | os.PathLike[str] | None = None,
    journal: str | os.PathLike[str] | None = None,
    ledger: hs.Ledger | LedgerCharge | None = None,
    key: str | None = None,
    seed: int | None = None,
    not_private: bool = False,
) -> Private:
    """Return a training loop that does what a plan says, and stops where plan or budget end.

    Each step draws its batch as ``plan.sampling`` says, sums the clipped gradients, adds
    ``N(0, (z C)^2)`` to each coordinate with the step's noise multiplier z and clipping norm C
    (rounded to ``2^-22 C``, as the gradients are), divides by the expected batch size, puts the
    result where the optimizer looks for it, and lets the optimizer step. Until the loop is closed
    or gone, the optimizer takes no other step.

    Guarantees:
        What the optimizer gets has the guarantee of ``plan``, and after fewer steps that of
        ``private.spent``, as the machine computes it: examples are drawn with exactly the plan's
        probabilities; each one's clipped gradient is made of integers in units of ``2^-22 C``,
        whose length is compared with C without rounding; these are added without rounding, and
        so is Gaussian noise that is rounded to the same grid and exactly distributed if the
        operating system's random bits are. For integers S, ``S + round(N) = round(S + N)``: what is
        released is a function of a Gaussian mechanism's output, whose account holds unchanged.
        Dividing and rounding to the parameters' type come after that.

        An example's gradient must come from the weights and that example alone. Libraries may
        round it otherwise beside another number of examples: that moved sums by some 10^-5 C for
        usual models, but by more than C for one that magnifies its own rounding errors, so that
        this is no bound. ``microbatch=1`` rules it out. What the model draws itself (dropout) must
        come from torch's generator, which is keyed afresh in each step, and what ``dataset[i]`` or
        ``collate`` draw from those of torch, numpy or Python, keyed afresh for each batch: by 128
        bits, on an accelerator by 63. The Mersenne twister is not cryptographic.

        With ``arithmetic="real"`` sums and lengths are rounded as torch rounds them (lengths are
        right to six digits), and noise is of doubles, drawn where the gradients are by generators
        with a secret key of 128 bits, 63 on an accelerator, which are not cryptographic. What that
        rounding tells is not covered, and ``spent`` says "in real arithmetic".

        Losses, gradients before noise, batches and their sizes are not private: release none,
        not even by a ``loss_fn`` that writes them down. Buffers, learning rates and the model's
        structure must not depend on the data, nor may the model keep what it saw; and
        ``dataset[i]`` must be one person's example alone, at that one place.

        Under add-remove, where examples are drawn one by one ("poisson" without a cap,
        "random-allocation", "full-batch"), ``plan.examples`` is nominal: a data set of another
        length is trained on at the same rate and with the same divisor, as its neighbours are.
        Elsewhere the number of examples is the plan's.

        In a process group of torch (``torch.distributed``, with gloo for the CPU) all processes
        call this, and train one model: each clips the gradients of its share of a batch, and the
        first one alone draws batches, counts, adds noise, and writes journal and checkpoint. Sums,
        noise, weights and account are those of a single process. What one process cannot do, none
        does. What processes send each other is as secret as the data.

    Edge cases:
        A batch without examples gives pure noise. A gradient that is infinite or undefined counts
        as 0. With a checkpoint or a journal of an earlier process, the number of steps is never
        below what was released; without one, a state cannot be gone on with in another process.
        An epoch of shuffled or allocated data that was interrupted is counted as done.

    Args:
        model: A module; called with an input as it is, a tuple's parts in their places, or a
            mapping's by their names. ``DistributedDataParallel`` around it is taken off.
        optimizer: Any optimizer of its parameters that takes one gradient for each step.
        dataset: Examples by number, each the model's input alone or a tuple of it and targets,
            which are tensors, numbers, or tuples and mappings of them.
        plan: How batches are drawn, clipped and noised, and for how many steps.
        clipping: The clipping norm C, or ``Constant``, ``Quantile`` or ``Online``; or
            ``LargestNorm``, which is not private.
        budget: What may be spent, if less than the plan: as many steps run as it provably covers.
        arithmetic: "exact", or "real": floats in place of real numbers, which is faster.
        microbatch: The most examples whose gradients are in memory at once; None for a whole batch,
            "auto" for as many as have gradients of 32 MiB (on an accelerator of 1 GiB), at least 8.
        collate: What makes tensors of a list of one example: of more it could mix them.
        pad_to: The length that each example's input is padded to with zeros, or cut to, as texts
            need, whose batches must not have the length of the longest; None to leave inputs be. Of
            a mapping it is each part with a length, "labels" with the -100 that losses leave out.
        loading: Options of torch's ``DataLoader``, as ``{"num_workers": 4, "pin_memory": True}``,
            whose workers fetch the batches of later steps while this one runs.
        checkpoint: The file that ``private.save`` writes and ``private.load`` reads. Its journal
            is the file beside it with ".journal" added, unless another is given.
        journal: A file that counts the steps durably (until the machine itself loses it), each
            before its noise is drawn: for a process that may be killed. It is locked, so that no
            other process counts there at the same time.
        ledger: A ledger that reserves the whole plan (of a budget, the steps that it covers) before
            the first step, durably, and is told at the end what ran: by ``private.close``, or at
            the normal end of ``with make_private(...) as private``. ``hs.Ledger``, or its
            ``charging(by=, note=)``.
        key: What the run is called there. A run that was killed goes on with the same key, plan and
            journal, and with no other: see ``hs.ledger.ReservedRun``.
        seed: A number from which batches and noise are computed again in the same way: for tests
            alone, as whoever knows it can subtract the noise. Epsilon is inf.
        not_private: True, by who gives a seed.

    Returns:
        The loop: ``for batch in private.loader: private.step(loss_fn, batch)``.

    Raises:
        ParameterError: If a layer mixes examples, the model is spread over devices or compiled,
            nothing is trained, the dataset has no length or not that of the plan where it must, a
            journal is another run's or in use, a key stands for something else, a seed is given
            and not said to be not private, or another argument is outside its domain.
        BudgetExhausted: If the ledger does not cover the plan; nothing is trained then.
        OSError: In a step, if the operating system has no random bits; one that was counted by
            then stays counted, and nothing of it is released.
        IncompatibleError: If the clipping has no account under the plan or within the budget, a
            seed comes with a budget or a ledger, the run was committed to the ledger before, or
            processes differ or have lost one another.
        LedgerError: If the ledger cannot be written.
    """
    processes, model = Processes(), _checks.unwrapped(model)
    with processes.together(
        "make_private",
        lambda: {
            "plan": repr(known),
            "clipping": repr(clip),
            "arithmetic": computed.name,
            "budget": repr(budget),
            "key": key,
            "seed": fixed,
            "microbatch": size,
            "examples": examples,
            "weights": _checkpoint.digest(model),
        },
    ):
        known = checked_plan(plan)
        _checks.check_model(model)
        _checks.trained(model)
        _checks.check_optimizer(optimizer, model)
        examples = _checks.check_dataset(dataset, known)
        if budget is not None and not isinstance(budget, hs.ApproxDP):
            raise ParameterError("budget", budget, "an hs.ApproxDP or None")
        clip = clipping if isinstance(clipping, Clip) else Constant(clipping)
        clip.check(known, budget)
        size = microbatch
        if size is not None and size != "auto":
            size = _validate.count("microbatch", size, _MICROBATCH)
        length = None if pad_to is None else _validate.count("pad_to", pad_to, _LENGTH)
        # Its subclasses may make of several places at once what mixes them.
        at_once = type(dataset) is torch.utils.data.TensorDataset and not loading
        tensors = dataset if at_once and collate is None and length is None else None
        fixed = _checked_seed(seed, not_private, budget)
        fetching = fetching_of(dataset, collate, length, loading, secret=fixed is None)
        counted = clip.accounted(known)
        if fixed is not None:
            counted = not_accounted(counted)
        computed = _ARITHMETICS[_validate.one_of("arithmetic", arithmetic, tuple(_ARITHMETICS))]
        for noise_multiplier in extremes(known):
            _deviations(clip, computed, noise_multiplier, clip.norm)
        path = None if checkpoint is None else os.fspath(checkpoint)
        if journal is None and path is not None:
            journal = f"{path}.journal"
        if fixed is not None and ledger is not None:
            raise IncompatibleError("a seed has epsilon = inf, which no ledger covers")
        counting = on_ledger(ledger, key, journal)
    with processes.together("make_private"):
        account = Account(
            counted,
            budget,
            counting if processes.first else None,
            not_private=fixed is not None,
            arithmetic=computed.name,
        )
    account.run, account.counted = processes.from_first((account.run, account.counted))
    loader = Loader(account, Sampler(known, examples, fixed), fetching, tensors, processes, fixed)
    again = partial(
        make_private,
        clipping=clip,
        arithmetic=computed.name,
        microbatch=size,
        collate=collate,
        pad_to=length,
        loading=loading,
    )
    return Private(
        model,
        optimizer,
        clip,
        computed,
        account,
        loader,
        size,
        fixed,
        path,
        processes,
        partial(PrivateReplay, dataset=dataset, again=again, plan=known, clip=clip, seed=fixed),
    )


def _checked_seed(seed: object, not_private: object, budget: hs.ApproxDP | None) -> int | None:
    """Return a seed whose price is known to who gives it, or None; or raise."""
    if seed is None:
        if not_private is not False:
            raise ParameterError("not_private", not_private, "False where no seed is given")
        return None
    if not_private is not True:
        reason = "whoever knows the seed can subtract the noise, so that epsilon = inf"
        raise ParameterError("not_private", not_private, f"True where a seed is given: {reason}")
    if budget is not None:
        raise IncompatibleError(f"a seed has epsilon = inf, which is not within {budget}")
    return _validate.count("seed", seed, _SEED)


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
        says that it is one "in real arithmetic". In exact arithmetic it assumes, unless
        ``microbatch`` is 1, that an example's gradient is not rounded otherwise beside others.
        """
        answer = hs.epsilon(self.plan, _validate.one("delta", delta))
        if self._arithmetic.name == "exact":
            more = () if self._microbatch == 1 else (_ALONE,)
            return replace(answer, assumptions=answer.assumptions + more)
        name = f"{answer.accountant} in real arithmetic"
        return replace(answer, accountant=name, assumptions=(*answer.assumptions, _IN_REAL))

    def step(self, loss_fn: LossFn, batch: Batch) -> None:
        """Do one step: the batch's clipped gradients, counted, noised, and used by the optimizer.

        Args:
            loss_fn: ``loss_fn(output, *targets)`` for a batch of one example, a function of these
                alone: neither of the batch's size nor of its other examples.
            batch: What ``loader`` gave last.

        Raises:
            BudgetExhausted: If plan or budget have no step left; nothing is released.
            ParameterError: If the batch is another one, used before or changed, or the model or
                the optimizer have become such as ``make_private`` refuses; nothing is released.
            IncompatibleError: If it runs under autocast, during another step, in a process that was
                forked, or after ``close``, or another process stopped; nothing is released.
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
            params = _checks.trained(self.model)
            device = next(iter(params.values())).device
            _guard.check_precision(device)
            buffers = _checks.Buffers(self.model)
            try:
                with _guard.secret_randomness(self._seed, batch.step, device):
                    sums, queried = self._summed(loss_fn, batch, params)
            finally:
                buffers.check()
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

    def _summed(self, loss_fn: LossFn, batch: Batch, params: Tensors) -> tuple[Tensors, Tensors]:
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
            found, losses = computed(self.model, loss_fn, params, chunk)
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
