"""Private training with PyTorch, by the plan that is accounted for (``hockeystick[torch]``).

>>> import torch
>>> import hockeystick as hs
>>> from hockeystick.adapters.torch import make_private
>>> model = torch.nn.Linear(2, 2)
>>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
>>> dataset = torch.utils.data.TensorDataset(torch.randn(100, 2), torch.randint(2, (100,)))
>>> plan = hs.DPSGD(examples=100, batch_size=20, steps=3, noise_multiplier=2)
>>> private = make_private(model, optimizer, dataset, plan, clipping=1.0)
>>> for batch in private.loader:
...     private.step(torch.nn.functional.cross_entropy, batch)
>>> private.spent(delta=1e-5).upper == hs.epsilon(plan, delta=1e-5).upper
True

``hs.DPSGD.from_loader`` reads the plan off a ``DataLoader``.
"""

from hockeystick.adapters import missing

try:
    from hockeystick.adapters.torch._batches import Batch, Loader
    from hockeystick.adapters.torch._clipping import Clip, Constant, LargestNorm, Online, Quantile
    from hockeystick.adapters.torch._loop import Private
    from hockeystick.adapters.torch._making import make_correlated, make_private
    from hockeystick.adapters.torch._self_test import TorchProgram
except ModuleNotFoundError as error:
    raise missing(error, "torch", "torch") from error

__all__ = [
    "Batch",
    "Clip",
    "Constant",
    "LargestNorm",
    "Loader",
    "Online",
    "Private",
    "Quantile",
    "TorchProgram",
    "make_correlated",
    "make_private",
]
