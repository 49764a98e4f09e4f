"""The blanket of shuffled reports: against sums over all counts, and against the clones."""

import math

import numpy as np
import pytest
from scipy.special import gammaln

import hockeystick as hs
from hockeystick.privacy_loss import CellLoss
from hockeystick.privacy_loss.local import privacy_blanket
from hockeystick.privacy_loss.local.privacy_blanket import BlanketLoss, blanket_of

Randomizer = hs.RandomizedResponse | hs.mechanisms.UnaryEncoding
RESPONSES: list[Randomizer] = [hs.RandomizedResponse(1.0, 3), hs.RandomizedResponse(4.0, 10)]
ENCODINGS: list[Randomizer] = [
    hs.mechanisms.UnaryEncoding(1.0),
    hs.mechanisms.UnaryEncoding(4.0),
    hs.mechanisms.UnaryEncoding(1.0, "optimized"),
    hs.mechanisms.UnaryEncoding(5.0, "optimized"),
]


def least_densities(randomizer: Randomizer) -> list[float]:
    """Return the least densities of reports that say x, x', both and neither, over all data."""
    odds = math.exp(randomizer.epsilon)
    if isinstance(randomizer, hs.RandomizedResponse):
        total = odds + randomizer.categories - 1
        return [1 / total, 1 / total, 0.0, (randomizer.categories - 2) / total]
    optimized = str(randomizer.kind) == "optimized"
    p = 0.5 if optimized else 1 - 1 / (1 + math.sqrt(odds))
    q = 1 / (1 + odds) if optimized else 1 - p
    # A third category's own bit is 0, so that the others are as likely as from nobody.
    least = (1 - p) / (1 - q)
    return [least * q * (1 - q), least * q * (1 - q), least * q * q, least * (1 - q) ** 2]


def over_all_counts(randomizer: Randomizer, users: int, epsilon: float) -> float:
    """Return ``E[(g_1 + ... + g_n)_+] / n``, with ``g = (R - e^epsilon R')/w`` on the blanket."""
    k, odds = math.exp(epsilon), math.exp(randomizer.epsilon)
    w = np.array(least_densities(randomizer))
    g = np.array([odds - k, 1 - k * odds, odds * (1 - k), 1 - k])
    counts = np.indices((users + 1,) * 4).reshape(4, -1)
    counts = counts[:, counts.sum(axis=0) <= users]
    counts = counts[:, (w[:, None] > 0.0).repeat(counts.shape[1], 1).all(0) | (counts[2] == 0)]
    rest = users - counts.sum(axis=0)
    logs = (counts * np.log(np.where(w > 0.0, w, 1.0))[:, None]).sum(axis=0)
    logs += rest * math.log1p(-w.sum()) - gammaln(counts + 1).sum(axis=0) - gammaln(rest + 1)
    return float(np.exp(logs + gammaln(users + 1)) @ np.maximum(g @ counts, 0.0)) / users


def profile(loss: CellLoss, epsilon: float) -> float:
    """Return the profile of the atoms."""
    atoms = loss.atoms()
    kept = atoms.loss > epsilon
    return float((np.exp(atoms.log_p[kept]) * -np.expm1(epsilon - atoms.loss[kept])).sum())


@pytest.mark.parametrize("randomizer", [*RESPONSES, *ENCODINGS])
@pytest.mark.parametrize("users", [2, 5, 8])
def test_few_users_are_summed_as_they_are(randomizer: Randomizer, users: int) -> None:
    loss = BlanketLoss(randomizer, users)
    for share in (-0.5, 0.0, 0.3, 0.7, 0.95):
        epsilon = share * randomizer.epsilon
        truth = over_all_counts(randomizer, users, epsilon)
        assert truth * (1 - 1e-11) <= profile(loss, epsilon) <= truth * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize("randomizer", [RESPONSES[0], ENCODINGS[0], ENCODINGS[2]])
def test_sums_on_a_grid_are_above_and_near(randomizer: Randomizer) -> None:
    users = 14
    for share in (0.0, 0.2, 0.5):
        epsilon = share * randomizer.epsilon
        truth = over_all_counts(randomizer, users, epsilon)
        assert truth * (1 - 1e-11) <= profile(BlanketLoss(randomizer, users), epsilon)
        assert profile(BlanketLoss(randomizer, users), epsilon) <= truth * 1.02


def test_the_masses_of_a_blanket_are_the_least_densities() -> None:
    for randomizer in (*RESPONSES, *ENCODINGS):
        found, w = blanket_of(randomizer), least_densities(randomizer)
        assert found is not None
        assert found == pytest.approx((w[0], w[2], w[3], 1 - sum(w)), rel=1e-12)


def test_binary_response_and_guarantees_have_none_of_their_own() -> None:
    assert blanket_of(hs.RandomizedResponse(1.0, 2)) is None
    assert blanket_of(hs.PureDP(1.0)) is None


def test_means_of_fewer_values_are_larger_in_convex_order() -> None:
    # Stop-losses of the mean of R values, at which the law is taken in place of more.
    odds, blanket = math.e, blanket_of(hs.mechanisms.UnaryEncoding(1.0))
    assert blanket is not None
    few, many = (privacy_blanket._sums(blanket, odds, trials) for trials in (64, 1024))
    mean = float(many.at @ many.mass) / 1024
    assert float(few.at @ few.mass) / 64 == pytest.approx(mean, rel=1e-12)
    for level in (0.8 * mean, mean, 1.3 * mean):
        low, high = (
            float(np.maximum(one.at / trials - level, 0.0) @ one.mass)
            for one, trials in ((many, 1024), (few, 64))
        )
        assert low <= high
