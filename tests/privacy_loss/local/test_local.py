"""Losses of unary encoding and of shuffled reports, against all outcomes of few users."""

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import binom

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import CellLoss, CountLoss, StrongerClonesLoss
from hockeystick.privacy_loss.shuffling import BinaryReportsLoss, Blanket, BlanketLoss, blanket_of
from tests.precision import twins


@pytest.mark.parametrize("flip", [0.5, 0.6, 1e-3, 1e-30, 1e-45, 1e-70, 1e-154, 1e-300])
def test_few_flips_cost_what_two_differing_bits_do(flip: float) -> None:
    plan = hs.mechanisms.RAPPOR(flip, 1)
    found = hs.epsilon(plan, delta=1e-5)
    with mp.workdps(700):
        kept = 1 - mp.mpf(repr(flip)) / 2
        bit = mp.log(kept / (1 - kept))
        # Beyond 0, which is the loss where one bit is changed, only both kept bits count.
        truth = 2 * bit + mp.log1p(-mp.mpf("1e-5") / kept**2)
        assert found.lower <= truth <= found.upper
    exact = hs.epsilon(plan, delta=1e-5, digits=30)
    with mp.workdps(700):
        assert abs(exact.estimate - truth) <= truth * mp.mpf(10) ** -29
    assert found.relative_width < 1e-14


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


def over_all_counts(least: list[float], local: float, users: int, epsilon: float) -> float:
    """Return ``E[(g_1 + ... + g_n)_+] / n``, with ``g = (R - e^epsilon R')/w`` on the blanket."""
    k, odds = math.exp(epsilon), math.exp(local)
    w = np.array(least)
    g = np.array([odds - k, 1 - k * odds, odds * (1 - k), 1 - k])
    counts = np.indices((users + 1,) * 4).reshape(4, -1)
    counts = counts[:, counts.sum(axis=0) <= users]
    counts = counts[:, ((w[:, None] > 0.0) | (counts == 0)).all(0)]
    rest = users - counts.sum(axis=0)
    logs = (counts * np.log(np.where(w > 0.0, w, 1.0))[:, None]).sum(axis=0)
    logs += rest * math.log1p(-w.sum()) - gammaln(counts + 1).sum(axis=0) - gammaln(rest + 1)
    return float(np.exp(logs + gammaln(users + 1)) @ np.maximum(g @ counts, 0.0)) / users


def within(local: float, variation: float) -> tuple[float, Blanket, list[float]]:
    """Return a pair within a total variation, and ``e^-local`` times the larger density of it."""
    one = variation / math.expm1(local)
    both = math.exp(-local) * (1 + variation) - 2 * one
    return local, blanket_of(hs.PureDP(local), local, variation), [one, one, both, 0.0]


PAIRS = [
    (one.epsilon, blanket_of(one, one.epsilon, 1.0), least_densities(one))
    for one in (*RESPONSES, *ENCODINGS)
]
PAIRS += [within(0.1, 0.02), within(1.0, 0.4), within(4.0, 0.3)]


@pytest.mark.parametrize(("local", "blanket", "least"), PAIRS)
@pytest.mark.parametrize(("users", "above"), [(2, 1e-8), (5, 1e-8), (8, 1e-8), (14, 0.02)])
def test_few_users_are_summed_as_they_are_and_more_on_a_grid_above(
    local: float, blanket: Blanket, least: list[float], users: int, above: float
) -> None:
    loss = BlanketLoss(blanket, local, users)
    for share in (-0.5, 0.0, 0.3, 0.5) if users > 8 else (-0.5, 0.0, 0.3, 0.7, 0.95):
        truth = over_all_counts(least, local, users, share * local)
        found = profile(loss, share * local)
        assert truth * (1 - 1e-11) <= found <= truth * (1 + above) + 1e-15


@pytest.mark.parametrize(("local", "users"), [(1.0, 6), (0.3, 12), (4.0, 9), (1.0, 250)])
def test_binary_responses_cost_what_they_do_among_the_worst_others(
    local: float, users: int
) -> None:
    loss, p = BinaryReportsLoss(local, users), 1 / (1 + math.exp(-local))
    counts = [binom.pmf(np.arange(k + 1), k, p) for k in range(users)]
    held = [np.convolve(one, other[::-1]) for one, other in zip(counts, counts[::-1], strict=True)]
    more, less = ([np.convolve(one, own) for one in held] for own in ([1 - p, p], [p, 1 - p]))
    for share in (0.0, 0.2, 0.6, 0.95) if users < 20 else (0.0, 0.1, 0.3):
        k = math.exp(share * local)
        truth = max(np.maximum(p - k * q, 0).sum() for p, q in zip(more, less, strict=True))
        above = 1e-5 if users < 20 else 0.06
        assert truth * (1 - 1e-11) <= profile(loss, share * local) <= truth * (1 + above)


def profile(loss: CellLoss, epsilon: float) -> float:
    atoms = loss.atoms()
    kept = atoms.loss > epsilon
    return float((np.exp(atoms.log_p[kept]) * -np.expm1(epsilon - atoms.loss[kept])).sum())


@pytest.mark.parametrize(
    ("local", "users", "epsilons"),
    [
        (1.0, 2, (0.0, 0.5, 0.9)),
        (1.0, 5, (0.0, 0.3, 0.7)),
        (0.1, 40, (0.0, 0.01, 0.05)),
        (6.0, 115, (0.5, 5.0)),
    ],
)
def test_the_clones_pair_lies_between_its_two_losses(
    local: float, users: int, epsilons: tuple[float, ...]
) -> None:
    below = StrongerClonesLoss(local, 2, users)
    above = BlanketLoss(blanket_of(hs.PureDP(local), local, 1.0), local, users)
    for epsilon in epsilons:
        with mp.workdps(40):
            truth = float(twins.clones_delta(mp.mpf(local), users, mp.mpf(epsilon)))
        low, high = profile(below, epsilon), profile(above, epsilon)
        assert low <= truth * (1 + 1e-11)
        assert high >= truth * (1 - 1e-11)
        assert high - low <= 1e-3 * truth


