"""How a private loop is made: what is asked for, checked, and put together."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

import hockeystick as hs
from hockeystick import _files, _validate
from hockeystick._validate import whole_numbers
from hockeystick.adapters.loop import Account, Grouped, GroupSampler, Sampler, checked_seed
from hockeystick.adapters.torch import _checks
from hockeystick.adapters.torch._batches import Loader, Loading
from hockeystick.adapters.torch._clipping import Clip, Constant, extremes, not_accounted
from hockeystick.adapters.torch._loop import Microbatch, Private, _deviations, _digest
from hockeystick.adapters.torch._noise import ARITHMETICS, Arithmetic, Real, Rows
from hockeystick.adapters.torch._processes import Processes
from hockeystick.adapters.torch._self_test import PrivateReplay
from hockeystick.errors import ParameterError
from hockeystick.ledger import LedgerCharge
from hockeystick.ledger.reserved_run import on_ledger
from hockeystick.mechanisms import CyclicPoisson, MatrixFactorization

Path = str | os.PathLike[str]
_MICROBATCH: Final = whole_numbers("b", 1, (8, 1024))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """Where the steps of a loop are counted, each before its noise is drawn, and what ends them.

    Args:
        budget: What may be spent, if less than the plan: as many steps run as it provably covers.
        checkpoint: The file that ``private.save`` writes and ``private.load`` reads.
        journal: The file, locked, that counts for a process that may be killed; by default the
            checkpoint's with ".journal" added, and without one the memory.
        ledger: ``hs.Ledger``, or its ``charging(by=, note=)``, which reserves the whole plan (of a
            budget, the steps that it covers) before the first step, durably, and is told what ran
            by ``private.close``, or at the normal end of ``with make_private(...) as private``.
        key: What the run is called there. A run that was killed goes on with the same key, plan and
            journal, and with no other: see ``hs.ledger.ReservedRun``.
    """

    budget: hs.ApproxDP | None = None
    checkpoint: Path | None = None
    journal: Path | None = None
    ledger: hs.Ledger | LedgerCharge | None = None
    key: str | None = None

    def check(self) -> None:
        """Raise unless the budget is one and the checkpoint another file than the journal."""
        if self.budget is not None and not isinstance(self.budget, hs.ApproxDP):
            raise ParameterError("budget", self.budget, "an hs.ApproxDP or None")
        if self.checkpoint is not None and isinstance(self.journal, str | os.PathLike):
            _files.check_path(self.journal, "journal")
            if os.path.realpath(self.journal) == os.path.realpath(self.checkpoint):
                raise ParameterError("journal", self.journal, "another file than the checkpoint")

    def opened(self) -> Any:
        """Return what an ``Account`` counts in."""
        journal = self.journal
        if journal is None and self.checkpoint is not None:
            journal = f"{os.fspath(self.checkpoint)}.journal"
        return on_ledger(self.ledger, self.key, journal)

    def place(self) -> object:
        """Return what two loops have in common whose releases one ledger adds up."""
        if self.ledger is None:
            return None
        charge = self.ledger.charging() if isinstance(self.ledger, hs.Ledger) else self.ledger
        return charge._book.database.shown, charge.datasets


def make_private(
    model: Any,
    optimizer: Any,
    dataset: Any,
    plan: hs.DPSGD,
    *,
    clipping: Clip | float = 1.0,
    arithmetic: str = "exact",
    microbatch: Microbatch = "auto",
    loading: Loading = Loading(),  # noqa: B008 - it is frozen
    counting: Counting = Counting(),
    not_private: int | None = None,
) -> Private:
    """Return a training loop that does what a plan says, and stops where plan or budget end.

    Each step draws its batch as ``plan.sampling`` says, sums the clipped gradients, adds
    ``N(0, (z C)^2)`` to each coordinate with the step's noise multiplier z and clipping norm C
    (rounded to ``2^-22 C``, as the gradients are), divides by the expected batch size, and lets the
    optimizer step, which takes no other step until the loop is closed or gone.

    Guarantees:
        What the optimizer gets has the guarantee of ``plan``, and after fewer steps that of
        ``private.spent``: examples are drawn with exactly the plan's probabilities, and what is
        released is a function of an exact sum of integers and of exactly rounded Gaussian noise, if
        the operating system's random bits are random. With ``arithmetic="real"`` sums, lengths and
        noise are floats; what their rounding tells is not covered, and ``spent`` says so.

        An example's gradient must come from the weights and that example alone, and buffers,
        learning rates and the model's structure must not depend on the data. What the model and the
        data draw at random is keyed afresh in each step, by 128 bits, on an accelerator by 63; no
        such generator is cryptographic. Losses, gradients before noise, batches and their sizes are
        not private, nor is what the processes of a group of torch (with gloo for the CPU), which
        all call this and of which the first alone draws, counts and adds noise, send each other.

    Edge cases:
        A batch without examples gives pure noise; a gradient that is infinite or undefined counts
        as 0. An epoch of shuffled or allocated data that was interrupted is counted as done. Under
        add-remove, where examples are drawn one by one without a cap, ``plan.examples`` is nominal:
        data of another length are trained on at the same rate and with the same divisor. A second
        loop on parameters that another one trained in this process is refused, unless its plan has
        ``extra=`` the other's ``private.plan``, or both have one ledger; a process does not know of
        others.

    Args:
        model: A module; called with an input as it is, a tuple's parts in their places, or a
            mapping's by their names. ``DistributedDataParallel`` around it is taken off.
        optimizer: Any optimizer of its parameters that takes one gradient for each step.
        dataset: Examples by number, each the model's input alone or a tuple of it and targets,
            which are tensors, numbers, or tuples and mappings of them.
        plan: How batches are drawn, clipped and noised, and for how many steps.
        clipping: C, or ``Constant``, ``Quantile``, ``Online``; ``LargestNorm`` is not private.
        arithmetic: "exact", or "real": floats in place of real numbers, which is faster.
        microbatch: The most examples whose gradients are in memory at once; None for a whole batch,
            "auto" for as many as have gradients of 32 MiB (on an accelerator of 1 GiB), at least 8.
            1 rules out as well that libraries round a gradient otherwise beside others.
        loading: How examples become tensors, and which processes fetch them.
        counting: Budget, checkpoint, journal and ledger.
        not_private: A seed from which batches and noise are computed again: for tests alone, as
            whoever knows it can subtract the noise. Epsilon is inf.

    Returns:
        The loop: ``for batch in private.loader: private.step(loss_fn, batch)``.

    Raises:
        ParameterError: If a layer mixes examples, torch takes no single gradients of model or data,
            the journal is another run's or in use, a key stands for something else, or an argument
            is outside its domain.
        BudgetExhausted: If the ledger does not cover the plan; nothing is trained then.
        IncompatibleError: If the clipping has no account under the plan or within the budget, a
            seed comes with a budget or a ledger, the run was committed to the ledger before,
            another loop trained the same parameters, or processes differ or have lost one another.
        LedgerError: If the ledger cannot be written.

    Example:
        >>> import torch
        >>> import hockeystick as hs
        >>> from hockeystick.adapters.torch import make_private
        >>> model = torch.nn.Linear(2, 2)
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> dataset = torch.utils.data.TensorDataset(torch.randn(100, 2), torch.ones(100).long())
        >>> plan = hs.DPSGD(examples=100, batch_size=20, steps=3, noise_multiplier=2)
        >>> private = make_private(model, optimizer, dataset, plan, clipping=1.0)
        >>> for batch in private.loader:
        ...     private.step(torch.nn.functional.cross_entropy, batch)
        >>> private.spent(delta=1e-5).upper == hs.epsilon(plan, delta=1e-5).upper
        True
    """
    processes, model = Processes(), _checks.unwrapped(model)
    with processes.together(
        "make_private",
        lambda: {
            "plan": repr(plan),
            "clipping": repr(clip),
            "arithmetic": computed.name,
            "budget": repr(counting.budget),
            "key": counting.key,
            "seed": seed,
            "microbatch": microbatch,
            "examples": examples,
            "weights": _digest(model),
        },
    ):
        for name, given, kind in (("loading", loading, Loading), ("counting", counting, Counting)):
            if not isinstance(given, kind):
                raise ParameterError(
                    name, given, f"a {kind.__name__} of hockeystick.adapters.torch"
                )
        _checks.check_model(model)
        _checks.trained(model)
        _checks.check_optimizer(optimizer, model)
        if microbatch is not None and microbatch != "auto":
            microbatch = _validate.count("microbatch", microbatch, _MICROBATCH)
        counting.check()
        clip = clipping if isinstance(clipping, Clip) else Constant(clipping)
        seed = checked_seed(not_private, counting.budget, counting.ledger)
        examples = _checks.examples_of(dataset)
        if isinstance(plan, Grouped) and not isinstance(clip, Constant):
            clip = Constant(clip)  # which refuses rules
        parts = _parts(plan, clip, arithmetic, examples, counting.budget, seed)
        sampler, computed, counted, rows = parts
        fetching = loading.fetching(dataset, secret=seed is None)
        journal = counting.opened()
    with processes.together("make_private"):
        account = Account(
            counted,
            counting.budget,
            journal if processes.first else None,
            not_private=seed is not None,
            arithmetic=computed.name,
        )
    shared: Any = account.run, account.counted, account.limit, rows and rows.key
    *counts, drawn = processes.from_first(shared)
    account.follow(*counts)
    if rows is not None:
        rows.key = drawn
    release = _checks.Release(account.run, counted, counting.place())
    with processes.together("make_private"):
        if seed is None:
            release.check(model)
    release.note(model, account.counted)
    loader = Loader(account, sampler, fetching, loading.at_once(dataset), processes, seed)
    options: dict[str, Any] = {
        "clipping": clip,
        "arithmetic": computed.name,
        "microbatch": microbatch,
    }
    again = partial(make_private, loading=loading, **options)
    replay = partial(PrivateReplay, dataset=dataset, again=again, plan=plan, clip=clip, seed=seed)
    path = counting.checkpoint
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
        seed,
        None if path is None else os.fspath(path),
        processes,
        replay,
    )


def _parts(
    plan: Any,
    clip: Clip,
    arithmetic: str,
    examples: int,
    budget: hs.ApproxDP | None,
    seed: int | None,
) -> tuple[Any, Arithmetic, Any, Rows | None]:
    """Return sampler, arithmetic, the plan that is counted, and the rows of correlated noise."""
    if isinstance(plan, Grouped):
        sampler = GroupSampler(plan, examples, seed)
        return sampler, Real(wide=True), plan.plan, Rows(plan.encoder, seed)
    drawing = Sampler(plan, examples, seed)
    clip.check(plan, budget)
    computed = ARITHMETICS[_validate.one_of("arithmetic", arithmetic, tuple(ARITHMETICS))]
    for noise_multiplier in extremes(plan):
        _deviations(clip, computed, noise_multiplier, clip.norm)
    counted = clip.accounted(plan)
    return drawing, computed, counted if seed is None else not_accounted(counted), None


def make_correlated(
    model: Any,
    optimizer: Any,
    dataset: Any,
    plan: MatrixFactorization | CyclicPoisson,
    *,
    batch_size: float,
    clipping: Constant | float = 1.0,
    groups: Iterable[int] | None = None,
    microbatch: Microbatch = "auto",
    journal: Path | None = None,
    not_private: int | None = None,
) -> Private:
    """Return a training loop whose noise is correlated from step to step as a plan says (DP-FTRL).

    The examples are in b groups, fixed in advance; step t, from 0 on, uses group ``t mod b``: all
    of it (``MatrixFactorization``), or a Poisson sample of it (``CyclicPoisson``). It sums the
    clipped gradients, adds row t of ``C^-1 Z``, where the entries of Z have standard deviation
    noise_multiplier * clipping norm, divides by ``batch_size``, a finite number above 0 that the
    data do not decide, and lets the optimizer step. What is released is a function of ``C X + Z``.

    A ``MatrixFactorization`` has an encoder made from a strategy; b is its ``separation`` where
    there are several participations, and else its rounds. ``groups`` has the group of each example,
    from 0 to b - 1, and must not depend on the data; by default it is its place modulo b, which is
    what zero-out adjacency asks for. Under add-remove, where an example that goes moves up those
    after it, they must stay what they are, such as by a hash of who it is: a ``CyclicPoisson`` is
    refused without them. Clipping is a norm C or a ``Constant``; all else is as for
    ``make_private``. Another process goes on by the ``journal`` and the state after the last step.

    Guarantees:
        Those of ``make_private(arithmetic="real")``, with the noise in doubles, by a generator with
        a secret key of 128 bits (63 on an accelerator). A state is loaded only where no step was
        released after it, and a step that fails after it was counted ends the loop.

    Raises:
        ParameterError: As for ``make_private``.
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
        >>> dataset = torch.utils.data.TensorDataset(torch.randn(40, 2), torch.ones(40).long())
        >>> plan = hs.mechanisms.CyclicPoisson(
        ...     2.0, (1.0, 0.5), rounds=6, cycle=2, rate=0.5, adjacency="zero-out"
        ... )
        >>> private = make_correlated(model, optimizer, dataset, plan, batch_size=10)
        >>> while private.left:
        ...     private.step(torch.nn.functional.cross_entropy)
    """
    grouped: Any = Grouped(plan, groups, batch_size)
    return make_private(
        model,
        optimizer,
        dataset,
        grouped,
        clipping=clipping,
        arithmetic="real",
        microbatch=microbatch,
        counting=Counting(journal=journal),
        not_private=not_private,
    )
