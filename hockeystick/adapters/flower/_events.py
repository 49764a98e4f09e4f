"""What Flower's privacy events are as mechanisms, and what must hold for them to be it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Final

from flwr.serverapp import GaussianPrivacyEvent, NeighboringRelation, PrivacyConfig, SamplingMethod

from hockeystick._validate import WordEnum
from hockeystick.adjacency import Adjacency
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import FixedSizeSubsampled, Gaussian, Mechanism, PoissonSubsampled


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


def checked_config(config: object) -> PrivacyConfig:
    """Return a configuration of Flower's, or raise."""
    if not isinstance(config, PrivacyConfig):
        raise ParameterError("config", config, "a PrivacyConfig of flwr.serverapp")
    return config


def checked_event(event: object, config: PrivacyConfig) -> GaussianPrivacyEvent:
    """Return an event of the configured population, or raise."""
    if not isinstance(event, GaussianPrivacyEvent):
        raise ParameterError("event", event, "a GaussianPrivacyEvent of flwr.serverapp")
    if event.population_size != config.population_size:
        allowed = f"the population size of the config, {config.population_size}"
        raise ParameterError("population_size", event.population_size, allowed)
    return event


def mechanism_of(event: GaussianPrivacyEvent, config: PrivacyConfig, cohorts: Cohorts) -> Mechanism:
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


def assumptions_of(config: PrivacyConfig, cohorts: Cohorts) -> tuple[str, ...]:
    """Return what must hold for that, beside what the mechanisms say themselves."""
    if config.sampling_method is SamplingMethod.POISSON:
        return _CLIENT, _POISSON
    drawn = _CONNECTED if cohorts is Cohorts.SECRET else _ANY_COHORT
    return _CLIENT, _DISPLACED, drawn, _ANSWERED, _FINITE, _IN_FLOATS


def told(config: PrivacyConfig) -> Mapping[str, object]:
    """Return a configuration as Flower's own states have it."""
    return {
        "target_delta": config.target_delta,
        "population_size": config.population_size,
        "neighboring_relation": config.neighboring_relation.value,
        "sampling_method": config.sampling_method.value,
        "max_epsilon": config.max_epsilon,
    }
