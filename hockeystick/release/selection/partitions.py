"""Partitions that many users have, shown with their noisy numbers of users, exactly."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.noise.discrete_gaussian import DiscreteGaussian
from hockeystick.mechanisms.noise.discrete_laplace import DiscreteLaplace
from hockeystick.mechanisms.selection.partition_selection import PartitionSelection
from hockeystick.numerics import largest_reading
from hockeystick.release._values import integers, of_kind
from hockeystick.release.charging import Charged, book, checked_charge
from hockeystick.release.noise.integers import discrete_gaussian, geometric
from hockeystick.release.samplers import Bits, permutation, secret_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Key = TypeVar("_Key", bound=Hashable)

_PARTITIONS: Final = whole_numbers("k", 1, (1, 100))
_RUNNABLE: Final = (
    "a PartitionSelection with DiscreteGaussian or DiscreteLaplace noise, whose numbers are exact"
)
_COUNTS: Final = "a mapping from each partition to its number of users, integers >= 1"
_ORDERED: Final = (
    "partitions that can be sorted, as texts or numbers are, so that the order of those shown says "
    "nothing about the data"
)
_PAIRS: Final = "pairs of a user and a partition, both hashable"


def partition_selection(
    mechanism: PartitionSelection,
    users: Mapping[_Key, int],
    *,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> dict[_Key, int]:
    """Return the partitions whose noisy number of users reaches the threshold, with that number.

    ``{p: users[p] + Z_p : users[p] + Z_p >= threshold}``, all noises ``Z_p`` fresh integers.

    Guarantees:
        That of the mechanism, where each user was counted once in each of at most
        ``mechanism.partitions`` partitions: ``users_by_partition`` sees to it. Noise is drawn
        exactly if the bits are ideal, and compared with the larger reading of the threshold. The
        result is in the order of its sorted keys, which does not depend on who is not shown.

    Edge cases:
        No partitions at all: nothing is shown, and it is charged as any other. A partition that no
        user has is not to be in the mapping: 0 is refused.

    Args:
        mechanism: A partition selection with ``DiscreteGaussian`` or ``DiscreteLaplace`` noise.
        users: The number of users of each partition that any user has, integers from 1 to 2^62.
            The keys can be sorted.
        charge: ``Accountant``, ``Filter``, ``Ledger`` or another with ``step(mechanism)``, which is
            charged before the noise is drawn.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        The noisy numbers of users of the partitions that are shown.

    Raises:
        ParameterError: If an argument is outside its domain; nothing is charged then.
        BudgetExhausted: If the filter refuses; nothing is drawn then.
        OSError: If the operating system has no random bits to give; the charge stays.

    References:
        Korolova, Kenthapadi, Mishra and Ntoulas, "Releasing Search Queries and Clicks Privately",
        WWW 2009.

    Example:
        >>> import hockeystick as hs
        >>> shown = hs.mechanisms.PartitionSelection(hs.DiscreteGaussian(4), threshold=30)
        >>> sorted(hs.release.partition_selection(shown, {"flu": 9000, "ebola": 1, "cold": 400}))
        ['cold', 'flu']
    """
    own = of_kind(mechanism, PartitionSelection)
    if not isinstance(own.noise, DiscreteGaussian | DiscreteLaplace):
        raise ParameterError("mechanism", own, _RUNNABLE)
    keys, counts = _sorted_counts(users)
    whole = _WholeSelection(own, checked_charge(charge))
    if isinstance(own.noise, DiscreteGaussian):
        noisy = discrete_gaussian(own.noise, counts, charge=whole, bits=bits)
    else:
        noisy = geometric(own.noise, counts, charge=whole, bits=bits)
    least = largest_reading(own.threshold)
    return {key: int(n) for key, n in zip(keys, noisy, strict=True) if int(n) >= least}


@final
@dataclass(frozen=True, slots=True)
class _WholeSelection:
    """Books a selection where the noise in it would be booked: after all checks."""

    mechanism: PartitionSelection
    charge: Charged | None

    def step(self, mechanism: Mechanism) -> None:
        """Book the selection in the noise's stead."""
        book(self.charge, self.mechanism)


def users_by_partition(
    pairs: Iterable[tuple[Hashable, _Key]], partitions: int, *, bits: Bits = secret_bits
) -> dict[_Key, int]:
    """Return the number of users of each partition, each user counted in at most k of them.

    A user of more than ``partitions`` k different partitions is counted in k of these, chosen at
    random, all choices being equally likely; of a pair that is there several times, once.

    Guarantees:
        Whatever the other users do, a user is in at most k of the counts, by at most 1: what
        ``PartitionSelection`` asks of them. The choice is exact if the bits are ideal. The numbers
        are private: they are for ``partition_selection``, not for anybody to see.

    Edge cases:
        No pairs give no partitions.

    Args:
        pairs: A user and a partition of theirs, any number of times.
        partitions: The most partitions k that a user is counted in, an integer >= 1.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        The number of users of each partition that somebody is counted in.

    Raises:
        ParameterError: If an argument is outside its domain.
        OSError: If the operating system has no random bits to give.

    Example:
        >>> import hockeystick as hs
        >>> visits = [("ann", "gym"), ("ann", "gym"), ("ann", "pub"), ("bob", "pub")]
        >>> hs.release.users_by_partition(visits, partitions=2)
        {'gym': 1, 'pub': 2}
    """
    most = _validate.count("partitions", partitions, _PARTITIONS)
    counts: dict[_Key, int] = {}
    for own in _by_user(pairs).values():
        kept = list(own)
        if len(kept) > most:
            kept = [kept[place] for place in permutation(len(kept), bits=bits)[:most]]
        for key in kept:
            counts[key] = counts.get(key, 0) + 1
    return counts


def _by_user(pairs: Any) -> dict[Hashable, dict[Any, None]]:
    """Return the different partitions of each user, or raise."""
    if not _validate.has_several(pairs) or isinstance(pairs, str | Mapping):
        raise ParameterError("pairs", type(pairs).__name__, _PAIRS)
    found: dict[Hashable, dict[Any, None]] = {}
    for pair in pairs:
        try:
            if isinstance(pair, str | bytes):
                raise TypeError
            user, key = pair
            found.setdefault(user, {})[key] = None
        except (TypeError, ValueError):
            kind = type(pair).__name__
            raise ParameterError("pairs", f"with a {kind} among them", _PAIRS) from None
    return found


def _sorted_counts(users: Any) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the partitions in order and their numbers of users, or raise."""
    if not isinstance(users, Mapping):
        raise ParameterError("users", type(users).__name__, _COUNTS)
    try:
        keys = sorted(users)
        ordered = all(one < other for one, other in pairwise(keys))
    except TypeError:
        ordered = False
    if not ordered:
        raise ParameterError("users", "keys without an order", _ORDERED)
    counts = integers("users", [users[key] for key in keys] or np.zeros(0, dtype=np.int64))
    if bool((counts < 1).any()):
        raise ParameterError("users", "with a number below 1", _COUNTS)
    return keys, counts
