"""The private training loop: what it is asked for, checked, and what one step does.

Noise is a parameter: drawn afresh in each step (DP-SGD), or correlated from step to step (DP-FTRL).
All else is shared: batches, clipping, counting, checkpoints, and processes that train together.
"""

from __future__ import annotations

import hashlib
import math
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import chain
from threading import Lock
from types import MappingProxyType
from typing import Any, Final, Literal, Self, final

import torch
from torch.utils import _pytree as trees

import hockeystick as hs
from hockeystick import _files, _validate
from hockeystick._validate import whole_numbers
from hockeystick.adapters.loop._account import KIND, VERSION, Account
from hockeystick.adapters.loop._random import checked_seed
from hockeystick.adapters.loop._sampler import Grouped, GroupSampler, Sampler
from hockeystick.adapters.torch import _checks
from hockeystick.adapters.torch._arithmetic import ARITHMETICS, Arithmetic, Noise, Real
from hockeystick.adapters.torch._batches import Batch, Loader, fetching_of
from hockeystick.adapters.torch._clipping import (
    Clip,
    Constant,
    Tensors,
    extremes,
    joined,
    not_accounted,
)
from hockeystick.adapters.torch._gradients import (
    LossFn,
    chunks,
    clipped_sum,
    individual,
    sensible,
    whole,
)
from hockeystick.adapters.torch._processes import Processes
from hockeystick.adapters.torch._random import Rows, secret_randomness
from hockeystick.adapters.torch._self_test import PrivateReplay, Train, note
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.ledger import LedgerCharge
from hockeystick.ledger.reserved_run import on_ledger
from hockeystick.mechanisms import CyclicPoisson, MatrixFactorization
from hockeystick.mechanisms.sampling.clipping import Clipping
from hockeystick.release.counting import length_of

Path = str | os.PathLike[str]
Microbatch = int | Literal["auto"] | None
_MICROBATCH: Final = whole_numbers("b", 1, (8, 1024))
_LENGTH: Final = whole_numbers("L", 1, (8, 4096))
_NO_OPTIONS: Final[Mapping[str, Any]] = MappingProxyType({})
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


