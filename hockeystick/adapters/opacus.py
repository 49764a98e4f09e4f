"""Opacus with proven accounts: an engine, and an accountant that is registered there."""

from __future__ import annotations

import math
import os
import secrets
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final, final

import hockeystick as hs
from hockeystick import _validate
from hockeystick._validate import PARAMETERS, whole_numbers
from hockeystick.accountants.base import TOLERANCE
from hockeystick.adapters import missing
from hockeystick.adapters.loop import refusal
from hockeystick.adjacency import Adjacency
from hockeystick.errors import BudgetExhausted, IncompatibleError, ParameterError
from hockeystick.ledger import LedgerCharge, ReservedRun
from hockeystick.ledger.reserved_run import on_ledger
from hockeystick.mechanisms import Gaussian, PoissonSubsampled
from hockeystick.release.counting import Counter

try:
    import torch
    from opacus import PrivacyEngine as TheirEngine
    from opacus import privacy_engine
    from opacus.accountants import utils
    from opacus.accountants.accountant import IAccountant
    from opacus.accountants.registry import register_accountant
    from torch.utils.data import DataLoader, Sampler
except ModuleNotFoundError as _error:
    raise missing(_error, "opacus", "opacus") from _error

__all__ = ["HockeystickAccountant", "PrivacyEngine", "drawn_rate", "get_noise_multiplier"]

_NAME: Final = "hockeystick"
# Their states have one format: runs of Poisson-subsampled Gaussian steps.
_READABLE: Final = (_NAME, "rdp", "prv", "gdp")
_AN_ENTRY: Final = "(noise_multiplier, sample_rate, steps)"
_STEPS: Final = whole_numbers("T", 1, (100, 10_000))
# torch draws its uniforms from the multiples of 2^-24, or of 2^-53 where float64 is the default.
_SINGLES: Final = 2**24
_DOUBLES: Final = 2**53
_OF_LOADERS: Final = (
    *("num_workers", "collate_fn", "pin_memory", "timeout", "worker_init_fn"),
    *("multiprocessing_context", "generator", "prefetch_factor", "persistent_workers"),
)


