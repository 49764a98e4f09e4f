"""Private training with PyTorch, by the plan that is accounted for (``hockeystick[torch]``).

``hs.DPSGD.from_loader`` reads the plan off a ``DataLoader``.
"""

from hockeystick.adapters import missing

try:
    from hockeystick.adapters.torch._batches import Batch, Loader, Loading
    from hockeystick.adapters.torch._clipping import Clip, Constant, LargestNorm, Online, Quantile
    from hockeystick.adapters.torch._loop import Private
    from hockeystick.adapters.torch._making import Counting, make_correlated, make_private
    from hockeystick.adapters.torch._self_test import TorchProgram
except ModuleNotFoundError as error:
    raise missing(error, "torch", "torch") from error

__all__ = [
    "Batch",
    "Clip",
    "Constant",
    "Counting",
    "LargestNorm",
    "Loader",
    "Loading",
    "Online",
    "Private",
    "Quantile",
    "TorchProgram",
    "make_correlated",
    "make_private",
]
