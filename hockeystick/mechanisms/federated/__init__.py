"""Plans of federated training: what each of several parties releases of its own data."""

from hockeystick.mechanisms.federated.client_level import FedSDP
from hockeystick.mechanisms.federated.clients import LocalTraining
from hockeystick.mechanisms.federated.clustering import FederatedClustering
from hockeystick.mechanisms.federated.instance_level import FedAlphaCDP, FedCDP
from hockeystick.mechanisms.federated.prifedsync import PriFedSync, View
from hockeystick.mechanisms.federated.revealed_round import RevealedRound
from hockeystick.mechanisms.federated.units import ClientSampling, RecordSampling, Sensitivity, Unit

__all__ = [
    "ClientSampling",
    "FedAlphaCDP",
    "FedCDP",
    "FedSDP",
    "FederatedClustering",
    "LocalTraining",
    "PriFedSync",
    "RecordSampling",
    "RevealedRound",
    "Sensitivity",
    "Unit",
    "View",
]
