"""A training by Opacus that a ledger reserves: its steps are counted, and end with the plan."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any, Final, final

import torch

import hockeystick as hs
from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.adapters.loop._account import refusal
from hockeystick.adapters.opacus._accountant import drawn_rate
from hockeystick.errors import BudgetExhausted, IncompatibleError, ParameterError
from hockeystick.ledger import LedgerCharge, ReservedRun
from hockeystick.ledger.reserved_run import on_ledger
from hockeystick.release.counting import Counter

_STEPS: Final = whole_numbers("T", 1, (100, 10_000))


def asked(
    ledger: hs.Ledger | LedgerCharge | None,
    key: str | None,
    steps: int | None,
    journal: str | os.PathLike[str] | None,
) -> Callable[[float, float], Run] | None:
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
    return partial(Run, reserved, _validate.count("steps", steps, _STEPS))


@final
class Run(Counter[hs.Mechanism]):
    """What one ``make_private`` of Opacus has reserved: equal steps of one noise and one rate."""

    __slots__ = ("_noise", "over")

    def __init__(
        self, reserved: ReservedRun, steps: int, noise_multiplier: float, sample_rate: float
    ) -> None:
        self._noise, self.over = noise_multiplier, False
        step = hs.PoissonSubsampled(hs.Gaussian(noise_multiplier), drawn_rate(sample_rate))
        super().__init__(step**steps, reserved, "hockeystick.adapters.opacus 1")

    def hook(self, record: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return what an optimizer calls before it steps: it records and counts, or refuses."""

        def counted(optimizer: Any) -> None:
            if optimizer.noise_multiplier != self._noise:
                raise IncompatibleError(
                    f"a noise multiplier of {optimizer.noise_multiplier:g} is not the "
                    f"{self._noise:g} that the ledger has reserved"
                )
            self.check()
            record(optimizer)
            self.count()

        return counted

    def close(self, *, final: bool = True) -> None:
        """Count no more; once a ledger that is to be told knows it, the run is over."""
        super().close(final=final)
        self.over = True

    def _refusal(self) -> BudgetExhausted:
        return refusal(self.plan, self.counted, self.limit, None, "steps")