@final
class HockeystickAccountant(IAccountant):  # type: ignore[misc]  # theirs has no types
    """Opacus's accounting by proven intervals: epsilon is the upper end.

    Recorded are ``PoissonSubsampled(Gaussian(noise_multiplier), sample_rate) ** steps``, in
    ``history`` as their accountants have it; ``len`` is the number of steps. Nothing recorded costs
    0, no noise inf.

    Guarantees:
        No plan as recorded has a larger epsilon. A step that ``PrivacyEngine`` of this module
        records has the rate at which Opacus's sampler draws, ``drawn_rate``. Steps of Opacus's own
        engine, which does not tell which batches were left out, are refused.

    Example:
        >>> from hockeystick.adapters.opacus import HockeystickAccountant
        >>> accountant = HockeystickAccountant()
        >>> for _ in range(1000):
        ...     accountant.step(noise_multiplier=1.1, sample_rate=256 / 60_000)
        >>> len(accountant), accountant.history
        (1000, [(1.1, 0.004266666666666667, 1000)])
        >>> f"{accountant.get_epsilon(delta=1e-5):.6f}"
        '0.598685'
    """

    history: list[tuple[float, float, int]]
    run: str

    def __init__(self) -> None:
        super().__init__()
        self.run = secrets.token_hex(16)

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        step = _entry((noise_multiplier, sample_rate, 1))
        if self.history and self.history[-1][:2] == step[:2]:
            self.history[-1] = (*step[:2], self.history[-1][2] + 1)
        else:
            self.history.append(step)

    def get_epsilon(
        self,
        delta: float,
        *,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
        tolerance: float = TOLERANCE,
    ) -> float:
        """Return the proven upper end of epsilon, as narrow as ``tolerance`` asks."""
        at = _validate.one("delta", delta)
        return float(self.account(adjacency).epsilon(at, tolerance=tolerance).upper)

    def account(self, adjacency: Adjacency | str = Adjacency.ADD_REMOVE) -> hs.Accountant:
        """Return what is recorded as a ``hs.Accountant``."""
        made = hs.Accountant()
        for noise, rate, steps in map(_entry, self.history):
            made.step(PoissonSubsampled(Gaussian(noise), rate, adjacency), count=steps)
        return made

    def __len__(self) -> int:
        return sum(steps for _, _, steps in self.history)

    @classmethod
    def mechanism(cls) -> str:
        return _NAME

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """Return what Opacus's own engine has called before each step: it refuses the step."""

        def refuse(optimizer: Any) -> None:
            _refuse_unaccountable(optimizer)
            raise IncompatibleError(
                "Opacus's own engine does not say how batches are drawn and which are left out; "
                "use PrivacyEngine of hockeystick.adapters.opacus"
            )

        return refuse

    def state_dict(self, destination: Any = None) -> Any:
        found = super().state_dict(destination)
        found["run"] = self.run
        return found

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over a state of this accountant or of Opacus's own where nothing is recorded yet.

        The rates of Opacus's own are rounded up by ``drawn_rate``. An earlier state of this very
        accountant changes nothing, and another's is refused where steps are recorded. Of steps that
        another process did later, a state does not know.
        """
        if not isinstance(state_dict, Mapping) or not {"history", "mechanism"} <= set(state_dict):
            allowed = "an accountant's state, with a history and a mechanism"
            raise ParameterError("state_dict", state_dict, allowed)
        kind, entries = state_dict["mechanism"], state_dict["history"]
        _validate.one_of("mechanism", kind, _READABLE)
        if not isinstance(entries, list | tuple):
            raise ParameterError("history", entries, f"a list of {_AN_ENTRY}")
        found = [_entry(entry) for entry in entries]
        if not self.history:
            exact = drawn_rate if kind != _NAME else float
            self.history = [(noise, exact(rate), steps) for noise, rate, steps in found]
        elif state_dict.get("run") != self.run:
            raise IncompatibleError(
                f"{len(self)} steps are recorded here that the state does not have: loading it "
                "would forget them; load it into a new engine, before its first step"
            )


def drawn_rate(sample_rate: float) -> float:
    """Return the probability with which Opacus's sampler draws an example, or a little more.

    It draws where a float32 uniform number, a multiple of 2^-24, is below the rate as a float32:
    with probability ``ceil(2^24 float32(rate)) / 2^24``, up to 2^-24 (6e-8) above the rate. Where
    float64 is torch's default, so it is with 2^-53. This is the largest of both and the rate.

    Raises:
        ParameterError: If the rate is not in [0, 1].

    Example:
        >>> from hockeystick.adapters.opacus import drawn_rate
        >>> drawn_rate(1 / 4), f"{drawn_rate(1 / 235) * 235 - 1:.1e}"
        (0.25, '8.3e-06')
    """
    rate = _validate.real("sample_rate", sample_rate, PARAMETERS["rate"])
    single: float = struct.unpack("f", struct.pack("f", rate))[0]
    drawn = math.ceil(single * _SINGLES) / _SINGLES, math.ceil(rate * _DOUBLES) / _DOUBLES
    return max(rate, *drawn)


def _entry(entry: object) -> tuple[float, float, int]:
    if not isinstance(entry, tuple | list) or len(entry) != 3:
        raise ParameterError("history", entry, f"made of {_AN_ENTRY}")
    noise = _validate.real("noise_multiplier", entry[0])
    rate = _validate.real("sample_rate", entry[1], PARAMETERS["rate"])
    return noise, rate, _validate.count("steps", entry[2])


def _refuse_unaccountable(optimizer: Any) -> None:
    """Raise where an optimizer's step is no Gaussian mechanism on one Poisson sample."""
    if optimizer.accumulated_iterations != 1:
        raise IncompatibleError(
            f"{optimizer.accumulated_iterations} batches were accumulated for one step: they are "
            "no Poisson sample; draw a larger batch, and split it by Opacus's BatchMemoryManager"
        )
    # The first is their optimizer's that clips adaptively, the other set by their ghost clipping.
    adaptive = "target_unclipped_quantile", "_adjusted_noise_multiplier"
    if any(hasattr(optimizer, name) for name in adaptive):
        raise IncompatibleError(
            "adaptive clipping in Opacus divides the noisy count by the size of the batch, which "
            "has no noise, so that no account covers it; use a constant clipping norm"
        )


