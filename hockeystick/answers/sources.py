"""Which theorems an answer rests on: the references in the docstrings of what made it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import final

from hockeystick.accountants.auto import ACCOUNTANTS
from hockeystick.accountants.comparison import Row
from hockeystick.answers.cautions import mechanisms_in
from hockeystick.mechanisms import DPSGD, Mechanism, Sampling

_OTHERS = " Other samplings have those of "
_SECTION = re.compile(r"^References:\n((?:[ ]+.*\n|\n)+)", re.MULTILINE)


@final
@dataclass(frozen=True, slots=True)
class Source:
    """What one part of an answer rests on: papers and their theorems.

    ``of`` is the accountant by its name, or the class of a mechanism or a notion, as "Laplace".
    """

    of: str
    text: str


def sources(plan: Mechanism, accountant: str) -> tuple[Source, ...]:
    """Return what an answer rests on: the accountant's theorem, then that of each mechanism.

    They are the References of their docstrings, which ``python -OO`` drops.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.Laplace(2) ** 3
        >>> for one in hs.answers.sources(plan, hs.epsilon(plan, 1e-5).accountant):
        ...     print(f"{one.of}: {one.text[:30]}...")
        contour: Alghamdi, Gomez, Asoodeh, Calm...
        Repeated: Zhu, Dong and Wang, "Optimal A...
        Laplace: Dwork, McSherry, Nissim and Sm...
    """
    found = dict(_named(plan, accountant))
    return tuple(Source(of, text) for of, text in found.items() if text)


def sources_of_all(plan: Mechanism, rows: Iterable[Row]) -> tuple[Source, ...]:
    """Return what the answers of ``hs.compare`` rest on: accountants' theorems, then the plan's."""
    every = [sources(plan, row.accountant) for row in rows if row.answer is not None]
    named = {one.of: one for found in every for one in found}
    return tuple(sorted(named.values(), key=lambda one: one.of not in ACCOUNTANTS))


def references_of(documented: type) -> str:
    """Return the References of a docstring as one paragraph; empty where there are none."""
    section = _SECTION.search(inspect.cleandoc(documented.__doc__ or "") + "\n")
    return " ".join(section[1].split()) if section else ""


def _named(plan: Mechanism, accountant: str) -> Iterator[tuple[str, str]]:
    known = ACCOUNTANTS.get(accountant)
    if known is not None:
        yield accountant, references_of(type(known))
    for part in mechanisms_in(plan):
        if isinstance(part, DPSGD):
            yield from _of_training(part)
        else:
            yield type(part).__name__, references_of(type(part))


def _of_training(plan: DPSGD) -> Iterator[tuple[str, str]]:
    """Yield the references of DP-SGD, and those of the one sampling that a plan has."""
    text, _, others = references_of(DPSGD).partition(_OTHERS)
    algorithm, _, poisson = text.partition("; ")
    is_poisson = plan.sampling is Sampling.POISSON
    yield "DPSGD", f"{algorithm}; {poisson}" if is_poisson else f"{algorithm}."
    for part in mechanisms_in(plan.mechanism):
        if type(part).__name__ in others:
            yield type(part).__name__, references_of(type(part))
