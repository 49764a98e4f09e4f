"""What every mechanism and every plan has in common, and their compositions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final, final

from hockeystick import _validate
from hockeystick.adjacency import Adjacency
from hockeystick.errors import NoGroupFormError, ParameterError
from hockeystick.mechanisms.registry import registered
from hockeystick.mechanisms.scope import Fact, common_facts, refuse_disagreement, without_presence


def divided_words(adjacency: Adjacency, drawn: str, records: str) -> str:
    """Return what must hold of the divisor, as a sentence.

    Divided by a private number the noise has a scale that tells it: in many dimensions for sure.
    """
    told = f"The noisy sum is divided by a fixed number, never by {drawn}"
    if adjacency is Adjacency.ADD_REMOVE:
        told += f" or by the number of {records}, which is private"
    return f"{told}."


STOPPED_EARLIER: Final = (
    "a run that stops earlier because of what it saw costs as much as the whole plan."
)


_NOT_TRUSTED: Final = "Whoever is not trusted sees"
_NOTHING_BARE: Final = "nothing without the noise"
_SECURE: Final = "secure aggregation shows it noisy sums alone"


def noisy_seen(what: str, *, alone: str = "what single examples or clients add to them") -> str:
    """Return that all that is noisy is seen, and nothing else, as a sentence.

    By post-processing everything computed from it, as every model, may be seen too. Whoever adds up
    and adds the noise sees what the theorem does not cover.

    Args:
        what: What the theorem says is released, noise included.
        alone: What whoever adds the noise sees.
    """
    return (
        f"{_NOT_TRUSTED} {what}, and so every model, but {_NOTHING_BARE}: whoever adds it, as the "
        f"server of federated training, sees {alone}, and is trusted."
    )


def seen_of_clients(*, drawn_seen: bool) -> str:
    """Return who is trusted where noise is added to sums of what clients send, as a sentence.

    Noise that each client adds in full, before it sends, is that of a sum of one: the server sees
    whose it is, so that it is covered only where it may be seen who takes part.
    """
    also = " and who takes part" if drawn_seen else ""
    added = "each client adds all of this noise to its own change, or " if drawn_seen else ""
    return (
        f"{_NOT_TRUSTED} the noisy sums of all rounds{also}, and so every model, but "
        f"{_NOTHING_BARE}: the server is trusted, as it sees each client's change, unless {added}"
        f"{_SECURE}."
    )


_PARTS_SHOWN: Final = 4
A_MECHANISM: Final = "a mechanism"


class Mechanism(ABC):
    """A randomised release of something about the data: a frozen description, no accounting.

    Mechanisms are values: they compare and hash by what they say, can be pickled and copied, and
    never change. ``m1 @ m2`` is both releases (their composition), ``m ** n`` is n runs of one.

    A mechanism is described for one person's example and one pair of neighbouring data sets;
    noise scales are in units of the query's sensitivity under the adjacency meant.

    Example:
        >>> import hockeystick as hs
        >>> step = hs.PoissonSubsampled(hs.Gaussian(noise_multiplier=1.1), rate=256 / 60_000)
        >>> print(step**14_062 @ hs.Gaussian(noise_multiplier=20))
        Poisson-subsampled Gaussian (noise multiplier 1.1, rate 0.00426667) x 14062 \