register_accountant(_NAME, HockeystickAccountant, force=True)
_theirs = utils.get_noise_multiplier


def get_noise_multiplier(*, accountant: str = "rdp", **asked: Any) -> float:
    """Return the least noise multiplier that meets a target, as Opacus's function does.

    Importing this module puts it in the place of ``opacus.accountants.utils.get_noise_multiplier``.

    Args:
        accountant: "hockeystick" for ``hs.calibrate``; Opacus's own ones are asked by its function.
        **asked: ``target_epsilon``, ``target_delta``, ``sample_rate``, and ``steps`` or ``epochs``,
            which are ``epochs / sample_rate`` steps, rounded up, at the rate of ``drawn_rate``;
            also a relative ``tolerance`` (1e-9) in place of Opacus's, and ``adjacency``.

    Raises:
        InfeasibleError: If no finite noise meets the target.

    Example:
        >>> from hockeystick.adapters.opacus import get_noise_multiplier
        >>> target = {"target_epsilon": 0.01, "target_delta": 1e-5, "sample_rate": 0.01}
        >>> noise = get_noise_multiplier(**target, steps=1000, accountant="hockeystick")
        >>> print(f"{noise:.3f}")
        77.133
    """
    return _least(**asked) if accountant == _NAME else _theirs(accountant=accountant, **asked)


def _least(
    *,
    target_epsilon: float,
    target_delta: float,
    sample_rate: float,
    epsilon_tolerance: float = 0.01,
    tolerance: float = 1e-9,
    **length: Any,
) -> float:
    given = hs.DPSGD(noise_multiplier=1.0, rate=sample_rate, **length)
    rate, steps = drawn_rate(sample_rate), given.total_steps
    plan = replace(given, rate=rate, steps=steps, epochs=None)
    target = hs.ApproxDP(target_epsilon, target_delta)
    return hs.calibrate(plan, "noise_multiplier", target, tolerance=tolerance).value


utils.get_noise_multiplier = privacy_engine.get_noise_multiplier = get_noise_multiplier


