"""An accountant for Flower's strategies."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final, final

from flwr.serverapp import (
    GaussianPrivacyEvent,
    NeighboringRelation,
    PrivacyConfig,
    PrivacySpent,
    SamplingMethod,
)

import hockeystick as hs
from hockeystick import _validate
from hockeystick._validate import PARAMETERS, Domain, WordEnum, whole_numbers
from hockeystick.accountants.base import TOLERANCE
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import FixedSizeSubsampled, Gaussian, Mechanism, PoissonSubsampled

NAME: Final = "hockeystick"
VERSION: Final = 1
# Flower's own, whose states have the same events.
_READABLE: Final = (NAME, "rdp")
_COUNT: Final = whole_numbers("n", 1, (1, 1000))
_LIMIT: Final = Domain(symbol="eps", low=0, high=float("inf"), low_open=True, typical=(0.1, 20))
_Composed = dict[GaussianPrivacyEvent, int]


class Cohorts(WordEnum):
    """Whether those whom the guarantee is against see who takes part in a round."""

    SECRET = "secret"
    SEEN = "seen"


_ADJACENCY: Final = MappingProxyType(
    {
        NeighboringRelation.ADD_OR_REMOVE_ONE: Adjacency.ADD_REMOVE,
        NeighboringRelation.REPLACE_ONE: Adjacency.REPLACE_ONE,
    }
)
_CLIENT: Final = (
    "What is protected is a client with all that it holds, which is one node; metrics that clients "
    "send, evaluations among them, are released without noise, and are not covered."
)
_POISSON: Final = (
    "Each client takes part in each round independently, and the noisy sum is divided by the "
    "expected size of a cohort; Flower's own strategies draw and divide otherwise."
)
_DISPLACED: Final = (
    "A cohort has a fixed size and is averaged, so that a client that joins displaces another one: "
    "the sum of the clipped updates moves by twice the clipping norm, against which the noise on "
    "the sum counts half."
)
_ANSWERED: Final = (
    "All clients of the cohort answer, or whether they do does not depend on their data: Flower "
    "gives up a round with an answer missing, with an error or with unequal weights, which shows."
)
_FINITE: Final = (
    "Each update is clipped as one vector, by the server or by clients that do as they are told, "
    "and none is zero or undefined: Flower's clipping stops at a zero, and lets NaN through."
)
_IN_FLOATS: Final = (
    "Flower adds in floats, numpy's global generator draws the noise, and Python's the cohorts: "
    "nobody seeds them or sees their state, and what rounding tells is not covered."
)
_ANY_COHORT: Final = (
    "A client may be in every cohort: who takes part is not taken to be random or secret."
)
_CONNECTED: Final = (
    "In each round all clients of the population are connected: Flower draws from those that are, "
    "and of fewer it draws each one more often."
)


@final
class HockeystickAccountant:
    """Flower's ``PrivacyAccountant`` whose answers are the upper ends of proven intervals.

    It takes the place of ``RdpAccountant`` wherever a strategy of Flower's has an ``accountant``.
    What it accounts for is what those strategies do: they draw ``sample_size`` of the connected
    clients, all sets alike, add ``N(0, (z C)^2)`` to the sum of their clipped updates and divide
    by ``sample_size``. Another client takes the place of one that is missing, so that the sum moves
    by 2 C under add-or-remove as under replace: a round is ``FixedSizeSubsampled`` of a Gaussian
    with noise multiplier z / 2. With ``SamplingMethod.POISSON``, which is for rounds that draw each
    client on its own and divide by the expected size, it is ``PoissonSubsampled`` with z.

    Guarantees:
        Those of ``hs.Accountant`` for these mechanisms, where the assumptions of ``spent`` hold:
        Flower's floats, its generator and its clipping are taken as they are meant.

    Edge cases:
        Nothing composed costs 0. A state is taken over where nothing is composed; later, an
        earlier state of this very accountant changes nothing, and another one is refused: what was
        released stays counted. Where nothing was composed since a state was taken over, later
        states of that run are, too. States of Flower's ``RdpAccountant`` are read.

    Args:
        config: Flower's: delta, population, neighbours, sampling, and the limit if there is one.
        cohorts: "secret" if nobody but the server learns who takes part in a round; "seen" is for
            a client that is in every cohort: nothing is amplified, whoever draws and is connected.
        tolerance: The relative width that is asked of the interval, from 1e-10 to 0.1.

    Raises:
        ParameterError: If an argument is outside its domain.

    Example:
        >>> from flwr.serverapp import GaussianPrivacyEvent, PrivacyConfig
        >>> from flwr.serverapp import NeighboringRelation, SamplingMethod
        >>> from hockeystick.adapters.flower import HockeystickAccountant
        >>> config = PrivacyConfig(
        ...     1e-5, 10, NeighboringRelation.ADD_OR_REMOVE_ONE, SamplingMethod.NO_AMPLIFICATION
        ... )
        >>> rounds = GaussianPrivacyEvent(4.0, 9, 10), 20
        >>> for cohorts in ("secret", "seen"):
        ...     accountant = HockeystickAccountant(config, cohorts=cohorts)
        ...     accountant.compose(*rounds)
        ...     print(f"{cohorts:7}{accountant.get_epsilon(1e-5):.3f}")
        secret 10.326
        seen   11.480
    """

    def __init__(
        self,
        config: PrivacyConfig,
        *,
        cohorts: Cohorts | str = Cohorts.SECRET,
        tolerance: float = TOLERANCE,
    ) -> None:
        self._config = _checked_config(config)
        self._cohorts = _validate.choice("cohorts", cohorts, Cohorts)
        self._tolerance = _validate.real("tolerance", tolerance, PARAMETERS["tolerance"])
        self._composed: _Composed = {}
        self._is_as_loaded = True
        self._run = secrets.token_hex(16)

    @property
    def config(self) -> PrivacyConfig:
        return self._config

    @property
    def num_releases(self) -> int:
        return sum(self._composed.values())

    @property
    def account(self) -> hs.Accountant:
        """What is composed as an ``hs.Accountant``: its plan, and its trade-off function."""
        return self._account(self._composed)

    def compose(self, event: GaussianPrivacyEvent, count: int = 1) -> None:
        """Record so many rounds that are released, of the configured population."""
        self._composed, self._is_as_loaded = self._with(event, count), False

    def get_epsilon(self, delta: float) -> float:
        """Return the proven upper end of epsilon."""
        return float(self.spent(delta).upper)

    def get_delta(self, epsilon: float) -> float:
        """Return the proven upper end of delta."""
        at = _validate.one("epsilon", epsilon)
        return float(self.account.delta(at, tolerance=self._tolerance).upper)

    def get_privacy_spent(self, delta: float | None = None) -> PrivacySpent:
        """Return what Flower writes down: epsilon's upper end, delta, and the rounds."""
        at = self._config.target_delta if delta is None else delta
        return PrivacySpent(
            epsilon=self.get_epsilon(at),
            delta=at,
            num_releases=self.num_releases,
            accounting_method=NAME,
        )

    def spent(self, delta: float | None = None) -> hs.Certified:
        """Return epsilon as a proven interval, with all that must hold in Flower for it."""
        given = self._config.target_delta if delta is None else delta
        answer = self.account.epsilon(_validate.one("delta", given), tolerance=self._tolerance)
        poisson = self._config.sampling_method is SamplingMethod.POISSON
        return replace(
            answer,
            accountant=answer.accountant + ("" if poisson else " in real arithmetic"),
            assumptions=(*answer.assumptions, *_assumptions_of(self._config, self._cohorts)),
        )

    def would_exceed(
        self, event: GaussianPrivacyEvent, max_epsilon: float | None = None, count: int = 1
    ) -> bool:
        """Return whether further rounds might cost more than a limit, at the configured delta."""
        limit = self._config.max_epsilon if max_epsilon is None else max_epsilon
        if limit is None:
            raise ParameterError("max_epsilon", None, "given, here or in the config")
        limit = _validate.real("max_epsilon", limit, _LIMIT)
        then = self._account(self._with(event, count))
        epsilon = then.epsilon(self._config.target_delta, tolerance=self._tolerance)
        return bool(epsilon.upper > limit)

    def state_dict(self) -> dict[str, object]:
        """Return what is composed, ready for JSON, in the form of Flower's own states."""
        events = [
            {
                "event": {
                    "noise_multiplier": event.noise_multiplier,
                    "sample_size": event.sample_size,
                    "population_size": event.population_size,
                },
                "count": count,
            }
            for event, count in self._composed.items()
        ]
        return {
            "schema_version": VERSION,
            "backend": NAME,
            "config": dict(_told(self._config)),
            "run": self._run,
            "compositions": events,
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Take over a state where nothing is composed yet.

        Of rounds that were released after the state was taken, a state does not know: write one
        after each round, before the model leaves the server.

        Args:
            state: What ``state_dict`` of this accountant or of Flower's ``RdpAccountant`` returned.

        Raises:
            ParameterError: If it is no such state, or of another config; nothing changes then.
            IncompatibleError: If rounds are composed here that are not in it; nothing changes then.
        """
        found = self._read(state)
        if not self._composed:
            self._composed, self._run = found, str(state.get("run", self._run))
        elif state.get("run") == self._run and _covers(self._composed, found):
            return
        elif (
            state.get("run") == self._run and self._is_as_loaded and _covers(found, self._composed)
        ):
            self._composed = found
        else:
            raise IncompatibleError(
                f"of the {self.num_releases} releases that are composed here the state may not "
                "have all: loading it would forget them; load it into a new accountant, before its "
                "first one"
            )

    def _account(self, composed: _Composed) -> hs.Accountant:
        made = hs.Accountant()
        for event, count in composed.items():
            made.step(_as_mechanism(event, self._config, self._cohorts), count=count)
        return made

    def _with(self, event: object, count: object) -> _Composed:
        known = _checked_event(event, self._config)
        more = _validate.count("count", count, _COUNT)
        return self._composed | {known: self._composed.get(known, 0) + more}

    def _read(self, state: object) -> _Composed:
        if not isinstance(state, Mapping) or state.get("schema_version") != VERSION:
            raise ParameterError("state", state, f"a state_dict with schema_version {VERSION}")
        if state.get("backend") not in _READABLE:
            known = " or ".join(map(repr, _READABLE))
            raise ParameterError("backend", state.get("backend"), known)
        if state.get("config") != _told(self._config):
            raise ParameterError("config", state.get("config"), f"{_told(self._config)}, as here")
        entries = state.get("compositions")
        if not isinstance(entries, list | tuple):
            raise ParameterError("compositions", entries, "a list of events with counts")
        found: _Composed = {}
        for entry in entries:
            event, count = _entry(entry)
            _checked_event(event, self._config)
            found[event] = found.get(event, 0) + count
        return found


def _covers(larger: _Composed, smaller: _Composed) -> bool:
    return all(larger.get(event, 0) >= count for event, count in smaller.items())


def _entry(entry: Any) -> tuple[GaussianPrivacyEvent, int]:
    try:
        event, count = GaussianPrivacyEvent(**entry["event"]), entry["count"]
    except (KeyError, TypeError, ValueError) as error:
        allowed = "made of events and counts, as state_dict has them"
        raise ParameterError("compositions", entry, allowed) from error
    return event, _validate.count("count", count, _COUNT)


def _checked_config(config: object) -> PrivacyConfig:
    if not isinstance(config, PrivacyConfig):
        raise ParameterError("config", config, "a PrivacyConfig of flwr.serverapp")
    return config


def _checked_event(event: object, config: PrivacyConfig) -> GaussianPrivacyEvent:
    if not isinstance(event, GaussianPrivacyEvent):
        raise ParameterError("event", event, "a GaussianPrivacyEvent of flwr.serverapp")
    if event.population_size != config.population_size:
        allowed = f"the population size of the config, {config.population_size}"
        raise ParameterError("population_size", event.population_size, allowed)
    return event


def _as_mechanism(
    event: GaussianPrivacyEvent, config: PrivacyConfig, cohorts: Cohorts
) -> Mechanism:
    """Return a round as a mechanism.

    In a cohort of fixed size another client takes the place of one that is missing, under both
    relations: the sum moves by 2 C, for which noise of z C has the multiplier z / 2.
    """
    drawn, clients = event.sample_size, event.population_size
    if config.sampling_method is SamplingMethod.POISSON:
        return PoissonSubsampled(Gaussian(event.noise_multiplier), Fraction(drawn, clients))
    displaced = Gaussian(event.noise_multiplier / 2)
    if cohorts is Cohorts.SEEN:
        return displaced
    adjacency = _ADJACENCY[config.neighboring_relation]
    return FixedSizeSubsampled(displaced, drawn, clients, adjacency)


def _assumptions_of(config: PrivacyConfig, cohorts: Cohorts) -> tuple[str, ...]:
    """Return what must hold for that, beside what the mechanisms say themselves."""
    if config.sampling_method is SamplingMethod.POISSON:
        return _CLIENT, _POISSON
    drawn = _CONNECTED if cohorts is Cohorts.SECRET else _ANY_COHORT
    return _CLIENT, _DISPLACED, drawn, _ANSWERED, _FINITE, _IN_FLOATS


def _told(config: PrivacyConfig) -> Mapping[str, object]:
    return {
        "target_delta": config.target_delta,
        "population_size": config.population_size,
        "neighboring_relation": config.neighboring_relation.value,
        "sampling_method": config.sampling_method.value,
        "max_epsilon": config.max_epsilon,
    }
