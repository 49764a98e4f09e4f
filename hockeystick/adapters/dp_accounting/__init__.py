"""Plugs into dp-accounting: its events as mechanisms, mechanisms as its events, an accountant.

TensorFlow Privacy 0.9 and JAX Privacy 2 account for DP-SGD by such events. They name no neighbours:
say which are meant (``plan.neighboring_relation``), or have add-remove. For batches of a fixed size
they must be said. Where those libraries take an accountant, give them ``HockeystickAccountant``.

>>> import dp_accounting
>>> import hockeystick as hs
>>> from hockeystick.adapters.dp_accounting import HockeystickAccountant, from_event
>>> step = dp_accounting.PoissonSampledDpEvent(256 / 60_000, dp_accounting.GaussianDpEvent(1.1))
>>> event = dp_accounting.SelfComposedDpEvent(step, 14_063)
>>> print(hs.epsilon(from_event(event), delta=1e-5))
epsilon = 2.38169 at delta = 1e-05 (proven in [2.3816897..., 2.3816897...]; contour, add-remove)
>>> step = dp_accounting.dp_event.SampledWithoutReplacementDpEvent(
...     60_000, 256, dp_accounting.GaussianDpEvent(2.2)
... )
>>> event = dp_accounting.SelfComposedDpEvent(step, 1000)
>>> print(hs.epsilon(from_event(event, "replace-one"), delta=1e-5))
epsilon = 0.722353 at delta = 1e-05 (proven in [0.598685, 0.722353]; contour, replace-one)
>>> noise = dp_accounting.calibrate_dp_mechanism(
...     lambda: HockeystickAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE),
...     lambda noise: dp_accounting.SelfComposedDpEvent(
...         dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(noise)), 1000
...     ),
...     target_epsilon=2.0,
...     target_delta=1e-5,
... )
>>> print(f"{noise:.4f}")
0.9591

What there is no proof for is refused with the reason: ``use_zcdp=True`` in a sample, JAX Privacy's
truncated batches under ``REPLACE_SPECIAL``, and every event that dp-accounting 0.6 does not have,
among them random allocation, which ``hs.DPSGD(sampling="random-allocation")`` says.
"""

from hockeystick.adapters import missing

try:
    from hockeystick.adapters.dp_accounting._accountant import HockeystickAccountant
    from hockeystick.adapters.dp_accounting._distributions import from_pld, to_pld
    from hockeystick.adapters.dp_accounting._events import from_event, to_event
except ModuleNotFoundError as error:
    raise missing(error, "dp_accounting", "peers") from error

__all__ = ["HockeystickAccountant", "from_event", "from_pld", "to_event", "to_pld"]
