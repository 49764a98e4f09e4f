"""What a private loop of any library is made of, in numpy: batches, an account, noisy sums.

``hockeystick.adapters.torch`` does all of it. In a loop of JAX, Keras or MLX, each step is: draw,
compute a gradient of each example alone, **count**, sum, divide by the expected size.

>>> import numpy as np
>>> import hockeystick as hs
>>> from hockeystick.adapters.loop import Account, Sampler, noisy_sum
>>> plan = hs.DPSGD(examples=100, batch_size=20, steps=3, noise_multiplier=2)
>>> data, weights = np.ones((100, 4)), np.zeros(4)
>>> sampler, account = Sampler(plan, len(data)), Account(plan)
>>> for step in range(account.counted, account.limit):
...     gradients = weights - data[sampler.draw(step)]
...     account.count()
...     total = noisy_sum(gradients, norm=1.0, noise_multiplier=plan.noise_multiplier)
...     weights -= 0.1 * total / sampler.expected(step)
>>> hs.epsilon(account.released, 1e-5).upper == hs.epsilon(plan, 1e-5).upper
True

Nobody but the loop sees to this: each batch that is drawn is used once, by the step it is for;
gradients of one example know nothing of the others; nothing else looks at the data.
"""

from __future__ import annotations

import hashlib
import math
import os
import secrets
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, TypeVar, final

import numpy as np

import hockeystick as hs
from hockeystick import _files, _validate
from hockeystick._validate import Domain
from hockeystick.adjacency import Adjacency
from hockeystick.errors import BudgetExhausted, IncompatibleError, ParameterError
from hockeystick.ledger import LedgerCharge
from hockeystick.ledger.reserved_run import on_ledger
from hockeystick.mechanisms import CyclicPoisson, Encoder, MatrixFactorization
from hockeystick.mechanisms.training.samplings import Sampling
from hockeystick.numerics import decimal
from hockeystick.release.counting import Counter, OpensJournal, fingerprint, first, length_of
from hockeystick.release.noise.clipped_sum import noisy_sum
from hockeystick.release.samplers import Bits, bernoulli, permutation, secret_bits, uniform_integers

__all__ = ["Account", "Sampler", "noisy_sum"]

PlanT = TypeVar("PlanT", bound=hs.mechanisms.Mechanism)
KIND: Final = "hockeystick.adapters.torch"
VERSION: Final = 2

# What a state and an account have in common.
_EQUAL: Final = {
    "version": "",
    "not_private": ": a seed makes a run not private",
    "arithmetic": ": one account is of one arithmetic",
    "plan": ": plans differ",
}


