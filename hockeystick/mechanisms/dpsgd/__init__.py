"""DP-SGD: the plan of a private training run, as people say it."""

from hockeystick.mechanisms.clipping import Clipping
from hockeystick.mechanisms.dpsgd import schedules
from hockeystick.mechanisms.dpsgd.plan import DPSGD
from hockeystick.mechanisms.dpsgd.samplings import Sampling

__all__ = ["DPSGD", "Clipping", "Sampling", "schedules"]