@final
class PrivacyEngine(TheirEngine):  # type: ignore[misc]  # theirs has no types
    """Opacus's ``PrivacyEngine`` with an account that holds for what the loop does.

    ``make_private``, ``make_private_with_epsilon``, ``get_epsilon``, ``secure_mode`` and
    checkpoints are Opacus's; the accountant is "hockeystick". In addition each batch that the
    loader draws, also one without examples, has to be used by one ``optimizer.step``.

    Guarantees:
        Each step that is recorded is one of Gaussian noise on one Poisson sample. What is no such
        step is refused before the model changes: batches that are left out, put together or used
        twice, loaders that shuffle (``poisson_sampling=False``), noise from a generator that the
        caller has (``noise_generator``), accumulated batches and adaptive clipping; and
        ``BatchMemoryManager`` with ``num_workers`` above 0, as batches are drawn ahead of it.

        A record whose gradient is infinite or undefined counts as 0, but not with ghost clipping,
        which has no gradients of records: there epsilon holds only if none is such. Opacus's noise
        comes from torch's generator unless ``secure_mode`` is on: whoever knows its seed can
        subtract it. Divisor and rate are computed from the number of examples, which the account
        takes as public.

    Example:
        >>> from hockeystick.adapters.opacus import PrivacyEngine
        >>> PrivacyEngine(accountant="rdp")
        Traceback (most recent call last):
        ...
        hockeystick.errors.ParameterError: accountant must be 'hockeystick'; got 'rdp'
    """

    def __init__(self, *, accountant: str = _NAME, secure_mode: bool = False) -> None:
        if accountant != _NAME:
            raise ParameterError("accountant", accountant, repr(_NAME))
        super().__init__(accountant=accountant, secure_mode=secure_mode)
        self._run: _Run | None = None

    def make_private(
        self,
        *,
        poisson_sampling: bool = True,
        noise_generator: Any = None,
        ledger: hs.Ledger | LedgerCharge | None = None,
        key: str | None = None,
        steps: int | None = None,
        journal: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> Any:
        """Return what Opacus's ``make_private`` does, with a loader that is watched.

        ``ledger``, an ``hs.Ledger`` or its ``charging(by=, note=)``, reserves all ``steps`` before
        the first one, durably, under the name ``key``, and is told what ran by ``close``. A further
        step is refused before the model changes, as is one with other noise. ``journal`` is the
        file that then counts the steps; None to count in memory. A run that was killed goes on with
        the same key, steps and journal, and with no other: see ``hs.ledger.ReservedRun``, also for
        what is raised. It is for one process. All else is as in Opacus.
        """
        reserving = _asked(ledger, key, steps, journal)
        if self._run is not None and not self._run.over:
            raise IncompatibleError("this engine has a reserved run: close it, or make another one")
        if not poisson_sampling:
            raise IncompatibleError(
                "poisson_sampling=False leaves the loader's own batches, whose account is another "
                "one: see hs.DPSGD(sampling=...) and hockeystick.adapters.torch"
            )
        if noise_generator is not None:
            raise IncompatibleError(
                "noise_generator: whoever knows its seed can subtract the noise; leave it out"
            )
        found = super().make_private(**options)
        optimizer, loader = found[1], found[-1]
        rate = drawn_rate(1 / len(loader))
        if reserving is not None:
            try:
                self._run = reserving(optimizer.noise_multiplier, rate)
            except BaseException:
                found[0].cleanup()  # so that the model can be made private again
                raise
        optimizer.attach_step_hook(partial(self._record, rate, loader.batch_sampler, self._run))
        return found

    def _record(self, rate: float, drawn: _Watched, run: _Run | None, optimizer: Any) -> None:
        """Record a step that is about to be made, or raise."""
        _refuse_unaccountable(optimizer)
        if run is not None:
            run.check_next(optimizer.noise_multiplier)
        drawn.use()
        self.accountant.step(noise_multiplier=optimizer.noise_multiplier, sample_rate=rate)
        if run is not None:
            run.count()

    def make_private_with_epsilon(self, **options: Any) -> Any:
        """Return what Opacus's ``make_private_with_epsilon`` does, for runs without a ledger."""
        if "ledger" in options:
            allowed = "given to make_private, with steps and the noise of get_noise_multiplier"
            raise ParameterError("ledger", options["ledger"], allowed)
        return super().make_private_with_epsilon(**options)

    @property
    def counted(self) -> int:
        """The steps that are counted of what the ledger reserved, those before a restart too."""
        return 0 if self._run is None else self._run.counted

    def close(self, *, final: bool = True) -> None:
        """End a run that a ledger reserved: commit what is counted, unless another goes on."""
        if self._run is not None:
            self._run.close(final=final)

    def _prepare_data_loader(self, *arguments: Any, **options: Any) -> Any:
        loader = super()._prepare_data_loader(*arguments, **options)
        sampler = _Watched(loader.batch_sampler, ahead=loader.num_workers > 0)
        kept = {name: getattr(loader, name) for name in _OF_LOADERS}
        return _Loader(loader.dataset, batch_sampler=sampler, **kept)

    def _prepare_optimizer(self, **options: Any) -> Any:
        optimizer = super()._prepare_optimizer(**options)
        kind: Any = type(optimizer)
        optimizer.__class__ = _counting_finite(kind)
        return optimizer


@final
class _Watched(Sampler):  # type: ignore[misc]  # torch may have no types
    """A sampler each of whose batches one step has to use, be they drawn ahead by workers."""

    def __init__(self, inner: Any, *, ahead: bool) -> None:
        self.inner, self.ahead, self.unused = inner, ahead, False

    def __iter__(self) -> Iterator[list[int]]:
        for places in self.inner:
            if not self.ahead:
                self.give()
            yield places

    def __len__(self) -> int:
        return len(self.inner)

    def give(self) -> None:
        if self.unused:
            raise IncompatibleError(
                "a batch was drawn and no optimizer.step made of it: batches that are left out or "
                "put together are no Poisson samples; make a step of each, also of an empty one"
            )
        self.unused = True

    def use(self) -> None:
        if not self.unused:
            raise IncompatibleError(
                "this step has no batch of its own: a batch that is used twice is no Poisson "
                "sample in the second step (and BatchMemoryManager needs num_workers=0)"
            )
        self.unused = False


@final
class _Loader(DataLoader):  # type: ignore[misc]  # torch may have no types
    """A loader whose batches are noted as they are given, where workers draw them ahead."""

    def __iter__(self) -> Iterator[Any]:
        for batch in super().__iter__():
            if self.batch_sampler.ahead:
                self.batch_sampler.give()
            yield batch


@cache
def _counting_finite(kind: Any) -> Any:
    """Return a class of Opacus's optimizers that counts records without a finite length as 0.

    An infinite or undefined one would be in the released sum, for all to see. As 0 it is a function
    of its record alone, no longer than the clipping norm, so that the sensitivity is what it was.
    """

    class Finite(kind):  # type: ignore[misc]  # theirs has no types
        def clip_and_accumulate(self) -> None:
            found = [p.grad_sample for p in self.params if p.grad_sample is not None]
            pieces = [one if isinstance(one, list) else [one] for one in found]
            for together in zip(*pieces, strict=True):
                if not len(together[0]):
                    continue
                norms = [one.reshape(len(one), -1).norm(2, dim=-1) for one in together]
                lengths = [one.to(together[0].device) for one in norms]
                bad = ~torch.stack(lengths).sum(dim=0).isfinite()
                with torch.no_grad():
                    for one in together:
                        one[bad.to(one.device)] = 0.0
            super().clip_and_accumulate()

    Finite.__name__ = Finite.__qualname__ = kind.__name__
    return Finite


def _asked(
    ledger: hs.Ledger | LedgerCharge | None,
    key: str | None,
    steps: int | None,
    journal: str | os.PathLike[str] | None,
) -> Callable[[float, float], _Run] | None:
    """Return what has a ledger reserve all steps of a noise and a rate; None without a ledger."""
    reserved = on_ledger(ledger, key, journal)
    if not isinstance(reserved, ReservedRun):
        for name, value in (("steps", steps), ("journal", journal)):
            if value is not None:
                raise ParameterError(name, value, "left out where no ledger is given")
        return None
    if steps is None:
        raise ParameterError("steps", steps, "given with a ledger: the most steps that run")
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        raise IncompatibleError(
            "one reservation is for one process; train a group by hockeystick.adapters.torch"
        )
    return partial(_Run, reserved, _validate.count("steps", steps, _STEPS))


@final
class _Run(Counter[hs.Mechanism]):
    """What one ``make_private`` of Opacus has reserved: equal steps of one noise and one rate."""

    __slots__ = ("_noise", "over")

    def __init__(
        self, reserved: ReservedRun, steps: int, noise_multiplier: float, sample_rate: float
    ) -> None:
        self._noise, self.over = noise_multiplier, False
        step = hs.PoissonSubsampled(hs.Gaussian(noise_multiplier), sample_rate)
        super().__init__(step**steps, reserved, "hockeystick.adapters.opacus 1")

    def check_next(self, noise_multiplier: float) -> None:
        if noise_multiplier != self._noise:
            raise IncompatibleError(
                f"a noise multiplier of {noise_multiplier:g} is not the {self._noise:g} that the "
                "ledger has reserved"
            )
        self.check()

    def close(self, *, final: bool = True) -> None:
        """Count no more; once a ledger that is to be told knows it, the run is over."""
        super().close(final=final)
        self.over = True

    def _refusal(self) -> BudgetExhausted:
        return refusal(self.plan, self.counted, self.limit, None, "steps")
