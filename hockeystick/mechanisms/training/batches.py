"""The batches of a training run: how they are drawn, from what, and how large they are."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from hockeystick._validate import WordEnum
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms.registry import registered
from hockeystick.mechanisms.sampling.clipping import Clipping
from hockeystick.mechanisms.sampling.last_batch import LastBatch


@registered
class Sampling(WordEnum):
    """How the batch of a step is drawn.

    - ``POISSON`` ("poisson"): each example is in each batch independently, with one probability.
    - ``FIXED_SIZE`` ("fixed-size"): each batch is a random set of a fixed size.
    - ``WITH_REPLACEMENT`` ("with-replacement"): each place of a batch holds any of the examples.
    - ``SHUFFLE`` ("shuffle"): in each epoch the data are shuffled and cut into batches.
    - ``RANDOM_ALLOCATION`` ("random-allocation"): in each epoch each example is put into one of
      the batches, independently of the others.
    - ``FULL_BATCH`` ("full-batch"): each step uses every example.

    Example:
        >>> from hockeystick.mechanisms import Sampling
        >>> print(Sampling.POISSON)
        poisson
    """

    POISSON = "poisson"
    FIXED_SIZE = "fixed-size"
    WITH_REPLACEMENT = "with-replacement"
    SHUFFLE = "shuffle"
    RANDOM_ALLOCATION = "random-allocation"
    FULL_BATCH = "full-batch"


@dataclass(frozen=True, slots=True)
class Batches:
    """What a way of sampling needs to know: of what, how many, under which neighbours.

    ``rate`` is the chance of an example to be in a batch; the sizes are None where it was given.
    Neighbours differ in as many examples as one user has.
    """

    adjacency: Adjacency
    clipping: Clipping
    rate: Fraction
    batch_size: int | None
    examples: int | None
    cap: int | None
    examples_per_user: int = 1
    drop_last: bool = False

    @property
    def last(self) -> LastBatch:
        """What becomes of the examples beyond the last whole batch of an epoch."""
        if self.rate.numerator <= 1:
            return LastBatch.WHOLE
        return LastBatch.DROPPED if self.drop_last else LastBatch.SMALLER

    @property
    def per_epoch(self) -> int:
        """How many batches an epoch has."""
        return int(1 / self.rate) + (self.last is LastBatch.SMALLER)

    @property
    def replaced(self) -> bool:
        """Whether one example may be replaced by another one."""
        return self.adjacency is Adjacency.REPLACE_ONE

    @property
    def fixed_number(self) -> int | None:
        """The number of examples where it is public; None under add-remove, or not given."""
        return None if self.adjacency is Adjacency.ADD_REMOVE else self.examples

    @property
    def cut_to(self) -> int | None:
        """How many examples a batch of all of them keeps; None where it keeps all."""
        cap, examples = self.cap, self.examples
        return None if cap is None or examples is None or cap >= examples else cap

    @property
    def sizes(self) -> tuple[int, int]:
        """The sizes of a batch and of the data, or an error where they are not known."""
        if self.batch_size is None or self.examples is None:
            how = "give examples and batch_size"
            if self.examples is not None:
                near = max(1, round(self.rate * self.examples))
                how = f"give batch_size in place of rate, about {near}"
            raise IncompatibleError(f"only Poisson sampling knows a rate without sizes; {how}")
        return self.batch_size, self.examples
