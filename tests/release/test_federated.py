"""Federated plans as they run: cohorts, sums of clients, local steps, messages, and their count."""

import itertools
import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

import hockeystick as hs
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.release.federated import (
    ClientRounds,
    ClientTraining,
    draw_clients,
    lloyd_step,
    noisy_update,
    sanitized,
)
from tests.release.bits import seeded

CLIENTS: dict[str, Any] = {"total_clients": 4, "clients_per_round": 2}


def sdp(sampling: str = "poisson", **changes: Any) -> hs.federated.FedSDP:
    """Return a plan of few clients."""
    settings = {"noise_multiplier": 2.0, "total_clients": 6, "clients_per_round": 2, "rounds": 3}
    return hs.federated.FedSDP(
        **{**settings, "sampling": sampling, "adjacency": "zero-out", **changes}
    )


@pytest.mark.parametrize("sampling", ["poisson", "fixed-size", "revealed"])
def test_each_client_is_drawn_as_often_as_the_plan_says(sampling: str) -> None:
    plan, bits, draws = sdp(sampling), seeded(3), 3000
    cohorts = [draw_clients(plan, bits=bits) for _ in range(draws)]
    counts = np.bincount(np.concatenate(cohorts), minlength=6)
    assert np.abs(counts / draws - 1 / 3).max() < 4.5 * math.sqrt(2 / 9 / draws)
    sizes = np.bincount([len(one) for one in cohorts], minlength=7)
    if sampling == "poisson":
        expected = np.asarray(stats.binom.pmf(np.arange(7), 6, 1 / 3)) * draws
        assert stats.chisquare(sizes, expected).pvalue > 1e-4
    else:
        assert sizes[2] == draws
        pairs = {tuple(one.tolist()) for one in cohorts}
        assert pairs == set(itertools.combinations(range(6), 2))


def _sum_of(plan: hs.federated.FedSDP, updates: list[list[float]], *, norm: float) -> Any:
    """Return a round's sum where the updates are those of the first clients that are drawn."""
    cohort = ClientRounds(plan, size=2, norm=norm, bits=seeded(1)).draw()
    for client, update in zip(cohort.clients, updates, strict=False):
        cohort.accept(client, update)
    return cohort.release() * plan.clients_per_round


def test_a_client_moves_the_sum_by_the_clipping_norm_and_no_further() -> None:
    """Without noise, so that the distance is seen; the same bits draw the same cohort."""
    plan = sdp("fixed-size", noise_multiplier=0.0)
    still = _sum_of(plan, [[0.1, 0.2]], norm=0.5)
    for update in ([1e9, 0.0], [-3.0, 4.0], [0.5, 0.0]):
        moved = _sum_of(plan, [[0.1, 0.2], update], norm=0.5) - still
        assert 0.4999 < np.linalg.norm(moved) <= 0.5
    opposite = [_sum_of(plan, [[0.1, 0.2], [x, 0.0]], norm=0.5) for x in (9.0, -9.0)]
    assert 0.999 < np.linalg.norm(opposite[0] - opposite[1]) <= 1.0


def test_the_noise_is_the_plans_on_the_sum_also_where_nobody_answers() -> None:
    plan = sdp(noise_multiplier=1.5)
    cohort = ClientRounds(plan, size=20_000, norm=0.5, bits=seeded(2)).draw()
    noise = cohort.release() * plan.clients_per_round / (1.5 * 0.5)
    assert stats.kstest(noise, "norm").pvalue > 1e-4
    assert noise.std() == pytest.approx(1, abs=0.02)


def test_noise_at_the_clients_is_the_whole_rounds_for_each() -> None:
    plan = sdp("revealed", noise_multiplier=1.5)
    message = noisy_update(plan, np.zeros(20_000), norm=0.5, bits=seeded(5))
    assert stats.kstest(message / 0.75, "norm").pvalue > 1e-4
    assert message.std() == pytest.approx(0.75, rel=0.02)
    cohort = ClientRounds(plan, size=2, norm=0.5, noise_at="clients").draw()
    for client in cohort.clients:
        cohort.accept(client, [8.0, -4.0])
    assert cohort.release().tolist() == [8.0, -4.0]


