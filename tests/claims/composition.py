"""Composition theorems and groups: what documents state, and what mechanisms attain."""

from __future__ import annotations

import math
from itertools import product

from hockeystick.accountants import delta as delta_of
from hockeystick.accountants import epsilon as epsilon_of
from hockeystick.mechanisms import RandomizedResponse
from hockeystick.notions import ApproxDP
from hockeystick.numerics.multiprecision import mp
from hockeystick.numerics.working_precision import working_digits
from hockeystick.results import Certified
from tests.claims.found import Found, proven, way


@way
def advanced_epsilon(*, epsilon: float, runs: int, delta: float, halved: bool = False) -> float:
    """Return ``sqrt(2 k ln(1/delta)) e + k e (exp(e) - 1)``, or with the second term halved."""
    second = runs * epsilon * math.expm1(epsilon)
    root = math.sqrt(2.0 * runs * math.log(1.0 / delta)) * epsilon
    return root + (second / 2.0 if halved else second)


@way
def doubled_root_epsilon(*, epsilon: float, runs: int, delta: float) -> float:
    """Return ``2 sqrt(2 k ln(1/delta)) e``, advanced composition with its second term dropped."""
    return 2.0 * math.sqrt(2.0 * runs * math.log(1.0 / delta)) * epsilon


@way
def sum_of_deltas(*, delta: float, runs: int) -> float:
    """Return ``k delta``."""
    return runs * delta


@way
def exact_delta(*, epsilon: float, delta: float, runs: int) -> Certified:
    """Return the worst delta at ``k epsilon`` of k (epsilon, delta)-DP mechanisms."""
    return delta_of(ApproxDP(epsilon, delta) ** runs, epsilon=runs * epsilon)


@way
def doubled_root_of_steps(*, epsilon: float, runs: int, delta: float) -> float:
    """Return ``2 sqrt(2 T ln(2/delta)) epsilon_1`` with that epsilon_1."""
    one = _step_of_the_proof(epsilon=epsilon, runs=runs, delta=delta)
    return doubled_root_epsilon(epsilon=one, runs=runs, delta=delta / 2.0)


@way
def exact_epsilon_of_steps(*, epsilon: float, runs: int, delta: float) -> Certified:
    """Return the epsilon of T mechanisms that are epsilon_1-DP, at delta/2."""
    one = _step_of_the_proof(epsilon=epsilon, runs=runs, delta=delta)
    return exact_epsilon(epsilon=one, runs=runs, delta=delta / 2.0)


@way
def exact_epsilon(*, epsilon: float, runs: int, delta: float) -> Certified:
    """Return the epsilon of several e-DP mechanisms, which randomized response attains."""
    return epsilon_of(RandomizedResponse(epsilon) ** runs, delta)


@way
def group_as_printed(*, delta: float, size: int) -> float:
    """Return ``g e^(g-1) delta``."""
    return size * math.exp(size - 1) * delta


@way
def group_attained(*, epsilon: float, delta: float, size: int) -> Found:
    """Return delta at ``g epsilon`` of an (epsilon, delta)-DP mechanism on a chain of data sets.

    With two outputs, ``P_i(a) = delta (e^((g-i) eps) - 1)/(e^eps - 1)`` for i = 0..g has
    ``P_i(a) - e^eps P_(i+1)(a) = delta`` between neighbours, less in the other direction and for
    b where ``P_0(a) <= 1 - e^-eps``; and ``P_0(a) - e^(g eps) P_g(a) = P_0(a)`` between the ends.
    """
    with working_digits(30):
        eps = mp.mpf(epsilon)
        first = mp.mpf(delta) * mp.expm1(size * eps) / mp.expm1(eps)
        if first > -mp.expm1(-eps):
            raise ValueError("the mechanism needs a smaller delta")
        return proven(first, "delta")


@way
def moved_record_epsilon(*, epsilon: float, blocks: int) -> Found:
    """Return the epsilon of disjoint parts of the data where a record is in several of them.

    Each part reports truthfully whether the record is in it with probability
    ``e^eps/(1 + e^eps)``: the largest ratio of probabilities of all 2^blocks outputs. An added or
    removed record changes one part, and so does a replaced one that stays in its part; a replaced
    one may also leave a part for another.
    """
    with working_digits(30):
        odds = mp.exp(mp.mpf(epsilon))
        chances = {True: odds / (1 + odds), False: 1 / (1 + odds)}
        ratios = [
            mp.fprod(chances[seen] / chances[not seen] for seen in outputs)
            for outputs in product((True, False), repeat=blocks)
        ]
        return proven(mp.log(max(ratios)), "epsilon")


def _step_of_the_proof(*, epsilon: float, runs: int, delta: float) -> float:
    """Return ``epsilon/(2 sqrt(2 T ln(2/delta)))``, which the proof for DP-SGD gives each step."""
    return epsilon / (2.0 * math.sqrt(2.0 * runs * math.log(2.0 / delta)))
