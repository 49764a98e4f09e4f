"""Checking claims: each way is asked, and what it finds is judged."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, final

from hockeystick._tables import Rows
from hockeystick.errors import ParameterError
from tests.claims.data import Asked, Claim, catalogue
from tests.claims.found import Found, found
from tests.claims.registry import ways
from tests.claims.verdicts import Verdict, judge, share_of_multiples

Tell = Callable[[int, int], None]


@final
@dataclass(frozen=True, slots=True)
class Checked:
    """A claim and what became of it.

    Args:
        claim: The claim.
        own: The value by the document's own method; None where the claim is a printed bound.
        certified: The proven value; None where none is computed.
        without: What was judged, without the claim's condition; None where there is none.
        own_without: What the document has there; None where that is ``own``.
        verdict: The verdict.
    """

    claim: Claim
    own: Found | None
    certified: Found | None
    without: Found | None
    own_without: Found | None
    verdict: Verdict

    @property
    def words(self) -> str:
        """The verdict in words, with its condition or its reason."""
        because = self.claim.because
        words = {
            Verdict.ONLY_WITH: f"reproduces only with {self.claim.only_with}",
            Verdict.INVALID: f"statement invalid because {because}",
            Verdict.CONSISTENT: f"consistent, as {self._share():.2g} % of all such numbers are",
        }.get(self.verdict, self.verdict.value)
        return words if self.verdict is Verdict.INVALID or not because else f"{words}: {because}"

    def _share(self) -> float:
        """Return the percentage of numbers with as many decimals that would be consistent."""
        if self.claim.relation != "multiple-of" or self.own is None:
            return 100.0
        return 100.0 * share_of_multiples(self.own.upper, self.claim.published)

    def as_dict(self) -> dict[str, Any]:
        """Return the claim, its numbers and its verdict, ready for JSON."""
        claim = self.claim
        numbers = {
            "own": self.own,
            "certified": self.certified,
            "without": self.without,
            "own_without": self.own_without,
        }
        return {
            "id": claim.id,
            "document": claim.document,
            "place": claim.place,
            "says": claim.says,
            "relation": claim.relation,
            "published": claim.published or None,
            **{name: one and one.as_dict() for name, one in numbers.items()},
            "verdict": self.verdict.value,
            "only_with": claim.only_with or None,
            "because": claim.because or None,
            "see": claim.see or None,
        }


def check(*names: str, tell: Tell | None = None) -> Rows[Checked]:
    """Return what becomes of the claims of some documents, or of some claims.

    Guarantees:
        Each verdict is computed from the numbers beside it; the data file holds none. A number of
        kind "proven" is, like every answer of this library, between its ends.

    Edge cases:
        Without a name, all claims of all documents. A claim named twice is checked once.

    Args:
        names: Keys of documents, ids of claims, or what ids begin with up to a "/".
        tell: Is told how many of how many claims are checked.

    Returns:
        The claims in the order of the data file; ``to_dataframe()`` hands them to pandas.

    Raises:
        ParameterError: If a name is of no document and no claim.

    Example:
        >>> from tests import claims
        >>> (one,) = claims.check("privacy-preserving-ml/gaussian-error/example-figure")
        >>> one.verdict.value, round(one.without.upper, 2)
        ('reproduces only with', 31.98)
    """
    chosen = _chosen(names)
    every = []
    for done, claim in enumerate(chosen):
        if tell is not None:
            tell(done, len(chosen))
        every.append(_checked(claim))
    return Rows(every)


def _chosen(names: tuple[str, ...]) -> list[Claim]:
    """Return the claims of these names, each once."""
    claims = catalogue().claims
    for name in names:
        if not any(_is_of(id_, name) for id_ in claims):
            raise ParameterError("document", name, _suggestion(name))
    return [
        claim for id_, claim in claims.items() if not names or any(_is_of(id_, n) for n in names)
    ]


def _is_of(id_: str, name: str) -> bool:
    """Return whether a claim is named by a name, or by what its id begins with."""
    return id_ == name or id_.startswith(f"{name}/")


def _suggestion(name: str) -> str:
    """Return what may have been meant."""
    known = catalogue()
    keys = list(known.documents)
    near = difflib.get_close_matches(name, [*keys, *known.claims], n=1, cutoff=0.6)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    return f"one of {', '.join(keys)}, or a claim's id{meant}"


def _checked(claim: Claim) -> Checked:
    """Return what becomes of one claim."""
    numbers = {
        "own": _value(claim.own),
        "certified": _value(claim.certified),
        "without": _value(claim.without),
        "own_without": _value(claim.own_without),
    }
    verdict = judge(claim.relation, claim.published, **numbers)
    return Checked(claim, **numbers, verdict=verdict)


def _value(asked: Asked | None) -> Found | None:
    """Return what a way finds, if one is to be asked."""
    return None if asked is None else ask(asked)


_KEPT: Final = 1024


@lru_cache(maxsize=_KEPT)
def ask(asked: Asked) -> Found:
    """Return what a way finds; the same question is answered once."""
    return found(ways()[asked.way](**dict(asked.parameters)))