def test_noise_at_the_clients_is_refused_where_the_plan_counts_on_secrecy() -> None:
    for sampling in ("poisson", "fixed-size"):
        with pytest.raises(IncompatibleError, match="counts on their being secret"):
            ClientRounds(sdp(sampling), size=2, norm=1.0, noise_at="clients")
        with pytest.raises(IncompatibleError, match="counts on their being secret"):
            noisy_update(sdp(sampling), [1.0], norm=1.0)
    everybody = sdp(clients_per_round=6)
    assert ClientRounds(everybody, size=2, norm=1.0, noise_at="clients").draw().clients


UPDATES: Any = [
    ([1.0, math.nan], "finite numbers"),
    ([math.inf, 1.0], "finite numbers"),
    ([1.0, 2.0, 3.0], r"shape \(3,\)"),
    ([[1.0, 2.0]], r"shape \(1, 2\)"),
    (["a", "b"], "finite numbers"),
    ([1 + 2j, 0], "complex"),
    (None, "object"),
    ([[1.0], [1.0, 2.0]], "list"),
]


def test_a_wrong_update_is_refused_and_the_round_goes_on() -> None:
    plan = sdp(clients_per_round=6, noise_multiplier=0.0)
    cohort = ClientRounds(plan, size=2, norm=10.0).draw()
    cohort.accept(0, [3.0, 0.0])
    for update, told in UPDATES:
        with pytest.raises(ParameterError, match=told):
            cohort.accept(1, update)
    assert cohort.answered == (0,)
    cohort.accept(1, [0.0, 3.0])
    assert (cohort.release() * 6).round(3).tolist() == [3.0, 3.0]


def test_a_second_answer_a_stranger_and_a_late_answer_count_nothing() -> None:
    plan = sdp("fixed-size", noise_multiplier=0.0)
    cohort = ClientRounds(plan, size=1, norm=10.0).draw()
    one, other = cohort.clients
    stranger = next(client for client in range(6) if client not in cohort.clients)
    refused = cohort.accept_all(
        [(one, [1.0]), (one, [5.0]), (stranger, [7.0]), (other, [math.nan]), (99, [1.0])]
    )
    assert {client: text.split(";")[0] for client, text in refused.items()} == {
        one: "client must be one that has not answered in this round",
        stranger: "client must be one that was drawn for this round",
        other: "update must be finite numbers of at most 64 bits, integers up to 2^53 in size",
        99: "client must be one that was drawn for this round",
    }
    assert (cohort.release() * 2).round(3).tolist() == [1.0]
    with pytest.raises(IncompatibleError, match="has been released"):
        cohort.accept(other, [1.0])
    with pytest.raises(IncompatibleError, match="has been released"):
        cohort.release()


NUMBERS: Any = [np.array([0, 1]), np.array(0), [0], None, "0", 0.0, True, {}]
PAIRS: Any = [None, 3, "ab", [3], [(0,)], [(0, [1.0], 2)], np.array(0.0)]


def test_what_are_no_answers_of_clients_is_refused_and_none_is_taken() -> None:
    cohort = ClientRounds(sdp("fixed-size"), size=1, norm=10.0).draw()
    first = cohort.clients[0]
    for client in NUMBERS:
        with pytest.raises(ParameterError, match=r"^client must be one that was drawn"):
            cohort.accept(client, [1.0])
    for answers in (*PAIRS, *([(first, [1.0]), (client, [1.0])] for client in NUMBERS)):
        with pytest.raises(ParameterError, match=r"^answers must be pairs of a client's number"):
            cohort.accept_all(answers)
    assert cohort.answered == ()
    assert cohort.accept_all((one, [1.0]) for one in np.array(cohort.clients)) == {}
    assert cohort.answered == cohort.clients


