"""Plans read off a DataLoader, by stand-ins that have its attributes and no torch."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.errors import HockeystickError
from hockeystick.numerics import decimal


@dataclass
class RandomSampler:
    """What draws a new order for each epoch."""

    num_samples: int = 1000
    replacement: bool = False


@dataclass
class DistributedSampler:
    """What gives each rank a part of one order."""

    num_replicas: int
    shuffle: bool = True


class SequentialSampler:
    """What goes through the data in their order."""


class IterableDataset:
    """A stream."""


@dataclass
class Loader:
    """A loader of torch, as far as it is read."""

    dataset: Any = field(default_factory=lambda: range(1000))
    batch_size: int | None = 50
    batches: int = 20
    drop_last: bool = False
    sampler: Any = field(default_factory=RandomSampler)
    batch_sampler: Any = None

    def __len__(self) -> int:
        return self.batches


def read(loader: Any, sampling: str = "poisson", **options: Any) -> hs.DPSGD:
    options = {"epochs": 2, "noise_multiplier": 1, "adjacency": "zero-out", **options}
    return hs.DPSGD.from_loader(loader, sampling=sampling, **options)


def test_opacus_draws_at_one_over_the_number_of_batches_and_not_at_their_share() -> None:
    cifar = Loader(range(50_000), 512, 98)
    plan = hs.DPSGD.from_loader(cifar, epochs=30, noise_multiplier=0.9, sampling="poisson")
    other = hs.DPSGD(examples=50_000, batch_size=512, epochs=30, noise_multiplier=0.9)
    assert (plan.examples, plan.total_steps, plan.adjacency) == (50_000, 2940, "add-remove")
    answers = [hs.epsilon(one, 1e-5).upper for one in (plan, other)]
    assert answers == pytest.approx([4.017441, 4.026049], abs=1e-6)


def test_how_an_ordinary_loader_is_used_must_be_said() -> None:
    with pytest.raises(hs.errors.ParameterError, match="sampling must be 'poisson' where Opacus"):
        hs.DPSGD.from_loader(Loader(), epochs=2, noise_multiplier=1)


def test_the_rate_is_never_below_one_over_the_number_of_batches() -> None:
    for batches in range(1, 400):
        exact, rate = Fraction(1, batches), read(Loader(batches=batches)).rate
        assert rate is not None
        assert exact <= decimal(rate) <= exact * (1 + Fraction(1, 2**50))


def test_a_part_of_an_epoch_counts_whole_steps() -> None:
    assert read(Loader(), epochs=0.51).total_steps == 11


@pytest.mark.parametrize(
    ("changes", "accumulate", "batch_size"),
    [
        ({}, 1, 50),
        ({}, 4, 200),
        ({"sampler": DistributedSampler(4), "batches": 5}, 1, 200),
        ({"sampler": DistributedSampler(2), "batches": 10}, 5, 500),
    ],
)
def test_shuffled_batches_of_one_step_are_one_batch(
    changes: Any, accumulate: int, batch_size: int
) -> None:
    found = read(Loader(**changes), "shuffle", accumulate=accumulate)
    assert found == hs.DPSGD(
        examples=1000,
        batch_size=batch_size,
        epochs=2,
        noise_multiplier=1,
        sampling="shuffle",
        adjacency="zero-out",
    )


@pytest.mark.parametrize(
    ("loader", "sampling", "accumulate", "reason"),
    [
        (3, "poisson", 1, "loader must be a DataLoader over a data set with a length"),
        (Loader(IterableDataset()), "poisson", 1, "use a data set with a length"),
        (Loader(batch_size=None), "poisson", 1, "batch_size None .* batch_sampler is a NoneType"),
        (Loader(batches=0), "poisson", 1, "at least one; it has none"),
        (Loader(), "poisson", 2, "may be in several of 2 Poisson batches"),
        (Loader(), "full-batch", 1, "sampling must be one of 'poisson', 'shuffle'"),
        (Loader(), "shuffle", 3, "20 batches are no whole number of steps"),
        (Loader(), "shuffle", 0, "accumulate must be an integer"),
        (Loader(sampler=SequentialSampler()), "shuffle", 1, "needs a loader with shuffle=True"),
        (Loader(sampler=RandomSampler(1000, True)), "shuffle", 1, "draws with replacement"),
        (Loader(sampler=RandomSampler(900)), "shuffle", 1, "another number of examples"),
        (Loader(sampler=DistributedSampler(3)), "shuffle", 1, "3 ranks repeats or drops some"),
        (Loader(sampler=DistributedSampler(2, False)), "shuffle", 1, "has shuffle=False"),
    ],
)
def test_what_draws_batches_otherwise_is_refused_with_the_way_out(
    loader: Any, sampling: str, accumulate: int, reason: str
) -> None:
    with pytest.raises(HockeystickError, match=reason):
        read(loader, sampling, accumulate=accumulate)


def batched(sampler: Any, module: str = "torch.utils.data.sampler") -> Loader:
    """Return what Accelerate makes of a loader: its own attributes are not what is drawn."""
    fields = {"batch_size": 50, "drop_last": True, "sampler": sampler}
    batches = type("BatchSampler", (), {"__module__": module})()
    for name, value in fields.items():
        setattr(batches, name, value)
    return Loader(batch_size=None, sampler=SequentialSampler(), batch_sampler=batches)


def test_a_loader_of_accelerate_is_that_of_its_batch_sampler() -> None:
    found = batched(RandomSampler())
    assert read(found, "shuffle") == read(Loader(drop_last=True), "shuffle")
    assert read(found) == read(Loader())
    with pytest.raises(HockeystickError, match="sampler is a SequentialSampler"):
        read(batched(SequentialSampler()), "shuffle")
    with pytest.raises(HockeystickError, match="by its sampler; it has none"):
        read(Loader(sampler=None), "shuffle")
    # One of somebody's own may draw whatever it likes.
    with pytest.raises(HockeystickError, match="batch_size None"):
        read(batched(RandomSampler(), "mine"), "shuffle")
