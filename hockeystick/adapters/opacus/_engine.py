"""Opacus's engine, which also sees to what its accountants are not told."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, Final, final

import torch
from opacus import PrivacyEngine as TheirEngine
from torch.utils.data import DataLoader, Sampler

import hockeystick as hs
from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.adapters.loop import refusal
from hockeystick.adapters.opacus._accountant import NAME, drawn_rate, refuse_unaccountable
from hockeystick.errors import BudgetExhausted, IncompatibleError, ParameterError
from hockeystick.ledger import LedgerCharge, ReservedRun
from hockeystick.ledger.reserved_run import on_ledger
from hockeystick.release.counting import Counter


@final
class PrivacyEngine(TheirEngine):  # type: ignore[misc]  # theirs has no types
    """Opacus's ``PrivacyEngine`` with an account that holds for what the loop does.

    ``make_private``, ``make_private_with_epsilon``, ``get_epsilon`` and checkpoints are Opacus's.
    In addition each batch that the loader draws has to be used by one ``optimizer.step``.

    Guarantees:
        Each step that is recorded is one of Gaussian noise on one Poisson sample. What is no such
        step is refused before the model changes: batches that are left out, put together or used
        twice, loaders that shuffle (``poisson_sampling=False``), noise from a generator that the
        caller has (``noise_generator``), accumulated batches and adaptive clipping.

        A record whose gradient is infinite or undefined counts as 0, but not with ghost clipping,
        which has no gradients of records: there epsilon holds only if none is such. Opacus's noise
        comes from torch's generator unless ``secure_mode`` is on: whoever knows its seed can
        subtract it. Divisor and rate are computed from the number of examples, which the account
        takes as public.

    Edge cases:
        A batch without examples needs a step like any other. With ``num_workers`` above 0
        ``BatchMemoryManager`` is refused in its first step, as batches are drawn ahead of it.

    Args:
        accountant: "hockeystick".
        secure_mode: As in Opacus.

    Raises:
        ParameterError: If the accountant is another one.

    Example:
        >>> from hockeystick.adapters.opacus import PrivacyEngine
        >>> PrivacyEngine(accountant="rdp")
        Traceback (most recent call last):
        ...
        hockeystick.errors.ParameterError: accountant must be 'hockeystick'; got 'rdp'
    """

    def __init__(self, *, accountant: str = NAME, secure_mode: bool = False) -> None:
        if accountant != NAME:
            raise ParameterError("accountant", accountant, repr(NAME))
        super().__init__(accountant=accountant, secure_mode=secure_mode)
        self._drawn = _Drawn()
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
        the same key, steps and journal, and with no other: see ``hs.ledger.ReservedRun``. All else
        is as in Opacus.

        Raises:
            IncompatibleError: If batches are no Poisson samples, somebody has the noise, the run
                was committed to the ledger before, or there is a ledger and several processes.
            ParameterError: If the key stands for something else, the journal is another run's or in
                use, or an argument is outside its domain.
            BudgetExhausted: If the ledger does not cover the steps.
            LedgerError: If the ledger cannot be written.
        """
        reserving = _asked(ledger, key, steps, journal)
        if self._run is not None and not self._run.over:
            raise IncompatibleError(
                "this engine has a run that its ledger has reserved: close it, or make an engine "
                "for each run"
            )
        if not poisson_sampling:
            raise IncompatibleError(
                "poisson_sampling=False leaves the loader's own batches, whose account is another "
                "one; describe them by hs.DPSGD(sampling=...), and train by "
                "hockeystick.adapters.torch"
            )
        if noise_generator is not None:
            raise IncompatibleError(
                "noise_generator: whoever knows its seed can subtract the noise, so that epsilon "
                "is inf; leave it out"
            )
        self._drawn = _Drawn()
        found = super().make_private(**options)
        optimizer, loader = found[1], found[-1]
        rate = drawn_rate(1 / len(loader))
        if reserving is not None:
            try:
                self._run = reserving(optimizer.noise_multiplier, rate)
            except BaseException:
                found[0].cleanup()  # so that the model can be made private again
                raise
        optimizer.attach_step_hook(self._recording(rate, self._drawn, self._run))
        return found

    def _recording(self, rate: float, drawn: _Drawn, run: _Run | None) -> Callable[[Any], None]:

        def record(optimizer: Any) -> None:
            refuse_unaccountable(optimizer)
            if run is not None:
                run.check_next(optimizer.noise_multiplier)
            drawn.use()
            self.accountant.step(noise_multiplier=optimizer.noise_multiplier, sample_rate=rate)
            if run is not None:
                run.count()

        return record

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
        """End a run that a ledger reserved, which commits the steps that are counted.

        Not where another process is to go on with it (``final=False``). This may be called again
        after a ``LedgerError``.
        """
        if self._run is not None:
            self._run.close(final=final)

    def _prepare_data_loader(self, *arguments: Any, **options: Any) -> Any:
        return _watched(super()._prepare_data_loader(*arguments, **options), self._drawn)

    def _prepare_optimizer(self, **options: Any) -> Any:
        return _finite(super()._prepare_optimizer(**options))


