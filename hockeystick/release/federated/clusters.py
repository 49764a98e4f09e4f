"""Private clustered federated learning: what a client sends, and the server's step of Lloyd."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from hockeystick.errors import ParameterError
from hockeystick.mechanisms.federated.prifedsync import FederatedClustering
from hockeystick.release._values import numbers, rows_of_length
from hockeystick.release.charging import Charged
from hockeystick.release.noise.real import multivariate_laplace
from hockeystick.release.samplers import Bits, secret_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Room for the rounding of lengths, so that none is beyond the bound.
_ROOM = 1 - 2.0**-40


def sanitized(
    plan: FederatedClustering,
    parameters: Any,
    center: Any,
    *,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> NDArray[np.float64]:
    """Return a client's parameters as it may send them: clipped about a center, with noise.

        center + [parameters - center]_(r/2) + Z,  Z of the density ``~ exp(-n |z| / (nu r))``

    for the plan's n, r and finite noise; parameters and center are n finite numbers each.

    Guarantees:
        **Where the center is public**, the same for all the client's data, any two of its data
        sets send vectors at most r apart, by construction: the plan's account holds whatever the
        data, with exact noise (``release.multivariate_laplace``).

        Where the center is the hypothesis that fits the client best, as the published algorithm has
        it, which one that is depends on the data, and the guarantee is by distance alone: two data
        sets whose messages, before noise, are d apart are told apart with a loss of at most
        ``n d / (nu r)``; r bounds d only for data that choose the same hypothesis.

    References:
        Galli, Biswas, Jung, Cucinotta and Palamidessi, "Group Privacy for Personalized Federated
        Learning", 2022, algorithm 2 (which scales the noise by the length of the client's own
        update, and has no guarantee).

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.release.federated import sanitized
        >>> plan = hs.federated.FederatedClustering(5, dimension=2, radius=4.0, rounds=1)
        >>> sanitized(plan, [3.0, 1.0], center=[0.0, 0.0]).shape
        (2,)
    """
    if not isinstance(plan, FederatedClustering):
        raise ParameterError("plan", plan, "an hs.federated.FederatedClustering")
    middle = _vector("center", center, plan.dimension)
    sent = _vector("parameters", parameters, plan.dimension)
    # In units of a power of two in which the radius is about 1, so that no square underflows.
    radius, exponent = math.frexp(plan.radius)
    with np.errstate(over="ignore", under="ignore"):
        offset = np.ldexp(sent - middle, -exponent)
        length = math.hypot(*offset.tolist())
    if not math.isfinite(length):
        allowed = "so near the center that its distance over the radius is a finite float"
        raise ParameterError("parameters", "a longer vector", allowed)
    most = _ROOM * radius / 2
    if length > most:
        offset = offset * (_ROOM * most / length)
    noisy = multivariate_laplace(plan.noise, offset, radius, charge=charge, bits=bits)
    with np.errstate(over="ignore", under="ignore"):
        noisy = np.ldexp(noisy, exponent)
    return np.asarray(middle + noisy)


def lloyd_step(points: Any, centers: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the centers after one step of Lloyd's algorithm, and the center each point was at.

    Each point goes to the nearest of one or more centers, the first of those alike; each center
    moves to the mean of its points, and without points stays where it is. What it does with private
    messages is post-processing.

    References:
        Lloyd, "Least Squares Quantization in PCM", 1982.

    Example:
        >>> from hockeystick.release.federated import lloyd_step
        >>> moved, nearest = lloyd_step([[0.0], [1.0], [9.0]], [[0.0], [10.0], [50.0]])
        >>> moved.ravel().tolist(), nearest.tolist()
        ([0.5, 9.0, 50.0], [0, 0, 1])
    """
    means = numbers("centers", centers)
    if means.ndim != 2 or len(means) == 0:
        raise ParameterError("centers", f"an array of shape {means.shape}", "one or more rows")
    given = rows_of_length("points", points, means.shape[1])
    gaps = np.linalg.norm(given[:, None, :] - means[None, :, :], axis=2)
    nearest = np.argmin(gaps, axis=1)
    moved = means.copy()
    for place in np.unique(nearest):
        moved[place] = given[nearest == place].mean(axis=0)
    return moved, nearest.astype(np.int64)


def _vector(name: str, value: Any, dimension: int) -> NDArray[np.float64]:
    """Return a vector of finite numbers, or raise without showing it."""
    found = numbers(name, value)
    if found.shape != (dimension,):
        allowed = f"a vector of {dimension} finite numbers"
        raise ParameterError(name, f"an array of shape {found.shape}", allowed)
    return found