def affordable(plan: hs.mechanisms.Mechanism, budget: hs.ApproxDP | None) -> int:
    """Return how many first steps or rounds of a plan a budget provably covers, by bisection.

    No data are looked at, so that the number is fixed in advance as the plan is.
    """
    length = getattr(plan, "steps_per_epoch", None) or 1
    most = length_of(plan)
    if budget is not None and not isinstance(budget, hs.ApproxDP):
        raise ParameterError("budget", budget, "an hs.ApproxDP or None")
    if budget is None or _price(plan, budget) <= budget.epsilon:
        return most
    parts = range(1, -(-most // length))
    return length * bisect_right(
        parts, budget.epsilon, key=lambda part: _price(first(plan, part * length), budget)
    )


def _price(plan: hs.mechanisms.Mechanism, budget: hs.ApproxDP) -> float:
    return hs.epsilon(plan, budget.delta).upper


def refusal(
    plan: hs.mechanisms.Mechanism, counted: int, limit: int, budget: hs.ApproxDP | None, unit: str
) -> BudgetExhausted:
    """Return the error that says what one step or round more of a plan would come to."""
    nothing, what = hs.PureDP(0), f"{counted + 1} {unit} of {plan}"
    now, then = first(plan, counted), first(plan, counted + 1)
    if budget is None or _price(then, budget) <= budget.epsilon:
        more = f"more {unit} than the {limit} that are planned"
        return BudgetExhausted(more, now, nothing, what)
    spent, asked = (hs.ApproxDP(_price(one, budget), budget.delta) for one in (now, then))
    return BudgetExhausted(asked, spent, nothing, what)


@final
class Account(Counter[PlanT]):
    """The steps that were or may have been released, of a plan and within a budget.

    It belongs to one run and to one process; with a journal, the run is that of the file.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.adapters.loop import Account
        >>> plan = hs.DPSGD(examples=100, batch_size=10, steps=8, noise_multiplier=4)
        >>> account = Account(plan)
        >>> account.count()
        >>> account.counted, account.limit
        (1, 8)
    """

    __slots__ = ("arithmetic", "budget", "not_private")

    def __init__(
        self,
        plan: PlanT,
        budget: hs.ApproxDP | None = None,
        journal: str | os.PathLike[str] | OpensJournal | None = None,
        *,
        not_private: bool = False,
        arithmetic: str = "exact",
    ) -> None:
        if not isinstance(arithmetic, str) or not arithmetic.isprintable():
            raise ParameterError("arithmetic", arithmetic, "a text that can be printed")
        self.budget: hs.ApproxDP | None = budget
        self.not_private: bool = not_private
        self.arithmetic: str = arithmetic
        private = "-not-private" if not_private else ""
        text = "" if journal is None else fingerprint(plan)
        told = "" if arithmetic == "real" else f"-{arithmetic}"  # nothing, as before there was more
        titles = [f"{KIND}{private}{told} {VERSION} {text}"]
        if not isinstance(plan, hs.DPSGD):
            titles.append(f"hockeystick-correlated{private} {text}")  # as it was called before
        super().__init__(plan, journal, *titles, limit=affordable(plan, budget))
        self._go_on(self.counted)

    def follow(self, run: str, counted: int, limit: int) -> None:
        """Count as the first process of a group does, which alone has the journal."""
        self.run: str = run
        self._counted, self._limit = counted, limit

    def _refusal(self) -> BudgetExhausted:
        return refusal(self.plan, self.counted, self.limit, self.budget, "steps")

    def state(self) -> dict[str, Any]:
        """Return plan, run and count, ready for JSON."""
        return {
            "kind": KIND,
            "version": VERSION,
            "plan": fingerprint(self.plan),
            "not_private": self.not_private,
            "arithmetic": self.arithmetic,
            "run": self.run,
            "steps": self.counted,
        }

    def load(self, state: object, *, exactly: bool = False) -> None:
        """Take over the count of an earlier state of this run unless more was released, or raise.

        Of another run, nobody here knows what was released after the state was taken. ``exactly``:
        nothing may have been released after it, as where noise is correlated.
        """
        self._check_open()
        if isinstance(state, Mapping):
            state = {"arithmetic": "real"} | dict(state)  # as all was before it was said
        here = self.state()
        if not isinstance(state, Mapping) or set(state) != set(here) or state["kind"] != KIND:
            raise ParameterError("state", state, "what state_dict returned")
        for name, why in _EQUAL.items():
            if state[name] != here[name]:
                raise ParameterError(name, state[name], f"{here[name]!r}, as here{why}")
        steps, most = state["steps"], length_of(self.plan)
        if type(steps) is not int or not 0 <= steps <= most:
            raise ParameterError("steps", steps, f"an integer from 0 to {most}")
        if state["run"] != self.run:
            allowed = (
                "that of the run which the state is of, as steps that ran after it are counted "
                "nowhere else (give make_private a journal or checkpoint from the start)"
            )
            raise ParameterError("journal", self._journal.path, allowed)
        if exactly and steps != self.counted:
            allowed = (
                f"{self.counted}, as here: from an older state, past noise would be used for other "
                "steps as well"
            )
            raise ParameterError("steps", steps, allowed)
        with self._lock:
            self._check_open()
            self._go_on(steps)

    def _go_on(self, steps: int) -> None:
        """Count from a number of steps on, and never from less than before.

        The rest of an epoch is left out, as its batches are lost.
        """
        length = getattr(self.plan, "steps_per_epoch", None) or 1
        self._rise(max(self.counted, -(-steps // length) * length))


def as_now(state: Any) -> Any:
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


Path = str | os.PathLike[str]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """Where the steps of a loop are counted, each before its noise is drawn, and what ends them.

    Args:
        budget: What may be spent, if less than the plan: as many steps run as it provably covers.
        checkpoint: The file that ``private.save`` writes and ``private.load`` reads.
        journal: The file, locked, that counts for a process that may be killed; by default the
            checkpoint's with ".journal" added, and without one the memory.
        ledger: ``hs.Ledger``, or its ``charging(by=, note=)``, which reserves the plan (of a budget
            what it covers) before the first step, and is told what ran by ``private.close``, or at
            the normal end of ``with make_private(...) as private``.
        key: What the run is called there. A run that was killed goes on with the same key, plan and
            journal, and with no other.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.adapters.loop import Counting
        >>> Counting(budget=hs.ApproxDP(2, 1e-5), checkpoint="model.pt").budget
        ApproxDP(epsilon=2.0, delta=1e-05)
    """

    budget: hs.ApproxDP | None = None
    checkpoint: Path | None = None
    journal: Path | None = None
    ledger: hs.Ledger | LedgerCharge | None = None
    key: str | None = None

    def opened(self) -> Any:
        """Return what an ``Account`` counts in, or raise."""
        journal = self.journal
        if self.checkpoint is not None and journal is None:
            journal = f"{os.fspath(self.checkpoint)}.journal"
        elif self.checkpoint is not None and isinstance(journal, str | os.PathLike):
            _files.check_path(journal, "journal")
            if os.path.realpath(journal) == os.path.realpath(self.checkpoint):
                raise ParameterError("journal", journal, "another file than the checkpoint")
        return on_ledger(self.ledger, self.key, journal)

    def place(self) -> object:
        """Return what two loops have in common whose releases one ledger adds up."""
        if self.ledger is None:
            return None
        charge = self.ledger.charging() if isinstance(self.ledger, hs.Ledger) else self.ledger
        return charge._book.database.shown, charge.datasets


# Random numbers that are keyed by the operating system unless a seed decides.

_KEY_BYTES: Final = 16
_SEED: Final = Domain(symbol="seed", low=0, high=2**63 - 1, typical=(0, 2**31), whole=True)


def checked_seed(not_private: object, *limits: object) -> int | None:
    """Return a seed unless it is None; raise where it is none, or where something limits epsilon.

    Whoever knows the seed can subtract the noise.
    """
    if not_private is None:
        return None
    if any(limit is not None for limit in limits):
        raise IncompatibleError("a seed has epsilon = inf, which no budget and no ledger covers")
    return _validate.count("not_private", not_private, _SEED)


def numbers(seed: int | None, purpose: str, index: int) -> np.random.Generator:
    """Return the generator of one step or epoch, on the CPU.

    It is numpy's, as torch's own ones there use 32 bits of their seed: who sees a noisy gradient
    could try them all. A seed is stretched to a key of its own for each purpose and index, so that
    a run that is resumed never repeats the noise of an earlier step.
    """
    if seed is None:
        key = secrets.token_bytes(_KEY_BYTES)
    else:
        key = hashlib.sha256(f"{purpose}/{index}/{seed}".encode()).digest()[:_KEY_BYTES]
    return np.random.Generator(np.random.Philox(key=int.from_bytes(key, "big")))


def bits(seed: int | None, purpose: str, index: int) -> Bits:
    """Return the source of random words of one step or epoch: secret, or replayed from a seed."""
    return secret_bits if seed is None else numbers(seed, purpose, index).bit_generator.random_raw


# The examples of each step, drawn as the plan says.

Indices = Any
_DIVISOR: Final = Domain("m", 0, math.inf, (16, 16_384), low_open=True, high_open=True)


@final
class Sampler:
    """Draws the examples of each step exactly as the plan says; epochs are divided once.

    Rates and expected sizes come from the plan's number of examples alone, which is nominal: they
    must not change with an example more or less. How many there are is said beside it. Who knows
    the ``seed``, for tests alone, knows the batches.

    Raises:
        ParameterError: If the plan has no batches to draw, or is for data of another length.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.adapters.loop import Sampler
        >>> plan = hs.DPSGD(examples=100, batch_size=10, steps=8, noise_multiplier=4)
        >>> Sampler(plan, 100, seed=1).expected(0)
        10.0
    """

    __slots__ = ("_epoch", "_examples", "_factors", "_parts", "_plan", "_rate", "_seed")

    def __init__(self, plan: hs.DPSGD, examples: int, seed: int | None = None) -> None:
        each = checked_plan(plan).sampling in _EACH and plan.batch_cap is None
        if plan.examples != examples and not (each and plan.adjacency is Adjacency.ADD_REMOVE):
            allowed = f"the number of examples in the dataset, {examples}"
            raise ParameterError("examples", plan.examples, allowed)
        self._plan, self._examples, self._seed = plan, examples, seed
        schedule = plan.batch_schedule
        self._factors = None if schedule is None else schedule.factors(plan.total_steps)
        sized = plan.batch_size is not None and plan.examples is not None
        given = Fraction(plan.batch_size or 0, plan.examples or 1)
        self._rate = given if sized else decimal(plan.sampling_rate)
        self._epoch = -1
        self._parts: Indices = None

    @property
    def share(self) -> float:
        """The share of the examples that one step is expected to use, which makes an epoch."""
        return self._plan.sampling_rate

    def rate(self, step: int) -> Fraction:
        """Return the probability of an example to be in a step's batch, as it is accounted for."""
        if self._factors is None:
            return self._rate
        return min(self._rate * decimal(float(self._factors[step])), Fraction(1))

    def expected(self, step: int) -> float:
        """Return the expected size of a step's batch."""
        return float(self.rate(step) * int(self._plan.examples or 0))

    def draw(self, step: int) -> Indices:
        """Return the places of a step's examples in the data."""
        length = self._plan.steps_per_epoch
        if length is None:
            source = bits(self._seed, "batch", step)
            return _drawn(self._plan, self._examples, self.rate(step), source)
        epoch, place = divmod(step, length)
        if epoch != self._epoch:
            source = bits(self._seed, "epoch", epoch)
            self._parts = _divided(self._plan, self._examples, length, source)
            self._epoch = epoch
        return np.flatnonzero(self._parts == place)


@final
@dataclass(frozen=True, slots=True)
class Grouped:
    """A plan with correlated noise, for examples in groups that are fixed.

    Those are in ``groups``, from 0 to b - 1, None for place modulo b; sums are divided by
    ``batch_size``.
    """

    plan: MatrixFactorization | CyclicPoisson
    groups: Iterable[int] | None = field(repr=False)
    batch_size: float

    @property
    def encoder(self) -> Encoder:
        """The encoder that the noise is correlated by."""
        if isinstance(self.plan, CyclicPoisson):
            return Encoder.toeplitz(self.plan.coefficients[: self.plan.bands], self.plan.rounds)
        return self.plan.encoder

    @property
    def cycle(self) -> int:
        """The number of groups b, with which no example takes part too often."""
        if isinstance(self.plan, CyclicPoisson):
            return self.plan.cycle
        encoder = self.plan.encoder
        cycle = encoder.separation if encoder.participations > 1 else encoder.rounds
        times = -(-encoder.rounds // cycle)
        if times > encoder.participations:
            raise IncompatibleError(
                f"with {cycle:,} groups an example of the first takes part in {times:,} of "
                f"{encoder.rounds:,} rounds, and the encoder is for {encoder.participations:,}"
            )
        return cycle


@final
class GroupSampler:
    """Draws the examples of each step of a plan with correlated noise.

    Step t uses group ``t mod b``: all of it (``MatrixFactorization``), or a Poisson sample of it
    (``CyclicPoisson``). Arguments are as for ``Sampler``.
    """

    __slots__ = ("_members", "_rate", "_seed", "_size", "share")

    def __init__(self, grouped: Grouped, examples: int, seed: int | None = None) -> None:
        plan = grouped.plan
        if not isinstance(plan, MatrixFactorization | CyclicPoisson):
            raise ParameterError("plan", plan, "a MatrixFactorization or a CyclicPoisson")
        if plan.noise_multiplier == math.inf:
            raise ParameterError("noise_multiplier", plan.noise_multiplier, "finite")
        self._size, self._seed = _validate.real("batch_size", grouped.batch_size, _DIVISOR), seed
        self._members = _members(grouped, examples)
        self._rate = decimal(plan.rate) if isinstance(plan, CyclicPoisson) else Fraction(1)
        self.share: float = float(self._rate / grouped.cycle) or 1.0

    def expected(self, step: int) -> float:
        return self._size

    def draw(self, step: int) -> Indices:
        members = self._members[step % len(self._members)]
        if self._rate == 1:
            return members
        source = bits(self._seed, "batch", step)
        return members[np.asarray(bernoulli(self._rate, len(members), bits=source), dtype=bool)]


def _members(grouped: Grouped, examples: int) -> list[Indices]:
    """Return the places of the examples of each group that has a turn, or raise."""
    cycle, groups = grouped.cycle, grouped.groups
    if groups is None and cycle > 1 and grouped.plan.adjacency is Adjacency.ADD_REMOVE:
        allowed = (
            "given under add-remove, where an example that goes moves up the places of those "
            "after it; or let the plan be under zero-out"
        )
        raise ParameterError("groups", groups, allowed)
    own = np.arange(examples) % cycle if groups is None else np.asarray(list(groups))
    whole = own.shape == (examples,) and own.dtype.kind in "iu"
    if not whole or (own.size and not (own.min() >= 0 and own.max() < cycle)):
        allowed = f"an integer from 0 to {cycle - 1} for each of {examples:,} examples"
        raise ParameterError("groups", f"{own.dtype} of shape {own.shape}", allowed)
    return [np.flatnonzero(own == group) for group in range(min(cycle, length_of(grouped.plan)))]


def _drawn(plan: hs.DPSGD, examples: int, rate: Fraction, source: Bits) -> Indices:
    """Return the places of the examples of a batch that is drawn for itself."""
    if plan.sampling is Sampling.FULL_BATCH:
        return np.arange(examples)
    if plan.sampling is Sampling.FIXED_SIZE:
        return permutation(examples, bits=source)[: plan.batch_size]
    if plan.sampling is Sampling.WITH_REPLACEMENT:
        return uniform_integers(examples, int(plan.batch_size or 0), bits=source)
    if plan.sampling is not Sampling.POISSON:
        raise IncompatibleError(f"no sampler draws {plan.sampling.value} batches by themselves")
    found = np.flatnonzero(bernoulli(rate, examples, bits=source))
    if plan.batch_cap is None or len(found) <= plan.batch_cap:
        return found
    return found[permutation(len(found), bits=source)[: plan.batch_cap]]


def _divided(plan: hs.DPSGD, examples: int, length: int, source: Bits) -> Indices:
    """Return each example's step in an epoch, one beyond the last for a rest that is dropped."""
    if plan.sampling is Sampling.RANDOM_ALLOCATION:
        return uniform_integers(length, examples, bits=source)
    return permutation(examples, bits=source) // int(plan.batch_size or 1)


# Where each example is drawn on its own, nothing but the data's length changes with one more: but
# with a cap, how many of them are kept.
_EACH: Final = frozenset({Sampling.POISSON, Sampling.RANDOM_ALLOCATION, Sampling.FULL_BATCH})


def checked_plan(plan: object) -> hs.DPSGD:
    """Return a plan that can be trained by, or raise."""
    if not isinstance(plan, hs.DPSGD):
        raise ParameterError("plan", plan, "an hs.DPSGD")
    if plan.examples is None:
        allowed = "given: a batch is divided by its expected size, which the data must not decide"
        raise ParameterError("examples", None, allowed)
    if plan.sampling_rate == 0:
        raise ParameterError("rate", plan.sampling_rate, "above 0: a batch is divided by its size")
    if plan.noise_multiplier == float("inf"):
        raise ParameterError("noise_multiplier", plan.noise_multiplier, "finite")
    return plan
