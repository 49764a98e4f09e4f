"""Releases of disjoint parts of the data, of which a record is in one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

from hockeystick import _validate
from hockeystick.adjacency import Adjacency
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import Mechanism, checked
from hockeystick.mechanisms.registry import registered
from hockeystick.mechanisms.scope import Fact, common_facts, refuse_disagreement

_ALLOWED: Final = "one or more mechanisms, in a tuple"
_SHOWN: Final = 4


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

    which may be a different part at another eps. ``split`` names the rule by which the data are
    split. In one plan, all ``Parallel`` of the same name split by the same rule: a record in part i
    of one is in part i of the others. Rules of different names have nothing to do with each other:
    a record may be in any part of one and in any part of the other.

    Guarantees:
        As narrow as the intervals of its parts: the worst of them, both ends. Under replace-one a
        record is replaced by one of its own part; where it may move to another part, two parts
        change, which ``hs.notions.parallel`` accounts for guarantees.

    Edge cases:
        A single part is that mechanism. Parts that all cost the same cost what one of them does.

    Args:
        parts: The mechanisms, at least one, each on a part of its own.
        split: A name for the rule by which the data are split, the same for all that split so.

    Raises:
        ParameterError: If there is no part, one is not a mechanism, or the name is no text.
        IncompatibleError: If two parts are described under different adjacencies, or for different
            units of privacy, parties or observers.

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
        if not _validate.has_several(parts):
            raise ParameterError("parts", parts, _ALLOWED)
        given = tuple(checked(f"parts[{index}]", part) for index, part in enumerate(parts))
        if not given:
            raise ParameterError("parts", parts, _ALLOWED)
        if not isinstance(split, str) or not split:
            raise ParameterError("split", split, "a name for the rule that splits the data")
        refuse_disagreement(given, "a split")
        object.__setattr__(self, "parts", given)
        object.__setattr__(self, "split", split)

    @property
    def adjacency(self) -> Adjacency | None:
        """The adjacency that the parts have in common; None where none of them names one."""
        return next((part.adjacency for part in self.parts if part.adjacency is not None), None)

    @property
    def scope(self) -> tuple[Fact, ...]:
        return common_facts(self.parts)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the split to be as described, and for each of the parts."""
        split = (
            f"The data are split in {len(self.parts):,} parts by {self.split}; each record is in "
            "one, which is public and stays the same, and each release reads its own part alone."
        )
        return (split, *(text for part in self.parts for text in part.assumptions))

    def _words(self) -> tuple[str, tuple[str, ...]]:
        """Return the different parts, the first few where there are many."""
        different = tuple(dict.fromkeys(self.parts))
        shown = different if len(different) <= _SHOWN else different[: _SHOWN - 1]
        words = [str(part) for part in shown]
        if len(shown) < len(different):
            words.append(f"{len(different) - len(shown)} more")
        return f"one of [{' or '.join(words)}]", (f"{len(self.parts)} parts by {self.split}",)