class Scalar(int):
    """A number as arrays of some libraries have it: equal ones are different keys."""

    def __hash__(self) -> int:
        return id(self)


def test_a_client_counts_once_whatever_type_says_its_number() -> None:
    plan = sdp("fixed-size", noise_multiplier=0.0)
    cohort = ClientRounds(plan, size=1, norm=1.0).draw()
    one, other = cohort.clients
    alike: list[Any] = [Scalar(one), one, np.int64(one)]
    cohort.accept(alike[0], [1.0])
    for again in alike:
        with pytest.raises(ParameterError, match="has not answered"):
            cohort.accept(again, [1.0])
    with pytest.raises(ParameterError, match="was drawn"):
        cohort.accept(float(other), [1.0])  # type: ignore[arg-type]
    assert cohort.answered == (one,)
    assert (cohort.release() * 2).round(3).tolist() == [1.0]


def test_a_round_counts_when_it_is_drawn_and_there_are_no_more_than_planned() -> None:
    plan = sdp()
    run = ClientRounds(plan, size=1, norm=1.0)
    for done in range(1, 4):
        run.draw()
        assert run.counted == run.released.rounds == done
    assert run.released == plan
    with pytest.raises(IncompatibleError, match="3 rounds have begun"):
        run.draw()


def test_sets_of_one_size_are_of_the_plans_clients_and_nothing_is_counted_for_others() -> None:
    """By coins any number may be there: the rate and the divisor are the plan's."""
    run = ClientRounds(sdp(), size=1, norm=1.0, bits=seeded(4))
    assert run.draw(0).clients == ()
    assert max(run.draw(900).clients) > 800
    for plan in (sdp("fixed-size", adjacency="add-remove"), sdp("revealed")):
        run = ClientRounds(plan, size=1, norm=1.0)
        with pytest.raises(ParameterError, match="clients must be the plan's number, 6"):
            run.draw(7)
        assert run.counted == 0


GAUSSIAN: Any = hs.Gaussian(1.0)
SETTINGS: list[tuple[Any, str]] = [
    (lambda: ClientRounds(sdp(), size=1, norm=0.0), "norm"),
    (lambda: ClientRounds(sdp(noise_multiplier=math.inf), 1, 1.0), "noise_multiplier"),
    (lambda: ClientRounds(GAUSSIAN, size=1, norm=1.0), "plan"),
    (lambda: ClientRounds(sdp(), size=0, norm=1.0), "size"),
    (lambda: ClientRounds(sdp(), size=1, norm=1.0, noise_at="nobody"), "noise_at"),
    (lambda: draw_clients(GAUSSIAN), "plan"),
]


@pytest.mark.parametrize(("ask", "name"), SETTINGS)
def test_bad_settings_are_told(ask: Any, name: str) -> None:
    with pytest.raises(ParameterError, match=f"^{name} must be"):
        ask()


STEPS: dict[str, Any] = {"noise_multiplier": 2.0, "batch_size": 3, "local_steps": 5}
CDP: dict[str, Any] = {**CLIENTS, **STEPS, "examples_per_client": 6, "rounds": 4}


def cdp(sampling: str = "two-stage", **changes: Any) -> Any:
    """Return Fed-CDP of few records."""
    kind = hs.federated.FedAlphaCDP if "schedule" in changes else hs.federated.FedCDP
    return kind(**(CDP | {"sampling": sampling} | changes))


def synced(**changes: Any) -> Any:
    """Return PriFedSync of few records."""
    local = hs.federated.LocalTraining(examples=6, **(STEPS | changes))
    return hs.federated.PriFedSync(clients=local, rounds=4, client_rate=0.5)


