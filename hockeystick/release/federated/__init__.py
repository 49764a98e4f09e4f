"""What makes federated training private: cohorts, noisy sums of clients, noisy steps of a client.

Everything is in numpy, and any engine may carry what is sent. Each run is made from the plan that
is accounted, which decides who is drawn, how much noise is added and how often. A ``journal`` is a
file that keeps the count of rounds, to go on with after a crash, or an ``hs.ledger.ReservedRun``,
which reserves all rounds first.

>>> import numpy as np
>>> import hockeystick as hs
>>> from hockeystick.release.federated import ClientRounds
>>> plan = hs.federated.FedSDP(
...     noise_multiplier=2, total_clients=10, clients_per_round=5, rounds=3, sampling="poisson"
... )
>>> run, weights = ClientRounds(plan, size=4, norm=1.0), np.zeros(4)
>>> for _ in range(plan.rounds):
...     cohort = run.draw()
...     for client in cohort.clients:
...         cohort.accept(client, np.ones(4) - weights)
...     weights += cohort.release()
>>> run.released == plan
True
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
