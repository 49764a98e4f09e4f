"""Ray as a place where sweeps are asked, or anything else that takes an executor."""

from hockeystick.adapters import missing

try:
    from hockeystick.adapters.ray._executor import RayExecutor
except ModuleNotFoundError as error:
    raise missing(error, "ray", "ray") from error

__all__ = ["RayExecutor"]
