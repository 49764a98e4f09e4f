"""What an answer says in words: its plan, and the theorems it rests on."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import final

from hockeystick.accountants.auto import ACCOUNTANTS
from hockeystick.accountants.comparison import Row
from hockeystick.answers.cautions import mechanisms_in
from hockeystick.mechanisms import DPSGD, Composed, Mechanism, Sampling, assumptions_of
from hockeystick.numerics.numerals import plain


def in_words(plan: Mechanism) -> tuple[str, ...]:
    """Return a plan in words, one line for each part.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.DPSGD(examples=50_000, batch_size=500, epochs=3, noise_multiplier=1)
        >>> for line in hs.answers.in_words(plan @ hs.Laplace(2)):
        ...     print(line)
        DP-SGD on 50,000 examples: noise multiplier 1, 3 epochs, Poisson batches of 500 on ...
        Laplace (scale 2)
    """
    return tuple(_words(part) for part in _parts(plan))


def titled(plan: Mechanism) -> str:
    """Return what to call a plan that has no title: its first part in words.

    Example:
        >>> import hockeystick as hs
        >>> hs.answers.titled(hs.Gaussian(3) @ hs.Laplace(2))
        'Gaussian (noise multiplier 3), and 1 more'
    """
    first, *others = in_words(plan)
    return f"{first}, and {len(others)} more" if others else first


def steps_rules(plan: Mechanism) -> tuple[str, ...]:
    """Return, for each training run in a plan, its number of steps and where it comes from.

    Example:
        >>> import hockeystick as hs
        >>> hs.answers.steps_rules(hs.DPSGD(rate=0.01, steps=9, noise_multiplier=1))
        ('steps = 9, as planned',)
    """
    return tuple(part.steps_rule for part in _parts(plan) if isinstance(part, DPSGD))


def protected(plan: Mechanism) -> str:
    """Return whose data a plan protects, as its assumptions or its adjacency say it.

    Example:
        >>> import hockeystick as hs
        >>> hs.answers.protected(hs.DPSGD(rate=0.01, steps=9, noise_multiplier=1))
        'Neighbouring data sets differ by one example added or removed.'
    """
    neighbours = ("What is protected", "Neighbouring data sets")
    said = (text for text in assumptions_of(plan) if text.startswith(neighbours))
    adjacency = plan.adjacency
    if adjacency is not None:
        return next(said, adjacency.meaning)
    return next(said, "The plan is described for any two data sets between which its numbers hold.")


def _parts(plan: Mechanism) -> tuple[Mechanism, ...]:
    return plan.parts if isinstance(plan, Composed) else (plan,)


def _words(plan: Mechanism) -> str:
    if not isinstance(plan, DPSGD):
        return str(plan)
    on = "" if plan.examples is None else f" on {_counted(plan.examples, 'example')}"
    if plan.examples_per_user > 1:
        on += f", up to {plan.examples_per_user:,} of one user"
    mean = " on average" if plan.sampling is Sampling.POISSON else ""
    size = "" if plan.batch_size is None else f" of {plan.batch_size:,}{mean}"
    batches = f"{plan.sampling.capitalize()} batches{size} (rate {plan.sampling_rate:.6g})"
    if plan.drop_last:
        batches += ", the rest dropped"
    extra = "" if plan.extra is None else f"; besides, {plan.extra}"
    for name, schedule in (("noise", plan.schedule), ("batch", plan.batch_schedule)):
        if schedule is not None:
            batches += f", {type(schedule).__name__.lower()} {name} schedule"
    noise = f"noise multiplier {plain(plan.noise_multiplier)}"
    length = _counted(plan.steps, "step") if plan.epochs is None else _counted(plan.epochs, "epoch")
    return f"DP-SGD{on}: {noise}, {length}, {batches}{extra}"


def _counted(count: float | None, name: str) -> str:
    number = f"{count:,}" if isinstance(count, int) else plain(count or 0.0)
    return f"{number} {name}{'' if count == 1 else 's'}"


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
    if accountant in ACCOUNTANTS:
        yield accountant, references_of(type(ACCOUNTANTS[accountant]))
    for part in mechanisms_in(plan):
        if isinstance(part, DPSGD):
            yield from _of_training(part)
        else:
            yield type(part).__name__, references_of(type(part))


def _of_training(plan: DPSGD) -> Iterator[tuple[str, str]]:
    text, _, others = references_of(DPSGD).partition(_OTHERS)
    algorithm, _, poisson = text.partition("; ")
    is_poisson = plan.sampling is Sampling.POISSON
    yield "DPSGD", f"{algorithm}; {poisson}" if is_poisson else f"{algorithm}."
    for part in mechanisms_in(plan.mechanism):
        if type(part).__name__ in others:
            yield type(part).__name__, references_of(type(part))