@pytest.mark.parametrize(("local", "categories"), [(1.0, 2), (1.0, 5), (3.0, 2), (0.2, 3)])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("held", [True, False])
def test_a_count_is_known_to_the_digits_of_floats(
    local: float, categories: int, shared: bool, held: bool
) -> None:
    users = 50
    more = math.exp(local)
    one = (categories - 1, more), (more + categories - 2, 1)
    loss = CountLoss.of_event(local, users, one, shared, held)
    with mp.workdps(40):
        odds = mp.exp(mp.mpf(local))
        rare = 1 / (odds + categories - 1)
        likely, base = odds * rare, odds * rare if shared else rare
        others = twins.binomial(users - 1, base / (1 - base))
        held_or_not = (likely, rare) if held else (rare, likely)
        own = [np.convolve(others, [1 - share, share]) for share in held_or_not]
        for epsilon in (0.0, 0.05, 0.15):
            truth = mp.fsum(np.maximum(own[0] - own[1] * mp.exp(epsilon), 0))
            assert profile(loss, epsilon) == pytest.approx(float(truth), rel=1e-11)
            assert profile(loss, epsilon) <= truth * (1 + mp.mpf("1e-12"))


# Over all data and all reports of few users with three categories, at 0, 0.3 and 0.7 of epsilon.
@pytest.mark.parametrize(
    ("kind", "users", "local", "costs"),
    [
        ("symmetric", 2, 0.7, (0.14363186337354675, 0.07494351129460071, 0.022430367534291385)),
        ("symmetric", 3, 2.5, (0.5009527339767794, 0.3579935415286753, 0.12299702371037516)),
        ("optimized", 2, 0.7, (0.14028439247957014, 0.07585646900287926, 0.021142344906450873)),
        ("optimized", 2, 2.5, (0.4080545067115133, 0.3317527691703698, 0.13565953137723777)),
        ("optimized", 3, 2.5, (0.39257737059721226, 0.294632576686747, 0.0749892669953839)),
    ],
)
def test_unary_encodings_of_few_users_lie_between_both_ends(
    kind: str, users: int, local: float, costs: tuple[float, ...]
) -> None:
    plan = hs.mechanisms.ShuffledReports(hs.mechanisms.UnaryEncoding(local, kind), users)
    for share, truth in zip((0.0, 0.3, 0.7), costs, strict=True):
        answer = hs.delta(plan, share * local)
        assert answer.lower <= truth * (1 + 1e-12)
        assert answer.lower > 0.0 or share > 0.0
        assert truth <= answer.upper * (1 + 1e-12)


def test_others_who_share_the_datum_cost_more_than_the_variation_ratio_says() -> None:
    # Three categories, data (0, 0) against (1, 0): the outcome {0, 0} alone; and all reports where
    # the other holds the third category.
    local, epsilon = 1.0, 0.9
    alone = (math.exp(2) - math.exp(1.9)) / (math.e + 2) ** 2
    third = 0.0116196
    assert alone == pytest.approx(0.0315855, rel=1e-5)
    found = hs.delta(hs.mechanisms.ShuffledReports(hs.RandomizedResponse(local, 3), 2), epsilon)
    assert third < alone <= found.upper


def test_no_amplification_is_credited_to_a_randomizer_beyond_its_range() -> None:
    for local in (20.5, 1e-7):
        found = hs.epsilon(hs.mechanisms.ShuffledReports(hs.PureDP(local), 10**6), 1e-30)
        assert local * (1 - 1e-9) <= found.upper <= local * (1 + 1e-9)


def test_other_randomizers_cost_less_than_the_clones_and_no_less_than_an_event() -> None:
    # Of two bits, both, one or none say the first datum.
    first = [0.625**2, 2 * 0.625 * 0.375, 0.375**2]
    for users, epsilon in itertools.product((3, 5), (0.1, 0.3, 0.8)):
        truths = []
        for others, own in itertools.product((first, first[::-1]), repeat=2):
            gains: dict[tuple[int, ...], float] = defaultdict(float)
            for one, *rest in itertools.product(range(3), repeat=users):
                more = own[one] - math.exp(epsilon) * own[2 - one]
                gains[tuple(sorted((one, *rest)))] += more * math.prod(others[k] for k in rest)
            truths.append(sum(max(gain, 0.0) for gain in gains.values()))
        bits, pure = (
            hs.delta(hs.mechanisms.ShuffledReports(one, users), epsilon)
            for one in (hs.mechanisms.RAPPOR(0.75, 1), hs.PureDP(2 * math.log(5 / 3)))
        )
        assert 0.4 * max(truths) <= bits.lower <= max(truths) * (1 + 1e-12)
        assert max(truths) <= bits.upper <= pure.upper


def test_laplace_noise_costs_no_less_than_the_number_of_reports_on_one_side() -> None:
    # Of 10,000, each beyond the middle of the data with probability 1 - e^(-1/20)/2 or the rest.
    plan = hs.mechanisms.ShuffledReports(hs.Laplace(10.0), 10_000)
    assert hs.epsilon(plan, 1e-6).lower == pytest.approx(0.0026499160, rel=1e-6)