@final
class _Drawn:
    """What the loader and the optimizer of one training know of each other."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open = False

    def draw(self) -> None:
        if self._open:
            raise IncompatibleError(
                "a batch was drawn and no optimizer.step made of it: batches that are left out or "
                "put together are no Poisson samples; make a step of each, also of an empty one, "
                "and read the data in other ways by a loader of your own"
            )
        self._open = True

    def use(self) -> None:
        if not self._open:
            raise IncompatibleError(
                "this step has no batch of its own: a batch that is used twice is no Poisson "
                "sample in the second step (and BatchMemoryManager needs num_workers=0)"
            )
        self._open = False


@final
class _Watched(Sampler):  # type: ignore[misc]  # torch may have no types
    """A sampler whose batches are noted as they are drawn, unless workers draw them ahead."""

    def __init__(self, inner: Any, drawn: _Drawn, *, ahead: bool) -> None:
        self.inner, self.drawn, self.ahead = inner, drawn, ahead

    def __iter__(self) -> Iterator[list[int]]:
        for places in self.inner:
            if not self.ahead:
                self.drawn.draw()
            yield places

    def __len__(self) -> int:
        return len(self.inner)


@final
class _Loader(DataLoader):  # type: ignore[misc]  # torch may have no types
    """A loader whose batches are noted as they are given, where workers draw them ahead."""

    def __iter__(self) -> Iterator[Any]:
        for batch in super().__iter__():
            if self.batch_sampler.ahead:
                self.batch_sampler.drawn.draw()
            yield batch


def _watched(loader: Any, drawn: _Drawn) -> Any:
    return _Loader(
        loader.dataset,
        batch_sampler=_Watched(loader.batch_sampler, drawn, ahead=loader.num_workers > 0),
        num_workers=loader.num_workers,
        collate_fn=loader.collate_fn,
        pin_memory=loader.pin_memory,
        timeout=loader.timeout,
        worker_init_fn=loader.worker_init_fn,
        multiprocessing_context=loader.multiprocessing_context,
        generator=loader.generator,
        prefetch_factor=loader.prefetch_factor,
        persistent_workers=loader.persistent_workers,
    )


def _finite(optimizer: Any) -> Any:
    """Have an optimizer of Opacus count gradients without a finite length as 0.

    An infinite or undefined one would be in the released sum, for all to see. As 0 it is a function
    of its record alone, no longer than the clipping norm, so that the sensitivity is what it was.
    """
    kind: Any = type(optimizer)
    optimizer.__class__ = _counting_finite(kind)
    return optimizer


@cache
def _counting_finite(kind: Any) -> Any:

    class Finite(kind):  # type: ignore[misc]  # theirs has no types
        def clip_and_accumulate(self) -> None:
            _drop_without_length([p for p in self.params if p.grad_sample is not None])
            super().clip_and_accumulate()

    Finite.__name__ = Finite.__qualname__ = kind.__name__
    return Finite


def _drop_without_length(parameters: list[Any]) -> None:
    """Set to 0 all gradients, of all parameters, of the records of which one has no length."""
    found = [p.grad_sample for p in parameters]
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


_STEPS: Final = whole_numbers("T", 1, (100, 10_000))


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
            "in a process group each process has an engine of its own, and one reservation is for "
            "one; train by hockeystick.adapters.torch, whose first process counts for all"
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
