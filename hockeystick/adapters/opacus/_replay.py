"""A training program of Opacus, run again with noise by a key and with the steps it counts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final
from unittest.mock import patch

from opacus.accountants.accountant import IAccountant
from opacus.optimizers import DPOptimizer

import hockeystick as hs
from hockeystick.adapters.torch import TorchProgram
from hockeystick.adapters.torch._noise import keyed

_NOISE: Final = "_generate_noise"


def program(
    train: Callable[[Any], object],
    dataset: Any,
    plan: hs.DPSGD,
    *,
    norm: float,
    canaries: Sequence[Any] = (),
) -> TorchProgram:
    """Return a program that trains by Opacus, for ``hockeystick.audit.record``.

    It is run as it is: ``train(dataset)`` makes model, optimizer, loader and engine, and trains. In
    replays with a key Opacus draws its noise by that key and the step, and in all of them its
    accountants' steps are counted beside those that are taken. A sum is measured by what Opacus
    divides it by on these very data. Arguments and errors are those of ``TorchProgram``; ``norm``
    is Opacus's ``max_grad_norm``.
    """
    return TorchProgram(train, dataset, plan, norm=norm, canaries=canaries, hooks=_hooks)


@contextmanager
def _hooks(
    source: Callable[[str], Any], counted: Callable[[], None], divided: Callable[[float], None]
) -> Iterator[None]:
    """Draw noise by a source, where there is one; call back for counted steps and divisors."""

    def noise(inner: Callable[..., Any], **options: Any) -> Any:
        found = source("noise")
        if found is None:
            return inner(**options)
        with keyed(found):
            return inner(**options | {"generator": None})

    def step(inner: Callable[..., None], accountant: Any, **options: Any) -> None:
        counted()
        inner(accountant, **options)

    own_scale = DPOptimizer.scale_grad

    def scale(optimizer: Any) -> None:
        mean = optimizer.loss_reduction == "mean"
        divided(optimizer.expected_batch_size if mean else 1.0)
        own_scale(optimizer)

    with ExitStack() as stack:
        stack.enter_context(patch.object(DPOptimizer, "scale_grad", scale))
        for module in [one for name, one in sys.modules.items() if name.startswith("opacus.")]:
            own = vars(module).get(_NOISE)
            if own is not None:
                stack.enter_context(patch.object(module, _NOISE, partial(noise, own)))
        for kind in _kinds(IAccountant):
            if "step" in vars(kind):
                own_step = vars(kind)["step"]
                wrapped = _method(partial(step, own_step))
                stack.enter_context(patch.object(kind, "step", wrapped))
        yield


def _method(function: Callable[..., None]) -> Callable[..., None]:

    def bound(self: Any, **options: Any) -> None:
        function(self, **options)

    return bound


def _kinds(base: type) -> list[type]:
    below: list[type] = base.__subclasses__()
    return [*below, *(kind for one in below for kind in _kinds(one))]
