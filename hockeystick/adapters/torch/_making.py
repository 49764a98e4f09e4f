"""How a private loop is made: what is asked for, checked, and put together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import torch

import hockeystick as hs
from hockeystick import _files, _validate
from hockeystick._validate import whole_numbers
from hockeystick.adapters.loop._account import Account
from hockeystick.adapters.loop._random import checked_seed
from hockeystick.adapters.loop._sampler import Grouped, GroupSampler, Sampler
from hockeystick.adapters.torch import _checks
from hockeystick.adapters.torch._batches import Loader, fetching_of
from hockeystick.adapters.torch._clipping import Clip, Constant, extremes, not_accounted
from hockeystick.adapters.torch._loop import Microbatch, Private, _deviations, _digest
from hockeystick.adapters.torch._noise import ARITHMETICS, Arithmetic, Real, Rows
from hockeystick.adapters.torch._processes import Processes
from hockeystick.adapters.torch._self_test import PrivateReplay
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.ledger import LedgerCharge
from hockeystick.ledger.reserved_run import on_ledger
from hockeystick.mechanisms import CyclicPoisson, MatrixFactorization

Path = str | os.PathLike[str]
_MICROBATCH: Final = whole_numbers("b", 1, (8, 1024))
_LENGTH: Final = whole_numbers("L", 1, (8, 4096))
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
        pad_to: The length that each example's input is padded to with zeros, or cut to; None to
            leave inputs be. Of a mapping it is each part with a length, "labels" with the -100 that
            losses leave out.
        loading: Options of torch's ``DataLoader``, as ``{"num_workers": 4, "pin_memory": True}``,
            whose workers fetch the batches of later steps while this one runs.
        checkpoint: The file that ``private.save`` writes and ``private.load`` reads. Its journal
            is the file beside it with ".journal" added, unless another is given.
        journal: A file that counts the steps durably, each before its noise is drawn, for a process
            that may be killed. It is locked.
        ledger: ``hs.Ledger``, or its ``charging(by=, note=)``, which reserves the whole plan (of a
            budget, the steps that it covers) before the first step, durably, and is told what ran
            by ``private.close``, or at the normal end of ``with make_private(...) as private``.
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
            counted = clip.accounted(plan)
            counted = counted if fixed is None else not_accounted(counted)
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
        Those of ``make_private(arithmetic="real")``, with the noise in doubles, by a generator with
        a secret key of 128 bits (63 on an accelerator).

        Groups must not depend on the data: by default place i of the dataset is in group
        ``i mod b``, which is what zero-out adjacency asks for, where nobody's place depends on
        others. Under add-remove, where an example that goes moves up those after it, give
        ``groups`` that stay what they are, such as by a hash of who it is: a ``CyclicPoisson``
        under add-remove is refused without. ``MatrixFactorization`` names no adjacency, so that
        this is the caller's to see to.

        Past noise is secret state: whoever goes on from an older state with new noise releases
        two sums with the same past noise, which no account covers. So a state is loaded only where
        no step was released after it, and a step that fails after it was counted ends the loop.

    Args:
        model: As for ``make_private``.
        optimizer: As there.
        dataset: As there.
        plan: ``MatrixFactorization`` with an encoder made from a strategy, whose ``separation`` is
            the number b of groups where there are several participations, and else its rounds; or
            ``CyclicPoisson``.
        batch_size: What noisy sums are divided by, a finite number above 0 that the data do not
            decide, such as the expected size of a batch.
        clipping: The clipping norm C, or a ``Constant``.
        groups: The group of each example, a number from 0 to b - 1; None for place modulo b, not
            under add-remove.
        microbatch: As there; None for "auto".
        journal: As there; another process goes on by it and the state after the last step.
        seed: As there.
        not_private: As there.

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
