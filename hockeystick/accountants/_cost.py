"""The composition of a plan: the one walk over its tree that collects the losses of its runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import singledispatch
from itertools import islice
from typing import Final, TypeAlias, final

from hockeystick.errors import UnsupportedError
from hockeystick.mechanisms import (
    Composed,
    Gaussian,
    GaussianSequence,
    Mechanism,
    Parallel,
    Plan,
    PoissonSubsampled,
    Repeated,
)
from hockeystick.mechanisms.gaussian_sequence import FEW_LEVELS
from hockeystick.notions import FDP
from hockeystick.privacy_loss import (
    GaussianSequenceLoss,
    NoAnalysisError,
    PrivacyLoss,
    dominating_pair,
)

Terms: TypeAlias = tuple[tuple[PrivacyLoss, int], ...]
# For each split of the data, by its name: into how many parts, and which one the record is in.
Place: TypeAlias = tuple[tuple[str, int, int], ...]

# Sequences of more noise levels than these are not expanded.
_MOST_EXPANDED: Final = 400
# A plan with more places where a record may be is refused: each takes an answer of its own.
_MOST_PLACES: Final = 2000


@final
@dataclass(frozen=True, slots=True)
class Composition:
    """The composition of a plan: the losses of its runs with their counts, for each direction.

    ``removing`` and ``adding`` are composed separately, to the very end. Where the data are split,
    they are the losses of a record in one place, and ``others`` the compositions for one elsewhere;
    the guarantee of the plan is the worst of all.
    """

    removing: Terms
    adding: Terms
    others: tuple[Composition, ...] = ()
    place: Place = ()

    @staticmethod
    def composed(compositions: Iterable[Composition]) -> Composition:
        """Return the composition of several compositions.

        Raises:
            NoAnalysisError: If splits of the data do not fit together or leave too many places.
        """
        listed = list(compositions)
        anywhere = [composition for composition in listed if not composition._is_split]
        known = Composition(
            _merged(composition.removing for composition in anywhere),
            _merged(composition.adding for composition in anywhere),
        )
        for composition in listed:
            known = _together(known, composition) if composition._is_split else known
        return known

    @staticmethod
    def split(name: str, compositions: Sequence[Composition]) -> Composition:
        """Return the parallel composition of releases each of which reads its own part of the data.

        Raises:
            NoAnalysisError: If splits of the data do not fit together or leave too many places.
        """
        here = (
            Composition((), (), place=((name, len(compositions), index),))
            for index in range(len(compositions))
        )
        pairs = zip(here, compositions, strict=True)
        return _either(
            one for at, composition in pairs for one in _together(at, composition).branches
        )

    def repeat(self, count: int) -> Composition:
        """Return the composition of ``count`` independent copies."""
        if count == 0:
            return EMPTY
        return Composition(
            tuple((loss, runs * count) for loss, runs in self.removing),
            tuple((loss, runs * count) for loss, runs in self.adding),
            tuple(other.repeat(count) for other in self.others),
            self.place,
        )

    @property
    def branches(self) -> tuple[Composition, ...]:
        """The composition for a record in each of the places, one by one."""
        if not self.others:
            return (self,)
        return (Composition(self.removing, self.adding, place=self.place), *self.others)

    @property
    def directions(self) -> tuple[Terms, ...]:
        """The distinct lists: a single one where all directions have the same losses."""
        if not self.others:
            return (
                (self.removing,) if self.removing == self.adding else (self.removing, self.adding)
            )
        return tuple(dict.fromkeys(terms for one in self.branches for terms in one.directions))

    @property
    def anywhere(self) -> Composition:
        """The same without the places: equal compositions of several places are there once."""
        if not self._is_split:
            return self
        return _either(
            dict.fromkeys(Composition(one.removing, one.adding) for one in self.branches)
        )

    @property
    def _is_split(self) -> bool:
        """Whether it depends on where the record is."""
        return bool(self.place or self.others)


EMPTY: Final = Composition((), ())


def _together(first: Composition, second: Composition) -> Composition:
    """Return the composition of both releases, for a record in each place common to both."""
    return _either(
        Composition(
            _merged((one.removing, other.removing)), _merged((one.adding, other.adding)), (), place
        )
        for one in first.branches
        for other in second.branches
        if (place := _joined(one.place, other.place)) is not None
    )


def _joined(first: Place, second: Place) -> Place | None:
    """Return the place that is both, None where a record cannot be in both."""
    known = {name: (parts, index) for name, parts, index in first}
    for name, parts, index in second:
        if known.setdefault(name, (parts, index)) == (parts, index):
            continue
        if known[name][0] != parts:
            raise NoAnalysisError(
                f"the data are split by {name} in {known[name][0]} parts and again in {parts}; "
                "give two rules two names"
            )
        return None
    return tuple(sorted((name, *rest) for name, rest in known.items()))


def _either(compositions: Iterable[Composition]) -> Composition:
    """Return the composition for a record that is in one place or another."""
    first, *others = islice(compositions, _MOST_PLACES + 1)
    if len(others) >= _MOST_PLACES:
        raise NoAnalysisError(
            f"there are more than {_MOST_PLACES} places where a record may be, and each takes an "
            "answer of its own; name splits by the same rule alike, or leave out cheaper parts"
        )
    return Composition(first.removing, first.adding, tuple(others), first.place)


def expand_sequences(terms: Terms) -> Terms:
    """Replace sequences of runs by their runs, except sequences of very many noise levels."""
    return _merged(_runs(loss, count) for loss, count in terms)


def _runs(loss: PrivacyLoss, count: int) -> Terms:
    """Return ``count`` sequences of few noise levels as their runs; any other loss as it is."""
    if isinstance(loss, GaussianSequenceLoss) and loss.levels.runs <= _MOST_EXPANDED:
        return tuple((one, runs * count) for one, runs in loss.runs)
    return ((loss, count),)


def largest_loss(terms: Terms) -> float:
    """Return an upper bound of what the losses of a direction can add up to; -inf for none."""
    if not terms:
        return -math.inf
    return math.fsum(count * loss.supremum for loss, count in terms) * (1.0 + 2.0**-50)


def least_largest_loss(terms: Terms) -> float:
    """Return a lower bound of what the losses of a direction add up to for some data."""
    least = (count * loss.least_supremum for loss, count in attained(terms))
    return max(math.fsum(least) * (1.0 - 2.0**-50), 0.0)


def attained(terms: Terms) -> Terms:
    """Return the losses that some data surely reach, those of which nothing is known left out."""
    known = ((loss.attained, count) for loss, count in terms)
    return tuple((loss, count) for loss, count in known if loss is not None)


def compose(mechanism: Mechanism, accountant: str) -> Composition:
    """Return the composition of a mechanism: the losses of all its runs.

    Raises:
        UnsupportedError: Naming the part of the plan for which no loss is known.
    """
    return _walk(mechanism, accountant, "plan").anywhere


def assumptions_of(mechanism: Mechanism) -> tuple[str, ...]:
    """Return what must hold for a mechanism's description to apply, without repetitions."""
    return tuple(dict.fromkeys(mechanism.assumptions))


