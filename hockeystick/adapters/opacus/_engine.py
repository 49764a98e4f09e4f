"""Opacus's engine, which also sees to what its accountants are not told."""

from __future__ import annotations

from typing import Any, final

from opacus import PrivacyEngine as TheirEngine

from hockeystick.adapters.opacus._accountant import NAME
from hockeystick.adapters.opacus._batches import Drawn, watched
from hockeystick.adapters.opacus._finite import finite
from hockeystick.errors import IncompatibleError, ParameterError


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

    def make_private(
        self, *, poisson_sampling: bool = True, noise_generator: Any = None, **options: Any
    ) -> Any:
        """Return what Opacus's ``make_private`` does, with a loader that is watched.

        Args:
            poisson_sampling: True.
            noise_generator: None.
            **options: As in Opacus.

        Raises:
            IncompatibleError: If batches are no Poisson samples, or somebody has the noise.
        """
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
        optimizer.attach_step_hook(self.accountant.hook(1 / len(loader), self._drawn))
        return found

    def _prepare_data_loader(self, *arguments: Any, **options: Any) -> Any:
        """Return the loader that Opacus makes, watched."""
        return watched(super()._prepare_data_loader(*arguments, **options), self._drawn)

    def _prepare_optimizer(self, **options: Any) -> Any:
        """Return the optimizer that Opacus makes, in which gradients that are not finite are 0."""
        return finite(super()._prepare_optimizer(**options))
