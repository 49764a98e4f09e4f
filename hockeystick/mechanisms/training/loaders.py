"""What a PyTorch ``DataLoader`` says of a training run, read without importing torch.

What counts is the *logical* batch: all whose noisy sum is one step of the optimizer.

**Poisson, as Opacus draws it.** ``poisson_sampling=True`` replaces the loader's sampler: each of
``len(loader)`` steps of an epoch has every example with probability ``1/len(loader)``, whatever the
batch size, the sampler, or the number of processes. So the rate is exactly ``1/ceil(n/b)`` and not
``b/n``. As a plan's rate is a float that means the decimal it prints as, it is rounded up.

**Accumulated Poisson batches are no Poisson batch.** An example is in ``j ~ Binomial(k, q)`` of k
batches and clipped in each, so that a step moves by ``j C``, not by at most C with probability
``k q``. With k = 2, q = 1/2 and noise 1 the event that the sum exceeds z has probability
``1/4 Phi(-z) + 1/2 Phi(1-z) + 1/4 Phi(2-z)`` against ``Phi(-z)``, which at epsilon 3 is a delta of
.0242, where even one step on all examples has .0015: no plan with one step of k batches covers it.

**Shuffled.** k batches of an epoch have no example in common: accumulated they are one batch of a
shuffled epoch, if k divides the number of batches (else one would reach into the next epoch, and
have an example twice). So are the batches of all ranks of a ``DistributedSampler``, which cuts one
common order into disjoint parts, if the ranks divide the examples; else it repeats some.

Accelerate, and with it transformers' ``Trainer``, makes loaders whose own batch size is None, and
whose sampler is none that is used: in one process torch's own ``BatchSampler`` has both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.training.samplings import Sampling
from hockeystick.numerics import decimal, float_above

_A_LOADER: Final = "a DataLoader over a data set with a length, with batches of batch_size"


@final
@dataclass(frozen=True, slots=True)
class _Loader:
    examples: int
    batches: int
    batch_size: int | None
    drop_last: bool
    sampler: Any
    rate: float | None

    @property
    def ranks(self) -> int:
        return int(getattr(self.sampler, "num_replicas", 1))


def numbers_of(
    loader: Any, sampling: Sampling | str | None, epochs: float, accumulate: float
) -> dict[str, Any]:
    """Return the fields of a plan that a loader decides, or raise with the reason."""
    drawn = _sampling(loader, sampling)
    passes = _validate.real("epochs", epochs)
    several = _validate.count("accumulate", accumulate, whole_numbers("k", 1, (1, 16)))
    return _NUMBERS[drawn](_read(loader), passes, several) | {"sampling": drawn}


def _sampling(loader: Any, given: Sampling | str | None) -> Sampling:
    """Return how batches are drawn, or raise: an ordinary loader is used in either way."""
    if given is None and getattr(loader, "sample_rate", None) is not None:
        return Sampling.POISSON
    if given is None:
        allowed = (
            "'poisson' where Opacus draws the batches anew (poisson_sampling=True, its default) or "
            "'shuffle' where the loader's own batches are trained on, which cost many times as much"
        )
        raise ParameterError("sampling", given, allowed)
    drawn = _validate.choice("sampling", given, Sampling)
    if drawn not in _NUMBERS:
        allowed = "one of 'poisson', 'shuffle', which are what a loader can draw"
        raise ParameterError("sampling", given, allowed)
    return drawn


def _read(loader: Any) -> _Loader:
    if not hasattr(loader, "dataset"):
        raise ParameterError("loader", loader, _A_LOADER)
    data = loader.dataset
    if "IterableDataset" in _names(data) or not hasattr(data, "__len__"):
        raise IncompatibleError(
            "a loader over an IterableDataset, or another data set without a length, does not say "
            "how examples are drawn: no sampling is known of a stream; use a data set with a length"
        )
    batching = _batching(loader)
    rate, size = getattr(loader, "sample_rate", None), getattr(batching, "batch_size", None)
    if size is None and rate is None:
        kind = type(getattr(loader, "batch_sampler", None)).__name__
        raise IncompatibleError(
            "a loader with batch_size None does not say how its batches are drawn (its "
            f"batch_sampler is a {kind}); give a DataLoader its batch_size, or write the plan "
            "yourself: hs.DPSGD(rate=..., steps=...)"
        )
    try:
        examples, batches = len(data), len(loader)
    except TypeError:
        raise ParameterError("loader", loader, _A_LOADER) from None
    if not examples or not batches:
        raise ParameterError("loader", loader, f"{_A_LOADER}, at least one; it has none")
    dropped = bool(getattr(batching, "drop_last", False))
    sampler = getattr(batching, "sampler", None)
    return _Loader(examples, batches, size, dropped, sampler, rate)


def _batching(loader: Any) -> Any:
    """Return what has a loader's batch size, drop_last and sampler: it, or torch's BatchSampler."""
    given = getattr(loader, "batch_sampler", None)
    kind = type(given)
    plain = (kind.__module__, kind.__qualname__) == ("torch.utils.data.sampler", "BatchSampler")
    return given if plain else loader


def _names(value: object) -> set[str]:
    return {kind.__name__ for kind in type(value).__mro__}


def _poisson(loader: _Loader, epochs: float, accumulate: int) -> dict[str, Any]:
    if accumulate > 1:
        raise IncompatibleError(
            f"an example may be in several of {accumulate} Poisson batches and is clipped in each, "
            "so that their sum is no step of a Poisson plan; give the loader the batch size of a "
            "whole step, and split that one (Opacus: BatchMemoryManager)"
        )
    exact = Fraction(1, loader.batches) if loader.rate is None else Fraction(loader.rate)
    steps = math.ceil(decimal(epochs) * loader.batches)
    return {"examples": loader.examples, "rate": float_above(exact), "steps": steps}


def _shuffled(loader: _Loader, epochs: float, accumulate: int) -> dict[str, Any]:
    if loader.batch_size is None:
        raise IncompatibleError("this loader draws Poisson batches; use sampling 'poisson'")
    _check_order(loader)
    if loader.batches % accumulate:
        raise IncompatibleError(
            f"{loader.batches} batches are no whole number of steps of accumulate = {accumulate}: "
            "one step would have batches of two epochs, and an example twice; choose an "
            "accumulate that divides them"
        )
    size = loader.batch_size * loader.ranks * accumulate
    sizes = {"examples": loader.examples, "batch_size": size}
    return sizes | {"epochs": epochs, "drop_last": loader.drop_last}


def _check_order(loader: _Loader) -> None:
    sampler, names = loader.sampler, _names(loader.sampler)
    data = loader.examples
    if "DistributedSampler" in names:
        if not getattr(sampler, "shuffle", True):
            raise IncompatibleError("the loader's DistributedSampler has shuffle=False; set it")
        if data % loader.ranks:
            raise IncompatibleError(
                f"a DistributedSampler of {loader.ranks} ranks repeats or drops some of {data} "
                "examples; leave out so many that the ranks divide them"
            )
    elif "RandomSampler" not in names:
        kind = type(sampler).__name__
        which = "it has none" if sampler is None else f"this one's sampler is a {kind}"
        raise IncompatibleError(
            f"sampling 'shuffle' needs a loader with shuffle=True, which draws a new order for "
            f"each epoch, by its sampler; {which}"
        )
    elif getattr(sampler, "replacement", False) or getattr(sampler, "num_samples", data) != data:
        raise IncompatibleError(
            "the loader's RandomSampler draws with replacement or another number of examples than "
            "there are; a shuffled epoch has each example once"
        )


_NUMBERS: Final[Mapping[Sampling, Callable[[_Loader, float, int], dict[str, Any]]]] = {
    Sampling.POISSON: _poisson,
    Sampling.SHUFFLE: _shuffled,
}
