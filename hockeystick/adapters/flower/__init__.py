"""Flower with proven accounts: an accountant for its strategies, a strategy, and private clients.

Flower's own strategies with privacy take an accountant; this one is asked for in one line:

>>> from flwr.serverapp import (
...     GaussianPrivacyEvent,
...     NeighboringRelation,
...     PrivacyConfig,
...     SamplingMethod,
... )
>>> from hockeystick.adapters.flower import HockeystickAccountant
>>> config = PrivacyConfig(
...     target_delta=1e-5,
...     population_size=10,
...     neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE,
...     sampling_method=SamplingMethod.NO_AMPLIFICATION,
... )
>>> accountant = HockeystickAccountant(config)
>>> accountant.compose(GaussianPrivacyEvent(4.0, sample_size=9, population_size=10), count=20)
>>> print(f"{accountant.get_epsilon(1e-5):.2f}")
10.33

``PrivateFedAvg`` is a strategy that draws its clients by Poisson sampling, so that the same noise
hides more; ``train_locally`` is a round of a client that hides its own records from the server.
"""

from hockeystick.adapters import missing

try:
    from hockeystick.adapters.flower._accountant import HockeystickAccountant
    from hockeystick.adapters.flower._client import train_locally
    from hockeystick.adapters.flower._strategy import PrivateFedAvg
except ModuleNotFoundError as error:
    raise missing(error, "flwr", "flower") from error

__all__ = ["HockeystickAccountant", "PrivateFedAvg", "train_locally"]
