"""Flower with proven accounts: an accountant, a strategy, and private clients."""

from hockeystick.adapters import missing

try:
    from hockeystick.adapters.flower._accountant import HockeystickAccountant
    from hockeystick.adapters.flower._client import train_locally
    from hockeystick.adapters.flower._strategy import PrivateFedAvg
except ModuleNotFoundError as error:
    raise missing(error, "flwr", "flower") from error

__all__ = ["HockeystickAccountant", "PrivateFedAvg", "train_locally"]
