"""Checking claims: each way is asked, and what it finds is judged."""

from dataclasses import dataclass
from functools import cache
from typing import final

from hockeystick.numerics.working_precision import working_digits
from tests.claims.data import Asked, Claim, catalogue
from tests.claims.found import Found, found, ways
from tests.claims.verdicts import Verdict, judge, share_of_multiples


@final
@dataclass(frozen=True, slots=True)
class Checked:
    """A claim and what became of it; ``without`` is what was judged without its condition."""

    claim: Claim
    own: Found | None
    certified: Found | None
    without: Found | None
    own_without: Found | None
    verdict: Verdict

    @property
    def words(self) -> str:
        """The verdict in words, with its condition or its reason."""
        because, words = self.claim.because, self.verdict.value
        if self.verdict is Verdict.INVALID:
            return f"{words} because {because}"
        if self.verdict is Verdict.ONLY_WITH:
            words += f" {self.claim.only_with}"
        if self.verdict is Verdict.CONSISTENT and self.own is not None:
            share = share_of_multiples(self.own.upper, self.claim.published)
            words += f", as {100 * share:.2g} % of all such numbers are"
        return f"{words}: {because}" if because else words


def check(*names: str) -> list[Checked]:
    """Return what becomes of some claims, each once, in the order of the data file.

    Names are keys of documents, ids of claims, or what ids begin with up to a "/"; all if none. One
    that is of no document and no claim is a ``ValueError``.
    """
    claims = catalogue().claims
    for name in names:
        if not any(_is_of(id_, name) for id_ in claims):
            raise ValueError(f"no document and no claim is called {name!r}")
    return [
        checked(claim)
        for id_, claim in claims.items()
        if not names or any(_is_of(id_, name) for name in names)
    ]


def _is_of(id_: str, name: str) -> bool:
    return id_ == name or id_.startswith(f"{name}/")


def checked(claim: Claim) -> Checked:
    """Return what becomes of one claim."""
    numbers = {
        name: None if asked is None else ask(asked)
        for name, asked in (
            ("own", claim.own),
            ("certified", claim.certified),
            ("without", claim.without),
            ("own_without", claim.own_without),
        )
    }
    verdict = judge(claim.relation, claim.published, **numbers)
    return Checked(claim, **numbers, verdict=verdict)


@cache
def ask(asked: Asked) -> Found:
    """Return what a way finds; the same question is answered once."""
    with working_digits(30):
        return found(ways()[asked.way](**dict(asked.parameters)))
