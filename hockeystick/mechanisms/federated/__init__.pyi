# Written by `python -m tests.stubs`.
# fmt: off
from hockeystick.mechanisms.federated.client_level import FedSDP as FedSDP
from hockeystick.mechanisms.federated.clients import LocalTraining as LocalTraining
from hockeystick.mechanisms.federated.clustering import FederatedClustering as FederatedClustering
from hockeystick.mechanisms.federated.instance_level import FedAlphaCDP as FedAlphaCDP
from hockeystick.mechanisms.federated.instance_level import FedCDP as FedCDP
from hockeystick.mechanisms.federated.prifedsync import PriFedSync as PriFedSync
from hockeystick.mechanisms.federated.prifedsync import View as View
from hockeystick.mechanisms.federated.revealed_round import RevealedRound as RevealedRound
from hockeystick.mechanisms.federated.units import ClientSampling as ClientSampling
from hockeystick.mechanisms.federated.units import RecordSampling as RecordSampling
from hockeystick.mechanisms.federated.units import Sensitivity as Sensitivity
from hockeystick.mechanisms.federated.units import Unit as Unit

__all__: list[str]
