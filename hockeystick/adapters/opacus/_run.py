"""A training by Opacus that a ledger reserves: its steps are counted, and end with the plan."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, final

import torch

import hockeystick as hs
from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.adapters.loop._account import refusal
from hockeystick.adapters.opacus._accountant import drawn_rate
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.ledger import CountedRun, LedgerCharge, ReservedRun
from hockeystick.ledger.reserved_run import on_ledger

_STEPS: Final = whole_numbers("T", 1, (100, 10_000))


@final
@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be reserved once Opacus has said at which rate it draws."""

    reserved: ReservedRun
    steps: int

    def reserve(self, noise_multiplier: float, sample_rate: float) -> Run:
        """Reserve all steps, or take up their reservation; or raise."""
        rate = drawn_rate(sample_rate)
        step = hs.PoissonSubsampled(hs.Gaussian(noise_multiplier), rate)
        title = "hockeystick.adapters.opacus 1"
        counting = self.reserved.open(title, step.__pow__, self.steps)
        return Run(counting, step, noise_multiplier, self.steps)


def asked(
    ledger: hs.Ledger | LedgerCharge | None,
    key: str | None,
    steps: int | None,
    journal: str | os.PathLike[str] | None,
) -> Asked | None:
    """Return what a ledger is to reserve; None where none is given."""
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
    return Asked(reserved, _validate.count("steps", steps, _STEPS))


@final
class Run:
    """What one ``make_private`` of Opacus has reserved: equal steps of one noise and one rate."""

    __slots__ = ("_counting", "_noise", "_step", "_steps", "closed")

    def __init__(
        self, counting: CountedRun, step: hs.Mechanism, noise_multiplier: float, steps: int
    ) -> None:
        self._counting, self._step, self._steps = counting, step, steps
        self._noise, self.closed = noise_multiplier, False

    @property
    def counted(self) -> int:
        """The steps that are counted."""
        return self._counting.counted

    def hook(self, record: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return what an optimizer calls before it steps: it records and counts, or refuses."""

        def counted(optimizer: Any) -> None:
            self._check(optimizer.noise_multiplier)
            record(optimizer)
            self._counting.add(1)

        return counted

    def close(self, *, final: bool) -> None:
        """Count no more, and commit what is counted unless another process goes on."""
        if final:
            self._counting.finish()
        self._counting.close()
        self.closed = True

    def _check(self, noise_multiplier: float) -> None:
        """Raise where a step is none of those that are reserved."""
        if noise_multiplier != self._noise:
            raise IncompatibleError(
                f"a noise multiplier of {noise_multiplier:g} is not the {self._noise:g} that the "
                "ledger has reserved"
            )
        if self.counted >= self._steps:
            raise refusal(self._step.__pow__, self.counted, self._steps, None, "steps")