and Gaussian (noise multiplier 20)
    """

    __slots__ = ()
    # Which way the cost goes where a number of the description grows and all others stay.
    rises_with: ClassVar[tuple[str, ...]] = ()
    falls_with: ClassVar[tuple[str, ...]] = ()
    unordered: ClassVar[tuple[str, ...]] = ()
    # Whether the description is for a stated number of examples, as a batch out of n examples is.
    _of_stated_size: ClassVar[bool] = False

    @property
    @abstractmethod
    def adjacency(self) -> Adjacency | None:
        """The neighbours that the description is for; None where it holds for all of them."""

    @property
    def scope(self) -> tuple[Fact, ...]:
        """Whose change is hidden, and from whom, where the description says more than neighbours.

        All parts of a plan must agree in what they state. What is run inside of another, as on a
        sample, states it for the whole; who may be missing is said by who names the neighbours.
        """
        inner = getattr(self, "inner", None)
        if not isinstance(inner, Mechanism):
            return ()
        same = inner.adjacency is self.adjacency
        return inner.scope if same else without_presence(inner.scope)

    @property
    def expanded(self) -> Mechanism:
        """What the description stands for: a composition, say; itself where it is one release."""
        return self

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold in practice for the description to apply, as sentences for a reviewer."""
        return ()

    def for_group(self, size: int) -> Mechanism:
        """Return a mechanism that costs one record what this one costs a group of records.

        Neighbours of the result move the query ``size`` times as far as those of the mechanism. No
        ``size`` records move it further (the triangle inequality), and some move it as far: those
        that all move it in one direction. Scales are rounded to the side of less privacy.

        Returns:
            The mechanism.

        Raises:
            NoGroupFormError: If none is known, as for most that add no noise to a query.
            IncompatibleError: If what is known of one record says nothing of several.
        """
        if size == 1:
            return self
        raise NoGroupFormError(
            f"no mechanism is known that costs one record what a {self} costs groups of {size}; "
            f"hockeystick.tradeoff(plan).group({size}).delta(epsilon) has proven ends of what they "
            "cost, mostly in seconds; its epsilon(delta) may take minutes"
        )

    @abstractmethod
    def _words(self) -> tuple[str, tuple[str, ...]]:
        """Return a readable name and the details that belong in brackets after it."""

    def __str__(self) -> str:
        """Return the description as a person would say it, on one line."""
        name, details = self._words()
        return f"{name} ({', '.join(details)})" if details else name

    def __matmul__(self, other: Mechanism) -> Composed:
        """Return the composition: both mechanisms run on the same data."""
        return Composed((self, checked("the right side of @", other)))

    def __rmatmul__(self, other: object) -> Composed:
        """Refuse a left side that is not a mechanism."""
        raise ParameterError("the left side of @", other, "a mechanism")

    def __pow__(self, count: float) -> Repeated:
        """Return the mechanism run ``count`` times on the same data."""
        return Repeated(self, count)


class AnyAdjacency(Mechanism):
    """A mechanism that is described alike for all neighbours, which nobody has to choose.

    Its numbers are in units of a sensitivity, taken under whichever adjacency is meant; or it is
    the report of one person, whose neighbours are any two values of that person.
    """

    __slots__ = ()

    @property
    def adjacency(self) -> None:
        """None: the description holds for whichever adjacency the sensitivity was taken under."""
        return None


