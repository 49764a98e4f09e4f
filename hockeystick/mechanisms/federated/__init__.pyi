# Written by `python -m tests.stubs`.
# fmt: off
from hockeystick.mechanisms.federated.client_level import ClientSampling as ClientSampling
from hockeystick.mechanisms.federated.client_level import FedSDP as FedSDP
from hockeystick.mechanisms.federated.client_level import LocalTraining as LocalTraining
from hockeystick.mechanisms.federated.client_level import RecordSampling as RecordSampling
from hockeystick.mechanisms.federated.client_level import RevealedRound as RevealedRound
from hockeystick.mechanisms.federated.client_level import Sensitivity as Sensitivity
from hockeystick.mechanisms.federated.client_level import Unit as Unit
from hockeystick.mechanisms.federated.instance_level import FedAlphaCDP as FedAlphaCDP
from hockeystick.mechanisms.federated.instance_level import FedCDP as FedCDP
from hockeystick.mechanisms.federated.prifedsync import FederatedClustering as FederatedClustering
from hockeystick.mechanisms.federated.prifedsync import PriFedSync as PriFedSync
from hockeystick.mechanisms.federated.prifedsync import View as View

__all__: list[str]
