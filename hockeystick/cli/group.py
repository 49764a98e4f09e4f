"""The flag ``--group``: what a plan costs several records together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, final

import click

from hockeystick import _validate
from hockeystick.adjacency import Adjacency
from hockeystick.io import parse
from hockeystick.io.plan_file import PlanFile
from hockeystick.mechanisms import (
    DPSGD,
    Composed,
    FedSDP,
    Gaussian,
    Mechanism,
    PoissonSubsampled,
    PoissonSubsampledGroup,
    Repeated,
    Sampling,
)
from hockeystick.mechanisms.base import Plan
from hockeystick.mechanisms.scope import Fact, unit_of

# What a plan assumes of a single record, and a group does not.
_ALONE: Final = "Nobody has more than one "
_THEOREMS: Final = (
    "Gaussian noise: k times less of it; rho-zCDP: k^2 rho, Bun and Steinke 2016, proposition 1.9; "
    "samples: PoissonSubsampledGroup"
)
_SIZE: Final = _validate.whole_numbers("K", 1, (2, 10))


@final
@dataclass(frozen=True, slots=True)
class OfGroup(Plan):
    """A plan as it is, asked what it costs any ``size`` of its records together.

    Args:
        plan: The plan, described for one record.
        size: How many records change together, an integer >= 2.
    """

    plan: Mechanism
    size: int

    @property
    def mechanism(self) -> Mechanism:
        """A mechanism that costs one record what the plan costs the group."""
        return _grown(self.plan, self.size)

    @property
    def adjacency(self) -> Adjacency | None:
        return self.plan.adjacency

    @property
    def theorem(self) -> str:
        """Why the group costs no more than the mechanism."""
        return f"for {self.size} {self.unit}s, each part's own form for a group ({_THEOREMS})"

    @property
    def scope(self) -> tuple[Fact, ...]:
        return self.plan.scope

    @property
    def assumptions(self) -> tuple[str, ...]:
        group = (
            f"What is protected is {self.together}: nobody has more than {self.size}.",
            f"What follows describes the plan for a single {self.unit}.",
        )
        rest = (one for one in self.plan.assumptions if not one.startswith(_ALONE))
        return (*group, *rest)

    @property
    def together(self) -> str:
        """What the plan protects all of."""
        return f"any {self.size} {self.unit}s together"

    @property
    def unit(self) -> str:
        """What the plan protects one of."""
        return unit_of(self.plan)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return f"{self.together}, of {self.plan}", ()


def _grown(plan: Mechanism, size: int) -> Mechanism:
    """Return what costs one record what a plan costs the group, for which all parts have a form.

    A plan that stands for another one is not opened, unless all of a group may be in each of its
    samples: where records take turns, its parts are those of one record, and not of a group.
    """
    if isinstance(plan, Composed):
        return Composed(_grown(part, size) for part in plan.parts)
    if isinstance(plan, Repeated):
        return _grown(plan.inner, size) ** plan.count
    if isinstance(plan, FedSDP):
        return _grown(plan.mechanism, size)
    if isinstance(plan, DPSGD) and plan.examples_per_user > 1:
        raise click.UsageError(
            f"Give --group or examples_per_user, not both; the plan has {plan.examples_per_user}"
        )
    if isinstance(plan, DPSGD) and plan.sampling is Sampling.POISSON:
        extra = None if plan.extra is None else _grown(plan.extra, size)
        return replace(plan, examples_per_user=size, extra=extra)
    if isinstance(plan, PoissonSubsampled) and isinstance(plan.inner, Gaussian):
        return PoissonSubsampledGroup(plan.inner, plan.rate, size, plan.adjacency)
    return plan.for_group(size)


def for_group(file: PlanFile, given: str | None) -> PlanFile:
    """Return a plan file whose plan is asked about a group, as it is where none is given."""
    if given is None:
        return file
    size = _validate.count("group", parse(given), _SIZE)
    if size == 1:
        return file
    grown = _grown(file.plan, size)
    # Training says so itself where it is all of the plan.
    alone = isinstance(grown, DPSGD) and grown.extra is None
    return replace(file, plan=grown if alone else OfGroup(file.plan, size))


def for_one(file: PlanFile) -> PlanFile:
    """Return a plan file that can be written: the plan for one record, and a note of the group."""
    plan = file.plan
    if not isinstance(plan, OfGroup):
        return file
    note = f"for {plan.together}: ask with --group {plan.size}"
    notes = note if file.notes is None else f"{file.notes} ({note})"
    return replace(file, plan=plan.plan, notes=notes)


def on_a_page(file: PlanFile, besides: Mapping[str, object]) -> tuple[PlanFile, OfGroup | None]:
    """Return what a page is about, and the group where it is about one: title and notes say whom.

    The page shows and holds the plan that costs one record what the file's costs the group.

    Args:
        file: A plan file.
        besides: By its flag, what is asked besides of the plan, which is about one record.

    Raises:
        click.UsageError: If anything of that is given for a group.
    """
    plan = file.plan
    if not isinstance(plan, OfGroup):
        return file, None
    for flag, given in besides.items():
        if given is not None:
            raise click.UsageError(f"Give --group or {flag}, not both: {flag} is about one record")
    note = f"The numbers are for {plan}, by its form for a group: {plan.theorem}."
    notes = note if file.notes is None else f"{file.notes} {note}"
    title = None if file.title is None else f"{file.title} (for {plan.together})"
    return replace(file, plan=plan.mechanism, title=title, notes=notes), plan
