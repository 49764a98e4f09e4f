"""What every mechanism and every plan has in common, and their compositions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar, Final, TypeVar, final, get_args, get_type_hints

from hockeystick import _validate
from hockeystick._validate import WordEnum
from hockeystick.adjacency import Adjacency
from hockeystick.errors import NoGroupFormError, ParameterError
from hockeystick.mechanisms.scope import Fact, common_facts, refuse_disagreement, without_presence

_Class = TypeVar("_Class", bound=type)

_REGISTERED: Final[dict[str, type]] = {}


def registered(kind: _Class) -> _Class:
    """Register a class: a mechanism, or a type that people need to describe one.

    It is then in ``hockeystick.mechanisms`` under its own name, which no other class may have.
    """
    known = _REGISTERED.setdefault(kind.__name__, kind)
    if (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
        raise TypeError(f"{known.__module__} has a {kind.__name__} already")
    _REGISTERED[kind.__name__] = kind
    return kind


def registered_in(package: str) -> dict[str, type]:
    """Return the classes that the modules of a package register, by their names, in order."""
    known = sorted(_REGISTERED.items())
    return {name: kind for name, kind in known if kind.__module__.startswith(f"{package}.")}


def divided_words(adjacency: Adjacency, drawn: str, records: str) -> str:
    """Return what must hold of the divisor, as a sentence: a private one is told by the noise."""
    told = f"The noisy sum is divided by a fixed number, never by {drawn}"
    if adjacency is Adjacency.ADD_REMOVE:
        told += f" or by the number of {records}, which is private"
    return f"{told}."


STOPPED_EARLIER: Final = (
    "a run that stops earlier because of what it saw costs as much as the whole plan."
)


def noisy_seen(what: str, *, alone: str = "what single examples or clients add to them") -> str:
    """Return that all that is noisy is seen, and nothing else, as a sentence.

    ``what`` is what the theorem says is released, noise included; by post-processing everything
    computed from it may be seen too. Whoever adds the noise sees what is ``alone``.
    """
    return (
        f"Whoever is not trusted sees {what}, and so every model, but nothing without the noise: "
        f"whoever adds it, as the server of federated training, sees {alone}, and is trusted."
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

        Neighbours of the result move the query ``size`` times as far as those of the mechanism, as
        some ``size`` records do and none exceed. Scales are rounded to the side of less privacy.

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
        name, details = self._words()
        return f"{name} ({', '.join(details)})" if details else name

    def __matmul__(self, other: Mechanism) -> Composed:
        return Composed((self, checked("the right side of @", other)))

    def __rmatmul__(self, other: object) -> Composed:
        raise ParameterError("the left side of @", other, "a mechanism")

    def __pow__(self, count: float) -> Repeated:
        return Repeated(self, count)


class AnyAdjacency(Mechanism):
    """A mechanism that is described alike for all neighbours, which nobody has to choose.

    Its numbers are in units of a sensitivity, taken under whichever adjacency is meant; or it is
    the report of one person, whose neighbours are any two values of that person.
    """

    __slots__ = ()
    adjacency: ClassVar[None] = None

    def __post_init__(self) -> None:
        set_fields(self)


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
        return self.mechanism.for_group(size)


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class Composed(Mechanism):
    """Several mechanisms on the same data, each with fresh randomness: what ``@`` makes.

    M(D) = (M_1(D), ..., M_k(D)); a later mechanism may depend on what the earlier ones released.
    The order does not matter to the privacy of the whole.

    Args:
        parts: The mechanisms, at least one; a composition among them is flattened.

    Raises:
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
        flat = tuple(
            leaf
            for part in _several(parts)
            for leaf in (part.parts if isinstance(part, Composed) else (part,))
        )
        refuse_disagreement(flat, "a composition")
        object.__setattr__(self, "parts", flat)

    @property
    def adjacency(self) -> Adjacency | None:
        return next((part.adjacency for part in self.parts if part.adjacency is not None), None)

    @property
    def scope(self) -> tuple[Fact, ...]:
        return common_facts(self.parts)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return tuple(text for part in self.parts for text in part.assumptions)

    def for_group(self, size: int) -> Composed:
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
        return " and ".join(_first_few(self.parts)), ()


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class Parallel(Mechanism):
    """Several mechanisms, each on a part of its own of the data.

    M(D) = (M_1(D_1), ..., M_k(D_k)), where D_1, ..., D_k are disjoint and a record's part is public
    and fixed in advance: the client, the hospital or the country that it is of. Neighbours differ
    in one record of one part, so that only one M_i sees a difference, and which one may be the
    worst. A whole plan costs what it costs the part that pays most for all of it:

        delta(eps) = max over i of delta_i(eps),  and over n runs max over i of delta_i^(n)(eps),

    which may be a different part at another eps.

    Guarantees:
        As narrow as the intervals of its parts: the worst of them, both ends. Under replace-one a
        record is replaced by one of its own part; where it may move to another part, two parts
        change, which ``hs.notions.parallel`` accounts for guarantees.

    Args:
        parts: The mechanisms, at least one, each on a part of its own.
        split: A name for the rule by which the data are split. In one plan a record in part i of
            one ``Parallel`` is in part i of all of the same name, and in any part of the others.

    References:
        McSherry, "Privacy Integrated Queries", SIGMOD 2009, theorem 4.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.Parallel((hs.Gaussian(2), hs.Laplace(1)), split="hospital") ** 10
        >>> both = [hs.delta(part**10, epsilon=4).upper for part in plan.inner.parts]
        >>> hs.delta(plan, epsilon=4).upper == max(both)
        True
    """

    parts: tuple[Mechanism, ...]
    split: str = "group"

    def __init__(self, parts: Iterable[Mechanism], split: str = "group") -> None:
        given = _several(parts)
        if not isinstance(split, str) or not split:
            raise ParameterError("split", split, "a name for the rule that splits the data")
        refuse_disagreement(given, "a split")
        object.__setattr__(self, "parts", given)
        object.__setattr__(self, "split", split)

    @property
    def adjacency(self) -> Adjacency | None:
        return next((part.adjacency for part in self.parts if part.adjacency is not None), None)

    @property
    def scope(self) -> tuple[Fact, ...]:
        return common_facts(self.parts)

    @property
    def assumptions(self) -> tuple[str, ...]:
        split = (
            f"The data are split in {len(self.parts):,} parts by {self.split}; each record is in "
            "one, which is public and stays the same, and each release reads its own part alone."
        )
        return (split, *(text for part in self.parts for text in part.assumptions))

    def _words(self) -> tuple[str, tuple[str, ...]]:
        different = _first_few(tuple(dict.fromkeys(self.parts)))
        return f"one of [{' or '.join(different)}]", (f"{len(self.parts)} parts by {self.split}",)


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class Repeated(Mechanism):
    """One mechanism many times on the same data, each with fresh randomness: what ``**`` makes.

    M(D) = (M_1(D), ..., M_count(D)), all alike; a later run may depend on the earlier outcomes.

    Args:
        inner: The mechanism that is repeated; of a repetition the counts are multiplied.
        count: Number of runs, an integer from 0 to 10^15.

    References:
        Zhu, Dong and Wang, "Optimal Accounting of Differential Privacy via Characteristic
        Function", AISTATS 2022, theorem 10.

    Example:
        >>> import hockeystick as hs
        >>> (hs.Gaussian(2) ** 10) ** 3
        Repeated(inner=Gaussian(noise_multiplier=2.0), count=30)
    """

    rises_with: ClassVar[tuple[str, ...]] = ("count",)
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
        runs = f"There are {self.count:,} runs of this, and no more: {self.inner}."
        return (*self.inner.assumptions, runs)

    def for_group(self, size: int) -> Repeated:
        return self.inner.for_group(size) ** self.count

    def _words(self) -> tuple[str, tuple[str, ...]]:
        inner = f"[{self.inner}]" if isinstance(self.inner, Composed) else str(self.inner)
        return f"{inner} x {self.count}", ()


