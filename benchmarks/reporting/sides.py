"""Who is asked: this package's accountants and the others', each with one question form.

A question is answered by the ends of an interval for epsilon; a side that prints one number has
nothing below it, and the number as the upper end.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final, NamedTuple

import hockeystick as hs

Ends = tuple[float, float]
# prv-accountant has no defaults; these are its documentation's.
EPSILON_ERROR: Final = 0.1
DELTA_SHARE: Final = 1e-3


class Question(NamedTuple):
    """So many steps of DP-SGD with each of some noise multipliers, and a delta."""

    rate: float
    noises: tuple[float, ...]
    steps: int
    delta: float

    @property
    def plan(self) -> hs.Mechanism:
        """The plan in this package's words."""
        runs = (
            hs.PoissonSubsampled(hs.Gaussian(noise), self.rate) ** self.steps
            for noise in self.noises
        )
        return hs.Composed(tuple(runs))

    def afresh(self, k: int) -> Question:
        """Return the question with noises that no cache has met, for each k."""
        return self._replace(noises=tuple(noise * (1.0 + k * 2.0**-40) for noise in self.noises))

    def __str__(self) -> str:
        noises = self.noises[0] if len(self.noises) == 1 else self.noises
        return f"rate {self.rate!r}, noise {noises!r}, {self.steps} steps, delta {self.delta!r}"


class Side(NamedTuple):
    """An accountant: its name, whose it is, what it promises of a number, how it is asked."""

    name: str
    library: str
    promise: str
    ask: Callable[[Question], Ends]

    @property
    def own(self) -> bool:
        """Whether it is this package's."""
        return self.library == "hockeystick"

    @property
    def installed(self) -> bool:
        """Whether its library is here."""
        return find_spec(self.library) is not None


def _ends(found: hs.Certified | hs.Approximate) -> Ends:
    assert isinstance(found, hs.Certified)
    return found.lower, found.upper


def auto(question: Question) -> Ends:
    """Answer as anybody is answered who names no accountant."""
    return _ends(hs.epsilon(question.plan, question.delta))


def lattice(question: Question) -> Ends:
    """Answer by the lattice."""
    return _ends(hs.epsilon(question.plan, question.delta, accountant="prv"))


def moments(question: Question) -> Ends:
    """Answer by Renyi divergences."""
    return _ends(hs.epsilon(question.plan, question.delta, accountant="rdp"))


def _event(question: Question) -> Any:
    import dp_accounting as dp

    gaussians = (dp.GaussianDpEvent(noise) for noise in question.noises)
    return dp.ComposedDpEvent(
        [
            dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(question.rate, one), question.steps)
            for one in gaussians
        ]
    )


def dp_accounting_pld(question: Question) -> Ends:
    """Answer by dp-accounting's privacy-loss distributions, as they come."""
    from dp_accounting.pld import PLDAccountant

    return 0.0, float(PLDAccountant().compose(_event(question)).get_epsilon(question.delta))


def dp_accounting_rdp(question: Question) -> Ends:
    """Answer by dp-accounting's Renyi divergences, as they come."""
    from dp_accounting.rdp import RdpAccountant

    return 0.0, float(RdpAccountant().compose(_event(question)).get_epsilon(question.delta))


def prv_accountant(question: Question) -> Ends:
    """Answer by prv-accountant, with the errors of its documentation."""
    import prv_accountant as prv

    runs = [question.steps] * len(question.noises)
    accountant = prv.PRVAccountant(
        prvs=[prv.PoissonSubsampledGaussianMechanism(question.rate, n) for n in question.noises],
        max_self_compositions=runs,
        eps_error=EPSILON_ERROR,
        delta_error=question.delta * DELTA_SHARE,
    )
    lower, _, upper = accountant.compute_epsilon(question.delta, runs)
    return float(lower), float(upper)


def opake(question: Question) -> Ends:
    """Answer by the compiled module of opake-accounting, with its defaults.

    What is around that module (0.16.1) cannot be imported by Python 3.11.
    """
    package: Any = find_spec("opake.api.accounting.core")
    (path,) = Path(package.submodule_search_locations[0]).glob("opake_accounting.*so")
    spec: Any = spec_from_file_location("opake_accounting", path)
    compiled: Any = module_from_spec(spec)
    spec.loader.exec_module(compiled)
    config = compiled.DiscretizationConfig()
    total = compiled.identity_pld(config)
    for noise in question.noises:
        one = compiled.poisson_pld(compiled.gaussian_pld(noise, config), question.rate)
        total = total.compose(one.self_compose(question.steps))
    return 0.0, float(total.epsilon_at(question.delta))


def _opacus(question: Question, name: str) -> Ends:
    from opacus import accountants

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        accountant = accountants.create_accountant(name)
    accountant.history = [(noise, question.rate, question.steps) for noise in question.noises]
    return 0.0, float(accountant.get_epsilon(question.delta))


def opacus_rdp(question: Question) -> Ends:
    """Answer by Opacus's Renyi divergences."""
    return _opacus(question, "rdp")


def opacus_prv(question: Question) -> Ends:
    """Answer by Opacus's privacy-loss distributions."""
    return _opacus(question, "prv")


def opacus_gdp(question: Question) -> Ends:
    """Answer by Opacus's central limit."""
    if len(question.noises) > 1:
        raise ValueError("it knows a single noise only")
    return _opacus(question, "gdp")


OWN: Final = Side("hockeystick", "hockeystick", "interval", auto)
SIDES: Final = (
    OWN,
    Side("hockeystick prv", "hockeystick", "interval", lattice),
    Side("hockeystick rdp", "hockeystick", "interval", moments),
    Side("dp-accounting PLD", "dp_accounting", "upper bound", dp_accounting_pld),
    Side("dp-accounting RDP", "dp_accounting", "upper bound", dp_accounting_rdp),
    Side("prv-accountant", "prv_accountant", "interval", prv_accountant),
    Side("opake PLD", "opake", "upper bound", opake),
    Side("Opacus PRV", "opacus", "upper bound", opacus_prv),
    Side("Opacus RDP", "opacus", "upper bound", opacus_rdp),
    Side("Opacus GDP", "opacus", "approximation", opacus_gdp),
)


def here() -> tuple[Side, ...]:
    """Return those that are installed."""
    return tuple(side for side in SIDES if side.installed)


def is_answer(ends: Ends) -> bool:
    """Whether these are the ends of an answer that says something."""
    return not math.isnan(ends[1]) and ends[1] < math.inf
