"""Plugs into dp-accounting: its events as mechanisms, mechanisms as its events, an accountant.

Keras and JAX users have such events already: TensorFlow Privacy 0.9 accounts for DP-SGD by one, and
JAX Privacy 2 has them in ``jax_privacy.accounting`` and its execution plans (``plan.dp_event``).
They are plain descriptions, so that nothing of those libraries is needed to read one, and they name
no neighbours: say which are meant (``plan.neighboring_relation``), or have add-remove. For batches
of a fixed size they must be said.

DP-SGD on Poisson samples, as ``compute_dp_sgd_privacy_statement`` and ``dpsgd_event`` build it:

>>> import dp_accounting
>>> import hockeystick as hs
>>> from hockeystick.adapters.dp_accounting import HockeystickAccountant, from_event
>>> step = dp_accounting.PoissonSampledDpEvent(256 / 60_000, dp_accounting.GaussianDpEvent(1.1))
>>> event = dp_accounting.SelfComposedDpEvent(step, 14_063)
>>> print(hs.epsilon(from_event(event), delta=1e-5))
epsilon = 2.38169 at delta = 1e-05 (proven in [2.3816897..., 2.3816897...]; contour, add-remove)

Batches of a fixed size, as ``fixed_dpsgd_event`` builds it, are for a replaced record:

>>> step = dp_accounting.dp_event.SampledWithoutReplacementDpEvent(
...     60_000, 256, dp_accounting.GaussianDpEvent(2.2)
... )
>>> event = dp_accounting.SelfComposedDpEvent(step, 1000)
>>> print(hs.epsilon(from_event(event, "replace-one"), delta=1e-5))
epsilon = 0.722353 at delta = 1e-05 (proven in [0.598685, 0.722353]; contour, replace-one)

Where those libraries take an accountant, as ``calibrate`` of a JAX Privacy configuration does, give
them ``HockeystickAccountant``, which is called with the neighbours that are meant:

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

What there is no proof for is refused with the reason: ``use_zcdp=True`` in a sample (of zCDP only a
bound is known, which sampling does not amplify), JAX Privacy's truncated batches under
``REPLACE_SPECIAL`` (under add-remove they are read), and every event that dp-accounting 0.6 does
not have, among them random allocation. That one is said in words of our own:

>>> plan = hs.DPSGD(
...     examples=60_000,
...     batch_size=600,
...     epochs=2,
...     noise_multiplier=1.1,
...     sampling="random-allocation",
... )
>>> print(hs.epsilon(plan, delta=1e-5))
epsilon = 0.633934 at delta = 1e-05 (proven in [0.633809, 0.633934]; prv, add-remove)
"""

from hockeystick.adapters import missing

try:
    from hockeystick.adapters.dp_accounting._accountant import HockeystickAccountant
    from hockeystick.adapters.dp_accounting._distributions import from_pld, to_pld
    from hockeystick.adapters.dp_accounting._reading import from_event
    from hockeystick.adapters.dp_accounting._writing import to_event
except ModuleNotFoundError as error:
    raise missing(error, "dp_accounting", "peers") from error

__all__ = ["HockeystickAccountant", "from_event", "from_pld", "to_event", "to_pld"]
