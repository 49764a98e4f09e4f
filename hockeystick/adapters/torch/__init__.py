"""Private training with PyTorch, by the plan that is accounted for (``hockeystick[torch]``)."""

from hockeystick.adapters import missing

try:
    from hockeystick.adapters.loop import Counting
    from hockeystick.adapters.torch._batches import Batch, Loader, Loading
    from hockeystick.adapters.torch._loop import Private
    from hockeystick.adapters.torch._making import make_correlated, make_private
    from hockeystick.release.clipping import Clip, Constant, Online, Quantile
except ModuleNotFoundError as _error:
    raise missing(_error, "torch", "torch") from _error

__all__ = [
    "Batch",
    "Clip",
    "Constant",
    "Counting",
    "Loader",
    "Loading",
    "Online",
    "Private",
    "Quantile",
    "make_correlated",
    "make_private",
]