def _several(parts: object) -> tuple[Mechanism, ...]:
    given = tuple(parts) if _validate.has_several(parts) else ()
    if not given:
        raise ParameterError("parts", parts, "one or more mechanisms, in a tuple")
    return tuple(checked(f"parts[{index}]", part) for index, part in enumerate(given))


def _first_few(parts: tuple[Mechanism, ...]) -> list[str]:
    shown = parts if len(parts) <= _PARTS_SHOWN else parts[: _PARTS_SHOWN - 1]
    more = [f"{len(parts) - len(shown)} more"] if len(shown) < len(parts) else []
    return [*map(str, shown), *more]


def checked(name: str, value: object, *, allowed: str = A_MECHANISM) -> Mechanism:
    """Return the value if it is a mechanism, or raise."""
    if isinstance(value, Mechanism):
        return value
    raise ParameterError(name, value, allowed)


def set_fields(made: Any, given: Mapping[str, Any] | None = None) -> None:
    """Set the fields of a frozen description, each checked as it is declared, or raise.

    A number is of the ``domain`` in its field's metadata, or else of that of its name; what is of
    another type is what the metadata has as ``allowed``. A refusal ends with what is ``besides``.
    As ``__post_init__`` it checks all fields; an ``__init__`` gives the values of some or all.
    """
    for name, kind, declared in _declared(made.__class__):
        if given is None or name in given:
            value = getattr(made, name) if given is None else given[name]
            try:
                known = _as_declared(name, value, kind, declared)
            except ParameterError as error:
                allowed = error.allowed + declared.get("besides", "")
                raise ParameterError(error.name, error.value, allowed) from None
            object.__setattr__(made, name, known)


@cache
def _declared(kind: type[Any]) -> tuple[tuple[str, Any, Mapping[str, Any]], ...]:
    types = get_type_hints(kind)
    return tuple((one.name, types[one.name], one.metadata) for one in fields(kind))


def _as_declared(name: str, value: Any, kind: Any, declared: Mapping[str, Any]) -> Any:
    domain = declared.get("domain")
    if kind == float | Fraction:
        return _validate.probability(name, value)
    if kind == tuple[float, ...]:
        return _validate.reals(name, value, declared["domain"])
    kind, *none = get_args(kind) or (kind,)
    if none and value is None:
        return None
    if kind in (int, float):
        return (_validate.count if kind is int else _validate.real)(name, value, domain)
    if issubclass(kind, WordEnum):
        return _validate.choice(name, value, kind)
    if isinstance(value, kind):
        return value
    usual = {bool: "True or False", str: "a text in quotes", Mechanism: A_MECHANISM}
    raise ParameterError(name, value, declared.get("allowed") or usual[kind])
