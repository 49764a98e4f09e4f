"""What a private loop of any library is made of, in numpy: batches, an account, noisy sums.

``hockeystick.adapters.torch`` does all of it. In a loop of JAX, Keras or MLX, each step is: draw,
compute a gradient of each example alone, **count**, sum, divide by the expected size.

>>> import numpy as np
>>> import hockeystick as hs
>>> from hockeystick.adapters.loop import Account, Sampler, noisy_sum
>>> plan = hs.DPSGD(examples=100, batch_size=20, steps=3, noise_multiplier=2)
>>> data, weights = np.ones((100, 4)), np.zeros(4)
>>> sampler, account = Sampler(plan, len(data)), Account(plan)
>>> for step in range(account.counted, account.limit):
...     gradients = weights - data[sampler.draw(step)]
...     account.count()
...     total = noisy_sum(gradients, norm=1.0, noise_multiplier=plan.noise_multiplier)
...     weights -= 0.1 * total / sampler.expected(step)
>>> hs.epsilon(account.released, 1e-5).upper == hs.epsilon(plan, 1e-5).upper
True

Nobody but the loop sees to this: each batch that is drawn is used once, by the step it is for;
gradients of one example know nothing of the others; nothing else looks at the data.
"""

from hockeystick.adapters.loop._account import Account
from hockeystick.adapters.loop._sampler import Sampler
from hockeystick.release.noise.clipped_sum import noisy_sum

__all__ = ["Account", "Sampler", "noisy_sum"]
