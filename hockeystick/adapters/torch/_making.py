"""How a private loop is made: of a model, an optimizer, data and a plan."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Final, Literal

import torch

import hockeystick as hs
from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.adapters.loop import (
    Account,
    Counting,
    Grouped,
    GroupSampler,
    Path,
    Sampler,
    checked_seed,
)
from hockeystick.adapters.torch import _checks
from hockeystick.adapters.torch._batches import Loader, Loading, Processes
from hockeystick.adapters.torch._loop import Microbatch, Private, deviations
from hockeystick.adapters.torch._noise import Correlated, Exact, Real
from hockeystick.adapters.torch._self_test import PrivateReplay
from hockeystick.mechanisms import CyclicPoisson, MatrixFactorization
from hockeystick.mechanisms.sampling.poisson import Clipping
from hockeystick.release.clipping import Clip, Constant
from hockeystick.release.noise.clipped_sum import NORM

_ARITHMETICS: Final = {"exact": Exact, "real": Real}
_MICROBATCH: Final = whole_numbers("b", 1, (8, 1024))


def make_private(
    model: Any,
    optimizer: Any,
    dataset: Any,
    plan: hs.DPSGD,
    *,
    clipping: Clip | float = 1.0,
    arithmetic: Literal["exact", "real"] = "exact",
    microbatch: Microbatch = "auto",
    loading: Loading = Loading(),  # noqa: B008 - it is frozen
    counting: Counting = Counting(),  # noqa: B008
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
        the operating system's random bits are random. An example's gradient must come from the
        weights and that example alone, and buffers, learning rates and the model's structure must
        not depend on the data. What model and data draw is keyed in each step by 128 bits (63 on an
        accelerator), not cryptographically. Losses, gradients before noise and batches are not
        private, nor is what the processes of a group of torch send each other.

    Edge cases:
        A batch without examples gives pure noise; a gradient that is infinite or undefined counts
        as 0. An interrupted epoch of shuffled or allocated data counts as done. Under add-remove,
        where examples are drawn one by one without a cap, data of another length than
        ``plan.examples`` have the same rate and divisor. A second loop on parameters that another
        one trained here needs its ``private.plan`` as ``extra=``, or one ledger for both.

    Args:
        model: A module; called with an input as it is, a tuple's parts in their places, or a
            mapping's by their names. ``DistributedDataParallel`` around it is taken off, and what
            ``fully_shard`` split stays so.
        optimizer: Any optimizer of its parameters that takes one gradient for each step.
        dataset: Examples by number, each the model's input alone or a tuple of it and targets.
        plan: How batches are drawn, clipped and noised, and for how many steps.
        clipping: C, or ``Constant``, ``Quantile``, ``Online``.
        arithmetic: "exact", or "real" for floats: faster, but what rounding tells is not covered.
        microbatch: The most examples whose gradients are in memory at once; None for a whole batch,
            "auto" for gradients of 32 MiB (on an accelerator of 1 GiB), at least 8 examples. 1
            rules out as well that libraries round a gradient otherwise beside others.
        loading: How examples become tensors, and which processes fetch them.
        counting: Budget, checkpoint, journal and ledger.
        not_private: A seed from which batches and noise are computed again: for tests alone, as
            whoever knows it can subtract the noise. Epsilon is inf.

    Raises:
        ParameterError: If a layer mixes examples, the journal is another run's or in use, a key
            stands for something else, or an argument is outside its domain.
        BudgetExhausted: If the ledger does not cover the plan; nothing is trained then.
        IncompatibleError: If the clipping has no account under the plan, a seed comes with a budget
            or a ledger, the run was committed before, another loop trained the same parameters, or
            processes differ or have lost one another.

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
    facts: dict[str, Any] = {"plan": repr(plan), "microbatch": microbatch}
    processes, grouped, given = Processes(), isinstance(plan, Grouped), clipping
    if isinstance(model, torch.nn.parallel.DistributedDataParallel):
        model = model.module  # as sums are added here
    with processes.together("make_private", lambda: facts | {"weights": _checks.digest(model)}):
        for name, value, own in (("loading", loading, Loading), ("counting", counting, Counting)):
            wrong = not isinstance(value, own)
            _checks.refuse(name, (wrong, value, f"a {own.__name__} of {__package__}"))
        _checks.check_model(model)
        _checks.trained(model)
        _checks.check_optimizer(optimizer, model)
        examples = facts["examples"] = _checks.examples_of(dataset)
        if microbatch is not None and microbatch != "auto":
            microbatch = _validate.count("microbatch", microbatch, _MICROBATCH)
        known = isinstance(given, Constant if grouped else Clip)
        clip: Any = given if known else Constant(_validate.real("clipping", given, NORM))
        seed = checked_seed(not_private, counting.budget, counting.ledger)
        facts |= {"clipping": repr(clip), "arithmetic": arithmetic, "seed": seed}
        facts |= {"budget": repr(counting.budget), "key": counting.key}
        parts: Any = _grouped if grouped else _sampled
        sampler, computed, counted = parts(plan, clip, arithmetic, examples, seed)
        fetching = loading.fetching(dataset, secret=seed is None)
        split = bool(_checks.shards(model))
        usual = type(clip) is Constant and getattr(plan, "clipping", None) is Clipping.INDIVIDUAL
        usual = usual and seed is None and counting.checkpoint is None
        _checks.refuse("model", (split and not usual, "one that fully_shard split", _checks.SPLIT))
        journal = counting.opened()
    with processes.together("make_private"):
        said: dict[str, Any] = {"not_private": seed is not None, "arithmetic": computed.name}
        first = journal if processes.first else None
        account = Account(counted, counting.budget, first, **said)
    of_first = account.run, account.counted, account.limit, computed.key
    *counts, computed.key = processes.shared([of_first] * processes.size)
    account.follow(*counts)
    release = _checks.Release(account.run, counted, counting.place())
    with processes.together("make_private"):
        if seed is None:
            release.check(model)
    release.note(model, account.counted)
    options: dict[str, Any] = {"arithmetic": arithmetic, "microbatch": microbatch}
    again = partial(make_private, clipping=clip, loading=loading, **options)
    loader = Loader(account, sampler, fetching, loading.at_once(dataset), processes, seed)
    replay, path = partial(PrivateReplay, dataset, again, plan), counting.checkpoint
    parts = model, optimizer, loader, clip, computed, release, microbatch, path, split, replay
    return Private(*parts)


def _sampled(plan: Any, clip: Clip, arithmetic: str, examples: int, seed: int | None) -> Any:
    """Return the sampler, the arithmetic, and the plan that is counted."""
    sampler = Sampler(plan, examples, seed)
    clip.check(plan)
    computed = _ARITHMETICS[_validate.one_of("arithmetic", arithmetic, tuple(_ARITHMETICS))]()
    scheduled = plan.schedule is not None and plan.total_steps > 0
    noises = plan.noise_multipliers if scheduled else [plan.noise_multiplier]
    for noise in (min(noises), max(noises)):
        deviations(clip, computed, float(noise), clip.norm)
    unknown = hs.PureDP(math.inf)
    extra = unknown if plan.extra is None else plan.extra @ unknown
    return sampler, computed, plan if seed is None else replace(plan, extra=extra)


def _grouped(plan: Grouped, clip: Clip, arithmetic: str, examples: int, seed: int | None) -> Any:
    return GroupSampler(plan, examples, seed), Correlated(plan.encoder, seed), plan.plan


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

    The encoder of a ``MatrixFactorization`` has a strategy; b is its ``separation`` where there are
    several participations, and else its rounds. ``groups`` has the group of each example, from 0 to
    b - 1, whatever the data; by default its place modulo b, as zero-out adjacency asks for. A
    ``CyclicPoisson`` under add-remove, where places move, is refused without them. Clipping is C or
    a ``Constant``; all else is as for ``make_private(arithmetic="real")``. Another process goes on
    by the ``journal`` and the last state, and by no older one; a step that fails once it is counted
    ends the loop.

    References:
        Kairouz et al., "Practical and Private (Deep) Learning without Sampling or Shuffling", 2021;
        Choquette-Choo et al., "(Amplified) Banded Matrix Factorization", 2023.

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
    options: dict[str, Any] = {"microbatch": microbatch, "not_private": not_private}
    counting = Counting(journal=journal)
    options |= {"arithmetic": "real", "clipping": clipping, "counting": counting}
    return make_private(model, optimizer, dataset, grouped, **options)
