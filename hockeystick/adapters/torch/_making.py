"""How a private training loop is made: what is asked for, checked, and put together."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Literal

import torch

import hockeystick as hs
from hockeystick import _files, _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.adapters.loop._account import Account
from hockeystick.adapters.loop._sampler import Sampler, checked_plan
from hockeystick.adapters.torch import _checkpoint, _checks, _guard
from hockeystick.adapters.torch._arithmetic import Arithmetic, Real
from hockeystick.adapters.torch._clipping import Clip, Constant, extremes, not_accounted
from hockeystick.adapters.torch._exact import Exact
from hockeystick.adapters.torch._fetch import fetching_of
from hockeystick.adapters.torch._loader import Loader
from hockeystick.adapters.torch._private import Private, _deviations
from hockeystick.adapters.torch._processes import Processes
from hockeystick.adapters.torch._replay import PrivateReplay
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.ledger import LedgerCharge
from hockeystick.ledger.reserved_run import on_ledger

_MICROBATCH: Final = whole_numbers("b", 1, (8, 1024))
_LENGTH: Final = whole_numbers("L", 1, (8, 4096))
_SEED: Final = Domain(symbol="seed", low=0, high=2**63 - 1, typical=(0, 2**31), whole=True)
_ARITHMETICS: Final = {one.name: one for one in (Exact(), Real())}
_NO_OPTIONS: Final[Mapping[str, Any]] = MappingProxyType({})


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

        What several loops release of one set of parameters adds up. A second loop on parameters
        that another one trained in this process is refused, unless its plan has ``extra=`` the
        other's ``private.plan``, or both have one ledger; a process does not know of others.

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
        examples = _checked_training(model, optimizer, dataset, known)
        clip = _checked_clip(clipping, known, budget)
        size, length = _checked_sizes(microbatch, pad_to)
        fixed = _checked_seed(seed, not_private, budget)
        fetching = fetching_of(dataset, collate, length, loading, secret=fixed is None)
        counted = clip.accounted(known)
        if fixed is not None:
            counted = not_accounted(counted)
        computed = _checked_arithmetic(arithmetic, known, clip)
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
    account.run, account.counted, account.limit = processes.from_first(
        (account.run, account.counted, account.limit)
    )
    release = _guard.Release(account.run, counted, _place_on(ledger))
    with processes.together("make_private"):
        if fixed is None:
            release.check(model)
    release.note(model, account.counted)
    # Its subclasses may make of several places at once what mixes them.
    at_once = type(dataset) is torch.utils.data.TensorDataset and not loading
    tensors = dataset if at_once and collate is None and length is None else None
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
    replay = partial(PrivateReplay, dataset=dataset, again=again, plan=known, clip=clip, seed=fixed)
    return Private(
        model,
        optimizer,
        clip,
        computed,
        account,
        release,
        loader,
        size,
        fixed,
        path,
        processes,
        replay,
    )


def _place_on(ledger: hs.Ledger | LedgerCharge | None) -> object:
    """Return what two loops have in common whose releases one ledger adds up."""
    if ledger is None:
        return None
    charge = ledger.charging() if isinstance(ledger, hs.Ledger) else ledger
    return charge._book.database.shown, charge.datasets


def _checked_training(model: Any, optimizer: Any, dataset: Any, plan: hs.DPSGD) -> int:
    """Return the number of examples of what can be trained by the plan, or raise."""
    _checks.check_model(model)
    _checks.trained(model)
    _checks.check_optimizer(optimizer, model)
    return _checks.check_dataset(dataset, plan)


def _checked_clip(clipping: Clip | float, plan: hs.DPSGD, budget: object) -> Clip:
    """Return how gradients are clipped, which is accounted for within the budget; or raise."""
    if budget is not None and not isinstance(budget, hs.ApproxDP):
        raise ParameterError("budget", budget, "an hs.ApproxDP or None")
    clip = clipping if isinstance(clipping, Clip) else Constant(clipping)
    clip.check(plan, budget)
    return clip


def _checked_sizes(
    microbatch: int | Literal["auto"] | None, pad_to: int | None
) -> tuple[int | Literal["auto"] | None, int | None]:
    """Return the largest microbatch and the length of inputs, or raise."""
    if microbatch is not None and microbatch != "auto":
        microbatch = _validate.count("microbatch", microbatch, _MICROBATCH)
    return microbatch, None if pad_to is None else _validate.count("pad_to", pad_to, _LENGTH)


def _checked_arithmetic(name: str, plan: hs.DPSGD, clip: Clip) -> Arithmetic:
    """Return the arithmetic of a name, which can draw the plan's noise; or raise."""
    found = _ARITHMETICS[_validate.one_of("arithmetic", name, tuple(_ARITHMETICS))]
    for noise_multiplier in extremes(plan):
        _deviations(clip, found, noise_multiplier, clip.norm)
    return found


def _paths(
    checkpoint: str | os.PathLike[str] | None, journal: str | os.PathLike[str] | None
) -> tuple[str | None, str | os.PathLike[str] | None]:
    """Return where the checkpoint and the journal are, which by default is beside it."""
    if checkpoint is None:
        return None, journal
    path = os.fspath(checkpoint)
    if isinstance(journal, str | os.PathLike):
        _files.check_path(journal, "journal")
        if os.path.realpath(journal) == os.path.realpath(path):
            raise ParameterError("journal", journal, "another file than the checkpoint")
    return path, f"{path}.journal" if journal is None else journal


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
