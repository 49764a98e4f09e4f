"""An accountant for Flower's strategies."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, final

from flwr.serverapp import GaussianPrivacyEvent, PrivacyConfig, PrivacySpent, SamplingMethod

import hockeystick as hs
from hockeystick import _validate
from hockeystick._validate import PARAMETERS, Domain, whole_numbers
from hockeystick.accountants.base import TOLERANCE
from hockeystick.adapters.flower._events import (
    Cohorts,
    assumptions_of,
    checked_config,
    checked_event,
    mechanism_of,
    told,
)
from hockeystick.errors import IncompatibleError, ParameterError

NAME: Final = "hockeystick"
VERSION: Final = 1
# Flower's own, whose states have the same events.
_READABLE: Final = (NAME, "rdp")
_COUNT: Final = whole_numbers("n", 1, (1, 1000))
_LIMIT: Final = Domain(symbol="eps", low=0, high=float("inf"), low_open=True, typical=(0.1, 20))
_Composed = dict[GaussianPrivacyEvent, int]


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
        self._config = checked_config(config)
        self._cohorts = _validate.choice("cohorts", cohorts, Cohorts)
        self._tolerance = _validate.real("tolerance", tolerance, PARAMETERS["tolerance"])
        self._composed: _Composed = {}
        self._is_as_loaded = True
        self._run = secrets.token_hex(16)

    @property
    def config(self) -> PrivacyConfig:
        """Flower's configuration."""
        return self._config

    @property
    def num_releases(self) -> int:
        """The number of rounds that are composed."""
        return sum(self._composed.values())

    @property
    def account(self) -> hs.Accountant:
        """What is composed as an ``hs.Accountant``: its plan, and its trade-off function."""
        return self._account(self._composed)

    def compose(self, event: GaussianPrivacyEvent, count: int = 1) -> None:
        """Record rounds that are released.

        Args:
            event: One round: its noise multiplier, that of the sum's noise over the clipping norm,
                and its cohort.
            count: How many, an integer >= 1.

        Raises:
            ParameterError: If it is none, of another population, or the count is no such integer.
        """
        self._composed, self._is_as_loaded = self._with(event, count), False

    def get_epsilon(self, delta: float) -> float:
        """Return the proven upper end of epsilon.

        Args:
            delta: In [0, 1].

        Raises:
            ParameterError: If it is no such number.
        """
        return float(self.spent(delta).upper)

    def get_delta(self, epsilon: float) -> float:
        """Return the proven upper end of delta.

        Args:
            epsilon: In [0, inf].

        Raises:
            ParameterError: If it is no such number.
        """
        at = _validate.one("epsilon", epsilon)
        return float(self.account.delta(at, tolerance=self._tolerance).upper)

    def get_privacy_spent(self, delta: float | None = None) -> PrivacySpent:
        """Return what Flower writes down: epsilon's upper end, delta, and the rounds.

        Args:
            delta: In [0, 1]; None for the configured one.

        Raises:
            ParameterError: If it is no such number.
        """
        at = self._config.target_delta if delta is None else delta
        return PrivacySpent(
            epsilon=self.get_epsilon(at),
            delta=at,
            num_releases=self.num_releases,
            accounting_method=NAME,
        )

    def spent(self, delta: float | None = None) -> hs.Certified:
        """Return epsilon as a proven interval, with all that must hold in Flower for it to be true.

        Args:
            delta: In [0, 1]; None for the configured one.

        Raises:
            ParameterError: If it is no such number.
        """
        given = self._config.target_delta if delta is None else delta
        answer = self.account.epsilon(_validate.one("delta", given), tolerance=self._tolerance)
        poisson = self._config.sampling_method is SamplingMethod.POISSON
        return replace(
            answer,
            accountant=answer.accountant + ("" if poisson else " in real arithmetic"),
            assumptions=(*answer.assumptions, *assumptions_of(self._config, self._cohorts)),
        )

    def would_exceed(
        self, event: GaussianPrivacyEvent, max_epsilon: float | None = None, count: int = 1
    ) -> bool:
        """Return whether further rounds might cost more than a limit, at the configured delta.

        Args:
            event: One round.
            max_epsilon: The limit, above 0; None for the configured one.
            count: How many rounds, an integer >= 1.

        Raises:
            ParameterError: If there is no limit, or an argument is outside its domain.
        """
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
            "config": dict(told(self._config)),
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
        """Return rounds as an account."""
        made = hs.Accountant()
        for event, count in composed.items():
            made.step(mechanism_of(event, self._config, self._cohorts), count=count)
        return made

    def _with(self, event: object, count: object) -> _Composed:
        """Return what is composed and further rounds, or raise."""
        known = checked_event(event, self._config)
        more = _validate.count("count", count, _COUNT)
        return self._composed | {known: self._composed.get(known, 0) + more}

    def _read(self, state: object) -> _Composed:
        """Return the rounds of a state, or raise."""
        if not isinstance(state, Mapping) or state.get("schema_version") != VERSION:
            raise ParameterError("state", state, f"a state_dict with schema_version {VERSION}")
        if state.get("backend") not in _READABLE:
            known = " or ".join(map(repr, _READABLE))
            raise ParameterError("backend", state.get("backend"), known)
        if state.get("config") != told(self._config):
            raise ParameterError("config", state.get("config"), f"{told(self._config)}, as here")
        entries = state.get("compositions")
        if not isinstance(entries, list | tuple):
            raise ParameterError("compositions", entries, "a list of events with counts")
        found: _Composed = {}
        for entry in entries:
            event, count = _entry(entry)
            checked_event(event, self._config)
            found[event] = found.get(event, 0) + count
        return found


def _covers(larger: _Composed, smaller: _Composed) -> bool:
    """Return whether all rounds of one account are among those of another."""
    return all(larger.get(event, 0) >= count for event, count in smaller.items())


def _entry(entry: Any) -> tuple[GaussianPrivacyEvent, int]:
    """Return an event and its count, or raise."""
    try:
        event, count = GaussianPrivacyEvent(**entry["event"]), entry["count"]
    except (KeyError, TypeError, ValueError) as error:
        allowed = "made of events and counts, as state_dict has them"
        raise ParameterError("compositions", entry, allowed) from error
    return event, _validate.count("count", count, _COUNT)