class Watch:
    """Gradients that are given, one for each record, and note which records they were asked for."""

    def __init__(self, rows: Any) -> None:
        self.rows, self.batches = np.asarray(rows, dtype=float), list[Any]()

    def __call__(self, weights: Any, chosen: Any) -> Any:
        self.batches.append(chosen)
        return self.rows[chosen]


@pytest.mark.parametrize(
    ("plan", "rate", "fixed"),
    [
        (cdp(local_steps=3000), 1 / 2, True),
        (cdp("two-stage-poisson", local_steps=3000), 1 / 2, False),
        (cdp("poisson", local_steps=3000), 1 / 4, False),
        (synced(local_steps=3000), 1 / 2, True),
    ],
)
def test_records_are_drawn_as_often_as_the_plan_says(plan: Any, rate: float, fixed: bool) -> None:
    watch = Watch(np.zeros((6, 1)))
    ClientTraining(plan, 6, 1.0, bits=seeded(4)).train([0.0], watch, learning_rate=1.0)
    assert len(watch.batches) == 3000
    counts = np.bincount(np.concatenate(watch.batches), minlength=6)
    assert np.abs(counts / 3000 - rate).max() < 4.5 * math.sqrt(rate * (1 - rate) / 3000)
    sizes = np.bincount([len(one) for one in watch.batches], minlength=7)
    if fixed:
        assert sizes[3] == 3000
        assert len({tuple(one) for one in watch.batches}) == math.comb(6, 3)
    else:
        expected = np.asarray(stats.binom.pmf(np.arange(7), 6, rate)) * 3000
        expected[4], sizes[4] = expected[4:].sum(), sizes[4:].sum()
        assert stats.chisquare(sizes[:5], expected[:5]).pvalue > 1e-4


@pytest.mark.parametrize(
    "plan",
    [
        synced(local_steps=1),
        cdp("two-stage-poisson", local_steps=1),
        cdp(schedule=hs.schedules.Linear(0.25), local_steps=1),
    ],
)
def test_each_round_has_the_plans_noise_over_the_expected_size(plan: Any) -> None:
    client = ClientTraining(plan, 6, 0.5, bits=seeded(8))
    for index, noise in enumerate(getattr(plan, "noise_multipliers", [2.0, 2.0])):
        watch = Watch(np.zeros((6, 4000)))
        moved = client.train(np.zeros(4000), watch, learning_rate=3.0, round_index=index)
        assert stats.kstest(moved / (3.0 * noise * 0.5 / 3), "norm").pvalue > 1e-4


def test_a_record_moves_a_step_by_the_clipping_norm_and_no_further() -> None:
    """Without noise: every step's change, times the batch size, is the sum of its rows."""
    plan = cdp(noise_multiplier=0.0, local_steps=1, batch_size=6)
    for row, least, most in (([1e9, 0.0], 0.4999, 0.5), ([0.0, 0.3], 0.2999, 0.3001)):
        rows = np.zeros((6, 2))
        rows[2] = row
        moved = ClientTraining(plan, 6, 0.5).train([0.0, 0.0], Watch(rows), learning_rate=6.0)
        assert least < np.linalg.norm(moved) <= most
    rows[2] = math.nan
    moved = ClientTraining(plan, 6, 0.5).train([0.0, 0.0], Watch(rows), learning_rate=6.0)
    assert moved.tolist() == [0.0, 0.0]


def test_what_a_client_released_is_the_rounds_that_it_ran() -> None:
    client = ClientTraining(synced(), 6, 1.0)
    for rounds in range(1, 5):
        client.train([0.0], Watch(np.zeros((6, 1))), learning_rate=1.0)
        assert client.released == synced().settings[0] ** rounds
    with pytest.raises(IncompatibleError, match="4 rounds have begun"):
        client.train([0.0], Watch(np.zeros((6, 1))), learning_rate=1.0)
    assert hs.epsilon(client.released, 1e-5) == hs.epsilon(synced().of_client(0), 1e-5)