@singledispatch
def _walk(mechanism: Mechanism, accountant: str, path: str) -> Composition:
    """Return the composition of a leaf of the tree: one run."""
    return _leaf(mechanism, accountant, path)


def _leaf(mechanism: Mechanism, accountant: str, path: str) -> Composition:
    """Return one run of a mechanism that has a dominating pair."""
    with _refused(mechanism, accountant, path):
        pair = dominating_pair(mechanism)
    return Composition(_once(pair.removing), _once(pair.adding))


@_walk.register
def _(mechanism: Composed, accountant: str, path: str) -> Composition:
    parts = _parts(mechanism.parts, accountant, path)
    with _refused(mechanism, accountant, path):
        return Composition.composed(parts)


@_walk.register
def _(mechanism: Parallel, accountant: str, path: str) -> Composition:
    parts = _parts(mechanism.parts, accountant, path)
    with _refused(mechanism, accountant, path):
        return Composition.split(mechanism.split, parts) if len(parts) > 1 else parts[0]


def _parts(parts: Sequence[Mechanism], accountant: str, path: str) -> list[Composition]:
    """Return the compositions of parts of the tree."""
    return [_walk(part, accountant, f"{path}.parts[{i}]") for i, part in enumerate(parts)]


@contextmanager
def _refused(mechanism: Mechanism, accountant: str, path: str) -> Iterator[None]:
    """Turn a loss that is not known into the error that names the part of the plan."""
    try:
        yield
    except NoAnalysisError as error:
        raise UnsupportedError(accountant, f"{path} ({mechanism})", str(error)) from None


@_walk.register
def _(mechanism: Repeated, accountant: str, path: str) -> Composition:
    return _walk(mechanism.inner, accountant, f"{path}.inner").repeat(mechanism.count)


@_walk.register
def _(mechanism: GaussianSequence, accountant: str, path: str) -> Composition:
    # Few levels of noise are composed one by one; many have one loss together.
    levels = Counter(mechanism.noise_multipliers)
    if 0 < mechanism.rate < 1 and len(levels) > FEW_LEVELS:
        return _leaf(mechanism, accountant, path)
    return Composition.composed(
        _leaf(PoissonSubsampled(Gaussian(noise), mechanism.rate), accountant, path).repeat(runs)
        for noise, runs in levels.items()
    )


@_walk.register
def _(mechanism: Plan, accountant: str, path: str) -> Composition:
    return _walk(mechanism.mechanism, accountant, path)


@_walk.register
def _(mechanism: FDP, accountant: str, path: str) -> Composition:
    # The trade-off function of a plan stands for the plan.
    release = mechanism.tradeoff.release
    if isinstance(release, Mechanism):
        return _walk(release, accountant, f"{path}.tradeoff.release")
    return _leaf(mechanism, accountant, path)


def _once(loss: PrivacyLoss | None) -> Terms:
    """Return one run of a loss, nothing where there is none."""
    return () if loss is None else ((loss, 1),)


def _merged(lists: Iterable[Terms]) -> Terms:
    """Return the union of several lists, equal losses counted together."""
    counts: dict[PrivacyLoss, int] = {}
    for counted in lists:
        for loss, runs in counted:
            counts[loss] = counts.get(loss, 0) + runs
    return tuple(counts.items())
