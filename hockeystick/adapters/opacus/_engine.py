"""Opacus's engine, which also sees to what its accountants are not told."""

from __future__ import annotations

import os
from typing import Any, final

from opacus import PrivacyEngine as TheirEngine

import hockeystick as hs
from hockeystick.adapters.opacus._accountant import NAME
from hockeystick.adapters.opacus._batches import Drawn, watched
from hockeystick.adapters.opacus._finite import finite
from hockeystick.adapters.opacus._run import Run, asked
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.ledger import LedgerCharge


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

        A record whose gradient is infinite or undefined counts as 0, by itself: Opacus would put it
        into the released sum, for all to see. Not so with ghost clipping, which has no gradients of
        records: there epsilon holds only if no record has such a gradient.

        Opacus's noise comes from torch's generator unless ``secure_mode`` is on: with
        ``torch.manual_seed`` whoever knows the seed can subtract it. Its divisor and rate are
        computed from the number of examples, which the account takes as public.

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
        self._drawn = Drawn()
        self._run: Run | None = None

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

        Args:
            poisson_sampling: True.
            noise_generator: None.
            ledger: A ledger that reserves all steps before the first one, durably, and is told what
                ran by ``close``. ``hs.Ledger``, or its ``charging(by=, note=)``.
            key: What the run is called there. A run that was killed goes on with the same key,
                steps and journal, and with no other: see ``hs.ledger.ReservedRun``.
            steps: With a ledger, the most steps that run, an integer >= 1; a further one is refused
                before the model changes, as is one with other noise.
            journal: With a ledger, the file that counts the steps; None to count in memory.
            **options: As in Opacus.

        Raises:
            IncompatibleError: If batches are no Poisson samples, somebody has the noise, the run
                was committed to the ledger before, or there is a ledger and several processes.
            ParameterError: If the key stands for something else, the journal is another run's or in
                use, or an argument is outside its domain.
            BudgetExhausted: If the ledger does not cover the steps.
            LedgerError: If the ledger cannot be written.
        """
        reserving = asked(ledger, key, steps, journal)
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
        self._drawn = Drawn()
        found = super().make_private(**options)
        optimizer, loader = found[1], found[-1]
        hook = self.accountant.hook(1 / len(loader), self._drawn)
        if reserving is not None:
            try:
                self._run = reserving(optimizer.noise_multiplier, 1 / len(loader))
            except BaseException:
                found[0].cleanup()  # so that the model can be made private again
                raise
            hook = self._run.hook(hook)
        optimizer.attach_step_hook(hook)
        return found

    def make_private_with_epsilon(self, **options: Any) -> Any:
        """Return what Opacus's ``make_private_with_epsilon`` does, for runs without a ledger.

        Args:
            **options: As in Opacus.

        Raises:
            ParameterError: If a ledger is given, which has to know the steps.
        """
        if "ledger" in options:
            allowed = "given to make_private, with steps and the noise of get_noise_multiplier"
            raise ParameterError("ledger", options["ledger"], allowed)
        return super().make_private_with_epsilon(**options)

    @property
    def counted(self) -> int:
        """The steps that are counted of what the ledger reserved, those before a restart too."""
        return 0 if self._run is None else self._run.counted

    def close(self, *, final: bool = True) -> None:
        """End a run that a ledger reserved: commit the steps that are counted.

        Args:
            final: False where another process is to go on with the run: its reservation stays, and
                counts in full.

        Raises:
            LedgerError: If the ledger cannot be written; the run then counts in full, and this may
                be called again.
        """
        if self._run is not None:
            self._run.close(final=final)

    def _prepare_data_loader(self, *arguments: Any, **options: Any) -> Any:
        """Return the loader that Opacus makes, watched."""
        return watched(super()._prepare_data_loader(*arguments, **options), self._drawn)

    def _prepare_optimizer(self, **options: Any) -> Any:
        """Return the optimizer that Opacus makes, in which gradients that are not finite are 0."""
        return finite(super()._prepare_optimizer(**options))