def test_clients_of_prifedsync_have_their_own_settings() -> None:
    two = (
        hs.federated.LocalTraining(examples=6, batch_size=3, noise_multiplier=0, local_steps=2),
        hs.federated.LocalTraining(examples=8, batch_size=8, noise_multiplier=0, local_steps=1),
    )
    plan = hs.federated.PriFedSync(clients=two, rounds=3)
    watch = Watch(np.zeros((8, 1)))
    ClientTraining(plan, 8, 1.0, client=1).train([0.0], watch, learning_rate=1.0)
    assert [len(one) for one in watch.batches] == [8]
    for client, records, told in ((0, 8, "records must be the plan's 6"), (2, 8, "client")):
        with pytest.raises(ParameterError, match=told):
            ClientTraining(plan, records, 1.0, client=client)


def test_clients_are_drawn_for_the_plans_that_draw_them() -> None:
    assert len(draw_clients(cdp())) == 2
    assert draw_clients(cdp("poisson")).tolist() == [0, 1, 2, 3]
    bits = seeded(2)
    sizes = [len(draw_clients(synced(), 10, bits=bits)) for _ in range(2000)]
    assert abs(np.mean(sizes) - 5) < 0.16
    assert np.var(sizes) == pytest.approx(2.5, rel=0.2)
    with pytest.raises(ParameterError, match="clients must be given"):
        draw_clients(synced())
    with pytest.raises(ParameterError, match="the plan's number, 4"):
        draw_clients(cdp(), 5)


WRONG: Any = [
    *(("weights", bad) for bad in ("x", [], np.zeros((3, 2)), [math.nan], 0.0)),
    *(("gradients", bad) for bad in (None, np.zeros((6, 1)))),
    *(("learning_rate", -1.0), ("round_index", -1)),
]
ROWS: Any = [np.zeros((2, 1)), np.zeros((3, 2)), np.zeros((3, 1), dtype=complex)]


def test_wrong_arguments_are_told_before_a_round_begins_and_wrong_gradients_within_it() -> None:
    client = ClientTraining(cdp(), 6, 1.0)
    given = {"weights": [0.0], "gradients": Watch(np.zeros((6, 1))), "learning_rate": 0.1}
    for name, bad in WRONG:
        with pytest.raises(ParameterError, match=f"^{name} must be"):
            client.train(**(given | {name: bad}))
    assert client.counted == 0
    for counted, rows in enumerate(ROWS, start=1):
        with pytest.raises(ParameterError, match=r"^gradients must be"):
            client.train([0.0], partial(lambda own, *_: own, rows), learning_rate=1.0)
        assert client.counted == counted


def test_too_few_records_are_told_where_batches_have_a_size() -> None:
    with pytest.raises(ParameterError, match="at least the plan's examples per client, 6"):
        ClientTraining(cdp(), 5, 1.0)
    assert ClientTraining(cdp(), 7, 1.0).counted == 0
    assert ClientTraining(cdp("two-stage-poisson"), 2, 1.0).counted == 0
    assert ClientTraining(cdp(batch_size=6), 2, 1.0).counted == 0
    with pytest.raises(ParameterError, match="plan must be a FedCDP"):
        ClientTraining(hs.Gaussian(1.0), 6, 1.0)  # type: ignore[arg-type]


def test_a_model_that_gradients_are_of_changes_by_the_noisy_sum_alone() -> None:
    """What computes gradients may write into the weights it was given."""

    def spoils(weights: Any, chosen: Any) -> Any:
        weights += 100.0
        return np.zeros((len(chosen), len(weights)))

    local = hs.federated.LocalTraining(examples=4, batch_size=2, noise_multiplier=0, local_steps=2)
    client = ClientTraining(hs.federated.PriFedSync(clients=local, rounds=1), 4, norm=1.0)
    assert client.train([0.0], spoils, learning_rate=1).tolist() == [0.0]