def make_private(
    model: Any,
    optimizer: Any,
    dataset: Any,
    plan: hs.DPSGD,
    *,
    clipping: Clip | float = 1.0,
    budget: hs.ApproxDP | None = None,
    arithmetic: str = "exact",
    microbatch: Microbatch = "auto",
    collate: Callable[..., Any] | None = None,
    pad_to: int | None = None,
    loading: Mapping[str, Any] = _NO_OPTIONS,
    checkpoint: Path | None = None,
    journal: Path | None = None,
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
        ``private.spent``: examples are drawn with exactly the plan's probabilities, and what is
        released is a function of an exact sum of integers and of exactly rounded Gaussian noise, if
        the operating system's random bits are random. With ``arithmetic="real"`` sums, lengths and
        noise are floats; what their rounding tells is not covered, and ``spent`` says so.

        An example's gradient must come from the weights and that example alone; ``microbatch=1``
        rules out as well that libraries round it otherwise beside others. What the model,
        ``dataset[i]`` and ``collate`` draw from the generators of torch, numpy and Python is keyed
        afresh in each step, by 128 bits, on an accelerator by 63; none is cryptographic. Losses,
        gradients before noise, batches and their sizes are not private, and buffers, learning rates
        and the model's structure must not depend on the data.

        What several loops release of one set of parameters adds up. A second loop on parameters
        that another one trained in this process is refused, unless its plan has ``extra=`` the
        other's ``private.plan``, or both have one ledger; a process does not know of others.

        In a process group of torch (with gloo for the CPU) all processes call this, and train one
        model: the first one alone draws batches, counts, adds noise, and writes. What one process
        cannot do, none does. What processes send each other is as secret as the data.

    Edge cases:
        A batch without examples gives pure noise. A gradient that is infinite or undefined counts
        as 0. With a checkpoint or a journal of an earlier process, the number of steps is never
        below what was released; without one, a state cannot be gone on with in another process.
        An epoch of shuffled or allocated data that was interrupted is counted as done. Under
        add-remove, where examples are drawn one by one without a cap, ``plan.examples`` is nominal:
        data of another length are trained on at the same rate and with the same divisor.

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
            before its noise is drawn: for a process that may be killed. It is locked.
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
        ParameterError: If a layer mixes examples or has sparse gradients, the model is spread over
            devices, compiled or checkpoints its activations, nothing is trained, the dataset has no
            length or not that of the plan where it must, a journal is another run's or in use, a
            key stands for something else, a seed is given and not said to be not private, or
            another argument is outside its domain.
        BudgetExhausted: If the ledger does not cover the plan; nothing is trained then.
        OSError: In a step, if the operating system has no random bits; one that was counted by
            then stays counted, and nothing of it is released.
        IncompatibleError: If the clipping has no account under the plan or within the budget, a
            seed comes with a budget or a ledger, the run was committed to the ledger before,
            another loop trained the same parameters, or processes differ or have lost one another.
        LedgerError: If the ledger cannot be written.
    """
    processes, model, rows = Processes(), _checks.unwrapped(model), None
    with processes.together(
        "make_private",
        lambda: {
            "plan": repr(plan),
            "clipping": repr(clip),
            "arithmetic": computed.name,
            "budget": repr(budget),
            "key": key,
            "seed": fixed,
            "microbatch": microbatch,
            "examples": examples,
            "weights": _digest(model),
        },
    ):
        _checks.check_model(model)
        _checks.trained(model)
        _checks.check_optimizer(optimizer, model)
        if microbatch is not None and microbatch != "auto":
            microbatch = _validate.count("microbatch", microbatch, _MICROBATCH)
        length = None if pad_to is None else _validate.count("pad_to", pad_to, _LENGTH)
        if budget is not None and not isinstance(budget, hs.ApproxDP):
            raise ParameterError("budget", budget, "an hs.ApproxDP or None")
        clip = clipping if isinstance(clipping, Clip) else Constant(clipping)
        fixed = checked_seed(seed, not_private, budget)
        examples = _checks.examples_of(dataset)
        if isinstance(plan, Grouped):
            clip = clip if isinstance(clip, Constant) else Constant(clip)  # which refuses rules
            computed: Arithmetic = Real(wide=True)
            sampler: Any = GroupSampler(plan, examples, fixed)
            counted, rows = plan.plan, Rows(plan.encoder, fixed)
        else:
            sampler = Sampler(plan, examples, fixed)
            clip.check(plan, budget)
            computed = ARITHMETICS[_validate.one_of("arithmetic", arithmetic, tuple(ARITHMETICS))]
            for noise_multiplier in extremes(plan):
                _deviations(clip, computed, noise_multiplier, clip.norm)
            counted = clip.accounted(plan) if fixed is None else not_accounted(plan)
        fetching = fetching_of(dataset, collate, length, loading, secret=fixed is None)
        path, journal = _paths(checkpoint, journal)
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
    shared = account.run, account.counted, account.limit, rows and rows.key
    account.run, account.counted, account.limit, drawn = processes.from_first(shared)
    if rows is not None:
        rows.key = drawn
    release = _checks.Release(account.run, counted, _place_on(ledger))
    with processes.together("make_private"):
        if fixed is None:
            release.check(model)
    release.note(model, account.counted)
    # Its subclasses may make of several places at once what mixes them.
    at_once = type(dataset) is torch.utils.data.TensorDataset and not loading
    tensors = dataset if at_once and collate is None and length is None else None
    loader = Loader(account, sampler, fetching, tensors, processes, fixed)
    again = partial(
        make_private,
        clipping=clip,
        arithmetic=computed.name,
        microbatch=microbatch,
        collate=collate,
        pad_to=length,
        loading=loading,
    )
    replay = partial(PrivateReplay, dataset=dataset, again=again, plan=plan, clip=clip, seed=fixed)
    return Private(
        model,
        optimizer,
        loader,
        clip,
        computed,
        account,
        release,
        rows,
        microbatch,
        fixed,
        path,
        processes,
        replay,
    )


def make_correlated(
    model: Any,
    optimizer: Any,
    dataset: Any,
    plan: MatrixFactorization | CyclicPoisson,
    *,
    batch_size: float,
    clipping: Constant | float = 1.0,
    groups: Iterable[int] | None = None,
    microbatch: int | None = None,
    journal: Path | None = None,
    seed: int | None = None,
    not_private: bool = False,
) -> Private:
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
        rest is as for ``make_private``.

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
        undefined counts as 0. A step that fails after it was counted ends the loop.

    Args:
        model: A module, as for ``make_private``.
        optimizer: Any optimizer of its parameters that takes one gradient for each step.
        dataset: Examples by number, as for ``make_private``.
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
    return make_private(
        model,
        optimizer,
        dataset,
        Grouped(plan, groups, batch_size),  # type: ignore[arg-type]  # for this alone
        clipping=clipping,
        arithmetic="real",
        microbatch="auto" if microbatch is None else microbatch,
        journal=journal,
        seed=seed,
        not_private=not_private,
    )


def _paths(checkpoint: Path | None, journal: Path | None) -> tuple[str | None, Path | None]:
    """Return where the checkpoint and the journal are, which by default is beside it."""
    if checkpoint is None:
        return None, journal
    path = os.fspath(checkpoint)
    if isinstance(journal, str | os.PathLike):
        _files.check_path(journal, "journal")
        if os.path.realpath(journal) == os.path.realpath(path):
            raise ParameterError("journal", journal, "another file than the checkpoint")
    return path, f"{path}.journal" if journal is None else journal


def _place_on(ledger: hs.Ledger | LedgerCharge | None) -> object:
    """Return what two loops have in common whose releases one ledger adds up."""
    if ledger is None:
        return None
    charge = ledger.charging() if isinstance(ledger, hs.Ledger) else ledger
    return charge._book.database.shown, charge.datasets


@final
@dataclass(slots=True, weakref_slot=True, eq=False, repr=False)
class Private:
    """A private training loop; made by ``make_private`` or ``make_correlated``.

    ``loader`` gives the batches, ``step`` uses them, ``spent`` says what that costs.
    """

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
        """The arithmetic in which gradients are summed and noised: "exact" or "real"."""
        return self._arithmetic.name

    @property
    def run(self) -> str:
        """The name of the run."""
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
                and of the model, which it may call and whose parameters it may read: neither of
                the batch's size nor of its other examples.
            batch: What ``loader`` gave last; None for the one that it gives next.

        Raises:
            BudgetExhausted: If plan or budget have no step left; nothing is released.
            ParameterError: If the batch is another one, used before or changed, or the model or
                the optimizer have become such as ``make_private`` refuses; nothing is released.
            IncompatibleError: If it runs under autocast, during another step, in a process that was
                forked, or after ``close``, or another process stopped; if another loop trained the
                same parameters, ``loss_fn`` uses some that were taken out of the model before, or
                torch takes no single gradients of a part of it; if noise is correlated, and the
                loop was ended by an error or a state is to be loaded first; nothing is released.
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
        """Return the clipped sum of a batch's gradients, and that of the second query."""
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
        """Return both sums with noise, over the expected size of a batch."""
        if self._by_batch:
            alone = {name: value.unsqueeze(0) for name, value in sums.items()}
            sums, _ = clipped_sum(alone, self._norm, self._arithmetic, self._clip)
        size = self.loader.sampler.expected(step)
        units = self._arithmetic.units(self._norm)
        share = self._clip.share(self._norm, queried)
        noise_multiplier = self._noise_multiplier(step)
        deviation, other = _deviations(
            self._clip, self._arithmetic, noise_multiplier, self._norm, share
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
        """Step, and learn from what was released."""
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

        Nothing of this loop changes, and no step of it is counted. Replays begin with the weights
        of this moment.

        Args:
            loss_fn: As in ``step``; or None where ``train`` is given.
            train: ``train(private)`` does all that the program does with its loop.
            canaries: Examples to add, beside one that is scaled and one that is undefined.

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
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the loop; where an exception ends it, it may be gone on with."""
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

        Where noise is correlated, all rows so far are computed again, from the key.

        Raises:
            ParameterError: If it is no such state, of another plan or run, of other weights than
                the model has, or, where noise is correlated, of before a step that was counted:
                noise after that would be drawn on the same past noise once more. Nothing changes
                then.
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
        """Write model, optimizer and account to the checkpoint, in place of what it had.

        Of several processes the first one writes, whichever call it.

        Raises:
            ParameterError: If ``make_private`` was given no checkpoint.
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
            ParameterError: If ``make_private`` was given no checkpoint, or it is of another plan or
                run.
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
            raise ParameterError("checkpoint", None, "a path given to make_private")
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
    """Return a text that differs for models whose parameters or buffers differ."""
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