class Plan(Mechanism):
    """A mechanism as people say it, which stands for another one made of simpler parts."""

    __slots__ = ()

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """What the plan comes down to; it is accounted in the plan's stead."""

    @property
    def expanded(self) -> Mechanism:
        return self.mechanism

    def for_group(self, size: int) -> Mechanism:
        """Return what the mechanism that the plan comes down to is for a group."""
        return self.mechanism.for_group(size)


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class Composed(Mechanism):
    """Several mechanisms on the same data, each with fresh randomness: what ``@`` makes.

    M(D) = (M_1(D), ..., M_k(D)); a later mechanism may depend on what the earlier ones released.
    The order does not matter to the privacy of the whole.

    Edge cases:
        A composition of compositions is flattened. No parts at all is an error: write ``m ** 0``
        for a release of nothing.

    Args:
        parts: The mechanisms, at least one.

    Raises:
        ParameterError: If there is no part, or one is not a mechanism.
        IncompatibleError: If two parts are described under different adjacencies, or for different
            units of privacy, parties or observers (``Mechanism.scope``).

    References:
        Zhu, Dong and Wang, "Optimal Accounting of Differential Privacy via Characteristic
        Function", AISTATS 2022, theorem 10.

    Example:
        >>> import hockeystick as hs
        >>> hs.Gaussian(1) @ hs.Gaussian(2)
        Composed(parts=(Gaussian(noise_multiplier=1.0), Gaussian(noise_multiplier=2.0)))
    """

    parts: tuple[Mechanism, ...]

    def __init__(self, parts: Iterable[Mechanism]) -> None:
        if not _validate.has_several(parts):
            raise ParameterError("parts", parts, "one or more mechanisms, in a tuple")
        given = [checked(f"parts[{index}]", part) for index, part in enumerate(parts)]
        if not given:
            raise ParameterError("parts", parts, "one or more mechanisms, in a tuple")
        flat = tuple(
            leaf
            for part in given
            for leaf in (part.parts if isinstance(part, Composed) else (part,))
        )
        refuse_disagreement(flat, "a composition")
        object.__setattr__(self, "parts", flat)

    @property
    def adjacency(self) -> Adjacency | None:
        """The adjacency that the parts have in common; None where none of them names one."""
        return next((part.adjacency for part in self.parts if part.adjacency is not None), None)

    @property
    def scope(self) -> tuple[Fact, ...]:
        return common_facts(self.parts)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return tuple(text for part in self.parts for text in part.assumptions)

    def for_group(self, size: int) -> Composed:
        """Return the composition of what each part is for a group, or raise."""
        grown: list[Mechanism] = []
        unknown: NoGroupFormError | None = None
        for part in self.parts:
            try:
                grown.append(part.for_group(size))
            except NoGroupFormError as error:
                # A later part may refuse groups altogether.
                unknown = unknown or error
        if unknown is not None:
            raise unknown
        return Composed(grown)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        shown = self.parts if len(self.parts) <= _PARTS_SHOWN else self.parts[: _PARTS_SHOWN - 1]
        words = [str(part) for part in shown]
        if len(shown) < len(self.parts):
            words.append(f"{len(self.parts) - len(shown)} more")
        return " and ".join(words), ()


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class Repeated(Mechanism):
    """One mechanism many times on the same data, each with fresh randomness: what ``**`` makes.

    M(D) = (M_1(D), ..., M_count(D)), all alike; a later run may depend on the earlier outcomes.

    Edge cases:
        Count 0 releases nothing. Repeating a repetition multiplies the counts.

    Args:
        inner: The mechanism that is repeated.
        count: Number of runs, an integer from 0 to 10^15.

    Raises:
        ParameterError: If inner is not a mechanism, or the count is no such integer.

    References:
        Zhu, Dong and Wang, "Optimal Accounting of Differential Privacy via Characteristic
        Function", AISTATS 2022, theorem 10.

    Example:
        >>> import hockeystick as hs
        >>> (hs.Gaussian(2) ** 10) ** 3
        Repeated(inner=Gaussian(noise_multiplier=2.0), count=30)
    """

    rises_with = ("count",)

    inner: Mechanism
    count: int

    def __init__(self, inner: Mechanism, count: float) -> None:
        once, runs = checked("inner", inner), _validate.count("count", count)
        if isinstance(once, Repeated):
            runs = _validate.count("count", once.count * runs)
            once = once.inner
        object.__setattr__(self, "inner", once)
        object.__setattr__(self, "count", runs)

    @property
    def adjacency(self) -> Adjacency | None:
        return self.inner.adjacency

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the mechanism that is repeated, and that there are no more runs."""
        runs = f"There are {self.count:,} runs of this, and no more: {self.inner}."
        return (*self.inner.assumptions, runs)

    def for_group(self, size: int) -> Repeated:
        return self.inner.for_group(size) ** self.count

    def _words(self) -> tuple[str, tuple[str, ...]]:
        inner = f"[{self.inner}]" if isinstance(self.inner, Composed) else str(self.inner)
        return f"{inner} x {self.count}", ()


def checked(name: str, value: object, *, allowed: str = A_MECHANISM) -> Mechanism:
    """Return the value if it is a mechanism, or raise."""
    if isinstance(value, Mechanism):
        return value
    raise ParameterError(name, value, allowed)