CLUSTERS = hs.federated.FederatedClustering(3.0, dimension=3, radius=2.0, rounds=4)
SILENT = hs.federated.FederatedClustering(0.0, dimension=3, radius=2.0, rounds=4)


def test_what_is_sent_before_noise_stays_within_the_radius_of_anything_else() -> None:
    center = [1.0, -2.0, 0.5]
    far = [[1e12, 0, 0], [-1e12, 5, 5], [1.0, 1e100, 0.5], [0.9, -1.9, 0.5]]
    sent = np.array([sanitized(SILENT, one, center) for one in far])
    distances = np.linalg.norm(sent[:, None] - sent[None, :], axis=2)
    assert 1.9999 < distances.max() <= 2.0
    assert sent[3] == pytest.approx(far[3], abs=1e-12)


@pytest.mark.parametrize("radius", [1e-300, 1e-170, 1e-162, 1e150, 1e308])
def test_lengths_whose_squares_are_no_floats_are_clipped_too(radius: float) -> None:
    """Exactly, in fractions."""
    plan = hs.federated.FederatedClustering(0.0, dimension=2, radius=radius, rounds=1)
    for far in ([radius, 0.0], [0.4 * radius, -0.4 * radius], [1e-5, 1.0]):
        sent = [Fraction(one) for one in sanitized(plan, far, [0.0, 0.0]).tolist()]
        assert 4 * sum(one**2 for one in sent) <= Fraction(radius) ** 2


def test_the_length_of_the_noise_is_gamma_with_the_plans_mean() -> None:
    """Shape n and scale nu r / n, directions uniform."""
    bits = seeded(7)
    center = np.array([5.0, 5.0, 5.0])
    noise = np.array([sanitized(CLUSTERS, center, center, bits=bits) - center for _ in range(3000)])
    lengths = np.linalg.norm(noise, axis=1)
    assert stats.kstest(lengths, stats.gamma(3, scale=3.0 * 2.0 / 3).cdf).pvalue > 1e-4


def test_each_message_is_charged_for_and_bad_vectors_are_told() -> None:
    account, zeros = hs.Accountant(), [0.0, 0.0, 0.0]
    far = ([1.7e308, 0.0, 0.0], [-1.7e308, 0.0, 0.0])
    wrong: Any = [([1.0, 2.0], zeros), ([1.0, 2.0, math.nan], zeros), (zeros, [0.0]), far]
    for parameters, center in (*wrong, ("abc", zeros)):
        with pytest.raises(ParameterError, match=r"parameters|center"):
            sanitized(CLUSTERS, parameters, center, charge=account)
    with pytest.raises(ParameterError, match="plan must be"):
        sanitized(hs.Gaussian(1.0), zeros, zeros, charge=account)  # type: ignore[arg-type]
    assert len(account) == 0
    for _ in range(CLUSTERS.rounds):
        sanitized(CLUSTERS, [1.0, 2.0, 3.0], zeros, charge=account)
    assert account.plan == CLUSTERS.mechanism


def test_lloyds_steps_reach_the_clusters_and_leave_empty_ones() -> None:
    rng = np.random.default_rng(1)
    truth = np.array([[5.0, 6.0], [4.0, -4.5]])
    points = np.repeat(truth, 50, axis=0) + rng.normal(size=(100, 2)) * 0.1
    centers = np.array([[0.0, 1.0], [0.0, -1.0], [900.0, 900.0]])
    for _ in range(2):
        centers, nearest = lloyd_step(points, centers)
    assert np.abs(centers[:2] - truth).max() < 0.1
    assert centers[2].tolist() == [900.0, 900.0]
    assert nearest.tolist() == [0] * 50 + [1] * 50
    for points, centers in (([1.0], [[1.0]]), ([[1.0, 2.0]], [[1.0]]), ([[1.0]], [])):  # type: ignore[assignment]
        with pytest.raises(ParameterError, match=r"points|centers"):
            lloyd_step(points, centers)
