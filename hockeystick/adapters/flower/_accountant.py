"""An accountant for Flower's strategies."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, replace
from fractions import Fraction
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
_Events = Counter[GaussianPrivacyEvent]


class Cohorts(WordEnum):
    """Whether those whom the guarantee is against see who takes part in a round."""

    SECRET = "secret"
    SEEN = "seen"


_ADJACENCY: Final[Mapping[NeighboringRelation, Adjacency]] = {
    NeighboringRelation.ADD_OR_REMOVE_ONE: Adjacency.ADD_REMOVE,
    NeighboringRelation.REPLACE_ONE: Adjacency.REPLACE_ONE,
}
_CLIENT: Final = (
    "What is protected is a client with all that it holds, which is one node; metrics that clients "
    "send, evaluations among them, are released without noise, and are not covered."
)
_POISSON: Final = (
    "Each client takes part in each round independently, and the noisy sum is divided by the "
    "expected size of a cohort; Flower's own strategies draw and divide otherwise."
)
_OF_FIXED_SIZE: Final = (
    "A cohort has a fixed size and is averaged, so that a client that joins displaces another one: "
    "the sum of the clipped updates moves by twice the clipping norm, against which the noise on "
    "the sum counts half.",
    "All clients of the cohort answer, or whether they do does not depend on their data: Flower "
    "gives up a round with an answer missing, with an error or with unequal weights, which shows.",
    "Each update is clipped as one vector, by the server or by clients that do as they are told, "
    "and none is zero or undefined: Flower's clipping stops at a zero, and lets NaN through.",
    "Flower adds in floats, numpy's global generator draws the noise, and Python's the cohorts: "
    "nobody seeds them or sees their state, and what rounding tells is not covered.",
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
    Those strategies draw ``sample_size`` of the connected clients, all sets alike, add
    ``N(0, (z C)^2)`` to the sum of their clipped updates and divide by ``sample_size``. Another
    client takes the place of one that is missing, so that the sum moves by 2 C under add-or-remove
    as under replace: a round is ``FixedSizeSubsampled`` of a Gaussian with noise multiplier z / 2.
    With ``SamplingMethod.POISSON``, for rounds that draw each client on its own and divide by the
    expected size, it is ``PoissonSubsampled`` with z. Answers are those of ``hs.Accountant`` for
    these, which ``account`` is, under the assumptions of ``spent``.

    Args:
        config: Flower's: delta, population, neighbours, sampling, and the limit if there is one.
        cohorts: "secret" if nobody but the server learns who takes part in a round; "seen" is for
            a client that is in every cohort: nothing is amplified, whoever draws and is connected.
        tolerance: The relative width that is asked of the interval, from 1e-10 to 0.1.

    Example:
        >>> from flwr.serverapp import GaussianPrivacyEvent, PrivacyConfig
        >>> from flwr.serverapp import NeighboringRelation, SamplingMethod
        >>> from hockeystick.adapters.flower import HockeystickAccountant
        >>> config = PrivacyConfig(
        ...     1e-5, 10, NeighboringRelation.ADD_OR_REMOVE_ONE, SamplingMethod.NO_AMPLIFICATION
        ... )
        >>> for cohorts in ("secret", "seen"):
        ...     accountant = HockeystickAccountant(config, cohorts=cohorts)
        ...     accountant.compose(GaussianPrivacyEvent(4.0, 9, 10), 20)
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
        if not isinstance(config, PrivacyConfig):
            raise ParameterError("config", config, "a PrivacyConfig of flwr.serverapp")
        self.config: Final = config
        self._cohorts = _validate.choice("cohorts", cohorts, Cohorts)
        self._tolerance = _validate.real("tolerance", tolerance, PARAMETERS["tolerance"])
        self._composed = _Events()
        self._is_as_loaded, self._run = True, secrets.token_hex(16)

    @property
    def num_releases(self) -> int:
        return self._composed.total()

    @property
    def account(self) -> hs.Accountant:
        """What is composed as an ``hs.Accountant``."""
        return self._account(self._composed)

    def compose(self, event: GaussianPrivacyEvent, count: int = 1) -> None:
        events = self._checked(event, count)
        self._is_as_loaded = False
        self._composed += events

    def get_epsilon(self, delta: float) -> float:
        return float(self.spent(delta).upper)

    def get_delta(self, epsilon: float) -> float:
        at = _validate.one("epsilon", epsilon)
        return float(self.account.delta(at, tolerance=self._tolerance).upper)

    def get_privacy_spent(self, delta: float | None = None) -> PrivacySpent:
        at = self.config.target_delta if delta is None else delta
        return PrivacySpent(self.get_epsilon(at), at, self.num_releases, NAME)

    def spent(self, delta: float | None = None) -> hs.Certified:
        """Return epsilon as a proven interval, with all that must hold in Flower for it."""
        given = self.config.target_delta if delta is None else delta
        answer = self.account.epsilon(_validate.one("delta", given), tolerance=self._tolerance)
        name, more = answer.accountant, [_CLIENT, _POISSON]
        if self.config.sampling_method is not SamplingMethod.POISSON:
            drawn = _CONNECTED if self._cohorts is Cohorts.SECRET else _ANY_COHORT
            name, more = f"{name} in real arithmetic", [_CLIENT, drawn, *_OF_FIXED_SIZE]
        return replace(answer, accountant=name, assumptions=(*answer.assumptions, *more))

    def would_exceed(
        self, event: GaussianPrivacyEvent, max_epsilon: float | None = None, count: int = 1
    ) -> bool:
        limit = self.config.max_epsilon if max_epsilon is None else max_epsilon
        if limit is None:
            raise ParameterError("max_epsilon", None, "given, here or in the config")
        limit = _validate.real("max_epsilon", limit, _LIMIT)
        then = self._account(self._composed + self._checked(event, count))
        epsilon = then.epsilon(self.config.target_delta, tolerance=self._tolerance)
        return bool(epsilon.upper > limit)

    def state_dict(self) -> dict[str, object]:
        composed = self._composed.items()
        return {
            "schema_version": VERSION,
            "backend": NAME,
            "config": _to_json(self.config),
            "run": self._run,
            "compositions": [{"event": asdict(one), "count": count} for one, count in composed],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a state, also of ``RdpAccountant``, where nothing is composed yet.

        Later, an earlier state of this very accountant changes nothing, and another is refused;
        later states of a run that was taken over are read while nothing was composed since. Of
        rounds that were released after the state was taken, a state does not know: write one after
        each round, before the model leaves the server.
        """
        found = self._read(state)
        known = state.get("run") == self._run
        if not self._composed:
            self._composed, self._run = found, str(state.get("run", self._run))
        elif known and self._is_as_loaded and found >= self._composed:
            self._composed = found
        elif not (known and self._composed >= found):
            raise IncompatibleError(
                f"of the {self.num_releases} releases that are composed here the state may not "
                "have all: loading it would forget them; load it into a new accountant, before its "
                "first one"
            )

    def _account(self, composed: _Events) -> hs.Accountant:
        made = hs.Accountant()
        for event, count in composed.items():
            made.step(_as_mechanism(event, self.config, self._cohorts), count=count)
        return made

    def _checked(self, event: object, count: object) -> _Events:
        """Return so many events, or raise."""
        if not isinstance(event, GaussianPrivacyEvent):
            raise ParameterError("event", event, "a GaussianPrivacyEvent of flwr.serverapp")
        if event.population_size != self.config.population_size:
            allowed = f"the population size of the config, {self.config.population_size}"
            raise ParameterError("population_size", event.population_size, allowed)
        return _Events({event: _validate.count("count", count, _COUNT)})

    def _read(self, state: object) -> _Events:
        if not isinstance(state, Mapping) or state.get("schema_version") != VERSION:
            raise ParameterError("state", state, f"a state_dict with schema_version {VERSION}")
        config = _to_json(self.config)
        for name, known in (("backend", _READABLE), ("config", (config,))):
            if state.get(name) not in known:
                raise ParameterError(name, state.get(name), " or ".join(map(repr, known)))
        entries: Any = state.get("compositions")
        found = _Events()
        for entry in entries if isinstance(entries, list | tuple) else [entries]:
            try:
                event, count = GaussianPrivacyEvent(**entry["event"]), entry["count"]
            except (KeyError, TypeError, ValueError) as error:
                allowed = "a list of events with counts, as state_dict has them"
                raise ParameterError("compositions", entry, allowed) from error
            found += self._checked(event, count)
        return found


def _as_mechanism(
    event: GaussianPrivacyEvent, config: PrivacyConfig, cohorts: Cohorts
) -> Mechanism:
    drawn, clients = event.sample_size, event.population_size
    if config.sampling_method is SamplingMethod.POISSON:
        return PoissonSubsampled(Gaussian(event.noise_multiplier), Fraction(drawn, clients))
    displaced = Gaussian(event.noise_multiplier / 2)
    if cohorts is Cohorts.SEEN:
        return displaced
    adjacency = _ADJACENCY[config.neighboring_relation]
    return FixedSizeSubsampled(displaced, drawn, clients, adjacency)


def _to_json(config: PrivacyConfig) -> dict[str, object]:
    return {name: getattr(value, "value", value) for name, value in asdict(config).items()}
